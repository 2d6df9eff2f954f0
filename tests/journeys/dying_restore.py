"""A restore that is killed with -9 at each of its steps, of a checkpoint that holds what was forgotten since.

Run as `python dying_restore.py HOME WORK STRIDE`: prints for each step whether the next command knows what was
forgotten, and where outside of checkpoints and pages the text is left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from dying_forget import TEXT, open_memory, traces
from msgspec.structs import replace

from nanoclaw_memory import Memory
from nanoclaw_memory.workspace.restore import restore

CHECKPOINT = "old"


def restore_with(home: Path, step: Callable[[str], None]) -> None:
    """Restore; every step of it, and of the forgetting that ends it, is told to `step`."""
    given = Memory._premises
    Memory._premises = lambda self: replace(given(self), step=lambda name: step(f"forgetting: {name}"))
    with open_memory(home) as memory:
        restore(replace(memory.checkpoints, step=step), CHECKPOINT)


def killed_at(home: Path, number: int) -> None:
    """Restore in a process of its own that ends at its step `number`."""
    child = os.fork()
    if not child:
        seen = 0

        def step(name: str) -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

        restore_with(home, step)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"step {number} was not reached"


def main(full: Path, work: Path, stride: int) -> None:
    steps: list[str] = []
    given = Memory._premises
    restore_with(shutil.copytree(full, work / "first"), steps.append)
    Memory._premises = given
    lives: dict[str, object] = {}
    for number, name in list(enumerate(steps, 1))[::stride]:
        home = shutil.copytree(full, work / "home")
        killed_at(home, number)
        with open_memory(home, session="next") as memory:  # any command finishes it first
            known = memory.forgets(TEXT) and memory.after_turn(TEXT, "again").id == 0
            pending = (home / "workspace/memory/checkpoints/.restore").exists()
            sound = all(not check.problems for check in memory.db_check())
        left = [one for one in traces(home) if not one.startswith("workspace/")]
        lives[f"{number} {name}"] = (
            [] if known and sound and not pending and not left else [known, sound, left]
        )
        shutil.rmtree(home)
    print(json.dumps({"steps": steps, "lives": lives}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
