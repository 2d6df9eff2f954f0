"""What `init` creates, and that it never overwrites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.workspace.boot import SIZE_TARGETS
from nanoclaw_memory.workspace.starter import STARTERS


def test_the_tree_of_the_design_is_created(memory: Memory, home: Path):
    files = (
        "SOUL USER IDENTITY AGENTS TOOLS HEARTBEAT BOOT MEMORY memory/active-context memory/gating-policies"
    )
    for name in [*(f"{file}.md" for file in files.split()), "memory/2026-02-23.md"]:
        assert (home / "workspace" / name).is_file(), name
    for folder in ("workspace/memory/checkpoints", "data", "logs", "shared"):
        assert (home / folder).is_dir(), folder
    assert (home / "nanoclaw.json").read_text() == "{}\n"
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_second_init_keeps_every_file(memory: Memory, home: Path):
    (home / "workspace" / "SOUL.md").write_text("mine")
    (home / "nanoclaw.json").write_text('{"user": {"timezone": "Europe/Berlin"}}')
    (home / "workspace" / "BOOT.md").unlink()
    again = memory.init()
    assert again.created == ("workspace/BOOT.md",)
    assert "workspace/SOUL.md" in again.kept
    assert (home / "workspace" / "SOUL.md").read_text() == "mine"
    assert "Berlin" in (home / "nanoclaw.json").read_text()


def test_a_group_gets_its_own_directory_and_leaves_the_main_one_alone(
    memory: Memory, home: Path, open_memory: Callable[..., Memory]
):
    created = open_memory("family").init().created
    assert "groups/family/workspace/MEMORY.md" in created
    assert "groups/family/CLAUDE.md" in created
    assert not any(name.startswith("workspace/") for name in created)


@pytest.mark.parametrize("name", sorted(set(STARTERS) & set(SIZE_TARGETS)))
def test_starter_files_keep_to_the_size_targets(name: str):
    assert len(STARTERS[name].encode()) < SIZE_TARGETS[name] / 2
