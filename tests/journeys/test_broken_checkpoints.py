"""Broken checkpoints and restores: refused before anything changes, or given up with a way back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope
from nanoclaw_memory.workspace.restore import restore

FOLDER = Path("workspace/memory/checkpoints")


@pytest.fixture
def saved(ncm, home: Path) -> Path:
    """A home with a checkpoint, and changes since; the checkpoint's folder."""
    ncm("init")
    ncm("write", "the heron came")
    ncm("graph", "add", "Heron", "colour", "grey")
    assert ncm("checkpoint", "create", "then").code == 0
    ncm("write", "the heron left")
    ncm("graph", "add", "Heron", "colour", "white")
    return home / FOLDER / "then"


def assert_usable(ncm: Callable[..., Any], home: Path) -> None:
    assert ncm("write", "life goes on").code == 0
    assert "white" in ncm("graph", "search", "Heron colour").out
    assert not list((home / FOLDER).glob(".[ru]*"))


def with_link(path: str, target: str) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["links"].update({path: target})


def with_folder(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["folders"].append(name)


def with_mode(mode: int) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["files"][0].update(mode=mode)


CRAFTED = {
    "a link below a file": with_link("SOUL.md/x", "y"),
    "a link in the place of a folder": with_link("memory", "/tmp"),
    "a link with an empty target": with_link("x", ""),
    "a link with no valid target": with_link("x", "a\0b"),
    "a link below a link that leads out": lambda manifest: manifest["links"].update(
        {"x": "/tmp", "x/y": "z"}
    ),
    "a name that no file can have": with_link("\ud800", "y"),
    "a name that is too long": with_folder("x" * 300),
    "a folder in the place of a file": with_folder("SOUL.md"),
    "the workspace as a link": with_link(".", "/tmp"),
    "a file twice": lambda manifest: manifest["files"].append(manifest["files"][0]),
    "a mode that no file can have": with_mode(1 << 70),
    "a damaged list": lambda manifest: manifest.update(links=[1]),
}


@pytest.mark.parametrize("craft", CRAFTED)
def test_a_crafted_manifest_changes_nothing(saved: Path, ncm, home: Path, craft: str):
    manifest = json.loads((saved / "manifest.json").read_text())
    CRAFTED[craft](manifest)
    (saved / "manifest.json").write_text(json.dumps(manifest))
    failed = ncm("checkpoint", "restore", "then")
    assert failed.code in (1, 2)
    assert "Traceback" not in failed.err
    assert "heron left" in ncm("log").out
    assert not Path("/tmp/y").is_symlink()
    assert_usable(ncm, home)


def test_a_link_into_a_folder_that_the_manifest_does_not_name_is_restored_with_it(
    saved: Path, ncm, home: Path
):
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["links"]["nowhere/deep/link.md"] = "target"
    (saved / "manifest.json").write_text(json.dumps(manifest))
    assert ncm("checkpoint", "restore", "then").code == 0
    assert (home / "workspace/nowhere/deep/link.md").readlink() == Path("target")
    assert "grey" in ncm("graph", "search", "Heron colour").out


def test_what_stands_in_the_way_is_named_before_anything_changes(saved: Path, ncm, home: Path):
    page = home / "workspace" / "IDENTITY.md"
    page.unlink()
    (page / ".git").mkdir(parents=True)
    (page / ".git" / "config").write_text("mine")
    failed = ncm("checkpoint", "restore", "then")
    assert (failed.code, "IDENTITY.md/.git/config" in failed.err) == (1, True)
    assert_usable(ncm, home)
    (home / "workspace" / "memory" / "2026-01-01").mkdir()
    os.mkfifo(home / "workspace" / "memory" / "domains")
    assert ncm("checkpoint", "restore", "then").code == 1
    assert_usable(ncm, home)


def killed_half_way(home: Path) -> None:
    """A restore that is killed once everything is decided and the databases are loaded."""
    child = os.fork()
    if not child:

        def step(name: str) -> None:
            if name.startswith("placed"):
                os.kill(os.getpid(), signal.SIGKILL)

        memory = Memory.open(home, Scope())
        restore(replace(memory.group.checkpoints, step=step), "then")
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def spoil_plan(home: Path) -> None:
    (home / FOLDER / ".restore" / "plan.json").write_text('{"name": "th')


def remove_plan(home: Path) -> None:
    (home / FOLDER / ".restore" / "plan.json").unlink()


def block(home: Path) -> None:
    """A folder with something hidden in it comes where a file is still to be placed."""
    left = sorted(path for path in (home / FOLDER / ".restore" / "files").rglob("*") if path.is_file())
    target = home / "workspace" / left[-1].relative_to(home / FOLDER / ".restore" / "files")
    target.unlink(missing_ok=True)
    target.mkdir()
    (target / ".hidden").touch()


@pytest.mark.parametrize("damage", [spoil_plan, remove_plan, block])
def test_a_restore_that_cannot_be_finished_is_given_up_once_and_says_the_way_back(
    saved: Path, ncm, home: Path, damage: Callable[[Path], None]
):
    killed_half_way(home)
    damage(home)
    failed = ncm("status")
    assert (failed.code, "is given up" in failed.err) == (1, True)
    assert ncm("status").code == ncm("write", "life goes on").code == 0
    way = failed.err.split("ncm checkpoint restore ")[1].split()[0]
    for hidden in (home / "workspace").glob("*/.hidden"):
        hidden.unlink()
        hidden.parent.rmdir()
    for hidden in (home / "workspace" / "memory").glob("*/.hidden"):
        hidden.unlink()
        hidden.parent.rmdir()
    assert ncm("checkpoint", "restore", way).code == 0
    assert "heron left" in ncm("log").out
    assert_usable(ncm, home)


@pytest.mark.parametrize("command", [("list",), ("show", "then"), ("diff", "then"), ("create", "next")])
def test_any_checkpoint_command_sweeps_what_a_killed_one_left(saved: Path, ncm, home: Path, command):
    child = os.fork()
    if not child:

        def step(name: str) -> None:
            if name == "copied":
                os.kill(os.getpid(), signal.SIGKILL)

        memory = Memory.open(home, Scope())
        replace(memory.group.checkpoints, step=step).create("killed")
        os._exit(1)
    os.waitpid(child, 0)
    assert list((home / FOLDER).glob(".unfinished-*"))
    assert ncm("checkpoint", *command).code == 0
    assert not list((home / FOLDER).glob(".unfinished-*"))


def test_listing_does_not_sweep_what_a_living_command_is_making(saved: Path, ncm, home: Path):
    with Memory.open(home, Scope()) as memory:
        checkpoints = memory.group.checkpoints
        with checkpoints.alone(), checkpoints.draft() as draft:
            assert ncm("checkpoint", "list").code == 0
            assert draft.exists()
