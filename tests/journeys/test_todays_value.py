"""What is true today: a later statement marks an older one only if it is about the same, and then always."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Hit

Say = Callable[..., None]


@pytest.fixture
def say(open_memory: Callable[..., Memory], clock: Any) -> Say:
    """Something that a person says, the next day in a session of its own unless one is named."""

    def said(message: str, answer: str = "Okay.", session: str = "") -> None:
        clock.moment += timedelta(seconds=20) if session else timedelta(days=1)
        with open_memory(session=session or f"on-{clock.moment:%m-%d}") as memory:
            memory.init()
            memory.after_turn(message, answer)

    return said


@pytest.fixture
def asked(open_memory: Callable[..., Memory], models_dir: Path) -> Iterator[Callable[[str], list[Hit]]]:
    """The hits of a question in a process that has the model loaded."""

    def hits(question: str) -> list[Hit]:
        memory = open_memory(embeddings__modelPath=str(models_dir / "multilingual-e5-small"))
        memory.index()
        memory.group.resources.resident = True
        return [*memory.search(question).hits]

    yield hits


def marks(hits: list[Hit], word: str) -> list[str]:
    return [hit.mark for hit in hits if word in hit.text]


@pytest.mark.parametrize(
    ("binds", "other", "question", "word"),
    [
        (
            "Unsere Mira verträgt keine Walnüsse, sie war deswegen im Krankenhaus.",
            "Frau Lorenz kann donnerstags nicht mehr, Mira hat Geige jetzt dienstags um 16 Uhr.",
            "Was darf Mira nicht essen?",
            "Walnüsse",
        ),
        (
            "Ida ist allergisch gegen Sesam.",
            "Ida trägt jetzt Schuhgröße 33.",
            "Wogegen ist Ida allergisch?",
            "Sesam",
        ),
        (
            "Rufus is afraid of thunderstorms.",
            "Rufus changed schools.",
            "What is Rufus afraid of?",
            "thunder",
        ),
    ],
)
def test_what_binds_somebody_is_not_outdated_by_other_news_of_them(
    say: Say, asked: Callable[[str], list[Hit]], binds: str, other: str, question: str, word: str
) -> None:
    say(binds)
    say(other)
    assert marks(asked(question), word)[:1] == [""]


def test_without_a_model_no_allergy_is_superseded_by_a_lesson(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("Unsere Mira verträgt keine Walnüsse, sie war deswegen im Krankenhaus.")
    say("Frau Lorenz kann donnerstags nicht mehr, Mira hat Geige jetzt dienstags um 16 Uhr.")
    hits = [*open_memory(session="new").search("Mira Walnüsse", fast=True).hits]
    found = marks(hits, "Walnüsse")
    assert found and "superseded" not in found


def test_a_change_that_fits_another_statement_marks_only_that_one(
    say: Say, asked: Callable[[str], list[Hit]]
) -> None:
    say("Das Orgelkonzert wurde verschoben, es ist jetzt am 13. Dezember.")
    say("Das Turnen ist freitags um 15 Uhr in der Jahnhalle.")
    say("Das Turnen hat sich verschoben, jetzt samstags um 10 Uhr.")
    assert marks(asked("Wann ist das Orgelkonzert?"), "Orgelkonzert")[:1] == [""]
    assert "" not in marks(asked("Wann ist das Turnen?"), "freitags")


@pytest.mark.parametrize(
    ("older", "newer", "question", "old", "new"),
    [
        (
            "the desktop team still calls our v2 endpoints",
            "desktop is on v3 since their last release",
            "can we delete the v2 endpoints?",
            "still calls",
            "v3",
        ),
        (
            "Le cours de judo est le mardi à 17h.",
            "Finalement le cours de judo a lieu le jeudi.",
            "Quand est le cours de judo ?",
            "mardi",
            "jeudi",
        ),
        (
            "Der Schlüssel zum Keller hängt neben der Haustür.",
            "Den Kellerschlüssel hab ich in die Schublade im Flur gelegt.",
            "Wo ist der Schlüssel zum Keller?",
            "Haustür",
            "Schublade",
        ),
    ],
)
def test_a_change_in_other_words_comes_with_the_older_statement(
    say: Say, asked: Callable[[str], list[Hit]], older: str, newer: str, question: str, old: str, new: str
) -> None:
    say(older)
    say(newer)
    hits = asked(question)
    assert any(new in hit.text for hit in hits)
    assert "" not in marks(hits, old)


@pytest.mark.parametrize(
    ("said", "right", "question", "old", "new"),
    [
        (
            "Der Ausflug ist am 8. Mai.",
            "Nein, am 15. Mai, ich hab mich vertan.",
            "Wann ist der Ausflug?",
            "8. Mai",
            "15.",
        ),
        (
            "Die Kasse wird am 30. Januar geprüft.",
            "Quatsch, 31.",
            "Wann wird die Kasse geprüft?",
            "30.",
            "31.",
        ),
        (
            "The audit is on 3 February.",
            "Sorry, wrong: 5 February.",
            "When is the audit?",
            "on 3 February",
            "5 February",
        ),
        (
            "Der Müll wird Montag geholt.",
            "Halt, nicht Montag, sondern Dienstag.",
            "Wann wird der Müll geholt?",
            "Montag geholt",
            "Dienstag",
        ),
    ],
)
def test_what_is_put_right_in_the_next_message_comes_with_its_correction(
    say: Say, open_memory: Callable[..., Memory], said: str, right: str, question: str, old: str, new: str
) -> None:
    say(said, session="one")
    say(right, session="one")
    turn = open_memory(session="two").before_turn(question).text
    assert new in turn
    assert all("earlier" in line or new in line for line in turn.splitlines() if old in line)


@pytest.mark.parametrize(
    ("said", "beside", "question", "value"),
    [
        (
            "Das Sommerfest ist am 21. Juni.",
            "Der Elternabend ist am 12. November.",
            "Wann ist das Sommerfest?",
            "21. Juni",
        ),
        (
            "My dentist appointment is on Monday.",
            "Also, gym on Tuesday.",
            "When is my dentist appointment?",
            "Monday",
        ),
        ("Our audit is on Monday.", "Thanks, remind me on Friday.", "When is our audit?", "Monday"),
        (
            "Die Stallmiete kostet 90 Euro.",
            "Ok, und 40 Euro Futter.",
            "Was kostet die Stallmiete?",
            "90 Euro",
        ),
        ("Our retro is on Monday.", "Oh, and on Wednesday.", "When is our retro?", "Monday"),
    ],
)
def test_another_value_in_the_next_message_puts_nothing_right_if_it_is_about_something_else(
    say: Say, open_memory: Callable[..., Memory], said: str, beside: str, question: str, value: str
) -> None:
    say(said, session="one")
    say(beside, session="one")
    turn = open_memory(session="two").before_turn(question).text
    assert [line for line in turn.splitlines() if value in line and "earlier" not in line]


def test_a_fact_is_marked_by_a_change_that_names_its_key_and_its_value(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("Der Notenwart vom Chor ist Herr Kroll, der Chorleiter heißt Benedikt Sommer.")
    say("Herr Kroll hört als Notenwart auf, das macht jetzt Frau Ziegler.")
    turn = open_memory(session="new").before_turn("Wer ist der Notenwart vom Chor?").text
    told = [line for line in turn.splitlines() if "Kroll" in line]
    assert told and all("Ziegler" in line or "earlier" in line for line in told)
