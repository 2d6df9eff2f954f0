"""What the measurements share: CPU of a process, percentiles, a table."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence


def cpu_of(command: Sequence[str], runs: int = 10, env: dict[str, str] | None = None) -> float:
    """Median CPU milliseconds (user + system) of a whole process."""
    found = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return statistics.median(found)


def cpu_ms(work: Callable[[], object], runs: int = 50) -> tuple[float, float]:
    """p50 and p95 of CPU milliseconds of a call in this process."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) * 1000)
    found.sort()
    return found[len(found) // 2], found[min(int(len(found) * 0.95), len(found) - 1)]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print(
            "| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) + " |"
        )
    sys.stdout.flush()
