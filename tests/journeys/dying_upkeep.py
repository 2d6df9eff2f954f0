"""Upkeep that is killed with -9 before every single change of a file: `python dying_upkeep.py HOME ACT`.

HOME is a prepared home, ACT a job or the id of a proposal to accept. For each step a copy is made, a child runs ACT
in it and is killed there; then pages must be whole, and ACT done again must end as if nobody had been killed. Prints
how many steps there were.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
STEPS = {"os.rename", "os.remove", "os.mkdir", "os.truncate", "fcntl.flock"}
WRITING = os.O_WRONLY | os.O_RDWR
PAGES = ("MEMORY.md", "SOUL.md")


def opened(home: Path) -> Memory:
    return Memory.open(home, clock=FixedClock(NOW), overrides={"embeddings.provider": "none"})


def act(home: Path, what: str) -> None:
    """Run a job, or accept a proposal unless that was done."""
    with opened(home) as memory:
        if not what.startswith("prop-"):
            (run,) = memory.upkeep.run(what)
            assert not run.error, run.error
        elif memory.upkeep.proposal(what).status == "open":
            memory.upkeep.decide(what, True)


def die_at(step: int) -> None:
    left = step

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def state(home: Path) -> dict[str, Any]:
    """Everything that a person would see."""
    workspace = home / "workspace"
    files = {
        path.relative_to(workspace).as_posix(): path.read_text()
        for path in sorted(workspace.rglob("*.md"))
        if "checkpoints" not in path.parts
    }
    with opened(home) as memory:
        proposals = [
            (one.kind, one.status, str(one.payload.get("text")))
            for status in ("open", "accepted", "rejected")
            for one in memory.group.proposals.listed(status)
        ]
        lessons = memory.group.database("facts").query("SELECT id, state FROM growth_vectors ORDER BY id")
    return {"files": files, "proposals": sorted(proposals), "lessons": lessons}


def in_child(home: Path, what: str, step: int | None) -> int:
    child = os.fork()
    if child == 0:
        if step is not None:
            die_at(step)
        try:
            act(home, what)
        except BaseException as error:  # noqa: BLE001 - a child must never go on as the parent
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main(home: Path, what: str) -> None:
    def copy(name: str) -> Path:
        target = home.parent / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(home, target)
        return target

    act(copy("warm"), what)  # imports everything, so that a child need not
    before = state(home)
    whole = copy("whole")
    assert in_child(whole, what, None) == 0
    after = state(whole)
    assert after != before, f"{what} does nothing here"
    for step in itertools.count():
        tried = copy("tried")
        status = in_child(tried, what, step)
        if not os.WIFSIGNALED(status):
            assert status == 0
            break
        half = state(tried)
        for page in PAGES:
            assert half["files"][page] in (before["files"][page], after["files"][page]), (
                f"{page} at step {step}"
            )
        everywhere = "".join(half["files"].values())
        for name in before["files"]:
            for line in before["files"][name].splitlines():
                assert line in everywhere, f"{line!r} was lost at step {step}"
        assert in_child(tried, what, None) == 0
        assert state(tried) == after, f"another end after step {step}"
    print(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
