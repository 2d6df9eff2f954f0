"""What outdates a statement, and that no face shows an outdated one as today's, however little is asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date, timedelta
from typing import Any

import pytest

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.retrieval.recall import hits_text
from nanoclaw_memory.types import Hit, Newer


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
        if "4.2" in hit.item.value or "4.6" in hit.item.value:
            assert hit.newer is not None and "4.4 m" in hit.newer.text


# ---- a correction in the next message ----


@pytest.mark.parametrize(
    ("asked", "answered", "correction", "question"),
    [
        (
            "Where do the alerts go?",
            "They go to PagerDuty service kx-prod.",
            "das stimmt nicht mehr, seit Montag gehen die Alarme an Opsgenie",
            "where do alerts go",
        ),
        (
            "How do the dunning mails go out?",
            "They go through the celery queue mail_low.",
            "No, that's wrong. It is mail_legal because of the audit trail.",
            "celery queue for dunning",
        ),
        (
            "Wer prüft den Jahresabschluss?",
            "Den Jahresabschluss prüft Frau Ohlsen.",
            "Nein, das macht seit Januar die Kanzlei Brandt.",
            "wer prüft den Jahresabschluss",
        ),
        (
            "Which day is the bin collection?",
            "The bin collection is on Thursday.",
            "Nope, they come on Fridays.",
            "which day is the bin collection",
        ),
    ],
)
def test_an_answer_that_the_next_message_corrects_is_marked_and_stands_after_the_correction(
    open_memory: Callable[..., Memory],
    say: Callable[..., None],
    asked: str,
    answered: str,
    correction: str,
    question: str,
) -> None:
    say(9, asked, answered)
    say(9, correction, "Thanks.")
    memory = open_memory()
    found = [(hit.text, hit.mark) for hit in memory.search(question, fast=True).hits]
    assert found[0] == (correction, "")
    assert {mark for text, mark in found if text == answered} <= {"earlier"}
    assert memory.search(question, limit=1, fast=True).hits[0].text == correction
    recalled = [line for line in memory.recall(question, fast=True).text.splitlines() if answered in line]
    assert all("earlier" in line for line in recalled)


@pytest.mark.parametrize(
    "following",
    [
        "No, thanks.",
        "No, thanks. I have to leave now, see you.",
        "Nein, danke. Ich muss los, tschüss.",
        "no. 5 is alive is a film",
        "Great, that helps.",
        "No problem, I'll tell the neighbours.",
        "Which bins are they?",
    ],
)
def test_a_message_that_corrects_nothing_marks_no_answer(
    open_memory: Callable[..., Memory], say: Callable[..., None], following: str
) -> None:
    say(9, "Which day is the bin collection?", "The bin collection is on Thursday.")
    say(9, following, "Fine.")
    hits = open_memory().search("which day is the bin collection", fast=True).hits
    assert [hit.mark for hit in hits if "Thursday" in hit.text] == [""]


# ---- a new number of the same thing ----


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        (
            "our flush interval is 250 ms, that came out of the load tests",
            "we went down to 100 ms on the flush, the 250 was too slow",
            "what's the flush interval",
        ),
        (
            "The retention of the Parquet exports is 18 months.",
            "Retention of the Parquet archive cut to 9 months",
            "how long do we keep Parquet",
        ),
        (
            "Das Löschintervall der Sicherungen beträgt 30 Tage.",
            "Die Sicherungen löschen wir jetzt nach 14 Tagen.",
            "wann werden Sicherungen gelöscht",
        ),
    ],
)
def test_a_new_number_of_what_an_older_statement_counts_marks_it_before_anything_is_indexed(
    open_memory: Callable[..., Memory], say: Callable[..., None], older: str, newer: str, question: str
) -> None:
    for day, other in enumerate(("The choir meets in Lund.", "Ida likes plums.", "Rolf has a boat.")):
        say(60 + day, other)
    say(23, older)
    say(15, newer)
    marks = {hit.text: hit.mark for hit in open_memory().search(question, fast=True).hits}
    assert (marks[newer], marks[older]) == ("", "earlier")


# ---- what a shared name alone does not pair ----


def test_two_statements_that_only_mention_one_person_do_not_outdate_each_other(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    say(9, "the offsite is in Lübeck on December 9, Tomasz books the train")
    say(4, "my birthday is on 2 March btw, says Tomasz's calendar too")
    hits = open_memory().search("when is the offsite", fast=True).hits
    assert [hit.mark for hit in hits if "offsite" in hit.text] == [""]


def test_a_word_of_change_outdates_nothing_else_that_is_known_of_a_person(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    say(28, "Nele can't have milk, and if I eat a walnut I end up in hospital.")
    say(14, "Nele now has her piano lesson in the old school, the teacher swapped.")
    hits = open_memory().search("What can Nele not have?", fast=True).hits
    assert [hit.mark for hit in hits if "milk" in hit.text] == [""]


def test_a_word_that_looks_like_a_usual_one_of_another_language_is_no_shared_name(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    say(9, "the flush runs every 100 ms, 250 was too slow for the alarms")
    say(4, "seit Montag gehen die Alarme an Opsgenie")
    hits = open_memory().search("how often does the flush run", fast=True).hits
    assert [hit.mark for hit in hits if "flush" in hit.text] == [""]


def test_a_page_that_was_there_before_memory_read_it_is_not_newer_than_what_was_said(
    open_memory: Callable[..., Memory], say: Callable[..., None], home: Any
) -> None:
    say(20, "Priyanka from finance is the one who signs off credit notes")
    say(9, "Priyanka left the company. Credit notes now go to Oluwaseun.")
    page = home / "workspace" / "MEMORY.md"
    page.write_text("# Memory\n\n- Oluwaseun Adeyemi runs finance at Tidepool\n")
    hits = open_memory().search("who signs off credit notes", fast=True).hits
    assert [hit.mark for hit in hits if "now go to Oluwaseun" in hit.text] == [""]
    assert {hit.mark for hit in hits if "signs off" in hit.text} <= {"earlier"}


def test_a_line_that_was_added_to_a_page_later_is_newer(
    open_memory: Callable[..., Memory], say: Callable[..., None], home: Any, clock: Any
) -> None:
    page = home / "workspace" / "MEMORY.md"
    clock.moment -= timedelta(days=30)
    with open_memory() as memory:
        memory.init()
        page.write_text("# Memory\n\n- The well is 40 m deep\n")
        memory.search("well", fast=True)
    clock.moment += timedelta(days=30)
    say(9, "Priyanka signs off the credit notes of Tidepool")
    page.write_text(page.read_text() + "- Credit notes of Tidepool are signed off by Oluwaseun now\n")
    hits = open_memory().search("who signs off credit notes", fast=True).hits
    assert {hit.mark for hit in hits if "Priyanka" in hit.text} == {"earlier"}


@pytest.mark.parametrize("days", [0, 5])
def test_the_only_line_of_a_page_is_newer_once_it_was_edited(
    open_memory: Callable[..., Memory], say: Callable[..., None], home: Any, clock: Any, days: int
) -> None:
    page = home / "workspace" / "memory" / "hosts.md"
    clock.moment -= timedelta(days=days)
    with open_memory() as memory:
        memory.init()
        page.write_text("# Hosts\n\n- The deploy host of Heron is kelp-1\n")
        memory.search("deploy host", fast=True)
    clock.moment += timedelta(days=days)
    say(2, "The deploy host of Heron is ember-3")
    page.write_text("# Hosts\n\n- The deploy host of Heron is now basalt-9\n")
    hits = open_memory().search("deploy host of Heron", fast=True).hits
    assert {hit.mark for hit in hits if "ember-3" in hit.text} == {"earlier"}


def test_the_name_of_the_project_pairs_nothing_within_it(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    for days, text in (
        (9, "tidepool is deployed on Hetzner in Falkenstein"),
        (4, "the deploy key for the runner is in the vault under tidepool/runner"),
    ):
        clock.moment -= timedelta(days=days)
        with open_memory(session=f"day-{days}", project="tidepool") as memory:
            memory.init()
            memory.after_turn(text, "Ok.")
        clock.moment += timedelta(days=days)
    hits = open_memory(project="tidepool").search("where are we deployed", fast=True).hits
    assert [hit.mark for hit in hits if "Hetzner" in hit.text] == [""]


def test_where_the_newer_statement_does_not_fit_a_turn_the_older_one_is_told_with_its_words(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    for day, other in enumerate(("The choir meets in Lund.", "Ida likes plums.", "Rolf has a boat.")):
        say(60 + day, other)
    say(9, "The Kestrel gateway listens on port 8085.")
    say(
        4,
        f"The Kestrel gateway listens on port 9120{', for reasons that take long to tell' * 12}.",
    )
    budget = {"plugins__entries__continuity__contextBudget": "90"}
    block = (
        open_memory(session="now", **budget)
        .before_turn("Which port does the Kestrel gateway listen on?")
        .text
    )
    assert "8085" in block
    assert all("9120" in line for line in block.split("\n") if "8085" in line)


def test_a_number_that_the_agent_says_it_changed_marks_the_older_one(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    for day, other in enumerate(("The choir meets in Lund.", "Ida likes plums.", "Rolf has a boat.")):
        say(60 + day, other)
    say(23, "our flush interval is 250 ms, that came out of the load tests")
    say(15, "let's try less than half of that", "Updated the flush interval to 100 ms.")
    say(14, "what is the longest flush interval that others use?", "Some wait 900 ms.")
    memory = open_memory()
    memory.search("flush", fast=True)  # compares what came in
    marks = {hit.text: hit.mark for hit in memory.search("flush", fast=True).hits}
    assert marks["our flush interval is 250 ms, that came out of the load tests"] == "earlier"
    assert marks["Updated the flush interval to 100 ms."] == ""


# ---- what is cut ----


def test_of_a_long_sentence_a_hit_keeps_the_part_with_what_was_asked_and_its_number(
    open_memory: Callable[..., Memory], say: Callable[..., None]
) -> None:
    filler = "after the long talk with everybody who had something to say about it and nothing better to do"
    long = f"Yesterday {filler}, {filler}, {filler}, the Kestrel gateway was put on port 9120, {filler}, {filler}."
    say(9, "The Kestrel gateway listens on port 8085.")
    say(4, long)
    memory = open_memory()
    question = "Which port does the Kestrel gateway listen on?"
    shown = memory.fenced(memory.search(question, fast=True).hits, question)
    assert "9120" in shown
    assert all("earlier" in line for line in shown.split("\n") if "8085" in line)


def test_where_not_all_fits_the_hit_that_overtakes_another_has_room_first() -> None:
    filler = "it was said in the hall, on the stairs and in the yard, where everybody could hear it"
    newer = f"The toll of the Ems bridge changed. {filler}. They take 6 euros."

    def hit(number: int, text: str, **more: Any) -> Hit:
        place = f"notes.md:{number}"
        return Hit("line", "notes.md", number, number, text, 0.9, "words", str(number), place=place, **more)

    others = [
        hit(number, f"The Ems bridge, part {number}: {filler}, {filler}, {filler}.") for number in range(1, 5)
    ]
    older = hit(
        6,
        "The toll of the Ems bridge is 4 euros.",
        mark="earlier",
        newer=Newer("notes.md:5", "2026-02-01", newer),
    )
    shown = hits_text([*others, hit(5, newer), older], date(2026, 2, 23), question="toll of the Ems bridge")
    assert newer in shown


# ---- an index of an earlier layout ----


@pytest.mark.files("the layout of a file")
def test_pairs_of_an_earlier_layout_are_compared_again(
    open_memory: Callable[..., Memory], say: Callable[..., None], home: Any
) -> None:
    say(9, "The well in Lund is 40 m deep.")
    say(4, "Rolf bought a boat with two masts.")
    assert len(open_memory().search("well in Lund", fast=True).hits) == 1
    with closing(sqlite3.connect(home / "data" / "index.db")) as database, database:
        (older,), (newer,) = (
            database.execute(f"SELECT id FROM passages WHERE text LIKE '%{word}%'").fetchone()
            for word in ("Lund", "Rolf")
        )
        database.execute(
            "INSERT INTO currency (older, newer, kind, why, sure) VALUES (?, ?, 'earlier', '', 0.5)",
            (older, newer),
        )
        database.execute("ALTER TABLE passages DROP COLUMN stood")
        database.execute("PRAGMA user_version = 9")
    hits = open_memory(session="later").search("well in Lund", fast=True).hits
    assert [hit.mark for hit in hits if "Lund" in hit.text] == [""]
