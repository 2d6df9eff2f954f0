"""Files and the graph stay in step: twice is once, an edited line updates, a removed line retires."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

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


def test_a_logs_plain_line_is_kept_only_of_an_entity_that_is_known(memory: Memory) -> None:
    memory.graph.upsert("Tilda Berg", "birthday", "21 June")
    text = "- Tilda's school play moved to 27 March\n- Somebody rang about the boiler\n"
    assert memory.graph.ingest("memory/2026-02-20.md", text).added == 1
    assert memory.graph.history("Tilda Berg", "note")[0].value == "Tilda's school play moved to 27 March"


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
    memory.graph.ingest("MEMORY.md", "## About me\n- salary: 100\n")
    memory.graph.ingest(PROJECT, TEXT)
    shared = open_memory(private=False)
    assert current(shared, "salary") == set()
    assert "Keystone.port = 3000" in current(shared)


def test_credentials_in_files_do_not_reach_the_graph(memory: Memory, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory.graph.ingest(PROJECT, f"# Keystone\n- token: {token}\n")
    assert token not in "\n".join(memory.graph.export())


def test_a_file_that_is_no_longer_shared_takes_its_facts_back(
    memory: Memory, open_memory: Callable[..., Memory]
) -> None:
    memory.graph.ingest(PROJECT, TEXT)
    assert current(open_memory(private=False)) != set()
    open_memory(privacy__sharedFiles='["SOUL.md"]').graph.ingest(PROJECT, TEXT)
    assert current(open_memory(private=False)) == set()
