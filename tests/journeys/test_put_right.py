"""An answer that the next message puts right comes back as what the person said instead, with the question."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

OPEN = Callable[..., Memory]


def talked(open_memory: OPEN, clock: FixedClock, *said: tuple[str, str]) -> Memory:
    """A session of the day before, and today's."""
    clock.moment -= timedelta(days=1)
    with open_memory(session="k") as memory:
        memory.init()
        for user, agent in said:
            clock.moment += timedelta(minutes=1)
            memory.after_turn(user, agent)
    clock.moment += timedelta(days=1)
    return open_memory(session="new")


@pytest.mark.parametrize(
    ("asked", "answer", "corrected", "right"),
    [
        ("Who tunes our piano?", "Mr Ostrow tunes it.", "nope, Ms Lindqvist does since May", "Lindqvist"),
        ("Wer stimmt unser Klavier?", "Herr Ostrow.", "Quatsch, Frau Lindqvist", "Lindqvist"),
        ("Wer stimmt unser Klavier?", "Herr Ostrow.", "nein das macht Frau Lindqvist", "Lindqvist"),
        ("Wer stimmt unser Klavier?", "Herr Ostrow.", "Stimmt nicht, Frau Lindqvist macht das", "Lindqvist"),
        ("Wann kommt der Klavierstimmer?", "Am Dienstag, Herr Ostrow.", "nö, am Donnerstag", "Donnerstag"),
    ],
)
def test_a_corrected_answer_is_replaced_by_the_correction_with_its_question(
    open_memory: OPEN, clock: FixedClock, asked: str, answer: str, corrected: str, right: str
):
    memory = talked(open_memory, clock, (asked, answer), (corrected, "Danke."))
    text = memory.before_turn(asked).text
    assert right in text and f'asked about: "{asked}"' in text
    assert "Ostrow" not in text
    first, *rest = memory.search(asked, 6).hits
    assert right in first.text
    assert all(one.mark == "earlier" for one in rest if "Ostrow" in one.text)


def test_a_correction_of_a_correction_stands_alone(open_memory: OPEN, clock: FixedClock):
    asked = "When does the ferry to Texel leave?"
    memory = talked(
        open_memory, clock, (asked, "At 8:10."), ("no, at 9:40", "At 9:40, then."), ("wrong, at 10:25", "Ok.")
    )
    text = memory.before_turn(asked).text
    assert "10:25" in text and asked in text
    assert "8:10" not in text and "At 9:40, then" not in text


@pytest.mark.parametrize(
    "after",
    [
        "no, thanks. I have to leave at six",
        "nein danke, mehr brauche ich nicht",
        "falsch geparkt habe ich auch noch",
        "no problem at all",
        "Stimmt ja, danke",
        "No. 7 is the house with the red door",
        "the cat was at the vet today",
    ],
)
def test_a_next_message_about_something_else_leaves_the_answer(
    open_memory: OPEN, clock: FixedClock, after: str
):
    asked = "Who tunes our piano?"
    memory = talked(open_memory, clock, (asked, "Mr Ostrow tunes it."), (after, "Ok."))
    assert "Mr Ostrow tunes it." in memory.before_turn(asked).text
    assert not [one for one in memory.search(asked, 6).hits if "Ostrow" in one.text and one.mark]


def test_a_bare_denial_leaves_the_answer_beside_it(open_memory: OPEN, clock: FixedClock):
    asked = "Who tunes our piano?"
    memory = talked(open_memory, clock, (asked, "Mr Ostrow tunes it."), ("No, that's wrong.", "Sorry."))
    hit = next(one for one in memory.search(asked, 6).hits if "Ostrow" in one.text)
    assert hit.mark == "earlier"
