"""A question for the plans of a day gets what was said about that day, whenever it was said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

OPEN = Callable[..., Memory]
SAID = (
    ("2026-11-02", "the tiler comes on 24 November at 8"),
    ("2026-11-05", "Termin beim Notar am 26.11. um 14 Uhr"),
    ("2025-06-01", "Carla's birthday is on 25 November"),
    ("2026-11-18", "übermorgen kommt der Gutachter"),
    ("2026-11-19", "tomorrow I pick up the bikes"),
    ("2026-11-13", "in zwei Wochen ist Probe mit dem Orchester"),
    ("2026-11-17", "next Wednesday the piano is collected"),
    ("2026-11-16", "am Freitag war die Leitung kaputt"),
    ("2026-11-10", "since Friday the logs go to loki"),
)


@pytest.fixture
def months(open_memory: OPEN, clock: FixedClock) -> OPEN:
    for number, (day, text) in enumerate(SAID):
        clock.moment = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
        with open_memory(session=f"said-{number}") as memory:
            memory.init()
            memory.after_turn(text, "Okay.")
    clock.moment = datetime(2026, 11, 20, 12, tzinfo=UTC)
    return open_memory


def told(open_memory: OPEN, message: str) -> str:
    return open_memory(session="asks").before_turn(message).text


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("Was steht heute an?", ["Gutachter", "bikes"]),
        ("what's on today?", ["Gutachter", "bikes"]),
        ("Was ist am 26. November?", ["Notar"]),
        ("Was ist am 26.11.?", ["Notar"]),
        ("anything on Tuesday?", ["tiler"]),
        ("what do I have next week?", ["tiler", "Notar", "Carla", "Orchester", "piano"]),
        ("Welche Termine haben wir im November?", ["tiler", "Notar", "Gutachter"]),
        ("is there anything on 2026-11-25?", ["Carla", "piano"]),
    ],
)
def test_plans_for_a_day_are_what_was_said_about_it(months: OPEN, message: str, wanted: list[str]):
    text = told(months, message)
    assert [one for one in wanted if one not in text] == []
    assert "Leitung" not in text and "loki" not in text


@pytest.mark.parametrize(
    "message",
    [
        "danke, bis morgen!",
        "what day is today?",
        "guten Morgen!",
        "what did we talk about on Friday?",
        "Was ist am 3. Dezember?",
    ],
)
def test_other_words_about_a_day_draw_no_plans(months: OPEN, message: str):
    text = told(months, message)
    assert not [one for one in ("Gutachter", "bikes", "Notar", "tiler", "Carla") if one in text]


def test_a_birthday_comes_every_year(months: OPEN, clock: FixedClock):
    clock.moment = datetime(2028, 11, 24, 12, tzinfo=UTC)
    assert "Carla's birthday" in told(months, "was ist morgen?")
    assert "tiler" not in told(months, "Was steht heute an?")


def test_a_moved_appointment_is_marked_on_its_old_day(months: OPEN):
    with months(session="moves") as memory:
        memory.after_turn("Termin beim Notar verschoben auf den 30.11.", "Okay.")
    assert "verschoben" in told(months, "Was ist am 30.11.?")
    old = next(line for line in told(months, "Was ist am 26.11.?").splitlines() if "14 Uhr" in line)
    assert "earlier" in old or "superseded" in old


def test_a_search_finds_a_day_too(months: OPEN):
    hits = months(session="asks").search("Was ist am 26. November?", 6).hits
    assert "Notar" in hits[0].text
