"""Yesterday's value never comes back: not as a copy of its sentence, not from an edited file, not through upkeep."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.graph.writer import NewFact, Origin
from nanoclaw_memory.memory import Memory

Write = Callable[..., Path]


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    memory = open_memory(embeddings__provider="none")
    memory.init()
    return memory


@pytest.fixture
def log(home: Path) -> Write:
    def put(day: str, *lines: str) -> Path:
        path = home / "workspace" / "memory" / f"{day}.md"
        path.write_text("".join(f"- {line}\n" for line in lines))
        return path

    return put


def ingest(memory: Memory) -> None:
    (run,) = memory.upkeep.run("ingest")
    assert not run.error


def sentence(memory: Memory, day: str, text: str, key: str = "decision", entity: str = "Keystone") -> None:
    """A sentence kept whole, as an agent or an older version stored it."""
    memory.graph.upsert(entity, key, text, add=True, valid_from=day)


def known(memory: Memory, question: str, **more: Any) -> list[str]:
    return [hit.text for hit in memory.graph.search(question, 20, **more).hits]


# ---- a sentence and what it says ----


def test_a_sentence_that_was_read_as_a_fact_is_not_kept_a_second_time(memory: Memory, log: Write) -> None:
    log("2026-02-21", "[fact|i=0.7] Keystone's port is 3000", "[fact|i=0.6] Heidi works at Acme")
    ingest(memory)
    assert known(memory, "port 3000") == ["Keystone.port = 3000"]
    assert known(memory, "Tell me about Acme") == ["Heidi → works at → Acme"]


def test_a_newer_statement_leaves_nothing_of_the_old_one(memory: Memory, log: Write) -> None:
    log("2026-02-21", "[fact|i=0.7] Keystone's port is 3000", "[fact|i=0.6] Heidi works at Acme")
    log("2026-02-23", "[fact|i=0.7] Keystone's port is 3055", "[fact|i=0.6] Heidi now works at Globex")
    ingest(memory)
    assert known(memory, "Which queue should we use for Keystone jobs?") == ["Keystone.port = 3055"]
    assert not any("3000" in text for text in known(memory, "port 3000"))
    assert known(memory, "Tell me about Acme") == []
    turn = memory.before_turn("Tell me about Acme")
    assert not any(block.label == "GRAPH MEMORY" for block in turn.blocks)
    assert all("earlier" in line for line in turn.text.split("\n") if "works at Acme" in line)


def test_a_sentence_about_more_is_retired_with_the_value_it_states(memory: Memory, log: Write) -> None:
    sentence(memory, "2026-02-20", "Picked port 3000 for Keystone because 8080 was taken")
    log("2026-02-21", "[fact|i=0.7] Keystone's port is 3000")
    ingest(memory)
    assert any("8080" in text for text in known(memory, "Tell me about Keystone"))
    memory.graph.upsert("Keystone", "port", "4000")
    assert known(memory, "Tell me about Keystone") == ["Keystone.port = 4000"]
    assert any("8080" in text for text in known(memory, "Tell me about Keystone", as_of="2026-02-22"))
    memory.graph.reject("Keystone", "port", "4000")
    assert any("8080" in text for text in known(memory, "Tell me about Keystone"))


def test_a_sentence_that_is_read_late_does_not_bring_a_retired_value_back(memory: Memory, log: Write) -> None:
    log("2026-02-21", "[fact|i=0.7] Keystone's port is 3000")
    log("2026-02-22", "[fact|i=0.7] Keystone's port is 3055")
    ingest(memory)
    sentence(memory, "2026-02-20", "Picked port 3000 for Keystone because 8080 was taken")
    sentence(memory, "2026-02-19", "Keystone left beta on port 3000, later 3055", "milestone")
    about = known(memory, "Tell me about Keystone")
    assert not any("Picked" in text for text in about)
    assert any("later 3055" in text for text in about)


def test_a_sentence_without_an_explicit_form_makes_no_fact_and_no_entity(memory: Memory, log: Write) -> None:
    memory.graph.upsert("Björn", "phone", "555 0142")
    before = list(memory.graph.export())
    log(
        "2026-02-21",
        "[fact|i=0.7] Heidi started at Acme in spring",
        "[lesson|i=0.8] Ask Björn before touching the router",
        "[decision|i=0.9] Picked port 3000 for Keystone because 8080 was taken",
        "[correction|i=0.8] the meeting is in room 4",
    )
    ingest(memory)
    assert list(memory.graph.export()) == before


def test_a_home_of_the_last_release_loses_its_copies_of_sentences(memory: Memory, log: Write) -> None:
    path = log("2026-02-21", "[fact|i=0.7] Keystone's port is 3000")
    memory.graph.upsert("Keystone", "port", "3000")
    with memory.group.database("facts").transaction():
        sentence = NewFact(entity="Facts", key="fact", value="Keystone's port is 3000", add=True)
        copy = memory.graph.writer.upsert(sentence, Origin("memory/2026-02-21.md:1"))
        memory.graph._ingest.mentions.put("memory/2026-02-21.md", "older-mark", 1, "fact", copy.id)
        memory.graph._ingest.mentions.mark_read("memory/2026-02-21.md", "older")
    assert path.exists()
    ingest(memory)
    assert known(memory, "port 3000") == ["Keystone.port = 3000"]


# ---- whose fact it is, and which one is asked for ----


@pytest.fixture
def family(memory: Memory, home: Path) -> Memory:
    page = home / "workspace" / "USER.md"
    page.write_text(
        "# User\n\n- name: Robert Lind\n- birthday: 3 May 1980\n- dog: Luna\n\n## Family\n\n- wife: Heidi\n"
        "- Heidi's birthday: 14 March 1988\n"
    )
    os.utime(page, (1_760_000_000, 1_760_000_000))
    memory.graph.seed(memory.home)
    return memory


@pytest.mark.parametrize("question", ["heidis birthday", "When was Heidi born?", "When is Heidi's birthday?"])
def test_a_possessive_in_a_list_is_a_fact_of_the_one_it_names(family: Memory, question: str) -> None:
    assert family.graph.search(question, 1).hits[0].text == "Heidi.birthday = 14 March 1988"
    assert "Heidi.birthday = 14 March 1988" in family.before_turn(question).text


@pytest.mark.parametrize(
    "line",
    [
        "Heidi's birthday: 15 March 1988",
        "[fact|i=0.6] Heidi's birthday: 15 March 1988",
        "[correction|i=0.9] Heidi's birthday is 15 March 1988, not 14 March",
        "Heidi's birthday is 15 March 1988 (not 14 March)",
    ],
)
def test_a_value_is_kept_without_what_it_is_not(family: Memory, log: Write, line: str) -> None:
    log("2026-02-23", line)
    family.graph.ingest("memory/2026-02-23.md", f"- {line}\n")
    assert [fact.value for fact in family.graph.history("Heidi", "birthday")][-1] == "15 March 1988"


def test_a_value_that_is_a_denial_stays_whole(memory: Memory) -> None:
    memory.graph.ingest("memory/2026-02-23.md", "- Keystone's status is not ready\n")
    assert memory.graph.history("Keystone", "status")[0].value == "not ready"


@pytest.mark.parametrize("question", ["what's my dog called?", "What is the name of my dog?"])
def test_what_something_of_mine_is_called_is_not_my_name(family: Memory, question: str) -> None:
    assert family.graph.search(question).hits[0].text == "User.dog = Luna"
    assert family.graph.search("What am I called?").hits[0].text == "User.name = Robert Lind"


# ---- a changed file is known at once ----


def dog(home: Path, name: str) -> None:
    (home / "workspace" / "USER.md").write_text(f"# User\n\n- dog: {name}\n")


def test_an_edited_file_reaches_the_next_question_and_the_next_turn(memory: Memory, home: Path) -> None:
    dog(home, "Luna")
    assert "User.dog = Luna" in memory.before_turn("what is my dog called?").text
    dog(home, "Rex")
    assert "User.dog = Rex" in memory.before_turn("what is my dog called?").text
    assert "Luna" not in memory.before_turn("what is my dog called?").text
    dog(home, "Ada")
    assert known(memory, "What is my dog called?") == ["User.dog = Ada"]
    (home / "workspace" / "USER.md").unlink()
    assert known(memory, "What is my dog called?") == []


def test_a_hook_without_a_server_sees_the_edit_too(home: Path, ncm: Any) -> None:
    ncm("init")
    question = '{"session_id": "s", "prompt": "what is my dog called?"}'
    for name in ("Luna", "Rex"):
        dog(home, name)
        assert f"User.dog = {name}" in ncm("hook", "user-prompt-submit", stdin=question).out


def test_the_next_question_knows_a_written_line_even_after_the_graph_was_told_otherwise_that_day(
    memory: Memory, clock: FixedClock
) -> None:
    memory.graph.upsert("Keystone", "port", "3000")
    clock.moment += timedelta(hours=1)
    memory.write("Keystone's port is 3055", "fact", 0.7)
    assert known(memory, "Keystone port") == ["Keystone.port = 3055"]
    assert [fact.value for fact in memory.graph.history("Keystone", "port")] == ["3000", "3055"]


def test_what_stands_in_a_private_file_stays_private_when_a_shared_question_brings_it_in(
    memory: Memory, home: Path, open_memory: Callable[..., Memory]
) -> None:
    dog(home, "Luna")
    shared = open_memory(private=False, embeddings__provider="none")
    assert known(shared, "dog Luna") == []
    assert known(memory, "What is my dog called?") == ["User.dog = Luna"]


def test_a_line_that_moved_to_the_archive_keeps_its_fact(memory: Memory, home: Path, log: Write) -> None:
    path = log("2026-02-20", "[fact|i=0.6] Keystone's port is 3000")
    assert known(memory, "Keystone port") == ["Keystone.port = 3000"]
    archive = home / "workspace" / "memory" / "archive"
    archive.mkdir(exist_ok=True)
    (archive / "2026-02.md").write_text("# 2026-02\n\n## 2026-02-20\n\n" + path.read_text())
    path.write_text("")
    assert known(memory, "Keystone port") == ["Keystone.port = 3000"]


def test_too_much_at_once_waits_for_upkeep_and_is_said(memory: Memory, home: Path, log: Write) -> None:
    log("2026-02-22", "[fact|i=0.6] Keystone's port is 3000", *(f"line {n} {'x' * 200}" for n in range(1500)))
    answer = memory.graph.search("Keystone port")
    assert answer.hits == () and "upkeep ingest" in answer.degraded[0]
    assert any("changed" in finding.message for finding in memory.doctor())
    ingest(memory)
    assert memory.graph.search("Keystone port").degraded == ()
    assert known(memory, "Keystone port") == ["Keystone.port = 3000"]


@pytest.mark.files("it locks the file beside the database")
def test_a_busy_graph_answers_with_what_it_has(memory: Memory, home: Path) -> None:
    dog(home, "Luna")
    known(memory, "my dog")
    dog(home, "Rex")
    with held(memory.home.data("main") / "facts.db-lock"):
        answer = memory.graph.search("What is my dog called?")
    assert [hit.text for hit in answer.hits] == ["User.dog = Luna"]
    assert "changed" in answer.degraded[0]
    assert known(memory, "What is my dog called?") == ["User.dog = Rex"]


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """As another process that writes."""
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# ---- sentences that give each other up ----


@pytest.mark.parametrize("late", [False, True])
def test_a_decision_that_was_given_up_is_history(memory: Memory, log: Write, late: bool) -> None:
    old = "We chose PostgreSQL for the Keystone store"
    new = "We moved the Keystone store from PostgreSQL to SQLite"
    days = [("2026-02-20", old), ("2026-02-22", new), ("2026-02-21", "Keystone ships in June")]
    for day, line in reversed(days) if late else days:
        log(day, f"[decision|i=0.9] {line}")
        sentence(memory, day, line)
    ingest(memory)
    about = known(memory, "Tell me about Keystone")
    assert not any("chose" in text for text in (*about, *known(memory, "PostgreSQL")))
    assert any("SQLite" in text for text in (*about, *known(memory, "PostgreSQL")))
    assert any("June" in text for text in about)
    assert any("chose" in text for text in known(memory, "PostgreSQL", as_of="2026-02-21"))
    memory.upkeep.run("promote")
    assert not any("chose" in one.payload["text"] for one in memory.upkeep.review())


def test_a_port_is_a_port_however_it_is_said(memory: Memory, log: Write) -> None:
    log("2026-02-20", "[fact|i=0.7] Keystone runs on port 3000")
    log("2026-02-21", "[fact|i=0.7] Keystone now listens on port 3055")
    ingest(memory)
    assert known(memory, "Tell me about Keystone") == ["Keystone.port = 3055"]


def test_a_shared_scope_ends_no_private_sentence(
    memory: Memory, log: Write, open_memory: Callable[..., Memory]
) -> None:
    log("2026-02-21", "[fact|i=0.7] Keystone's port is 3000")
    sentence(memory, "2026-02-21", "Picked port 3000 for Keystone because 8080 was taken")
    ingest(memory)
    open_memory(private=False, embeddings__provider="none").graph.upsert("Keystone", "port", "4000")
    about = known(memory, "Tell me about Keystone")
    assert "Keystone.port = 3000" in about and any("8080" in text for text in about)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Heidi works at Acme", "Heidi's employer is Globex"),
        ("Heidi's employer is Acme", "Heidi now works at Globex"),
        ("Heidi works for Acme", "Heidi works at Globex"),
    ],
)
def test_one_thing_under_two_names_has_one_value(memory: Memory, log: Write, before: str, after: str) -> None:
    log("2026-02-20", f"[fact|i=0.6] {before}")
    log("2026-02-22", f"[fact|i=0.6] {after}")
    ingest(memory)
    (only,) = known(memory, "Where does Heidi work?")
    assert "Globex" in only
    assert "Acme" in str(known(memory, "Where does Heidi work?", as_of="2026-02-21"))


def test_search_shows_a_value_until_the_day_it_ends(memory: Memory) -> None:
    memory.graph.upsert("Alice", "employer", "Acme", valid_from="2025-01-01")
    memory.graph.upsert("Alice", "employer", "Globex", valid_from="2027-03-01")
    found = {hit.text for hit in memory.search("Alice employer", fast=True).hits if hit.kind == "fact"}
    assert "Alice employer: Acme" in found
    memory.graph.upsert("Alice", "employer", "Initech", valid_from="2026-01-01")
    found = {hit.text for hit in memory.search("Alice employer", fast=True).hits if hit.kind == "fact"}
    assert "Alice employer: Initech" in found and "Alice employer: Acme" not in found
