"""Two statements that share no telling words and answer the same question: the later one stands for the older."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from nanoclaw_memory.memory import Memory

OTHERS = (
    (60, "the sprinkler in the yard was repaired"),
    (50, "ordered forty jars for the jam"),
    (41, "the tractor passed its inspection"),
    (30, "choir practice was cancelled because of snow"),
    (20, "paid the invoice of the roofers"),
)


def told(open_memory: Callable[..., Memory], clock: Any, days_ago: int, act: Callable[[Memory], Any]) -> None:
    """Something that happened some days ago, in a session of its own."""
    now = clock.moment
    clock.moment = now - timedelta(days=days_ago)
    with open_memory(session=f"day-{days_ago}") as memory:
        memory.init()
        act(memory)
    clock.moment = now


def log(text: str) -> Callable[[Memory], Any]:
    return lambda memory: memory.write(text)


def said(text: str) -> Callable[[Memory], Any]:
    return lambda memory: memory.after_turn(text, "Noted.")


def with_others(open_memory: Callable[..., Memory], clock: Any) -> None:
    for days, text in OTHERS:
        told(open_memory, clock, days, log(text))


def test_what_was_said_before_is_marked_though_the_later_line_stands_in_another_block(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 150, said("we keep the ladder in the stable"))
    with_others(open_memory, clock)
    told(open_memory, clock, 10, log("brought the ladder over to the cellar, the stable is getting too damp"))
    text = open_memory(session="new").before_turn("where is the ladder?").text
    older = next(line for line in text.splitlines() if "we keep the ladder" in line)
    newer = next(line for line in text.splitlines() if "cellar" in line)
    assert older.endswith("; earlier)") and "earlier" not in newer


def test_the_later_statement_stands_before_the_older_in_a_search(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 150, said("we keep the ladder in the stable"))
    with_others(open_memory, clock)
    told(open_memory, clock, 10, log("brought the ladder over to the cellar, the stable is getting too damp"))
    newer, older = open_memory(session="new").search("where is the ladder?", fast=True).hits[:2]
    assert ["cellar" in newer.text, newer.mark] == [True, ""]
    assert ["we keep the ladder" in older.text, older.mark] == [True, "earlier"]


def test_statements_of_different_things_that_one_question_finds_are_not_marked(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 90, log("the red boat is moored at the north pier"))
    with_others(open_memory, clock)
    told(open_memory, clock, 10, log("the blue canoe got a new paddle"))
    found = open_memory(session="new").search("what do we know about the boat and the canoe?", fast=True).hits
    assert len(found) >= 2 and not any(hit.mark for hit in found)
