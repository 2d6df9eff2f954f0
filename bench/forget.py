"""What tombstones cost the ways in: none, one, a thousand; and what a forget costs with a thousand entries.

    python bench/forget.py [--runs 300]

CPU milliseconds of this process, p50 / p95, warm. "no graph" is a home in which nothing was ever told or forgotten.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import cpu_ms, table
from nanoclaw_memory import Memory, Scope
from nanoclaw_memory.types import Exchange

WORDS = "anna bert oslo bergen ferry phone invoice garden tower window contract salary doctor school".split()
SAID = (
    "@Andy could you look up what we decided about the payment service last week, and tell everybody in the sales "
    "team before noon which port it listens on now?"
)


def forgotten(memory: Memory, count: int) -> None:
    """Tombstones of 3 to 12 words, as a person's requests over years would leave them."""
    from nanoclaw_memory.store.phrases import Phrases

    made = random.Random(7)
    texts = [f"{' '.join(made.choices(WORDS, k=made.randint(2, 11)))} {number}" for number in range(count)]
    memory.group.intake.forget(Phrases.of_request(*texts), (), "bench", "2026-01-01T00:00:00.000Z")


def row(name: str, prepare: Callable[[Memory], object], runs: int) -> list[object]:
    """One line of the table, in a home of its own."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder), Scope(session_id="s")) as memory:
        memory.init()
        prepare(memory)
        host = memory.host.state
        numbers = iter(range(10**9))
        calls: list[Callable[[], object]] = [
            lambda: memory.group.intake.forgets(SAID),
            lambda: memory.group.intake.unforgotten(SAID, "bench"),
            lambda: host.store_message(f"m{next(numbers)}", "c@g", SAID, "2026-01-01T00:00:00Z"),
            lambda: memory.workspace.sdk_items.extend("s", [{"role": "user", "content": SAID}]),
            lambda: memory.conversations.note("prompt", SAID),
            lambda: memory.write(f"{SAID} {next(numbers)}"),
        ]
        cells: list[object] = [name]
        for call in calls:
            call()
            middle, late = cpu_ms(call, runs)
            cells.append(f"{middle:.3f} / {late:.3f}")
        return cells


def of_entries() -> float:
    """CPU seconds of one forget among 1,000 entries, everything included."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder)) as memory:
        memory.init()
        for number in range(1_000):
            memory.store(f"Note {number} about {WORDS[number % 14]} and {WORDS[number % 11]}", "fact")
        memory.index()
        began = time.process_time()
        memory.forget(text="Note 500 about", agreed=lambda pages: True)
        return time.process_time() - began


def of_exchanges(text: str) -> float:
    """The same among 20,000 exchanges of some hundred words."""
    made = random.Random(7)
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder)) as memory:
        memory.init()
        table = memory.group.exchanges
        with table.db.transaction():
            for number in range(20_000):
                asked = f"Question {number}: {' '.join(made.choices(WORDS, k=40))}"
                answer = " ".join(made.choices(WORDS, k=60))
                table.add(Exchange(0, "s", asked, answer, "2026-01-01T00:00:00.000Z"))
        began = time.process_time()
        memory.forget(text=text)
        return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    head = ["tombstones", "asked", "masked", "host message", "SDK item", "spooled prompt", "log line"]
    rows = [
        row("no graph", lambda memory: None, runs),
        row("none", lambda memory: memory.graph.upsert("Anna", "age", "7"), runs),
        *(row(f"{count:,}", partial(forgotten, count=count), runs) for count in (1, 1_000)),
    ]
    table(head, rows)
    long = "the treasure lies below the third stone of the garden wall beside the old well " * 8
    print(f"\nforget one of 1,000 entries: {of_entries():.2f} s of CPU")
    print(f"forget a name among 20,000 exchanges: {of_exchanges('Zebulon Quist'):.2f} s")
    print(f"forget a text of {len(long)} characters among them: {of_exchanges(long):.2f} s")


if __name__ == "__main__":
    main()
