"""The workspace: appends by four processes, and boot of a workspace of 1,000 files.

python bench/workspace.py
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path

from measure import cpu_ms, table
from nanoclaw_memory.memory import Memory

WRITERS, LINES = 4, 500


def append(home: Path, name: int) -> None:
    with Memory.open(home) as memory:
        for number in range(LINES):
            memory.write(f"writer {name} line {number}", "note", 0.5)


def plain_append(path: Path) -> float:
    """The baseline: the same lines by one process, open-write-close, no lock, no fsync."""
    start = time.perf_counter()
    for number in range(WRITERS * LINES):
        with path.open("a") as handle:
            handle.write(f"- [note|i=0.5] writer 0 line {number}\n")
    return WRITERS * LINES / (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home) as memory:
            memory.init()
        baseline = plain_append(Path(folder) / "plain.md")
        start = time.perf_counter()
        workers = [multiprocessing.Process(target=append, args=(home, name)) for name in range(WRITERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        rate = WRITERS * LINES / (time.perf_counter() - start)
        with Memory.open(home) as memory:
            kept = len(memory.log()[1])
            small = cpu_ms(memory.boot)
            for number in range(1000):
                path = home / "workspace" / "memory" / f"tools-{number:04}.md"
                path.write_text(f"# Runbook {number}\n\n" + "A step of the runbook.\n" * 40)
            large = cpu_ms(memory.boot)
    table(
        ["append, 4 processes", "lines/s", "ratio", "lines kept"],
        [
            ["plain open-write-close, 1 process, not durable", baseline, 1.0, "-"],
            ["Memory.write: locked and on disk", rate, rate / baseline, f"{kept} of {WRITERS * LINES}"],
        ],
    )
    print()
    table(
        ["Memory.boot", "CPU p50 ms", "p95 ms", "ratio"],
        [["12 files", *small, 1.0], ["1,012 files", *large, large[0] / small[0]]],
    )


if __name__ == "__main__":
    main()
