"""The plugin in the repository: sound files, shell-form commands that exist, and the same version as the package."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from nanoclaw_memory.interfaces.hooks import parse

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "nanoclaw-memory"


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_marketplace_points_to_the_plugin():
    (listed,) = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    assert (ROOT / listed["source"] / ".claude-plugin" / "plugin.json").exists()
    assert listed["name"] == read(PLUGIN / ".claude-plugin" / "plugin.json")["name"]


def test_the_plugin_has_the_packages_version():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert read(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == package["version"]


def test_every_hook_is_a_shell_command_of_ours_for_an_event_we_answer():
    handlers = [
        (event, handler)
        for event, groups in read(PLUGIN / "hooks" / "hooks.json")["hooks"].items()
        for group in groups
        for handler in group["hooks"]
    ]
    assert len(handlers) == 5
    for event, handler in handlers:
        assert "args" not in handler  # Codex ignores the exec form
        program, verb, name, *guard = shlex.split(handler["command"])
        assert (program, verb) == ("nanoclaw-memory", "hook")
        assert guard == ["2>/dev/null", "||", "true"]  # also where the program is gone
        assert parse(name, b"{}") is not None
        assert name.replace("-", "") == event.lower()


def test_the_mcp_server_is_ours():
    assert read(PLUGIN / ".mcp.json")["mcpServers"] == {
        "memory": {"command": "nanoclaw-memory", "args": ["mcp"]}
    }


def test_the_skill_names_only_tools_that_exist():
    pytest.importorskip("mcp")
    from nanoclaw_memory.interfaces.mcp.texts import CORE

    text = (PLUGIN / "skills" / "memory" / "SKILL.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:memory|graph|fact)_\w+)`", text))
    assert named == set(CORE)
    description = re.search(r"^description: (.*)$", text, re.MULTILINE)
    assert description
    assert len(description.group(1)) < 1536
