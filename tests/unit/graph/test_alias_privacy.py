"""Another name is as private as where it was said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from nanoclaw_memory.errors import NotFound
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.store.migrate import steps_of


@pytest.fixture
def shared(memory: Memory, open_memory: Callable[..., Memory]) -> Memory:
    """The shared side of a memory in which everybody may know of Zebulon, but not that Zeb is him."""
    other = open_memory(private=False)
    other.graph.upsert("Zebulon Quist", "colour", "green")
    memory.graph.alias("Zeb", "Zebulon Quist")
    return other


def known_of(memory: Memory, name: str) -> set[str]:
    """The values known of whoever is called so; no word of the question but the name can find any."""
    return {str(hit.item.value) for hit in memory.graph.search(f"Who is {name}?").hits}


def test_a_private_alias_answers_in_private_and_nowhere_else(memory: Memory, shared: Memory) -> None:
    memory.graph.upsert("Zebulon Quist", "desk", "by the window")
    assert known_of(memory, "Zeb") == {"by the window"}
    assert known_of(memory, "Zebulon Quist") == {"by the window", "green"}
    assert known_of(shared, "Zebulon Quist") == {"green"}
    assert known_of(shared, "Zeb") == set() and shared.graph.search("Who is Zeb?").entities == ()
    assert shared.graph.history("Zeb") == []
    with pytest.raises(NotFound):
        shared.graph.show("Zeb")
    assert "Zeb" not in shared.graph.other_names("Where is Zebulon Quist?")
    assert "Zeb" in memory.graph.other_names("Where is Zebulon Quist?")
    assert not any('"alias"' in line for line in shared.graph.export())


def test_what_is_told_in_the_open_under_a_private_name_does_not_join_the_two(
    memory: Memory, shared: Memory
) -> None:
    shared.graph.upsert("Zeb", "car", "a Volvo")
    assert known_of(shared, "Zebulon Quist") == {"green"}
    assert known_of(shared, "Zeb") == {"a Volvo"}


def test_an_alias_said_in_the_open_answers_there(memory: Memory, shared: Memory) -> None:
    assert shared.graph.alias("Zeb", "Zebulon Quist")  # as if it were new: that it was known tells something
    assert known_of(shared, "Zeb") == {"green"}
    assert not shared.graph.alias("Zeb", "Zebulon Quist")
    assert not memory.graph.alias("Zeb", "Zebulon Quist")
    assert known_of(shared, "Zeb") == {"green"}


def test_a_shared_scope_cannot_take_a_private_alias_away(memory: Memory, shared: Memory) -> None:
    with pytest.raises(NotFound):
        shared.graph.unalias("Zeb")
    assert memory.graph.unalias("Zeb") == 1


def test_a_files_aliases_are_as_open_as_the_file(
    memory: Memory, open_memory: Callable[..., Memory], home: Path
) -> None:
    text = "# Identity\n\n- Name: Fjordline\n- Port: 3055\n"
    (home / "workspace" / "IDENTITY.md").write_text(text)
    assert "3055" in known_of(open_memory(private=False), "Fjordline")
    closed = open_memory(private=False, privacy__sharedFiles="[]")
    assert known_of(memory, "Fjordline") and not known_of(closed, "Fjordline")


def test_old_aliases_become_private_unless_their_file_is_shared(home: Path, memory: Memory) -> None:
    path = home / "data" / "facts.db"
    path.parent.mkdir(exist_ok=True)
    old = apsw.Connection(str(path))
    for step in steps_of("facts")[:2]:
        old.execute(step.sql).fetchall()
    for label in ("Zeb", "Zebulon", "Fjord", "Ferry", "Al", "Alice"):
        old.execute("INSERT INTO names VALUES (?, ?, ?)", (label.lower(), label, label.lower()[::-1]))
    for alias, entity, source in (
        ("Zeb", "Zebulon", "session s1"),
        ("Fjord", "Ferry", "shared/project-ferry.md:12"),
        ("Al", "Alice", "memory/2026-02-01.md:3"),
    ):
        old.execute(
            "INSERT INTO aliases VALUES (?, ?, ?, ?, ?)",
            (alias, entity, source, alias.lower(), entity.lower()),
        )
    old.execute(
        "INSERT INTO facts (entity, key, value, source, shared, name, slot, digest)"
        " VALUES ('Ferry', 'port', '1', 'shared/project-ferry.md:3', 1, 'ferry', 'port', 'd'),"
        " ('Alice', 'age', '7', 'memory/2026-02-01.md:4', 0, 'alice', 'age', 'e')"
    )
    old.execute("PRAGMA user_version = 2")
    old.close()
    rows = memory.group.database("facts").query("SELECT alias, shared FROM aliases ORDER BY alias")
    assert rows == [("Al", 0), ("Fjord", 1), ("Zeb", 0)]
