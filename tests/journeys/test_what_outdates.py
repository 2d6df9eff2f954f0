"""What outdates a statement, and that no face shows an outdated one as today's, however little is asked for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from nanoclaw_memory.memory import Memory


@pytest.fixture
def say(open_memory: Callable[..., Memory], clock: Any) -> Callable[..., None]:
    """Something said to the agent so many days ago, in a session of its own."""

    def said(days_ago: int, text: str, answer: str = "Ok.") -> None:
        now = clock.moment
        clock.moment = now - timedelta(days=days_ago)
        with open_memory(session=f"day-{days_ago}") as memory:
            memory.init()
            memory.after_turn(text, answer)
        clock.moment = now

    return said


@pytest.mark.parametrize(
    ("statement", "later", "question"),
    [
        (
            "The review with Halvorsen is at 15:00 in room 7.",
            "Prepare slides for the review with Halvorsen",
            "when is the review with Halvorsen",
        ),
        (
            "Redis on the Marlin cluster was upgraded to 7 over the weekend.",
            "Which Redis version is on the Marlin cluster? I need the right client.",
            "redis version on Marlin",
        ),
        (
            "Never run the smoke tests against the live ferries, use the replica.",
            "run the smoke tests",
            "smoke tests against live ferries",
        ),
        (
            "Our van is a white Berlingo, parked in bay 22.",
            "Wash the Berlingo on Sunday",
            "where is the Berlingo parked",
        ),
        (
            "Unsere Hausverwaltung ist Frau Petrowitsch, die Miete beträgt 940 Euro.",
            "Schreib Frau Petrowitsch bitte, dass die Heizung kaputt ist.",
            "Hausverwaltung Petrowitsch Miete",
        ),
        (
            "The preview server runs on port 8085.",
            "on which port do I find the preview server",
            "preview server port",
        ),
    ],
)
def test_a_later_question_or_request_outdates_no_statement(
    open_memory: Callable[..., Memory],
    say: Callable[..., None],
    statement: str,
    later: str,
    question: str,
) -> None:
    say(9, statement)
    say(4, later)
    hits = [hit for hit in open_memory().search(question, fast=True).hits if hit.text in (statement, later)]
    assert (hits[0].text, hits[0].mark) == (statement, "")


@pytest.mark.parametrize(
    ("statement", "later", "question"),
    [
        (
            "The preview server runs on port 8085.",
            "Forget 8085, the preview server is on 8200 now",
            "preview server",
        ),
        (
            "The review with Halvorsen is on Friday.",
            "Move the review with Halvorsen to Monday",
            "Halvorsen review",
        ),
        (
            "Oma Walburga wohnt in Emden.",
            "Oma Walburga zieht nach Leer, kannst du eine Liste für den Umzug machen?",
            "Oma Walburga",
        ),
    ],
)
def test_a_request_or_question_that_states_another_value_outdates_the_older_one(
    open_memory: Callable[..., Memory],
    say: Callable[..., None],
    statement: str,
    later: str,
    question: str,
) -> None:
    say(9, statement)
    say(4, later)
    first, second = open_memory().search(question, fast=True).hits[:2]
    assert (first.text, first.mark) == (later, "")
    assert (second.text, second.mark) == (statement, "earlier")


def test_in_a_shared_chat_whoever_writes_is_not_what_is_written_about(
    open_memory: Callable[..., Memory], say: Callable[..., None], clock: Any
) -> None:
    clock.moment -= timedelta(days=3)
    open_memory(private=False, session="a").after_turn(
        "Britta: Film night is on Friday, Oluf picks it", "Ok."
    )
    clock.moment += timedelta(days=1)
    open_memory(private=False, session="b").after_turn("Oluf: the ski trip moved to January", "Ok.")
    hits = open_memory(private=False).search("who picks the film", fast=True).hits
    assert [hit.mark for hit in hits if "Film night" in hit.text] == [""]


def test_how_many_hits_are_asked_for_changes_neither_their_order_nor_their_marks(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    say(40, "Torvald takes over the release of Ledgerbook", "Torvald.")
    say(30, "who is responsible for the release of Ledgerbook?", "Torvald.")
    say(25, "The release of Ledgerbook needs the signed tag", "Ok.")
    say(20, "Ingeborg is responsible for releasing Ledgerbook from now on", "Ok.")
    say(12, "Draft the release notes of Ledgerbook", "Done.")
    say(9, "The release of Ledgerbook went fine", "Good.")
    memory = open_memory()
    question = "who is responsible for the release of Ledgerbook now"
    whole = [(hit.text, hit.mark) for hit in memory.search(question, limit=8, fast=True).hits]
    assert "earlier" not in whole[0]
    assert "Ingeborg" in next(text for text, _ in whole if "Ingeborg" in text or "Torvald" in text)
    assert {mark for text, mark in whole if "Torvald" in text} == {"earlier"}
    for limit in range(1, 8):
        assert [
            (hit.text, hit.mark) for hit in memory.search(question, limit=limit, fast=True).hits
        ] == whole[:limit]


def test_an_old_answer_of_the_agent_is_marked_once_something_newer_was_stated(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    for day, other in enumerate(
        ("The choir meets in Lund.", "Ida likes plums.", "The well is deep.", "Rolf has a boat.")
    ):
        say(60 + day, other)
    say(30, "We can spend 1,200 euros on the cargo bike.", "Ok.")
    say(20, "How much can I spend on the cargo bike?", "1,200 euros.")
    say(5, "Let's say 1,500 for the cargo bike.", "Ok.")
    memory = open_memory(session="now")
    hits = memory.search("How much can I spend on the cargo bike?", fast=True).hits
    assert "1,500" in hits[0].text
    assert {hit.mark for hit in hits if "1,200" in hit.text} == {"earlier"}
    block = "\n".join(one.text for one in memory.before_turn("What is my budget for the cargo bike?").blocks)
    assert "1,500" in block
    assert all("earlier" in line for line in block.splitlines() if "1,200" in line), block


def test_an_answer_that_says_what_was_stated_later_stays_unmarked(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    say(20, "Which port has the preview server?", "8200")
    say(5, "The preview server is on 8200, as ever.", "Ok.")
    hits = open_memory().search("preview server port", fast=True).hits
    assert [hit.mark for hit in hits if hit.text == "8200"] in ([], [""])


def test_the_brief_shows_the_newest_of_several_values_and_marks_no_older_one_as_known(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    for days, price in ((30, 42), (20, 55), (10, 61)):
        now = clock.moment
        clock.moment = now - timedelta(days=days)
        with open_memory(session=f"day-{days}") as memory:
            memory.init()
            memory.store(f"The hosting bill of Ledgerbook is {price} EUR a month.", "fact")
            memory.search("hosting bill", fast=True)
        clock.moment = now
    memory = open_memory()
    for text in (memory.brief().text, memory.boot().text):
        lines = [line for line in text.splitlines() if "hosting bill" in line]
        assert "61 EUR" in lines[0]
        assert all("earlier" in line for line in lines[1:])
    assert "42 EUR" not in memory.brief().text or "earlier" in memory.brief().text


def test_a_fact_read_from_talk_is_overtaken_by_the_newest_statement_of_a_chain(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    say(30, "The alarm threshold of Tidewatch is 4.2 m.", "Ok.")
    say(20, "The alarm threshold of Tidewatch went up from 4.2 m to 4.6 m.", "Ok.")
    say(5, "We alarm at 4.4 m now, the Tidewatch threshold was too high.", "Ok.")
    memory = open_memory()
    memory.upkeep.run("ingest")
    for hit in memory.graph.search("alarm threshold of Tidewatch").hits:
        if "4.2" in hit.value or "4.6" in hit.value:
            assert hit.newer is not None and "4.4 m" in hit.newer.text
