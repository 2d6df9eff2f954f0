"""Files and the graph stay in step: twice is once, an edited line updates, a removed line retires."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.graph.writer import NewFact, Origin
from nanoclaw_memory.memory import Memory

PROJECT = "memory/project-keystone.md"
TEXT = "# Keystone\n\n- port: 3000\n- host: maren\n- Alice → owns → Keystone\n"


def current(memory: Memory, question: str = "Tell me about Keystone") -> set[str]:
    return {hit.text for hit in memory.graph.search(question, 20).hits}


def test_reading_a_file_twice_changes_nothing(memory: Memory) -> None:
    assert memory.graph.ingest(PROJECT, TEXT).added == 3
    before = list(memory.graph.export())
    again = memory.graph.ingest(PROJECT, TEXT)
    assert (again.added, again.kept, again.retired) == (0, 3, 0)
    assert list(memory.graph.export()) == before


def test_facts_name_their_file_and_line_and_follow_it_when_it_moves(memory: Memory) -> None:
    memory.graph.ingest(PROJECT, TEXT)
    assert memory.graph.history("Keystone", "port")[0].source == f"{PROJECT}:3"
    memory.graph.ingest(PROJECT, TEXT.replace("- port", "A word before.\n\n- port"))
    assert memory.graph.history("Keystone", "port")[0].source == f"{PROJECT}:5"


def test_an_edited_line_updates_and_a_removed_line_retires(memory: Memory) -> None:
    memory.graph.ingest(PROJECT, TEXT)
    done = memory.graph.ingest(PROJECT, TEXT.replace("3000", "3001").replace("- host: maren\n", ""))
    assert (done.added, done.kept) == (1, 1)
    assert current(memory) == {"Keystone.port = 3001", "Alice → owns → Keystone"}
    assert [fact.value for fact in memory.graph.history("Keystone", "port")] == ["3000", "3001"]


def test_a_fact_that_two_files_say_stays_until_both_are_silent(memory: Memory) -> None:
    memory.graph.ingest(PROJECT, TEXT)
    memory.graph.ingest("memory/2026-02-20.md", "- Keystone.host = maren\n")
    memory.graph.ingest(PROJECT, "# Keystone\n")
    assert "Keystone.host = maren" in current(memory)


def test_what_a_person_said_outlives_the_line(memory: Memory) -> None:
    memory.graph.upsert("Keystone", "port", "3000")
    memory.graph.ingest(PROJECT, TEXT)
    memory.graph.ingest(PROJECT, "# Keystone\n")
    assert "Keystone.port = 3000" in current(memory)


def test_an_older_log_read_late_does_not_overrule_a_newer_one(memory: Memory) -> None:
    memory.graph.ingest("memory/2026-02-20.md", "- Keystone.port = 3001\n")
    memory.graph.ingest("memory/2026-02-01.md", "- Keystone.port = 3000\n")
    assert current(memory) == {"Keystone.port = 3001"}
    assert [fact.value for fact in memory.graph.history("Keystone", "port")] == ["3000", "3001"]


def test_a_logs_line_that_tells_what_happened_is_no_fact_and_search_finds_it(memory: Memory) -> None:
    memory.graph.upsert("Tilda Berg", "birthday", "21 June")
    memory.write("Tilda's school play moved to the old gym")
    memory.index()
    assert memory.graph.history("Tilda Berg", "note") == []
    assert "old gym" in memory.search("Where is Tilda's school play?").hits[0].text


def test_what_is_said_of_a_first_name_belongs_to_the_only_full_name_that_begins_with_it(
    memory: Memory,
) -> None:
    memory.graph.upsert("Tilda Berg", "birthday", "21 June")
    memory.graph.ingest("memory/people.md", "Tilda's phone is 555 0142.\n")
    assert memory.graph.history("Tilda Berg", "phone")[0].value == "555 0142"


def test_any_page_a_person_keeps_is_read_and_rendered_ones_are_not(memory: Memory) -> None:
    workspace = memory.home.workspace("main")
    for name in ("car.md", "books/dune.md", "domains/fact.md", "checkpoints/a.md"):
        (workspace / "memory" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "memory" / name).write_text(f"# Volvo {name[0].upper()}\nplate: KX 1234\n")
    memory.upkeep.run("ingest")
    found = {hit.text for hit in memory.graph.search("KX 1234", 10).hits}
    assert found == {"Volvo C.plate = KX 1234", "Volvo B.plate = KX 1234"}


def test_pages_in_folders_of_their_own_are_read_and_transcripts_are_not(memory: Memory) -> None:
    workspace = memory.home.workspace("main")
    for name in ("people/ida.md", "projects/oak/README.md", "conversations/talk.md", "skills/pdf/SKILL.md"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("locker: KX 1234\n")
    found = {hit.text for hit in memory.graph.search("KX 1234", 10).hits}
    assert found == {"Ida.locker = KX 1234", "Oak.locker = KX 1234"}
    memory.upkeep.run("ingest")
    assert {hit.text for hit in memory.graph.search("KX 1234", 10).hits} == found


def test_seed_reads_the_workspace_and_makes_the_users_name_an_alias(memory: Memory) -> None:
    workspace = memory.home.workspace("main")
    (workspace / "USER.md").write_text("# User\n\n- name: Marta Lind\n- birthday: 12 April\n", "utf-8")
    (workspace / "IDENTITY.md").write_text("- name: Brigg\n- emoji: 🧭\n", "utf-8")
    (workspace / PROJECT).write_text(TEXT, "utf-8")
    memory.graph.seed(memory.home)
    assert memory.graph.search("When is Marta's birthday?").hits[0].text == "User.birthday = 12 April"
    assert memory.graph.search("What is your name?").hits[0].text == "Agent.name = Brigg"
    assert memory.graph.search("your emoji").hits[0].text == "Agent.emoji = 🧭"
    assert all(file.added == 0 for file in memory.graph.seed(memory.home))
    (workspace / PROJECT).unlink()
    memory.graph.seed(memory.home)
    assert current(memory) == set()


def test_a_fact_told_after_the_file_was_written_is_not_overruled_by_it(memory: Memory) -> None:
    path = memory.home.workspace("main") / PROJECT
    path.write_text(TEXT, "utf-8")
    os.utime(path, (1_760_000_000, 1_760_000_000))
    memory.graph.upsert("Keystone", "port", "4000")
    memory.graph.seed(memory.home)
    assert "Keystone.port = 4000" in current(memory)
    assert "Keystone.port = 3000" not in current(memory)


def test_facts_of_private_files_stay_private(memory: Memory, open_memory: Callable[..., Memory]) -> None:
    workspace = memory.home.workspace("main")
    (workspace / "MEMORY.md").write_text("## About me\n- salary: 100\n", "utf-8")
    (workspace / PROJECT).write_text(TEXT, "utf-8")
    shared = open_memory(private=False, privacy__sharedFiles=f'["{PROJECT}"]')
    assert current(shared, "salary") == set()
    assert "Keystone.port = 3000" in current(shared)


def test_credentials_in_files_do_not_reach_the_graph(memory: Memory, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory.graph.ingest(PROJECT, f"# Keystone\n- token: {token}\n")
    assert token not in "\n".join(memory.graph.export())


def test_a_file_that_is_no_longer_shared_takes_its_facts_back(
    memory: Memory, open_memory: Callable[..., Memory]
) -> None:
    (memory.home.workspace("main") / PROJECT).write_text(TEXT, "utf-8")
    assert current(open_memory(private=False, privacy__sharedFiles=f'["{PROJECT}"]')) != set()
    assert current(open_memory(private=False)) == set()


def test_what_an_older_version_read_stays_until_all_is_read_again(memory: Memory) -> None:
    path = memory.home.workspace("main") / "memory" / "2026-02-20.md"
    path.write_text("- We chose PostgreSQL for the store\n")
    text = "We chose PostgreSQL for the store"
    with memory.group.database("facts").transaction():
        kept = memory.graph.writer.upsert(
            NewFact(entity="Keystone", key="decision", value=text, add=True), Origin(f"memory/{path.name}:1")
        )
        memory.graph._ingest.mentions.put(f"memory/{path.name}", "f" * 24, 1, "fact", kept.id)
    memory.upkeep.run("ingest")
    assert current(memory) == {f"Keystone.decision = {text}"}
    memory.graph.seed(memory.home, again=True)
    assert current(memory) == set()
    assert [fact.value for fact in memory.graph.history("Keystone")] == [text]


def test_a_birthday_stays_warm_and_a_port_cools(memory: Memory, clock: FixedClock) -> None:
    memory.graph.ingest("memory/people.md", "Tilda's birthday is 21 June.\nKeystone's port is 3000.\n")
    memory.graph.cool()
    clock.moment += timedelta(days=60)
    memory.graph.cool()
    warmth = {fact.key: fact.activation for fact in memory.graph.top()}
    assert warmth["birthday"] == 1.0 > 0.2 > warmth["port"]
