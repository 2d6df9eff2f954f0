"""Forgetting says what it keeps out, keeps out no more than was meant, and shows how much it is."""

from __future__ import annotations

import pytest

from nanoclaw_memory.memory import Memory


def test_a_text_that_nothing_contains_is_kept_out_only_if_asked(ncm):
    ncm("init")
    assert "nothing is kept out" in ncm("forget", "4711", "--yes").out
    assert ncm("write", "4711 is the new extension").code == 0
    assert ncm("forget", "--list").out.strip() == "Nothing is kept out."
    done = ncm("forget", "0815 is the alarm", "--keep-out", "--yes")
    assert "kept out from now on: '0815 is the alarm'" in done.out
    assert ncm("write", "0815 is the alarm").code == 2


@pytest.mark.parametrize("text", ["a", "it is", "42", "the"])
def test_words_that_stand_in_nearly_everything_are_refused(ncm, text: str):
    ncm("init")
    ncm("write", "it is a the 42")
    refused = ncm("forget", text, "--yes")
    assert refused.code == 2 and "too short" in refused.err
    assert "it is a the 42" in ncm("log").out


def test_a_single_word_is_told_what_it_keeps_out_before_it_is_forgotten(ncm):
    ncm("init")
    ncm("exchange", "add", "--user", "Swantje has the late shift", "--agent", "OK.", "--session", "s1")
    plan = ncm("forget", "Swantje", "--dry-run").out
    assert "would be kept out: 'Swantje'" in plan and "forget --entity Swantje" in plan
    longer = ncm("forget", "Swantje has the late shift", "--dry-run").out
    assert "would be kept out" in longer and "--entity" not in longer


def test_the_list_counts_and_tells_no_words(ncm):
    ncm("init")
    ncm("write", "Zebulon lives in Oslo")
    ncm("forget", "Zebulon lives in Oslo", "--yes")
    listed = ncm("forget", "--list")
    assert "1 text" in listed.out and "forgotten by text" in listed.out and "Zebulon" not in listed.out
    (row,) = ncm("forget", "--list", "--json").json["kept_out"]
    assert (row["texts"], row["reason"]) == (1, "forgotten by text")


def test_what_was_taken_out_of_a_message_is_no_topic(memory: Memory):
    memory.after_turn("Swantje has the late shift", "OK.")
    memory.forget(text="Swantje")
    memory.conversations.note("prompt", "Swantje has the early shift on friday")
    memory.conversations.note("answer", "Noted, Swantje on friday.")
    memory.conversations.drain()
    (said,) = memory.group.exchanges.of_session(memory.scope.session_id, True)
    assert "forgotten" in said.user_message and "forgotten" not in said.topic
