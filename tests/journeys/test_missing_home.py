"""A home that is not there: whoever reads is told so and creates nothing; what is created is its owner's alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

READING = [
    ("search", "x", "--fast"),
    ("graph", "search", "x"),
    ("graph", "history", "x"),
    ("graph", "export"),
    ("entries", "list"),
    ("recall", "x"),
    ("brief",),
    ("boot",),
    ("log",),
    ("get", "MEMORY.md"),
    ("turn", "hello"),
    ("sessions", "list"),
    ("sessions", "search", "x"),
    ("lessons", "list"),
    ("project", "list"),
    ("policy", "list"),
    ("policy", "check", "push"),
    ("review",),
    ("upkeep",),
    ("upkeep", "status"),
    ("upkeep", "--all-groups"),
    ("heartbeat",),
    ("checkpoint", "list"),
    ("corpus", "list"),
    ("audit",),
    ("audit", "verify"),
    ("share", "list"),
    ("tasks", "list"),
    ("groups", "list"),
    ("db", "check"),
    ("status",),
    ("index",),
    ("forget", "--text", "x", "--yes"),
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_reading_where_there_is_no_memory_says_so_and_creates_nothing(ncm, home: Path, arguments) -> None:
    ran = ncm("--json", "--set", "embeddings.provider=none", *arguments)
    assert (ran.code, ran.json["error"]["message"]) == (1, f"there is no memory at {home}")
    assert "ncm init" in ran.json["error"]["hint"] and "--home" in ran.json["error"]["hint"]
    assert not home.exists()


def test_a_directory_that_is_no_home_is_left_as_it_is(ncm, home: Path) -> None:
    home.mkdir()
    (home / "holiday.md").write_text("# Greece\n")
    assert ncm("search", "Greece", "--fast").code == 1
    assert [path.name for path in home.iterdir()] == ["holiday.md"]


@pytest.mark.parametrize("command", ["doctor", "config show", "models list"])
def test_what_needs_no_memory_works_without_and_creates_nothing(ncm, home: Path, command: str) -> None:
    assert "Traceback" not in ncm(*command.split()).err
    assert not home.exists()


@pytest.mark.parametrize(
    "event", ["session-start", "user-prompt-submit", "pre-compact", "stop", "session-end"]
)
def test_a_hook_where_there_is_no_memory_is_silent_and_creates_nothing(
    ncm, ncm_process, home: Path, event: str
) -> None:
    payload = json.dumps({"session_id": "s", "prompt": "hello", "last_assistant_message": "hi"})
    for run in (ncm, ncm_process):
        ran = run("hook", event, stdin=payload)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        assert not home.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("init",),
        ("write", "We chose SQLite"),
        ("entries", "store", "The port is 8080", "--type", "fact"),
        ("graph", "add", "Keystone", "port", "3000"),
        ("exchange", "add", "--user", "Hi", "--agent", "Hello", "--session", "s"),
        ("config", "set", "memory.chunkSize", "300"),
        ("groups", "add", "family", "--chat", "c@g"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_whatever_creates_a_home_makes_it_its_owners_alone(ncm, home: Path, arguments) -> None:
    before = os.umask(0o022)
    try:
        assert ncm(*arguments).code == 0
        assert ncm("write", "And a line").code == 0
        assert ncm("search", "line", "--fast").code == 0
        assert ncm("turn", "What did we choose?").code == 0
        assert ncm("hook", "user-prompt-submit", stdin='{"session_id": "s", "prompt": "Hello"}').code == 0
        assert ncm("checkpoint", "create", "first").code == 0
        assert ncm("--set", "embeddings.provider=none", "upkeep").code == 0
    finally:
        os.umask(before)
    assert open_to_others(home) == []


def open_to_others(home: Path) -> list[str]:
    found = [home, *home.rglob("*")]
    return [f"{path} {path.lstat().st_mode & 0o777:o}" for path in found if path.lstat().st_mode & 0o077]


def test_what_a_person_made_keeps_its_modes(ncm, home: Path) -> None:
    ncm("init")
    page = home / "workspace" / "memory" / "2020-01-01.md"
    page.write_text("# 2020-01-01\n")
    page.chmod(0o640)
    ncm("--set", "embeddings.provider=none", "upkeep")
    ncm("forget", "--text", "nothing of the kind", "--keep-out", "--yes")
    assert page.stat().st_mode & 0o777 == 0o640


def test_writing_where_there_is_no_memory_makes_a_whole_one(ncm, home: Path) -> None:
    ran = ncm("write", "the first line")
    assert ran.code == 0
    assert "a new memory" in ran.out
    assert (home / "workspace" / "MEMORY.md").exists()
    assert "a new memory" not in ncm("write", "the second line").out
