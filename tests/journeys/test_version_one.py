"""The tree of a NanoClaw version 1: doctor names it, and one command brings it in."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.errors import InvalidValue, PathRefused
from nanoclaw_memory.memory import Memory


def old_tree(root: Path) -> Path:
    pages = {
        "groups/global/CLAUDE.md": "The house number is 14.\n",
        "groups/main/CLAUDE.md": "# Andy\n\nThe owner is Ann.\n",
        "groups/main/conversations/2025-12-01-budget.md": "# Budget\n\n**User**: The budget is 900 francs.\n",
        "groups/family/CLAUDE.md": "Oma's cake needs 300 g of flour.\n",
        "groups/family/conversations/2025-12-02-trip.md": "# Trip\n\n**User**: We take the ferry to Bergen.\n",
        "data/sessions/family/.claude/projects/p/s1.jsonl": "{}\n",
    }
    for name, text in pages.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "store").mkdir(exist_ok=True)
    return root


def doctors_lines(memory: Memory) -> list[str]:
    return [one.message for one in memory.doctor() if "version 1" in one.message]


@pytest.mark.files("the tree of version 1 has SQLite files beside the home's")
def test_a_tree_elsewhere_is_brought_in_once_and_stays_as_it_was(
    memory: Memory, open_memory: Callable[..., Memory], tmp_path: Path, home: Path
):
    tree = old_tree(tmp_path / "old")
    database = sqlite3.connect(tree / "store/messages.db")
    database.executescript(
        "CREATE TABLE sessions (group_folder TEXT PRIMARY KEY, session_id TEXT NOT NULL);"
        "INSERT INTO sessions VALUES ('family', 's-old');"
    )
    database.close()
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    planned = memory.upkeep.import_export("nanoclaw", tree, dry_run=True)
    assert (planned.pages, planned.conversations) == (3, 2) and not (home / "groups").exists()
    done = memory.upkeep.import_export("nanoclaw", tree)
    assert (done.pages, done.conversations, done.unplaced) == (3, 2, ())
    assert "owner is Ann" in memory.boot().text and "number is 14" in memory.boot().text
    assert memory.search("budget in francs", fast=True).hits
    family = open_memory("family")
    assert "300 g" in family.boot().text and family.search("ferry to Bergen", fast=True).hits
    assert not family.search("budget in francs", fast=True).hits
    assert memory.host.state.session_of("family") == "s-old"
    assert (home / "data/sessions/family/.claude/projects/p/s1.jsonl").exists()
    again = memory.upkeep.import_export("nanoclaw", tree)
    assert (again.pages, again.conversations) == (0, 0) and "messages.db" in again.unplaced[0]
    assert before == {path: path.read_bytes() for path in before}


def test_doctor_names_a_tree_in_the_home_until_it_is_brought_in(memory: Memory, home: Path):
    assert doctors_lines(memory) == []
    old_tree(home)
    (line,) = doctors_lines(memory)
    assert line.startswith("4 files") and "groups/global/CLAUDE.md" in line
    assert memory.home.groups() == ["main", "family"]
    memory.upkeep.import_export("nanoclaw", home)
    assert doctors_lines(memory) == []
    assert "number is 14" in memory.boot().text


def test_only_the_main_group_brings_in_groups(
    open_memory: Callable[..., Memory], memory: Memory, tmp_path: Path
):
    family = open_memory("family")
    family.init()
    with pytest.raises(PathRefused):
        family.upkeep.import_export("nanoclaw", old_tree(tmp_path / "old"))
    with pytest.raises(InvalidValue, match="groups"):
        memory.upkeep.import_export("nanoclaw", tmp_path)
