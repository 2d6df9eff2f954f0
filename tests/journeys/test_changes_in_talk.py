"""What people say changed, in everyday words: the newer value stands first, wherever and by whomever it is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from nanoclaw_memory.memory import Memory

Say = Callable[..., None]


@pytest.fixture
def say(open_memory: Callable[..., Memory], clock: Any) -> Say:
    """Something that a person says, the next day in a session of its own unless one is named."""

    def said(message: str, answer: str = "Noted.", session: str = "", project: str = "") -> None:
        clock.moment += timedelta(seconds=20) if session else timedelta(days=1)
        with open_memory(session=session or f"on-{clock.moment:%m-%d}", project=project) as memory:
            memory.init()
            memory.after_turn(message, answer)

    return said


def lines(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


def test_a_thing_of_ones_own_that_changed_is_shown_with_its_new_value_by_every_face(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("Our florist is Mrs. Adeyemi in Bell Street")
    say("We changed florists, it's Mr. Kwon now")
    memory, question = open_memory(session="new"), "Who is our florist?"
    first, second = memory.search(question, fast=True).hits[:2]
    assert ("Kwon" in first.text, "Adeyemi" in second.text, second.mark) == (True, True, "superseded")
    (fact,) = memory.graph.search(question).hits
    assert (fact.item.value, fact.mark, "Kwon" in fact.dated) == ("Mrs. Adeyemi", "superseded", True)
    turn = memory.before_turn(question).text
    assert all("Kwon" in line for line in lines(turn, "Adeyemi"))
    assert lines(turn, "Kwon")


def test_what_was_said_a_moment_ago_marks_a_fact_that_was_told_a_moment_before(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("Our florist is Mrs. Adeyemi in Bell Street")
    assert lines(open_memory(session="one").before_turn("Who is our florist?").text, "Adeyemi")
    say("We changed florists, it's Mr. Kwon now", session="two")
    turn = open_memory(session="three").before_turn("Who is our florist?").text
    assert all("Kwon" in line for line in lines(turn, "Adeyemi"))


def test_what_changed_in_one_repository_is_marked_when_another_asks(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("staging of magpie runs on port 4100", project="magpie")
    say("the readme needs a badge", project="magpie")
    say("staging moved to port 4200 because grafana took 4100", project="magpie")
    for question in ("which port does staging run on?", "what is magpie's staging port?"):
        text = open_memory(session=question, project="wombat").before_turn(question).text
        assert lines(text, "4200")
        assert all("earlier" in line for line in lines(text, "4100") if "4200" not in line)


def test_what_the_start_gave_stands_beside_the_older_value_that_it_overtakes(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("staging of magpie runs on port 4100")
    say("the readme needs a badge", session="later")
    say("where is the changelog", "In docs.", session="later")
    say("we agreed, staging moved to port 4200 because grafana took 4100")
    memory = open_memory(session="new")
    assert lines(memory.session_start().text, "4200")
    told = memory.before_turn("which port does staging run on?").text
    assert lines(told, "port 4100") and lines(told, "4200")
    assert not memory.before_turn("which port does staging run on?").text


def test_an_answer_that_names_nothing_changes_what_the_question_before_it_asked_about(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("my hourly rate for Belling is 80 EUR, for Ostrow 70")
    say("whats my rate for belling", "80 EUR.", session="talk")
    say("raised it to 96 from this month", "Good, 96 EUR.", session="talk")
    memory = open_memory(session="new")
    assert "96" in memory.recall("Belling rate", fast=True).text.split("\n")[1]
    turn = memory.before_turn("what is my rate for Belling?").text
    assert lines(turn, "96")
    assert all("earlier" in line for line in lines(turn, "80"))


def test_of_two_sessions_none_goes_on_with_the_question_of_the_other(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("my hourly rate for Belling is 80 EUR")
    say("whats my rate for belling", "80 EUR.", session="talk")
    say("raised it to 96 from this month", "Good.", session="another")
    hits = open_memory(session="new").search("my rate for Belling", fast=True).hits
    assert [hit.mark for hit in hits if "80 EUR" in hit.text and hit.speaker == "User"] == [""]


def test_a_shared_name_alone_marks_nothing(say: Say, open_memory: Callable[..., Memory]) -> None:
    say("I'm Greta Holt, I run a pottery with Jonah Fell, who owns the building", "Nice to meet you.")
    say("Jonah says we can go up to 350")
    say("my aunt Bryony lives in Leeds")
    say("Bryony moved to York")
    memory = open_memory(session="new")
    assert memory.search("who owns the building?", fast=True).hits[0].mark == ""
    marks = {hit.text: hit.mark for hit in memory.graph.search("Where does my aunt Bryony live?").hits}
    assert (marks["Bryony → lives in → Leeds"], marks["User → aunt → Bryony"]) == ("earlier", "")


def test_a_question_is_recalled_with_its_answer_or_not_at_all(
    say: Say, open_memory: Callable[..., Memory]
) -> None:
    say("which redis version is on wombat", "7")
    say("what does the wombat licence cost", "")
    turn = open_memory(session="new").before_turn("which redis version do we run on wombat?").text
    assert lines(turn, 'You said: "7"')
    assert not lines(turn, "licence")


def test_one_text_stands_once_in_a_turn_whatever_its_sources(memory: Memory) -> None:
    memory.write("Bookly is chaos, back to phone appointments")
    page = memory.home.workspace("main") / "MEMORY.md"
    page.write_text(page.read_text() + "\n- Bookly is chaos, back to phone appointments\n")
    text = memory.for_session("new").before_turn("do we still use Bookly for appointments?").text
    assert len(lines(text, "Bookly is chaos")) == 1


def test_a_log_line_that_a_newer_one_gives_up_is_not_proposed_and_others_stand_beside_what_was_said_later(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    for text in (
        "We now pay 405 a day for the locum",
        "Appointments are made online with Bookly only",
        "locum is paid 415 a day from october",
        "Bookly is chaos, back to phone calls",
    ):
        clock.moment += timedelta(days=3)
        with open_memory() as memory:
            memory.init()
            memory.write(text, tag="decision", importance=0.9)
    with open_memory() as memory:
        memory.upkeep.run("promote")
        proposed = {one.payload["text"]: one.why for one in memory.upkeep.review()}
    assert not [text for text in proposed if "405" in text]
    (why,) = [why for text, why in proposed.items() if "online" in text]
    assert "said later" in why and "phone calls" in why
