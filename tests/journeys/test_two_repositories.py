"""Two repositories of one person: each has its own last session, focus and page, and labels what is the other's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

At = Callable[..., Memory]


@pytest.fixture
def at(memory: Memory, home: Path, clock: FixedClock):
    """Open the memory as a session in a project; all are closed at the end."""
    opened = []

    def open_(project: str, session: str = "s1", **settings: str) -> Memory:
        overrides = {key.replace("__", "."): value for key, value in settings.items()}
        scope = Scope(session_id=session, project=project)
        opened.append(Memory.open(home, scope, clock=clock, overrides=overrides))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def test_a_session_starts_with_the_last_one_in_its_own_project(at: At):
    at("keystone", "k1").after_turn(
        "The ledger import fails on negative amounts", "I will reproduce the ledger import first."
    )
    at("orchard", "o1").after_turn("We still have to rename the pear catalogue", "I can do it.")
    keystone = at("keystone", "k2").session_start().text
    assert "ledger import" in keystone and "pear" not in keystone
    orchard = at("orchard", "o2").session_start().text
    assert "pear catalogue" in orchard and "ledger" not in orchard
    assert at("harbor", "h1").session_start().blocks == ()
    everything = at("keystone", "k3", projects__enabled="false").session_start().text
    assert "pear catalogue" in everything


def test_topics_and_anchors_are_those_of_the_project(at: At):
    for number in range(3):
        at("orchard", "o1").after_turn(
            f"I live in Bergen and I am sorting the pear catalogue, part {number}", "The pear catalogue."
        )
        at("keystone", "k1").after_turn(f"I am testing the ledger import, part {number}", "Ok.")
    started = at("keystone", "k2").session_start().text
    assert "Bergen" not in started and "pear" not in started
    assert "Bergen" in at("orchard", "o2").session_start().text


def test_focus_and_open_questions_are_those_of_the_project(at: At, home: Path):
    orchard = at("orchard", "o1")
    orchard.after_turn("Rename the pear catalogue", "The pear catalogue is renamed.")
    orchard.write("Pears are sorted by weight", "decision", 0.9)
    orchard.write("Who tastes the pears?", "question")
    orchard.session_end()
    keystone = at("keystone", "k1")
    keystone.write("Amounts are whole cents", "decision", 0.9)
    keystone.session_end()
    memory = home / "workspace" / "memory"
    assert "Who tastes the pears?" in (memory / "active-context-orchard.md").read_text()
    assert "pear" not in (memory / "active-context.md").read_text().lower()
    boot = at("keystone", "k2").boot()
    assert "Amounts are whole cents" in boot.text and "pear" not in boot.text.lower()
    assert "[2 lines of other projects: memory_search finds them]" in boot.text
    assert "memory/active-context-keystone.md" in [file.path for file in boot.files]
    assert "Who tastes the pears?" in at("orchard", "o2").boot().text
    assert "Who tastes the pears?" in at("", "h1").boot().text  # the log itself, where no project is named


def test_the_projects_own_page_is_booted(at: At, home: Path):
    (home / "workspace" / "memory" / "project-keystone.md").write_text(
        "# Keystone\n\nMoney is whole cents.\n"
    )
    (home / "shared" / "project-keystone.md").write_text("# Keystone\n\nReleases are on Tuesday.\n")
    text = at("keystone").boot().text
    assert "Money is whole cents." in text and "Releases are on Tuesday." in text
    assert "Money" not in at("orchard").boot().text
    assert "missing: memory/project-orchard.md" not in at("orchard").boot().text


def test_what_belongs_to_another_project_comes_later_and_says_so(at: At):
    orchard = at("orchard", "o1")
    orchard.write("The staging database is on port 7001", "fact", 0.9)
    orchard.store("The staging database of the pear shop is wiped every night", "fact")
    orchard.after_turn("Where is the staging database backup?", "The staging database backup is in Oslo.")
    keystone = at("keystone", "k1")
    keystone.write("The staging database is on port 7002", "fact", 0.9)
    hits = keystone.search("staging database port", fast=True).hits
    assert hits[0].project == "keystone"
    assert {hit.project for hit in hits[1:]} == {"orchard"}
    text = keystone.fenced(hits).splitlines()
    assert "project" not in text[1] and "7002" in text[1]
    assert all("project orchard" in line for line in text[2:-1])
    recall = keystone.recall("staging database", fast=True)
    assert "project orchard" in recall.text and "project keystone" not in recall.text
    assert {entry.project for entry in recall.entries} == {"keystone", "orchard"}
    turn = keystone.before_turn("Do you remember where the staging database backup is?")
    assert "in project orchard" in turn.text and "Oslo" in turn.text
    first = orchard.search("staging database port", fast=True).hits[0]
    assert (first.project, "7001" in first.text) == ("orchard", True)


def test_a_project_that_the_question_names_is_not_put_behind(at: At):
    at("orchard").write("The deploy window is Monday morning", "fact", 0.9)
    at("keystone").write(
        "The deploy window is Friday at noon, as in every other week of the year", "fact", 0.9
    )
    hits = at("keystone").search("deploy window of orchard", fast=True).hits
    assert "Monday" in hits[0].text


def test_the_brief_names_other_projects_and_puts_them_last(at: At):
    at("orchard").store("Tests of the pear catalogue need the big fixture", "instruction")
    at("keystone").store("Amounts are shown with two decimals", "instruction")
    at("").store("Answers are short", "instruction")
    lines = [line for line in at("keystone").brief().text.splitlines() if line.startswith("- [")]
    assert [line.endswith("; project orchard)") for line in lines] == ["pear" in line for line in lines]
    assert "pear" not in at("keystone", entries__maxBriefEntries="2").brief().text


def test_what_is_stored_in_two_projects_belongs_to_none(at: At):
    at("keystone").store("Dates are written as 2026-02-23", "preference")
    again = at("orchard").store("Dates are written as 2026-02-23", "preference")
    assert again.deduplicated
    assert at("orchard").entries.get(again.id).provenance.project == ""


def test_a_log_line_carries_its_project_where_a_person_can_read_it(at: At, home: Path):
    at("keystone").write("Chose SQLite", "decision", 0.9)
    at("keystone").write("Lunch was late")
    at("keystone", projects__enabled="false").write("Not marked")
    log = (home / "workspace" / "memory" / "2026-02-23.md").read_text()
    assert log.endswith(
        "- [decision|i=0.9|@keystone] Chose SQLite\n- [@keystone] Lunch was late\n- Not marked\n"
    )
    assert [line.project for line in at("keystone").log()[1]] == ["keystone", "keystone", ""]


def test_an_archived_conversation_keeps_its_project(at: At, tmp_path: Path):
    transcript = tmp_path / "t.jsonl"
    said = [("user", "How are pears sorted?"), ("assistant", "Pears are sorted by weight.")]
    lines = [{"type": role, "message": {"role": role, "content": text}} for role, text in said]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    at("orchard", "o1").before_compaction(str(transcript))
    hits = at("keystone", "k1").search("how pears are sorted", fast=True).hits
    assert {(hit.path.partition("/")[0], hit.project) for hit in hits} == {("conversations", "orchard")}


def test_sessions_and_projects_are_listed(at: At):
    at("keystone", "k1").after_turn("Which port?", "3055.")
    at("orchard", "o1").workspace.new_project("orchard", "Orchard")
    assert [one.project for one in at("").conversations.sessions()] == ["keystone"]
    assert [(one.slug, one.path, one.exchanges) for one in at("").workspace.projects()] == [
        ("keystone", "", 1),
        ("orchard", "shared/project-orchard.md", 0),
    ]


@pytest.mark.parametrize("project", ["Keystone", "a b", "../up", "x" * 65])
def test_a_scope_with_a_bad_project_is_refused(home: Path, project: str):
    with pytest.raises(InvalidValue, match="slug"):
        Memory.open(home, Scope(project=project))


def lessons_shown(memory: Memory, message: str) -> str:
    blocks = [*memory.session_start().blocks, *memory.before_turn(message).blocks]
    return "\n".join(block.text for block in blocks if block.label == "GROWTH VECTORS")


def taught(memory: Memory, words: str) -> None:
    memory.after_turn("Write the parser for the ledger", "The parser for the ledger is written.")
    memory.after_turn(words, "Understood.")


@pytest.mark.parametrize(
    "words",
    [
        "No, that's wrong, in here we never use spaces in the parser.",
        "Don't use spaces in the parser in this repo.",
        "In keystone, never use spaces in the parser.",
        "Nimm hier im Parser Tabs statt Leerzeichen.",
        "Hier bitte nie Leerzeichen im Parser benutzen.",
    ],
)
def test_a_lesson_that_is_said_to_be_of_this_place_is_silent_in_other_projects(at: At, words: str):
    taught(at("keystone", "k1"), words)
    (lesson,) = at("keystone").lessons.lessons()
    assert (lesson.project, lesson.only_there, lesson.state) == ("keystone", True, "active")
    german = "Leerzeichen" in words
    asked, there = (
        "Rewrite our parser, it still has spaces",
        "Rewrite our parser in keystone, it still has spaces",
    )
    if german:
        asked = "Schreib unseren Parser um, er hat noch Leerzeichen"
        there = "Schreib unseren Parser in keystone um, er hat noch Leerzeichen"
    assert lesson.lesson in lessons_shown(at("keystone", "k2"), asked)
    assert lessons_shown(at("orchard", "o1"), asked) == ""
    assert lessons_shown(at("", "n1"), asked) == ""
    assert lesson.lesson in lessons_shown(at("orchard", "o2"), there)
    assert lesson.lesson in lessons_shown(at("orchard", "o3", projects__enabled="false"), asked)


@pytest.mark.parametrize(
    "words", ["In tests, never use spaces in the parser.", "Never use spaces for tests here."]
)
def test_an_ordinary_word_that_is_also_another_projects_name_binds_no_lesson_to_it(at: At, words: str):
    at("tests", "t1").after_turn("What is the budget?", "40,000 euros.")
    taught(at("keystone", "k1"), words)
    (lesson,) = at("keystone").lessons.lessons()
    assert lesson.project == "keystone"
    taught(at("keystone", "k2"), "In the tests repo, don't use tabs in the ledger.")
    assert [one.project for one in at("keystone").lessons.lessons()] == ["keystone", "tests"]


def test_a_lesson_about_one_topic_is_labelled_in_other_projects(at: At):
    taught(at("keystone", "k1"), "Don't use tabs in the parser, use spaces.")
    asked = "Replace the tabs in the parser"
    assert "project" not in lessons_shown(at("keystone", "k2"), asked)
    assert "learnt in project keystone)" in lessons_shown(at("orchard", "o1"), asked)


def test_a_lesson_about_answers_in_general_starts_the_sessions_of_other_projects_with_its_own(
    at: At, scripted_judge
):
    words = "Never use emojis in your answers."
    scripted_judge.reaches[words] = "general"
    taught(at("keystone", "k1"), words)
    (lesson,) = at("orchard").lessons.lessons()
    assert (lesson.general, lesson.project, lesson.only_there) == (True, "keystone", False)
    shown = lessons_shown(at("orchard", "o1"), "And the cellar?")
    assert f"• {lesson.lesson}" in shown and "learnt in project keystone)" in shown


def test_the_lessons_of_a_project_start_its_sessions_before_those_of_others(at: At, scripted_judge):
    said = [f"Never use {one} in your answers." for one in ("emojis", "tables", "rhymes")]
    own = "Never use exclamation marks in your answers."
    scripted_judge.reaches |= dict.fromkeys((*said, own), "general")
    for number, words in enumerate(said):
        taught(at("keystone", f"k{number}"), words)
    taught(at("orchard", "o1"), own)
    shown = lessons_shown(at("orchard", "o2"), "And the cellar?")
    assert shown.index(own) < shown.index("learnt in project keystone")


@pytest.mark.parametrize(
    "words",
    [
        "Don't use tabs in the parser, in every project.",
        "Don't use tabs in the parser, across all my repositories.",
        "Benutze im Parser keine Tabs, egal in welchem Projekt.",
        "Benutze keine Tabs im Parser, überall.",
    ],
)
def test_a_lesson_that_says_that_it_holds_everywhere_is_of_no_project(at: At, words: str):
    taught(at("keystone", "k1"), words)
    (lesson,) = at("keystone").lessons.lessons()
    assert (lesson.reach, lesson.project, lesson.only_there) == ("topic", "", False)


def test_everywhere_within_a_named_project_is_there(at: At):
    taught(at("keystone", "k1"), "Don't use tabs in the parser, everywhere in this repo.")
    (lesson,) = at("keystone").lessons.lessons()
    assert (lesson.project, lesson.only_there) == ("keystone", True)


def test_a_lesson_repeated_in_another_project_is_of_none(at: At):
    words = "Don't use tabs in the parser, use spaces."
    taught(at("keystone", "k1"), words)
    taught(at("orchard", "o1"), words)
    (lesson,) = at("keystone").lessons.lessons()
    assert (lesson.project, lesson.seen) == ("", 2)


def test_the_same_lesson_said_to_be_of_two_places_is_two_lessons(at: At):
    words = "Don't use tabs in the parser in this repo."
    taught(at("keystone", "k1"), words)
    taught(at("orchard", "o1"), words)
    assert [one.project for one in at("harbor").lessons.lessons()] == ["keystone", "orchard"]


def test_what_was_wrong_in_one_answer_is_not_of_a_place(at: At):
    taught(
        at("keystone", "k1"), "No, you used the wrong parser here. Use the strict parser, not the lax one."
    )
    (lesson,) = at("keystone").lessons.lessons()
    assert not lesson.only_there
