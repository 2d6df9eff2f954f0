"""What was true and is no longer: the newer statement first, the older one dated and marked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from nanoclaw_memory.memory import Memory


def told(open_memory: Callable[..., Memory], clock: Any, days_ago: int, act: Callable[[Memory], Any]) -> None:
    """Something that happened some days ago, in a session of its own."""
    now = clock.moment
    clock.moment = now - timedelta(days=days_ago)
    with open_memory(session=f"day-{days_ago}") as memory:
        memory.init()
        act(memory)
    clock.moment = now


def test_of_two_statements_on_one_subject_the_newer_stands_first_and_the_older_is_marked(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 40, lambda memory: memory.write("Bluebottle exporter listens on port 7070"))
    told(
        open_memory,
        clock,
        3,
        lambda memory: memory.store("The Bluebottle exporter is reached at 9191.", "fact"),
    )
    memory = open_memory()
    first, second = memory.search("Which port does the Bluebottle exporter listen on?", fast=True).hits
    assert ("9191" in first.text, first.mark) == (True, "")
    assert ("7070" in second.text, second.mark, second.newer.day) == (True, "earlier", first.day)
    newer, older = memory.recall("Bluebottle exporter port", fast=True).text.split("\n")[1:3]
    assert "9191" in newer and "3d ago" in newer
    assert "7070" in older and "earlier, see entry" in older and second.day in older


def test_of_two_lines_of_one_day_the_later_stands_first_and_the_other_is_marked(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    def day(memory: Memory) -> None:
        memory.write("The Bluebottle exporter listens on port 7070")
        memory.write("Ordered new chairs for the meeting room")
        memory.write("Moved the Bluebottle exporter to port 9191")

    told(open_memory, clock, 1, day)
    question = "Which port does the Bluebottle exporter listen on?"
    memory = open_memory(session="new")
    first = memory.search(question, fast=True).hits[0]
    assert ("9191" in first.text, first.mark) == (True, "")
    newer, older = [line for line in memory.before_turn(question).text.splitlines() if "[log" in line]
    assert "9191" in newer and "earlier" not in newer
    assert "7070" in older and "earlier" in older


def test_the_newer_statement_comes_along_though_the_question_does_not_find_it(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(
        open_memory,
        clock,
        40,
        lambda memory: memory.write("parcels from Quillfeather are left with the porter"),
    )
    told(
        open_memory,
        clock,
        2,
        lambda memory: memory.after_turn("Quillfeather delivers to bay 4 by now", "Noted."),
    )
    hits = open_memory().search("Who takes the parcels, is it the porter?", fast=True).hits
    assert ["porter" in hits[0].text, "bay 4" in hits[1].text] == [True, True]
    assert (hits[0].mark, hits[1].why) == ("earlier", "newer on its subject")


def test_of_several_things_about_one_person_the_one_that_was_asked_for_comes_first(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    notes = {
        40: "Osric must not have penicillin, it gave him a rash",
        30: "Osric plays handball on Tuesdays",
        20: "Mrs. Okonjo teaches Osric the cello, Mondays at four",
        10: "Osric needs new boots, size 34",
        7: "Osric goes on a class trip to Whitby in January",
        5: "Mrs. Okonjo has moved to Station Road 8",
    }
    for days, text in notes.items():
        told(open_memory, clock, days, lambda memory, text=text: memory.write(text))
    asked = {
        "Which medicine must Osric not have?": "penicillin",
        "When does Osric play handball?": "Tuesdays",
        "What time is the cello lesson?": "Mondays",
        "What size are Osric's boots?": "34",
    }
    found = {question: open_memory().search(question, fast=True).hits for question in asked}
    assert [asked[question] in hits[0].text for question, hits in found.items()] == [True] * 4
    assert [found[question][0].mark for question in list(asked)[:2]] == ["", ""]


def test_statements_that_share_only_usual_words_are_not_called_earlier(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 9, lambda memory: memory.write("the meeting with the bank was moved to Monday"))
    told(open_memory, clock, 5, lambda memory: memory.write("the meeting room has a new screen"))
    hits = open_memory().search("meeting", fast=True).hits
    assert [hit.mark for hit in hits] == ["", ""]


def test_a_question_about_a_day_gets_what_held_then_first(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 40, lambda memory: memory.write("Bluebottle exporter listens on port 7070"))
    told(open_memory, clock, 3, lambda memory: memory.write("Bluebottle exporter listens on port 9191"))
    then = (clock.moment - timedelta(days=40)).strftime("%-d %B %Y")
    hit = open_memory().search(f"Bluebottle exporter port on {then}", fast=True).hits[0]
    assert ("7070" in hit.text, hit.mark) == (True, "earlier")


def test_a_line_of_a_page_counts_from_the_day_on_which_it_was_first_seen(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    def edit(line: str) -> Callable[[Memory], Any]:
        def act(memory: Memory) -> None:
            page = memory.home.workspace("main") / "MEMORY.md"
            page.write_text(f"{page.read_text() if page.exists() else ''}- {line}\n")
            memory.after_turn("hello", "Hello.")

        return act

    told(open_memory, clock, 30, edit("Bluebottle exporter: port 7070"))
    told(open_memory, clock, 4, edit("Bluebottle exporter answers on 9191"))
    memory = open_memory()
    first, second = memory.search("Bluebottle exporter port", 2, fast=True).hits
    assert ("9191" in first.text, "7070" in second.text, second.mark) == (True, True, "earlier")
    seen = (clock.moment - timedelta(days=30)).date().isoformat()
    assert (second.day, second.seen) == ("", seen)
    assert f"by {seen}" in memory.fenced([second])


def test_a_fact_carries_its_day_and_what_was_stated_later_outside_the_graph(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 30, lambda memory: memory.graph.upsert("Bluebottle", "port", "7070"))
    told(
        open_memory,
        clock,
        2,
        lambda memory: memory.after_turn("Bluebottle is on 9191 in the lab by now", "Noted."),
    )
    memory = open_memory()
    (hit,) = memory.graph.search("What port does Bluebottle use?").hits
    assert hit.mark == "earlier" and "9191" in hit.newer.text
    since = (clock.moment - timedelta(days=30)).date().isoformat()
    assert hit.dated.startswith(f"Bluebottle.port = 7070 (since {since}; earlier, see session day-2")


def test_what_was_stated_in_private_marks_nothing_for_others(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 30, lambda memory: memory.store("Bluebottle listens on port 7070.", "fact"))
    told(
        open_memory,
        clock,
        2,
        lambda memory: memory.after_turn("Bluebottle is on 9191 in the lab by now", "Noted."),
    )
    shared = open_memory(private=False, privacy__sharedFiles='["memory/domains/fact.md"]')
    (hit,) = shared.search("Bluebottle port", fast=True).hits
    assert (hit.mark, hit.newer) == ("", None)


def test_a_superseded_entry_is_left_out_of_the_brief(open_memory: Callable[..., Memory], clock: Any) -> None:
    told(open_memory, clock, 30, lambda memory: memory.store("Bluebottle keeps its data in MongoDB.", "fact"))
    told(open_memory, clock, 20, lambda memory: memory.store("Larkspur keeps its data in Redis.", "fact"))
    told(open_memory, clock, 2, lambda memory: memory.write("Bluebottle moved from MongoDB to Postgres"))
    memory = open_memory()
    memory.index()
    assert [entry.content for entry in memory.brief().entries] == ["Larkspur keeps its data in Redis."]


def test_a_log_line_that_a_later_statement_supersedes_is_not_proposed_for_the_page(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(
        open_memory,
        clock,
        30,
        lambda memory: memory.write("Bluebottle keeps its data in MongoDB", "decision", 0.9),
    )
    told(open_memory, clock, 25, lambda memory: memory.write("Larkspur deploys by hand", "decision", 0.9))
    told(
        open_memory,
        clock,
        2,
        lambda memory: memory.after_turn("Bluebottle moved from MongoDB to Postgres.", "Noted."),
    )
    memory = open_memory()
    memory.upkeep.run("promote")
    (proposal,) = memory.upkeep.review()
    assert "Larkspur" in proposal.diff


def test_an_older_statement_is_marked_at_once_though_many_others_wait_to_be_compared(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    def fill(memory: Memory) -> None:
        for number in range(60):
            memory.write(f"shelf number {number} was counted")
        memory.write("Bluebottle exporter listens on port 9191")

    told(open_memory, clock, 40, lambda memory: memory.write("Bluebottle exporter listens on port 7070"))
    told(open_memory, clock, 20, lambda memory: memory.graph.upsert("Bluebottle", "port", "7070"))
    with open_memory() as memory:
        assert not memory.search("Bluebottle exporter", fast=True).hits[0].mark
    told(open_memory, clock, 3, fill)
    memory = open_memory()
    (fact,) = memory.graph.search("What port does Bluebottle use?").hits
    assert fact.mark == "earlier" and "9191" in fact.newer.text
    hits = memory.search("Which port does the Bluebottle exporter listen on?", 2, fast=True).hits
    assert [("9191" in hit.text, hit.mark) for hit in hits] == [(True, ""), (False, "earlier")]


def test_a_request_that_says_nothing_new_outdates_nothing(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 9, lambda memory: memory.write("The Quillfeather tests are run with make check"))
    told(open_memory, clock, 2, lambda memory: memory.after_turn("run the Quillfeather tests", "All passed."))
    hits = open_memory().search("How do I run the Quillfeather tests?", fast=True).hits
    assert [hit.mark for hit in hits if "make check" in hit.text] == [""]


def test_a_later_line_that_has_only_the_name_of_the_question_does_not_go_before_the_answer(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 28, lambda memory: memory.write("Osric plays handball on Tuesdays now"))
    told(open_memory, clock, 2, lambda memory: memory.write("Dentist of Osric: Weller, Ring 12"))
    hits = open_memory().search("When does Osric play handball?", fast=True).hits
    assert "Tuesdays" in hits[0].text


def test_a_fact_is_not_called_earlier_by_a_copy_of_the_line_that_states_it(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    memory = open_memory()
    memory.init()
    page = memory.home.workspace("main") / "MEMORY.md"
    lines = ["- Ayla Demir: Steuerberaterin, Tel. 030 555 11", "- Bo Lund: broker, phone 040 777 12"]
    page.write_text("# People\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    memory.upkeep.run("ingest")
    clock.moment += timedelta(days=1)
    with open_memory(session="later") as later:
        later.upkeep.migrate_files()
        hits = [*later.graph.search("Ayla Demir").hits, *later.graph.search("Bo Lund").hits]
        assert {hit.item.value for hit in hits} == {"Steuerberaterin", "030 555 11", "broker", "040 777 12"}
        assert [hit.mark for hit in hits] == [""] * 4
        later.store("Bo Lund has a new phone: 040 888 13", "fact")
        hits = later.graph.search("Bo Lund's phone").hits
        assert [hit.mark for hit in hits if hit.item.value == "040 777 12"] in ([], ["earlier"])


def test_news_about_the_same_name_does_not_make_an_amount_of_it_outdated(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 20, lambda memory: memory.write("Lieferfrist bei Feldkamp: 9 Tage"))
    told(open_memory, clock, 3, lambda memory: memory.write("Feldkamp has a new switchboard, 0421 5550172"))
    memory = open_memory()
    memory.upkeep.run("ingest")
    (fact,) = memory.graph.search("Lieferfrist bei Feldkamp").hits
    assert ("9 Tage" in fact.text, fact.mark) == (True, "")
    line = next(
        hit for hit in memory.search("Lieferfrist bei Feldkamp", fast=True).hits if "9 Tage" in hit.text
    )
    assert line.mark == ""


def test_news_that_shares_only_a_name_with_a_fact_does_not_make_it_outdated(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(open_memory, clock, 20, lambda memory: memory.after_turn("my brother Ivar lives in Tromsø", "Ok."))
    told(open_memory, clock, 3, lambda memory: memory.after_turn("Ivar visits us over Whitsun", "Ok."))
    found = {hit.text: hit.mark for hit in open_memory().graph.search("Where does Ivar live?").hits}
    assert found["Ivar → lives in → Tromsø"] == ""


def test_an_amount_that_is_repeated_is_not_outdated(open_memory: Callable[..., Memory], clock: Any) -> None:
    told(open_memory, clock, 20, lambda memory: memory.write("Courier receipts are kept for 60 days"))
    told(
        open_memory,
        clock,
        3,
        lambda memory: memory.write("Courier receipts: retention is 60 days, checked with the auditor"),
    )
    hits = open_memory().search("How long are courier receipts kept?", fast=True).hits
    assert [hit.mark for hit in hits if "60 days" in hit.text] == ["", ""]


def test_of_a_value_that_was_changed_and_changed_back_only_the_last_statement_is_unmarked(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    told(
        open_memory, clock, 30, lambda memory: memory.write("The courier gateway allows 30 minutes of delay")
    )
    told(
        open_memory, clock, 20, lambda memory: memory.write("The courier gateway allows 75 minutes of delay")
    )
    told(
        open_memory,
        clock,
        3,
        lambda memory: memory.write("The courier gateway allows 30 minutes of delay again, as before"),
    )
    hits = open_memory().search("Which delay does the courier gateway allow?", fast=True).hits
    marks = {hit.text.removeprefix("- "): hit.mark for hit in hits}
    assert marks.pop("The courier gateway allows 30 minutes of delay again, as before") == ""
    assert set(marks.values()) == {"earlier"}
