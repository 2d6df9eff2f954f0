"""Checkpoints: a saved state comes back whole, whatever happens half-way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nanoclaw_memory.errors import (
    CorruptDatabase,
    FileProblem,
    InvalidValue,
    NotFound,
    PathRefused,
    StoreError,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.workspace.restore import finish, restore

# Lines for a process of its own, which opens the home given to it.
PROCESS = """
import os, signal, sys
from msgspec.structs import replace
from datetime import UTC, datetime
from pathlib import Path
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.memory.group import Group, Resources
from nanoclaw_memory.types import Scope
from nanoclaw_memory.workspace.restore import finish, restore
home, clock = Path(sys.argv[1]), FixedClock(datetime(2026, 2, 23, 12, tzinfo=UTC))
def name_it(memory, name):
    with memory.group.database("facts").transaction():
        memory.group.database("facts").execute(
            "INSERT INTO names (name, label, mirror) VALUES (:n, :n, :n)", {"n": name})
def killer(number):
    def step(name):
        nonlocal number
        number -= 1
        if number < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return step
"""


def process(home: Path, lines: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS + lines, str(home), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def name_it(memory: Memory, name: str) -> None:
    with memory.group.database("facts").transaction():
        memory.group.database("facts").execute(
            "INSERT INTO names (name, label, mirror) VALUES (:n, :n, :n)", {"n": name}
        )


def say_it(memory: Memory, text: str) -> None:
    with memory.group.database("continuity").transaction():
        memory.group.database("continuity").execute(
            "INSERT INTO exchanges (user_message, agent_response, timestamp, fingerprint) "
            "VALUES (:text, '', '2026-02-23', :text)",
            {"text": text},
        )


def names(memory: Memory) -> list[str]:
    return [name for (name,) in memory.group.database("facts").query("SELECT name FROM names ORDER BY name")]


def sayings(memory: Memory) -> list[str]:
    return [
        text
        for (text,) in memory.group.database("continuity").query(
            "SELECT user_message FROM exchanges ORDER BY id"
        )
    ]


def files(home: Path) -> dict[str, str]:
    """Every entry of the workspace with its content; hidden ones and checkpoints left out."""
    workspace = home / "workspace"
    found = {}
    for path in sorted(workspace.rglob("*")):
        relative = path.relative_to(workspace)
        if "checkpoints" in relative.parts or any(part.startswith(".") for part in relative.parts):
            continue
        if path.is_symlink():
            found[str(relative)] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[str(relative)] = f"{path.stat().st_mode & 0o777:o} {path.read_text()}"
    return found


def state(home: Path, memory: Memory) -> tuple[dict[str, str], list[str], list[str]]:
    return files(home), names(memory), sayings(memory)


def leftovers(home: Path) -> list[str]:
    return [path.name for path in (home / "workspace" / "memory" / "checkpoints").glob(".*")]


@pytest.fixture
def small(open_memory: Callable[..., Memory], home: Path) -> Memory:
    """A small memory with a checkpoint `then`, and everything changed since."""
    workspace = home / "workspace"
    (workspace / "memory" / "deep").mkdir(parents=True)
    (workspace / "SOUL.md").write_text("soul then")
    (workspace / "memory" / "deep" / "kept.md").write_text("kept")
    (workspace / "memory" / "gone.md").write_text("gone later")
    (workspace / "memory" / "gone.md").chmod(0o600)
    (workspace / "memory" / "link.md").symlink_to("gone.md")
    memory = open_memory()
    name_it(memory, "then")
    say_it(memory, "said then")
    memory.workspace.checkpoint("then", "before\na risk")
    (workspace / "SOUL.md").write_text("soul now")
    (workspace / "memory" / "gone.md").unlink()
    (workspace / "memory" / "link.md").unlink()
    (workspace / "memory" / "link.md").write_text("a file now")
    (workspace / "memory" / "new").mkdir()
    (workspace / "memory" / "new" / "new.md").write_text("new")
    name_it(memory, "now")
    say_it(memory, "said now")
    return memory


THEN = {
    "SOUL.md": "644 soul then",
    "memory/deep/kept.md": "644 kept",
    "memory/gone.md": "600 gone later",
    "memory/link.md": "-> gone.md",
}


def test_a_restore_brings_everything_back_and_can_itself_be_undone(small: Memory, home: Path):
    now = state(home, small)
    done = small.workspace.restore_checkpoint("then")
    assert state(home, small) == (THEN, ["then"], ["said then"])
    assert not (home / "workspace" / "memory" / "new").exists()
    small.workspace.restore_checkpoint(done.before)
    assert state(home, small) == now
    assert leftovers(home) == []


def test_a_checkpoint_says_what_it_holds(small: Memory, home: Path, ncm: Callable[..., Any]):
    (found,) = small.workspace.checkpoints()
    assert (found.name, found.reason, found.files, found.databases) == (
        "then", "before a risk", 3, ("facts", "continuity")
    )  # fmt: skip
    folder = Path(found.path)
    assert folder.stat().st_mode & 0o777 == 0o700
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {file["path"] for file in manifest["files"]} == {
        "SOUL.md",
        "memory/deep/kept.md",
        "memory/gone.md",
    }
    assert all(len(file["sha256"]) == 64 for file in manifest["files"] + manifest["databases"])
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["continuity.db", "facts.db"]
    shown = ncm("checkpoint", "show", "then").out
    assert "memory/link.md -> gone.md" in shown and "data/facts.db" in shown


def test_diff_names_every_change(small: Memory, ncm: Callable[..., Any]):
    changes = {change.path: change for change in small.workspace.compare_checkpoint("then")}
    assert {path: change.kind for path, change in changes.items()} == {
        "SOUL.md": "changed",
        "memory/gone.md": "removed",
        "memory/link.md": "changed",
        "memory/new/new.md": "added",
        "data/facts.db": "changed",
        "data/continuity.db": "changed",
    }
    assert "-soul then\n+soul now" in changes["SOUL.md"].diff
    assert changes["data/facts.db"].diff == "names: 1 row added"
    small.workspace.restore_checkpoint("then")
    assert small.workspace.compare_checkpoint("then") == []
    assert "Nothing has changed" in ncm("checkpoint", "diff", "then").out


def test_the_derived_index_is_neither_saved_nor_touched(small: Memory, home: Path):
    small.group.database("index").query("SELECT 1 FROM meta")
    made = small.workspace.checkpoint("indexed")
    assert "index" not in made.databases
    assert small.workspace.restore_checkpoint("indexed").databases == ("continuity", "facts")


def test_a_database_that_did_not_exist_then_is_empty_after_the_restore(memory: Memory):
    memory.workspace.checkpoint("fresh")
    name_it(memory, "later")
    memory.workspace.restore_checkpoint("fresh")
    assert names(memory) == []


def test_hidden_folders_such_as_git_are_left_alone(small: Memory, home: Path):
    (home / "workspace" / ".git").mkdir()
    (home / "workspace" / ".git" / "HEAD").write_text("ref: refs/heads/main")
    small.workspace.restore_checkpoint("then")
    assert (home / "workspace" / ".git" / "HEAD").read_text() == "ref: refs/heads/main"


# ---- refusals ----


def test_a_checkpoint_that_was_tampered_with_is_refused_and_nothing_changes(small: Memory, home: Path):
    now = state(home, small)
    folder = home / "workspace" / "memory" / "checkpoints"
    for path, raw in (
        ("then/workspace/SOUL.md", b"someone else"),
        ("then/data/facts.db", b"not a database"),
        ("then/manifest.json", b'{"format": 1'),
    ):
        shutil.copytree(folder / "then", folder / "copy", symlinks=True)
        (folder / "copy" / Path(path).relative_to("then")).write_bytes(raw)
        with pytest.raises(FileProblem, match="is damaged"):
            small.workspace.restore_checkpoint("copy")
        shutil.rmtree(folder / "copy")
    assert state(home, small) == now
    assert [found.name for found in small.workspace.checkpoints()] == ["then"]


@pytest.mark.parametrize(
    "path", ["../outside.md", "/tmp/outside.md", "memory/../../outside.md", ".git/config"]
)
def test_a_manifest_that_names_a_path_outside_is_refused(small: Memory, home: Path, path: str):
    manifest = home / "workspace" / "memory" / "checkpoints" / "then" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["files"][0]["path"] = path
    manifest.write_text(json.dumps(content))
    with pytest.raises(FileProblem, match="is damaged"):
        small.workspace.restore_checkpoint("then")


def test_names_are_checked_and_never_used_twice(small: Memory):
    with pytest.raises(InvalidValue, match="already"):
        small.workspace.checkpoint("then")
    for name in ("../x", ".hidden", "", "a/b", "x" * 81):
        with pytest.raises(InvalidValue):
            small.workspace.checkpoint(name)
        with pytest.raises(NotFound):
            small.workspace.restore_checkpoint(name)
    with pytest.raises(NotFound, match="no checkpoint 'never'"):
        small.workspace.restore_checkpoint("never")


def test_a_shared_scope_may_not_look_into_checkpoints(small: Memory, open_memory: Callable[..., Memory]):
    shared = open_memory(private=False)
    for ask in (
        lambda: shared.workspace.checkpoint("x"),
        lambda: shared.workspace.restore_checkpoint("then"),
    ):
        with pytest.raises(PathRefused):
            ask()


def test_a_group_saves_only_its_own_memory(small: Memory, home: Path, open_memory: Callable[..., Memory]):
    family = open_memory("family")
    family.init()
    made = family.workspace.checkpoint("mine")
    assert [found.name for found in family.workspace.checkpoints()] == ["mine"]
    assert made.databases == ()
    saved = [path.read_text() for path in Path(made.path).rglob("*.md")]
    assert saved and not any("soul now" in text or "soul then" in text for text in saved)


# ---- links ----


def test_links_are_kept_as_links_and_never_followed_out(memory: Memory, home: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    workspace = home / "workspace"
    (workspace / "memory" / "out").symlink_to(outside)
    (workspace / "out.md").symlink_to(outside / "secret.md")
    (workspace / "memory" / "loop").symlink_to("loop")
    made = memory.workspace.checkpoint("linked")
    saved = [path for path in (Path(made.path) / "workspace").rglob("*") if path.is_file()]
    assert saved and not any("secret" in path.read_text() for path in saved)
    for name in ("memory/out", "out.md", "memory/loop"):
        (workspace / name).unlink()
    memory.workspace.restore_checkpoint("linked")
    assert os.readlink(workspace / "memory" / "out") == str(outside)
    assert (outside / "secret.md").read_text() == "secret"


def test_a_folder_that_became_a_link_is_made_a_folder_again_and_the_outside_is_untouched(
    small: Memory, home: Path, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.md").write_text("outside")
    shutil.rmtree(home / "workspace" / "memory" / "deep")
    (home / "workspace" / "memory" / "deep").symlink_to(outside)
    small.workspace.restore_checkpoint("then")
    assert files(home) == THEN
    assert (outside / "kept.md").read_text() == "outside"


# ---- damage ----


@pytest.mark.files("it damages a file in the home")
@pytest.mark.parametrize("whole", [True, False])
def test_a_damaged_database_is_restored_and_its_remains_are_kept(small: Memory, home: Path, whole: bool):
    small.close()
    path = home / "data" / "facts.db"
    raw = b"garbage" * 1000 if whole else path.read_bytes()[:4096] + b"\xa5" * (path.stat().st_size - 4096)
    path.write_bytes(raw)
    done = small.workspace.restore_checkpoint("then")
    assert state(home, small) == (THEN, ["then"], ["said then"])
    assert small.group.database("facts").check() == []
    summary, _ = small.workspace.show_checkpoint(done.before)
    assert summary.damaged == ("facts",)
    assert (Path(summary.path) / "data" / "facts.db").read_bytes() == raw
    with pytest.raises(CorruptDatabase, match="for rescue only"):
        small.workspace.restore_checkpoint(done.before)


# ---- other processes ----


def test_a_process_with_an_open_connection_sees_the_restored_rows(small: Memory, home: Path):
    other = process(
        home,
        "memory = Memory.open(home, clock=clock)\n"
        "def show():\n"
        "    rows = memory.group.database('facts').query('SELECT name FROM names ORDER BY 1')\n"
        "    print([name for (name,) in rows], flush=True)\n"
        "show(); sys.stdin.readline(); show(); name_it(memory, 'written after'); show()\n",
    )
    assert other.stdout is not None and other.stdout.readline() == "['now', 'then']\n"
    small.workspace.restore_checkpoint("then")
    assert other.communicate("go\n", timeout=60) == ("['then']\n['then', 'written after']\n", "")
    assert names(small) == ["then", "written after"]
    assert small.group.database("facts").check() == []


def test_no_acknowledged_line_or_row_is_lost_to_a_restore_that_runs_meanwhile(memory: Memory, home: Path):
    memory.workspace.checkpoint("empty")
    writer = process(
        home,
        "memory = Memory.open(home, clock=clock)\n"
        "for number in range(150):\n"
        "    memory.write(f'line-{number}'); name_it(memory, f'row-{number}'); print(number, flush=True)\n",
    )
    assert writer.stdout is not None
    befores = []
    for _ in range(3):
        for _ in range(20):
            writer.stdout.readline()
        befores.append(memory.workspace.restore_checkpoint("empty").before)
    assert writer.communicate(timeout=60)[1] == ""

    folder = home / "workspace" / "memory" / "checkpoints"
    logs = [(folder / name / "workspace" / "memory" / "2026-02-23.md").read_text() for name in befores]
    logs.append((home / "workspace" / "memory" / "2026-02-23.md").read_text())
    rows = [names(memory)]
    for name in befores:
        memory.workspace.restore_checkpoint(name)
        rows.append(names(memory))
    lines = "".join(logs).split("\n")
    for number in range(150):
        assert lines.count(f"- line-{number}") == 1
        assert sum(f"row-{number}" in found for found in rows) == 1
    # The line is written before the row. So each state holds exactly the rows of its lines, but that the last line
    # may still wait for its row when the restore comes: then that row, and no other, is the first of the next state.
    waiting: list[int] = []
    for log, found in zip(logs, [*rows[1:], rows[0]], strict=True):
        written = [int(line[7:]) for line in log.split("\n") if line.startswith("- line-")]
        stored = sorted(int(name.removeprefix("row-")) for name in found)
        rest = written[-1:] if written[-1] not in stored else []
        assert stored == [*waiting, *written[: len(written) - len(rest)]]
        waiting = rest
    assert waiting == []


# ---- kill -9 ----


def restore_steps(memory: Memory, name: str) -> list[str]:
    steps: list[str] = []
    restore(replace(memory.group.checkpoints, step=steps.append), name)
    return steps


RESTORE = """
memory = Memory.open(home, clock=clock)
restore(replace(memory.group.checkpoints, step=killer(int(sys.argv[2]))), "then")
"""
FINISH = """
memory = Memory(Group(Resources(home, "main", clock), Scope()))  # not `open`, which would finish it unhindered
finish(replace(memory.group.checkpoints, step=killer(int(sys.argv[2]))))
"""
CREATE = """
memory = Memory.open(home, clock=clock)
replace(memory.group.checkpoints, step=killer(int(sys.argv[2]))).create("half")
"""


@pytest.mark.files("it copies the folder of a home for every step")
def test_kill_9_at_any_step_leaves_the_old_state_or_the_next_command_finishes(
    small: Memory, home: Path, tmp_path: Path, open_memory: Callable[..., Memory]
):
    now = state(home, small)
    small.close()
    template = tmp_path / "template"
    shutil.copytree(home, template, symlinks=True)
    steps = restore_steps(small, "then")
    small.close()
    decided = steps.index("decided")
    assert steps[:decided] == ["verified", "copied", "described", "saved", "staged"]
    assert steps[decided + 1 : decided + 3] == ["loaded continuity", "loaded facts"]
    assert steps[-1] == "finished" and len(steps) > 12

    for number, step in enumerate(steps):
        shutil.rmtree(home)
        shutil.copytree(template, home, symlinks=True)
        killed = process(home, RESTORE, str(number))
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL, step
        if step.startswith(("loaded", "placed")):  # and once more, in the middle of finishing it
            again = process(home, FINISH, "1")
            again.communicate(timeout=60)
            assert again.returncode == -signal.SIGKILL, step
        after = open_memory()
        assert state(home, after) == (now if number < decided else (THEN, ["then"], ["said then"])), step
        after.workspace.checkpoint("next")
        assert leftovers(home) == [], step
        saved = [
            found.name for found in after.workspace.checkpoints() if found.name.startswith("before-restore")
        ]
        assert len(saved) == (0 if number < steps.index("saved") else 1), step
        if saved:
            after.workspace.restore_checkpoint(saved[0])
            assert state(home, after) == now, step
        after.close()


def test_kill_9_while_saving_leaves_no_half_checkpoint(small: Memory, home: Path):
    for number, expected in ((0, []), (1, []), (2, ["half"])):
        killed = process(home, CREATE, str(number))
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert [found.name for found in small.workspace.checkpoints() if found.name == "half"] == expected
    small.workspace.checkpoint("next")
    assert leftovers(home) == []


def test_a_command_waits_for_a_restore_that_is_still_running(small: Memory, home: Path):
    running = process(
        home,
        "def step(name):\n"
        "    if name == 'loaded continuity': print('half-way', flush=True); sys.stdin.readline()\n"
        "memory = Memory.open(home, clock=clock)\nrestore(replace(memory.group.checkpoints, step=step), 'then')\n",
    )
    assert running.stdout is not None and running.stdout.readline() == "half-way\n"
    waiting = process(home, "print(Memory.open(home, clock=clock).get('SOUL.md').text, flush=True)")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.5)
    running.communicate("go on\n", timeout=60)
    assert waiting.communicate(timeout=60)[0] == "soul then\n"


def test_an_edit_made_between_the_kill_and_the_next_command_is_not_lost(small: Memory, home: Path):
    killed = process(home, RESTORE, "8")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    (home / "workspace" / "memory" / "by-hand.md").write_text("typed meanwhile")
    assert finish(small.group.checkpoints) == "then"
    assert files(home) == {**THEN, "memory/by-hand.md": "644 typed meanwhile"}


# ---- full disk ----

FULL = (
    "import resource\nlimit = int(sys.argv[2]); resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
    "memory = Memory.open(home, clock=clock)\n"
    "act = memory.workspace.checkpoint if sys.argv[3] == 'full' else memory.workspace.restore_checkpoint\n"
    "try: print(act(sys.argv[3]))\n"
    "except NanoClawError as error: print(type(error).__name__, error.message)\n"
)


def test_a_full_disk_while_saving_leaves_no_half_checkpoint(small: Memory, home: Path):
    (home / "workspace" / "big.md").write_text("x" * 2_000_000)
    ran = process(home, FULL, "1000000", "full").communicate(timeout=60)
    assert ran[0].startswith("FileProblem big.md: ") or "no checkpoint was made" in ran[0], ran
    assert [found.name for found in small.workspace.checkpoints()] == ["then"]
    assert leftovers(home) == []


def test_a_full_disk_while_staging_leaves_the_old_state(small: Memory, home: Path):
    (home / "workspace" / "big.md").write_text("x" * 2_000_000)
    small.workspace.checkpoint("with-big")
    (home / "workspace" / "big.md").unlink()
    now = state(home, small)
    ran = process(home, FULL, "1000000", "with-big").communicate(timeout=60)
    assert "nothing was restored" in ran[0], ran
    assert state(home, small) == now
    assert leftovers(home) == []


@pytest.mark.files("it damages a file in the home")
def test_a_database_that_cannot_be_loaded_takes_the_others_back(small: Memory, home: Path):
    with small.group.database("facts").transaction():
        small.group.database("facts").execute_many(
            "INSERT INTO names (name, label, mirror) VALUES (:n, :n, :n)",
            ({"n": f"{number:05}" + "x" * 100} for number in range(4000)),
        )
    small.workspace.checkpoint("with-many")
    size = (home / "workspace/memory/checkpoints/with-many/data/facts.db").stat().st_size
    small.workspace.restore_checkpoint("then")
    small.close()
    now = state(home, small)
    # Room for a copy of the database, but not for the same pages with their headers in the WAL.
    ran = process(home, FULL, str(size + 1000), "with-many").communicate(timeout=60)
    assert ran[0].startswith("StoreError facts.db cannot be used"), ran
    assert state(home, small) == now
    assert leftovers(home) == []
    small.workspace.restore_checkpoint("with-many")
    assert len(names(small)) > 4000


@pytest.mark.files("it locks the file")
def test_a_busy_database_is_not_waited_for_for_ever(
    small: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
):
    from nanoclaw_memory.store import sqlite

    monkeypatch.setattr(sqlite, "BUSY_MS", 200)
    now = state(home, small)
    holder = process(
        home,
        "memory = Memory.open(home, clock=clock)\n"
        "with memory.group.database('facts').transaction(): print('held', flush=True); sys.stdin.readline()\n",
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match=r"facts\.db stayed busy"):
        small.workspace.restore_checkpoint("then")
    holder.communicate("go\n", timeout=60)
    assert state(home, small) == now


# ---- db check ----


@pytest.mark.files("it damages a file in the home")
def test_db_check_creates_nothing_and_names_the_damaged_file(
    small: Memory, home: Path, ncm: Callable[..., Any]
):
    small.close()
    before = sorted(path.name for path in (home / "data").glob("*.db"))
    ran = ncm("db", "check", "--json")
    assert ran.code == 0 and ran.json["ok"]
    assert [found["path"] for found in ran.json["databases"]] == ["data/facts.db", "data/continuity.db"]
    assert sorted(path.name for path in (home / "data").glob("*.db")) == before

    (home / "data" / "facts.db").write_bytes(b"garbage" * 1000)
    ran = ncm("db", "check")
    assert ran.code == 1
    assert "data/facts.db: DAMAGED" in ran.out and "checkpoint restore then" in ran.out
    assert "data/continuity.db: sound" in ran.out


def test_db_check_of_all_groups(small: Memory, open_memory: Callable[..., Memory], ncm: Callable[..., Any]):
    family = open_memory("family")
    family.init()
    name_it(family, "x")
    found = {one["path"] for one in ncm("db", "check", "--all", "--json").json["databases"]}
    found -= {"data/pages.db", "groups/family/data/pages.db"}  # a team's
    assert found == {"data/facts.db", "data/continuity.db", "groups/family/data/facts.db"}
    assert ncm("--group", "family", "db", "check", "--all").code == 2


def test_db_check_covers_the_host_for_the_main_group_only(
    open_memory: Callable[..., Memory], ncm: Callable[..., Any]
):
    with open_memory() as memory:
        assert memory.host.state
    open_memory("family").init()
    found = [one["path"] for one in ncm("db", "check", "--json").json["databases"]]
    assert [path for path in found if "pages" not in path] == ["store/messages.db"]
    found = [one["path"] for one in ncm("--group", "family", "db", "check", "--json").json["databases"]]
    assert [path for path in found if "pages" not in path] == []


@pytest.mark.files("a file is damaged")
def test_db_check_finds_that_the_hosts_messages_are_damaged(
    home: Path, open_memory: Callable[..., Memory], ncm: Callable[..., Any]
):
    with open_memory() as memory:
        assert memory.host.state
    (home / "store" / "messages.db").write_bytes(b"garbage" * 1000)
    ran = ncm("db", "check")
    assert ran.code == 1 and "store/messages.db: DAMAGED" in ran.out and ".recover" in ran.out


@pytest.mark.files("a team's home has the table of its pages from the start")
def test_a_fresh_home_has_no_databases_to_check(ncm: Callable[..., Any], home: Path):
    ncm("init")
    assert "No databases yet" in ncm("db", "check").out
    assert list((home / "data").glob("*.db")) == []
