"""A statement that still holds is not called earlier because something else was told of the same name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from nanoclaw_memory.memory import Memory

Say = Callable[..., None]


@pytest.fixture
def say(open_memory: Callable[..., Memory], clock: Any) -> Say:
    """Something said to the agent so many days ago, in a session of its own; more messages follow in that session."""

    def said(days_ago: int, *talk: str) -> None:
        now = clock.moment
        clock.moment = now - timedelta(days=days_ago)
        with open_memory(session=f"day-{days_ago}") as memory:
            memory.init()
            for text, answer in zip(talk[::2], [*talk[1::2], "OK"], strict=False):
                memory.after_turn(text, answer)
                clock.moment += timedelta(minutes=2)
        clock.moment = now

    return said


NEWS = [
    (
        "my rate is 95/h for brightloaf",
        "news: Tomasz is leaving brightloaf end of the month. Priya takes the backend lead from today",
        "what's my rate for brightloaf",
        "95/h",
    ),
    (
        "Ilse arbeitet freitags nicht",
        "Ilse ist jetzt auch im Datenschutzteam",
        "an welchem Tag arbeitet Ilse nicht?",
        "freitags",
    ),
    (
        "bookkeeping for kestrelio closes on the 5th",
        "kestrelio hired a new controller, her name is Ana",
        "when does the bookkeeping for kestrelio close?",
        "5th",
    ),
    (
        "mehmet is out on wednesdays",
        "mehmet joined the oncall rota",
        "when is mehmet out?",
        "wednesdays",
    ),
]


@pytest.mark.parametrize(("statement", "news", "question", "value"), NEWS)
def test_other_news_about_a_name_leaves_its_facts_as_they_are(
    say: Say, open_memory: Callable[..., Memory], statement: str, news: str, question: str, value: str
) -> None:
    say(4, statement)
    say(1, news)
    memory = open_memory(session="now")
    hits = [hit for hit in memory.search(question, fast=True).hits if value in hit.text]
    assert [hit.mark for hit in hits] == [""] * len(hits) != []
    told = [line for line in memory.before_turn(question).text.splitlines() if value in line]
    assert [line for line in told if "earlier" in line] == []
    assert [hit.dated for hit in memory.graph.search(question).hits if "earlier" in hit.dated] == []


@pytest.mark.parametrize(
    ("statement", "change", "question"),
    [
        (
            "my rate for ashgrove is 80/h",
            "ashgrove agreed to 92/h from january",
            "what's my rate for ashgrove?",
        ),
        ("Yusuf is off on mondays", "Yusuf swapped his free day to Thursday", "when is Yusuf off?"),
        ("die Chorprobe ist mittwochs", "Chorprobe ab jetzt immer donnerstags", "wann ist die Chorprobe?"),
        (
            "redis on osprey is shared",
            "redis on osprey is dedicated to us now",
            "is redis on osprey shared?",
        ),
        (
            "login for fennel goes over okta",
            "fennel login is through keycloak now",
            "what does login for fennel go over?",
        ),
    ],
)
def test_a_change_of_the_same_thing_still_marks_it(
    say: Say, open_memory: Callable[..., Memory], statement: str, change: str, question: str
) -> None:
    say(4, statement)
    say(1, change)
    hits = open_memory(session="now").search(question, fast=True).hits
    assert {hit.text: hit.mark for hit in hits}.items() >= {(change, ""), (statement, "earlier")}


def test_two_lessons_do_not_supersede_each_other_because_they_corrected_the_same_answer(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say(4, "tidy up the loader", "Done, I changed the two files.", "always wrap errors with %w")
    say(2, "tidy up the writer", "Done, I changed the two files.", "When you're unsure ask me first")
    memory = open_memory(session="now")
    assert len(memory.group.lessons.all()) == 2
    hits = memory.search("always wrap errors with %w", fast=True).hits
    assert {hit.mark for hit in hits if "wrap errors" in hit.text} == {""}


def test_what_is_told_after_an_answer_about_something_else_does_not_correct_it(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say(
        2,
        "swap out sqlmock in the repo tests",
        "I replaced sqlmock with testcontainers in the repository tests.",
        "amounts are int64 minor units everywhere btw",
    )
    told = open_memory(session="now").before_turn("what did we do about sqlmock?").text
    assert ("I replaced sqlmock" in told, "corrected:" in told, "earlier)" in told) == (True, False, False)


def test_an_answer_whose_own_words_the_next_message_rejects_is_marked(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say(
        3,
        "how do i install deps in ivy?",
        "Run `npm install` in ivy.",
        "its pnpm in ivy, dont use npm again",
    )
    say(1, "pnpm was upgraded to 9 on ci")
    hits = open_memory(session="now").search("how do i install deps in ivy?", fast=True).hits
    marks = {hit.text: hit.mark for hit in hits}
    assert marks["Run `npm install` in ivy."] == "earlier"
    assert marks["its pnpm in ivy, dont use npm again"] == ""


@pytest.mark.parametrize(
    ("theirs", "later", "question", "value"),
    [
        (
            "Maikes Handynummer ist 0152 33445566",
            "Meine Handynummer ist jetzt 0160 998877",
            "Wie ist Maikes Handynummer?",
            "33445566",
        ),
        (
            "Maike's phone number is 0152 33445566",
            "My phone number is now 0160 99",
            "Maike's phone number?",
            "33445566",
        ),
        ("Linas Schuhgröße ist 31", "Fietes Schuhgröße ist jetzt 36", "Welche Schuhgröße hat Lina?", "31"),
        ("Lina's shoe size is 31", "Fiete's shoe size is 36 now", "what is Lina's shoe size?", "31"),
    ],
)
def test_what_is_somebody_elses_outdates_nothing(
    say: Say, open_memory: Callable[..., Memory], theirs: str, later: str, question: str, value: str
) -> None:
    say(4, theirs)
    say(1, later)
    memory = open_memory(session="now")
    hits = [hit for hit in memory.search(question, fast=True).hits if value in hit.text]
    assert [hit.mark for hit in hits] == [""] * len(hits) != []
    told = [line for line in memory.before_turn(question).text.splitlines() if value in line]
    assert [line for line in told if "earlier" in line] == []


@pytest.mark.parametrize(
    ("before", "later", "question", "value"),
    [
        (
            "Maikes Handynummer ist 0152 33445566",
            "Maikes neue Handynummer ist 0160 99",
            "Maikes Handynummer?",
            "3344",
        ),
        ("Lina's shoe size is 31", "Lina's shoe size is 33 now", "what is Lina's shoe size?", "31"),
    ],
)
def test_a_new_value_of_the_same_owner_does(
    say: Say, open_memory: Callable[..., Memory], before: str, later: str, question: str, value: str
) -> None:
    say(4, before)
    say(1, later)
    hits = [hit for hit in open_memory(session="now").search(question, fast=True).hits if value in hit.text]
    assert hits and {hit.mark for hit in hits} <= {"earlier", "superseded"}


@pytest.mark.parametrize(
    ("before", "later", "question", "value"),
    [
        (
            "das Glas Waldhonig kostet 5,20 Euro",
            "Preis Waldhonig: 6,10 Euro",
            "was kostet das Glas Waldhonig?",
            "5,20",
        ),
        (
            "set my alarm to 6:10 please. Mortimer",
            "Mortimer's alarm is now at 5:25",
            "when is my alarm?",
            "6:10",
        ),
    ],
)
def test_a_noun_before_a_noun_owns_nothing_and_a_person_may_sign(
    say: Say, open_memory: Callable[..., Memory], before: str, later: str, question: str, value: str
) -> None:
    say(4, before)
    say(1, later)
    hits = [hit for hit in open_memory(session="now").search(question, fast=True).hits if value in hit.text]
    assert {hit.mark for hit in hits} == {"earlier"}
