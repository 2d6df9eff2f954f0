"""Texts found again by their words: in clear and by fingerprints alike."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.store.phrases import (
    FORGOTTEN,
    Phrases,
    holds,
    lines_holding,
    masked,
    masked_value,
    texts_in,
    words_of,
)

WORDS = st.lists(
    st.sampled_from(["anna", "lives", "in", "Oslo", "生日", "0171", "x"]), min_size=1, max_size=6
)


@given(before=WORDS, text=WORDS, after=WORDS)
def test_a_text_is_found_wherever_it_stands(before: list[str], text: list[str], after: list[str]) -> None:
    wanted = Phrases.of_request(" ".join(text))
    for whole in (" ".join(text), f"{' '.join(before)}, {' '.join(text).upper()}! {' '.join(after)}"):
        assert holds(wanted, whole)
        assert holds(Phrases(known=frozenset(wanted.marks())), whole)


@given(texts=st.lists(WORDS.map(" ".join), max_size=4), said=WORDS.map(" ".join))
def test_fingerprints_find_what_the_clear_text_finds(texts: list[str], said: str) -> None:
    for wanted in (Phrases.of_request(*texts), Phrases.of_rows(texts)):
        marks = Phrases(known=frozenset(wanted.marks()))
        words = words_of(said)
        assert sorted(wanted.spans(words)) == sorted(marks.spans(words))
        assert wanted.is_whole(words) == marks.is_whole(words)


@given(text=WORDS, said=st.lists(WORDS.map(" ".join), max_size=4).map("\n".join), cut=st.integers(1, 40))
def test_a_glance_never_misses_what_the_words_would_find(text: list[str], said: str, cut: int) -> None:
    long = " ".join(text * 4)
    for wanted in (
        Phrases.of_request(long),
        Phrases.of_rows([" ".join(text)]),
        Phrases.of_talk(said.split("\n")),
    ):
        for whole in (said, said.upper(), f"{said} {long}", " ".join(text), long[:-cut], f"x: {long[cut:]}"):
            words = words_of(whole)
            found = (
                wanted.is_whole(words) or list(wanted.spans(words)) or list(wanted.cuts(words, [len(words)]))
            )
            assert wanted.possible(whole) or not found


def test_fingerprints_tell_nothing() -> None:
    marks = Phrases.of_request("Anna lives in Oslo").marks()
    assert len(marks) == 1 and marks[0].startswith("4:") and "anna" not in marks[0]


def test_a_name_is_a_word_not_a_piece_of_one() -> None:
    wanted = Phrases.of_request("Ann")
    assert holds(wanted, "Ann's phone") and holds(wanted, "(ann)")
    assert not holds(wanted, "annual report of Anna")


def test_scripts_without_spaces_are_found_inside_a_run() -> None:
    assert holds(Phrases.of_request("生日"), "我的生日是五月")
    assert not holds(Phrases.of_request("生日"), "生活日记")


def test_what_something_held_is_found_inside_others_only_when_it_tells() -> None:
    wanted = Phrases.of_rows(["yes please", "the office is in Oslo", "word " * 40])
    assert not holds(wanted, "yes please do")
    assert holds(wanted, "Yes, please!")
    assert holds(wanted, "He says the office is in Oslo now")
    assert not holds(wanted, "word " * 41) and holds(wanted, "word " * 40)


def test_a_text_that_runs_over_lines_marks_all_of_them() -> None:
    lines = ["# Title", "- Anna lives", "  in Oslo", "- Bert does not"]
    assert lines_holding(lines, Phrases.of_request("Anna lives in Oslo")) == {1, 2}


def test_texts_in_json_are_seen_without_their_escapes() -> None:
    payload = json.dumps({"note": "first\nAnna lives\tin Oslo", "more": [["x"], {"deep": "y"}]})
    assert set(texts_in(payload)) >= {"first\nAnna lives\tin Oslo", "x", "y"}
    assert any(holds(Phrases.of_request("Anna lives in Oslo"), text) for text in texts_in(payload))
    assert list(texts_in("{no json")) == ["{no json"]


@given(before=WORDS, text=WORDS, after=WORDS)
def test_a_masked_text_no_longer_holds_it_and_keeps_the_rest(
    before: list[str], text: list[str], after: list[str]
) -> None:
    wanted = Phrases.of_request(" ".join(text))
    said = f"{' '.join(before)}\n{' '.join(text)}! {' '.join(after)}"
    clean, count = masked(wanted, said)
    assert count >= 1 and not list(wanted.spans(words_of(clean)))
    assert clean.replace(FORGOTTEN, "").split() == [
        word for word in clean.split() if word != FORGOTTEN and word in said.split()
    ]


@given(said=st.text(max_size=60))
def test_a_text_without_it_is_left_as_it_is_to_the_byte(said: str) -> None:
    wanted = Phrases.of_request("surely not in there")
    assert masked(wanted, said) == (said, 0)


@given(said=st.text(max_size=60))
def test_words_are_the_same_whether_a_text_is_read_whole_or_run_by_run(said: str) -> None:
    assert tuple(word for run in said.split() for word in words_of(run)) == words_of(" ".join(said.split()))


def test_only_the_forgotten_words_are_masked() -> None:
    wanted = Phrases.of_request("Anna lives in Oslo") | Phrases.whole_only(["the only thing on its line"])
    assert masked(wanted, "@Andy (Anna’s fine) ANNA lives\nin Oslo, and Bert?") == (
        "@Andy (Anna’s fine) [forgotten] and Bert?",
        1,
    )
    assert masked(wanted, "one\n- The only thing on its line.\ntwo") == ("one\n[forgotten]\ntwo", 1)
    assert masked(wanted, "The only thing, on its line") == (FORGOTTEN, 1)


def test_masking_a_value_opens_json_in_it_and_leaves_it_json() -> None:
    wanted = Phrases.of_request("Anna lives in Oslo")
    inner = json.dumps({"note": "so Anna lives in Oslo", "n": 1})
    value, count = masked_value(wanted, {"a": [inner, 7, None], "Anna lives in Oslo": True, "b": "fine"})
    assert count == 2 and value["b"] == "fine" and value[FORGOTTEN] is True
    assert json.loads(value["a"][0]) == {"note": "so [forgotten]", "n": 1}
    assert masked_value(wanted, "{Anna lives in Oslo") == (FORGOTTEN, 1)
    same = {"a": ["b", {"c": 1.5}]}
    assert masked_value(wanted, same) == (same, 0)


def test_small_talk_of_a_conversation_is_not_kept_away() -> None:
    wanted = Phrases.of_talk(["Thank you!", "How are you", "0171 5550199", "the safe is behind the door"])
    assert not holds(wanted, "thank you") and not holds(wanted, "How are you?")
    assert holds(wanted, "0171-5550199") and holds(wanted, "I think the safe is behind the door")


def test_a_copy_that_was_cut_inside_its_sixth_word_is_known() -> None:
    wanted = Phrases.of_request("alpha bravo delta hotel india extraordinarily many more words follow")
    assert holds(wanted, "He said: alpha bravo delta hotel india extraordi")
    assert not holds(wanted, "He said: alpha bravo delta hotel india extraordi and so on")
