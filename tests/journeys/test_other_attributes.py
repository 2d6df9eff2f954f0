"""What shares a name or a word with a statement and is about something else leaves it valid; a change marks it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from nanoclaw_memory.memory import Memory

Say = Callable[..., None]


@pytest.fixture
def say(open_memory: Callable[..., Memory], clock: Any) -> Say:
    """Something said to the agent so many days ago, in a session of its own."""

    def said(days_ago: int, text: str) -> None:
        now = clock.moment
        clock.moment = now - timedelta(days=days_ago)
        with open_memory(session=f"day-{days_ago}") as memory:
            memory.init()
            memory.after_turn(text, "Noted.")
        clock.moment = now

    return said


def mark_of(memory: Memory, statement: str, question: str) -> str:
    return next(hit.mark for hit in memory.search(question, fast=True).hits if hit.text == statement)


def lines(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


@pytest.mark.parametrize(
    ("statement", "later", "question"),
    [
        (
            "Mrs Okafor at Belling Freight is our contact for customs.",
            "Pallet limit goes up to 480 per truck since Belling Freight complained.",
            "who is our contact at Belling Freight?",
        ),
        (
            "Kestrel is written in Rust.",
            "Kestrel now has 14 contributors.",
            "what language is Kestrel written in?",
        ),
        (
            "The Oakline contract runs until June.",
            "Oakline now pays by direct debit.",
            "how long does the Oakline contract run?",
        ),
        (
            "My sister Lena is allergic to walnuts.",
            "Lena moved to Bristol last week.",
            "what is my sister Lena allergic to?",
        ),
        (
            "Priya handles the payroll exports.",
            "Priya is on holiday until Thursday.",
            "who handles the payroll exports?",
        ),
        (
            "Tomasz reviews all database migrations.",
            "Tomasz changed his phone number to 555-0142.",
            "who reviews database migrations?",
        ),
        (
            "The Halden warehouse opens at 6.",
            "Two forklifts at the Halden warehouse were replaced.",
            "when does the Halden warehouse open?",
        ),
        (
            "Das Nordwind-Projekt ist in Kotlin geschrieben.",
            "Das Nordwind-Projekt hat jetzt 12 Mitwirkende.",
            "In welcher Sprache ist das Nordwind-Projekt geschrieben?",
        ),
        (
            "Herr Vogt prüft die Rechnungen.",
            "Herr Vogt hat seit gestern ein neues Telefon.",
            "Wer prüft die Rechnungen?",
        ),
        (
            "Der Vertrag mit Kessler läuft bis Juni.",
            "Kessler zahlt jetzt per Lastschrift.",
            "Wie lange läuft der Vertrag mit Kessler?",
        ),
        (
            "Meine Tante Hilde verträgt keine Laktose.",
            "Tante Hilde ist letzte Woche nach Jena gezogen.",
            "Was verträgt meine Tante Hilde nicht?",
        ),
    ],
)
def test_another_attribute_of_the_same_thing_outdates_nothing(
    open_memory: Callable[..., Memory], say: Say, statement: str, later: str, question: str
) -> None:
    say(9, statement)
    say(3, later)
    assert mark_of(open_memory(), statement, question) == ""


@pytest.mark.parametrize(
    ("statement", "later", "question"),
    [
        (
            "We deploy the Quill service with helm.",
            "The Quill service is slow since this morning.",
            "the Quill service",
        ),
        (
            "The linter of the Quill service is ruff.",
            "ok that's nicer, but the Quill linter is wrong now",
            "linter of the Quill service",
        ),
        (
            "Die Anzeige Marlin gehört Petra.",
            "Die Anzeige Marlin sieht auf dem Handy jetzt komisch aus.",
            "Anzeige Marlin",
        ),
        (
            "The Sorrel cluster belongs to Ines.",
            "SORREL_PASSWORD=hunter2hunter2zz9Q",
            "sorrel",
        ),
    ],
)
def test_a_complaint_a_reaction_or_a_credential_outdates_nothing(
    open_memory: Callable[..., Memory], say: Say, statement: str, later: str, question: str
) -> None:
    say(9, statement)
    say(3, later)
    assert mark_of(open_memory(), statement, question) == ""


@pytest.mark.parametrize(
    ("statement", "later", "question"),
    [
        ("The retro is on Wednesdays.", "We moved the retro to Mondays.", "when is the retro?"),
        (
            "The Corvid service is written in Python.",
            "We rewrote the Corvid service in Go.",
            "in which language is the Corvid service written?",
        ),
        ("Sanjay owns the Tern billing.", "Katrin owns the Tern billing now.", "who owns the Tern billing?"),
        (
            "The logo of Fernhill is blue.",
            "The logo of Fernhill is red.",
            "which colour is the logo of Fernhill?",
        ),
        ("Die Miete beträgt 880 Euro.", "Die Miete beträgt ab jetzt 930 Euro.", "Wie hoch ist die Miete?"),
        (
            "Frau Aydin betreut den Shop.",
            "Den Shop betreut jetzt Herr Kranz.",
            "Wer betreut den Shop?",
        ),
        (
            "The Linden printer works.",
            "The Linden printer is broken since Tuesday.",
            "the Linden printer",
        ),
    ],
)
def test_another_value_of_the_same_attribute_outdates_the_older_one(
    open_memory: Callable[..., Memory], say: Say, statement: str, later: str, question: str
) -> None:
    say(9, statement)
    say(3, later)
    assert mark_of(open_memory(), statement, question) != ""


@pytest.mark.parametrize(
    ("rule", "later", "marked"),
    [
        ("we run the linter with just lint", "ok that's better, but the linter output is wrong now", False),
        ("answer in four sentences", "Stop ending your answers with a question", False),
        ("Write commit messages in English", "From now on write commit messages in German.", True),
    ],
)
def test_only_another_rule_on_its_subject_outdates_a_lesson(
    open_memory: Callable[..., Memory], say: Say, clock: Any, rule: str, later: str, marked: bool
) -> None:
    with open_memory() as memory:
        memory.init()
        memory.lessons.add(rule)
    clock.moment += timedelta(days=9)
    say(3, later)
    assert bool(mark_of(open_memory(), rule, rule)) is marked


def test_what_was_stated_later_stands_before_a_fact_that_it_marks(
    open_memory: Callable[..., Memory], say: Say
) -> None:
    say(9, "Elin is responsible for on-call.")
    say(3, "Elin is sick, Marek does on-call until Monday.")
    memory = open_memory(session="new")
    (hit,) = memory.graph.search("who is on call?").hits
    assert (hit.mark, "Marek" in hit.newer.text) == ("earlier", True)
    turn = memory.before_turn("who is on call?").text
    assert turn.index("Marek") < turn.index("Elin →")


def test_somebody_who_is_only_mentioned_with_a_duty_of_their_own_ends_no_other(
    open_memory: Callable[..., Memory], say: Say
) -> None:
    say(9, "Noor is responsible for the newsletter.")
    say(3, "Noor met Piet at the fair.")
    (hit,) = open_memory().graph.search("who does the newsletter?").hits
    assert hit.mark == ""


@pytest.mark.parametrize(
    "later",
    [
        "The billing database is on 7422 since the upgrade.",
        "I moved the billing database, port is 7422 now.",
        "we put the billing database on 7422 now",
    ],
)
def test_the_graph_learns_the_new_value_of_a_known_fact_from_talk(
    open_memory: Callable[..., Memory], say: Say, later: str
) -> None:
    say(9, "The port of the billing database is 7311.")
    say(3, later)
    memory = open_memory()
    (hit,) = memory.graph.search("What's the port of the billing database?").hits
    assert (hit.item.value, hit.mark) == ("7422", "")
    first, second = memory.graph.history("billing database", "port")
    assert (first.value, bool(first.valid_to), second.value) == ("7311", True, "7422")
    assert (
        memory.upkeep.run("ingest") and memory.graph.history("billing database", "port")[-1].value == "7422"
    )


@pytest.mark.parametrize(
    "later",
    [
        "the billing database on staging is on 7422 now",
        "our test billing database is on 7422 now",
        "the billing database has 7422 rows now",
        "should we put the billing database on 7422 now?",
        "the billing database might be on 7422 now",
        "the billing database is also on 7422 now",
    ],
)
def test_a_number_of_something_else_is_no_new_value(
    open_memory: Callable[..., Memory], say: Say, later: str
) -> None:
    say(9, "The port of the billing database is 7311.")
    say(3, later)
    assert [fact.value for fact in open_memory().graph.history("billing database", "port")] == ["7311"]
