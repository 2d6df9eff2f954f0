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

from nanoclaw_memory.memory.group import Group
from nanoclaw_memory.upkeep.forget_stores import ForgetTargets
from nanoclaw_memory.workspace.restore import restore

CHECKPOINT = "old"


def restore_with(home: Path, step: Callable[[str], None]) -> None:
    """Restore; every step of it, and of the forgetting that ends it, is told to `step`."""
    Group.forget_targets = lambda self: ForgetTargets(self, step=lambda name: step(f"forgetting: {name}"))
    with open_memory(home) as memory:
        restore(replace(memory.group.checkpoints, step=step), CHECKPOINT)


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
    given = Group.forget_targets
    restore_with(shutil.copytree(full, work / "first"), steps.append)
    Group.forget_targets = given
    lives: dict[str, object] = {}
    for number, name in list(enumerate(steps, 1))[::stride]:
        home = shutil.copytree(full, work / "home")
        killed_at(home, number)
        with open_memory(home, session="next") as memory:  # any command finishes it first
            known = memory.admin.is_forgotten(TEXT) and memory.after_turn(TEXT, "again").id == 0
            pending = (home / "workspace/memory/checkpoints/.restore").exists()
            sound = all(not check.problems for check in memory.admin.check_databases())
        left = [one for one in traces(home) if not one.startswith("workspace/")]
        lives[f"{number} {name}"] = (
            [] if known and sound and not pending and not left else [known, sound, left]
        )
        shutil.rmtree(home)
    print(json.dumps({"steps": steps, "lives": lives}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
