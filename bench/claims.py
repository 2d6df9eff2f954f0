"""Does the stability plugin notice answers that contradict what is remembered, or make memories up?

Repeat: .venv/bin/python bench/claims.py [--data ../shared/data] [--misses]

Each case in a home of its own: dated lines of memory in the logs, one exchange, then the block before the next turn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope


def noticed(case: dict[str, Any], home: Path) -> str:
    """The block of the turn after the answer; empty when nothing was noticed."""
    last = max(line[:10] for line in case["memory"])
    clock = FixedClock(datetime.fromisoformat(f"{last}T12:00:00+00:00") + timedelta(days=5))
    none = {"embeddings.provider": "none"}
    with Memory.open(home, Scope(session_id="s"), clock=clock, overrides=none) as memory:
        memory.init()
        for line in case["memory"]:
            day, _, text = line.partition(": ")
            with (home / "workspace" / "memory" / f"{day}.md").open("a", encoding="utf-8") as log:
                log.write(f"- {text}\n")
        memory.after_turn(case["user"], case["answer"])
        blocks = memory.before_turn("ok").blocks
    return next((block.text for block in blocks if block.label == "STABILITY CONTEXT"), "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--misses", action="store_true")
    arguments = parser.parse_args()
    seen, cases = Counter[str](), Counter[str]()
    for line in (arguments.data / "claims" / "dev.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            block = noticed(case, Path(folder) / "home")
        cases[case["label"]] += 1
        seen[case["label"]] += bool(block)
        if arguments.misses and bool(block) != (case["label"] in ("contradicts", "made_up")):
            print(case["id"], case["label"], case["answer"], block.replace("\n", " "))
    table(["answer", "cases", "noticed"], [[label, cases[label], seen[label]] for label in sorted(cases)])


if __name__ == "__main__":
    main()
