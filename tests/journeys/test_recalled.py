"""What a turn recalls from pages, logs, entries and facts: the right line with its day, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.turn.context import PluginContext


@pytest.fixture
def weeks(memory: Memory, clock: FixedClock) -> Memory:
    """A home with some weeks of a person's notes."""
    page = memory.home.workspace("main") / "MEMORY.md"
    page.write_text(
        "# MEMORY\n\n## House\n- The boiler is serviced by Tinne Vos every October\n- Bins: paper on Mondays\n\n"
        "## Work\n- Invoices of Halvorsen Timber are due within 21 days\n- The plotter needs A1 paper\n"
    )
    for days, line in (
        (20, "Ferry to Texel booked for 4 July, cabin 212"),
        (12, "Tinne moved to a new workshop in Alkmaar"),
        (5, "Dentist for Jurre on Thursday at 9:40"),
        (1, "Bought grey paint for the hallway"),
    ):
        clock.moment -= timedelta(days=days)
        memory.write(line)
        clock.moment += timedelta(days=days)
    return memory


def told(memory: Memory, message: str) -> str:
    return "\n".join(block.text for block in memory.before_turn(message).blocks)


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Who services our boiler?", "Tinne Vos every October"),
        ("when are the invoices of Halvorsen Timber due?", "within 21 days"),
        ("Which cabin do we have on the ferry to Texel?", "cabin 212"),
        ("at what time is Jurre's dentist?", "9:40"),
    ],
)
def test_a_prompt_gets_the_line_that_answers_it_wherever_it_stands(
    weeks: Memory, open_memory: Callable[..., Memory], message: str, answer: str
):
    assert answer in told(open_memory(session=message), message)


@pytest.mark.parametrize(
    "message",
    [
        "which cabin do we have on the ferry to texel",
        "which cabin do we have on the ferry to texel again",
        "tell me which cabin do we have on the ferry to texel",
        "remind me which cabin do we have on the ferry to texel pls",
        "quick q: which cabin do we have on the ferry to texel",
        "hey, can you tell me which cabin do we have on the ferry to texel?",
    ],
)
def test_a_question_is_answered_whatever_courtesies_are_around_it_or_marks_are_missing(
    weeks: Memory, open_memory: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, message: str
):
    assert "cabin 212" in told(open_memory(session="words"), message)
    monkeypatch.setattr(
        PluginContext,
        "need",
        lambda self, text: 0.9 if text == "which cabin do we have on the ferry to texel?" else 0.02,
    )
    assert "cabin 212" in told(open_memory(session="judge"), message)


def test_nothing_is_searched_for_a_message_that_surely_needs_nothing(weeks: Memory, monkeypatch):
    monkeypatch.setattr("nanoclaw_memory.retrieval.service.Retrieval.consider", None)
    said = {note.plugin: note.reason for note in weeks.before_turn("thanks, that's all").skipped}
    assert "the message needs no memory" in said["recall"]
    said = {note.plugin: note.reason for note in weeks.before_turn("Who services our boiler?").skipped}
    assert "failed" in said["recall"]


@pytest.mark.parametrize(
    "message",
    [
        "thanks, that's all",
        "continue",
        "What is 17 % of 2,340?",
        "Translate to Dutch: the weather is lovely today",
        "write a python function that reverses a linked list",
        "ok",
    ],
)
def test_a_prompt_that_needs_nothing_gets_nothing(
    weeks: Memory, open_memory: Callable[..., Memory], message: str
):
    assert told(open_memory(session=message), message) == ""


def test_a_message_whose_words_need_nothing_gets_nothing_though_a_line_has_all_of_them(
    weeks: Memory, open_memory: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
):
    message = "the ferry to Texel is booked for 4 July, cabin 212"
    monkeypatch.setattr(PluginContext, "need", lambda self, text: 0.9)
    assert "cabin 212" in told(open_memory(session="before"), message)
    monkeypatch.setattr(PluginContext, "need", lambda self, text: 0.02)  # as of "thank you"
    assert told(open_memory(session="after"), message) == ""


def test_every_recalled_line_says_when_and_where_it_was_said(weeks: Memory):
    (block,) = [
        block
        for block in weeks.before_turn("Which cabin do we have on the ferry to Texel?").blocks
        if block.label == "RECALLED MEMORY"
    ]
    (line,) = [line for line in block.text.split("\n") if "cabin 212" in line]
    assert line.startswith("• [log · 2026-02-03]")


def test_what_an_agent_stored_reaches_the_turn_that_it_concerns(
    weeks: Memory, open_memory: Callable[..., Memory]
):
    weeks.store("Letters to the housing board are signed with both names, Jurre and Saskia", "preference")
    message = "Write the letter to the housing board about the letters and names at the door"
    text = told(open_memory(session="later"), message)
    assert "signed with both names" in text


def test_a_line_gives_way_to_the_one_that_supersedes_it(weeks: Memory, open_memory: Callable[..., Memory]):
    weeks.write("Ferry to Texel: changed from cabin 212 to cabin 340")
    lines = told(open_memory(session="later"), "Which cabin do we have on the ferry to Texel?").split("\n")
    first = next(line for line in lines if "cabin" in line)
    assert "340" in first


def test_a_question_overtakes_no_statement(weeks: Memory, open_memory: Callable[..., Memory]):
    open_memory(session="asks").after_turn(
        "Is cabin 212 on the ferry to Texel near the stairs?", "I don't know."
    )
    text = told(open_memory(session="later"), "Which cabin do we have on the ferry to Texel?")
    (line,) = [line for line in text.split("\n") if "booked for 4 July" in line]
    assert "earlier" not in line


def test_turns_beside_a_hit_are_seen_only_by_who_may_see_them(
    memory: Memory, open_memory: Callable[..., Memory]
):
    open_memory(session="talk", private=True).after_turn("My salary is 5,120", "Noted.")
    open_memory(session="talk", private=False).after_turn("The quarry trip is on 9 May", "Noted, 9 May.")
    shared = open_memory(session="later", private=False)
    found = " ".join(hit.text for hit in shared.search("When is the quarry trip?").hits)
    assert "9 May" in found
    assert "5,120" not in found + told(shared, "When is the quarry trip?")


def test_explain_says_how_probable_it_is_that_a_message_needs_memory(weeks: Memory):
    turn = weeks.before_turn("thanks, that's all")
    (why,) = [note.reason for note in turn.skipped if note.plugin == "recall"]
    assert why.startswith("the message needs no memory (probability 0.")
