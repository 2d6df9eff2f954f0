"""A home that cannot be written: everything that reads works, everything else says so in one line."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nanoclaw_memory.store.migrate import steps_of
from nanoclaw_memory.store.sqlite import SqliteDatabase

pytestmark = pytest.mark.files("whether a server can be written does not follow from rights on a folder")

PROMPT = json.dumps({"session_id": "s2", "prompt": "What about the Keystone port?"})


def _without_privileges() -> None:
    """Permissions count for root, too (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER leave its bounding set)."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2, 3):
            assert libc.prctl(24, capability, 0, 0, 0) == 0


@pytest.fixture
def bound(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as somebody for whom permissions count."""

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            preexec_fn=_without_privileges,
        )

    return run


def _mode(home: Path, writable: bool) -> None:
    for folder, _, names in os.walk(home):
        for path in (Path(folder), *(Path(folder) / name for name in names)):
            path.chmod(path.stat().st_mode | 0o200 if writable else path.stat().st_mode & ~0o222)


@pytest.fixture
def lived(ncm, home) -> Iterator[Callable[[], None]]:
    """A home with something in every database; the call makes it read-only."""
    ncm("init")
    ncm("write", "Keystone's port is 3055 for Welt", "--tag", "fact", "-i", "0.7")
    ncm("entries", "store", "Welt prefers tea", "--type", "preference")
    ncm("graph", "add", "Keystone", "port", "3055")
    ncm("exchange", "add", "-u", "Tell me of the Keystone port", "-a", "It is 3055", "--session", "s0")
    ncm("lessons", "add", "Never push to main")
    ncm("search", "Welt", "--fast")
    ncm("groups", "add", "fam", "--chat", "c1", "--trigger", "@Andy")
    with (home / "workspace" / "MEMORY.md").open("a") as page:
        page.write("- Welt is what the index has not seen yet\n")
    yield lambda: _mode(home, False)
    _mode(home, True)


READS = {
    ("search", "Welt", "--fast"): "the index has not seen yet",
    ("recall", "Welt"): "Welt prefers tea",
    ("turn", "What about the Keystone port?"): "Keystone.port = 3055",
    ("brief",): "Welt prefers tea",
    ("boot",): "# Soul",
    ("sessions", "list"): "s0",
    ("sessions", "search", "Keystone"): "It is 3055",
    ("graph", "search", "Keystone port"): "3055",
    ("graph", "search", "Keystone port", "--no-bump"): "3055",
    ("entries", "list"): "Welt prefers tea",
    ("lessons", "list"): "Never push to main",
    ("groups", "list"): "fam",
    ("status",): "facts.db",
    ("db", "check"): "sound",
    ("audit",): "tokens",
    ("upkeep", "--dry-run"): "ingest",
}


def test_everything_that_reads_works(lived, bound):
    lived()
    for command, expected in READS.items():
        ran = bound(*command)
        assert (ran.returncode, expected in ran.stdout) == (0, True), (command, ran.stdout, ran.stderr)


def test_what_hooks_have_spooled_does_not_stop_a_search(lived, ncm, bound):
    ncm("hook", "user-prompt-submit", stdin=PROMPT)
    lived()
    ran = bound("search", "Welt", "--fast")
    assert (ran.returncode, "the index has not seen yet" in ran.stdout) == (0, True), ran.stderr


def test_a_fresh_home_without_databases_can_be_read(ncm, home, bound):
    ncm("init")
    (home / "workspace" / "MEMORY.md").write_text("# Memory\n\n- Keystone belongs to Heidi\n")
    _mode(home, False)
    try:
        for command in READS:
            assert bound(*command).returncode == 0, command
        assert "belongs to Heidi" in bound("search", "Keystone", "--fast").stdout
        assert not (home / "data" / "index.db").exists()
    finally:
        _mode(home, True)


def test_an_older_schema_is_read_without_being_changed(lived, bound, home):
    steps = steps_of("facts")
    assert len(steps) > 1
    path = home / "data" / "facts.db"
    path.unlink()
    older = SqliteDatabase(path, "facts", steps=steps[:-1])
    assert older.query("SELECT count(*) FROM facts") == [(0,)]
    older.close()
    lived()
    before = path.read_bytes()
    assert bound("graph", "top").stdout == "No facts.\n"
    assert path.read_bytes() == before


def test_what_a_killed_writer_left_in_the_wal_is_read_too(lived, bound, home, tmp_path):
    path = home / "data" / "facts.db"
    db = sqlite3.connect(path)
    db.execute("UPDATE facts SET value = '4000' WHERE value = '3055'")
    db.commit()
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        shutil.copyfile(path.with_name(name), tmp_path / name)
    db.close()
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        shutil.copyfile(tmp_path / name, path.with_name(name))
    lived()
    assert "4000" in bound("graph", "search", "Keystone port", "--no-bump").stdout


def test_a_damaged_index_in_a_read_only_home_is_made_anew_in_memory(lived, bound, home):
    (home / "data" / "index.db").write_bytes(b"garbage" * 1000)
    lived()
    assert "the index has not seen yet" in bound("search", "Welt", "--fast").stdout


WRITES = [
    ("index",),
    ("watch",),
    ("serve", "--port", "0"),
    ("write", "hello"),
    ("entries", "store", "x y z", "--type", "fact"),
    ("graph", "add", "A", "b", "c"),
    ("exchange", "add", "-u", "a", "-a", "b"),
    ("lessons", "add", "Never do x"),
    ("checkpoint", "create", "x"),
    ("upkeep",),
    ("config", "set", "user.entity", "Bob"),
    ("tasks", "add", "weekly", "--every", "1d"),
    ("forget", "--text", "Welt", "--yes"),
]


def test_everything_that_must_write_says_so_and_fails(lived, bound):
    lived()
    for command in WRITES:
        ran = bound(*command)
        assert ran.returncode == 1, (command, ran.stdout, ran.stderr)
        assert ran.stderr.startswith("ncm: "), (command, ran.stderr)
        assert len(ran.stderr.splitlines()) <= 2, (command, ran.stderr)


def test_hooks_give_what_can_be_read_and_nothing_else(lived, bound):
    lived()
    prompted = bound("hook", "user-prompt-submit", stdin=PROMPT)
    assert "Keystone.port = 3055" in prompted.stdout
    started = bound("hook", "session-start", stdin='{"session_id": "s2"}')
    assert "# Soul" in started.stdout
    answer = '{"session_id": "s2", "last_assistant_message": "x"}'
    others = [
        bound("hook", "stop", stdin=answer),
        bound("hook", "session-end", stdin=answer),
        bound("hook", "pre-compact", stdin=answer),
    ]
    assert [ran.stdout for ran in others] == ["", "", ""]
    assert {(ran.returncode, ran.stderr) for ran in (prompted, started, *others)} == {(0, "")}
