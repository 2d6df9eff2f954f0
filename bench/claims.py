"""Claims: how many answers that contradict memory, or make it up, are noticed, and how many sound ones are not.

    python bench/claims.py                       the development half of shared/data/claims
    python bench/claims.py --data FILE --show

Each case has a home of its own: its dated lines are the log, then the exchange is recorded, and what stability
reports before the next message is counted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

DATA = Path(__file__).parents[2] / "shared" / "data" / "claims" / "dev.jsonl"
BAD = ("contradicts", "made_up")
SEEN = ("Unsupported memory", "Date contradicts", "Contradicts the record")


def noticed(case: dict[str, Any], home: Path) -> list[str]:
    """What is reported about an answer."""
    last = max(line[:10] for line in case["memory"])
    clock = FixedClock(datetime.fromisoformat(f"{last}T12:00:00").replace(tzinfo=UTC) + timedelta(days=3))
    overrides = {"embeddings.provider": "none"}
    with Memory.open(home, Scope("main", "s1"), clock=clock, overrides=overrides) as memory:
        memory.init()
        for line in case["memory"]:
            day, _, text = line.partition(": ")
            with (home / "workspace" / "memory" / f"{day}.md").open("a") as log:
                log.write(f"- [fact|i=0.6] {text}\n")
        memory.after_turn(case["user"], case["answer"])
        text = memory.before_turn("Thanks. Go on.").text
    return [line for line in text.split("\n") if line.startswith(SEEN)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--show", action="store_true", help="print every case that is judged wrong")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.data.read_text().splitlines()]
    all_, seen, long = Counter[str](), Counter[str](), Counter[str]()
    length = sorted(len(case["answer"]) for case in cases)[len(cases) // 2]
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            found = noticed(case, Path(folder) / "home")
        all_[case["label"]] += 1
        seen[case["label"]] += bool(found)
        long[case["label"]] += len(case["answer"]) > length
        if options.show and bool(found) != (case["label"] in BAD):
            print(case["id"], case["label"], found, "|", case["answer"][:150])
    for label in sorted(all_):
        print(f"{label:<12} noticed {seen[label]:>3} of {all_[label]:>3}   (by length alone {long[label]})")
    good = [label for label in all_ if label not in BAD]
    caught, wrong = sum(seen[one] for one in BAD), sum(seen[one] for one in good)
    print(f"bad answers noticed {caught} of {sum(all_[one] for one in BAD)}", end=", ")
    print(f"false alarms {wrong} of {sum(all_[one] for one in good)}")


if __name__ == "__main__":
    main()
