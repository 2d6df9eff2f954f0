"""What a turn costs: `before_turn` in a resident process, and a cold process from start to end.

    python bench/turn.py [--made-up] [--facts 3000] [--models DIR] [--turns 300]

The home has every life of `training/lives` twice, made-up facts, and lessons; the prompts are theirs, ten to a session,
each answered and archived before the next. With `--made-up` it has 5,000 exchanges and 10,000 log lines of made-up
sentences instead, and questions of which half name something known. CPU time of the whole process (all threads), and
of it what embedding and the judge took. Bytecode is compiled first, as an installer does.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import nanoclaw_memory
from measure import cpu_of, table
from nanoclaw_memory.clock import FixedClock, stamp
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.judge import Judge
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.types import Exchange, Scope
from needs import MODELS, NOW, ROOT, feed

LIVES = ROOT / "training" / "lives"
SESSION = 10  # turns
COLD = 25  # processes
NOUNS = (
    "gateway invoice migration dashboard kitchen garden deployment budget contract database printer bicycle holiday"
    " meeting backup release server parser cache queue tariff insurance recipe concert apartment passport router"
).split()
VERBS = "plan move repair renew check cancel paint restart compare book measure rewrite".split()
NAMES = "Heidi Keystone Marvin Zephyr Bruno Atlas Ingrid Orion Wanda Pluto Carmen Nimbus Ludwig Vega Paula".split()
KEYS = "port owner birthday phone status city language version colour budget".split()


# ---- homes ----


def lives(home: Path, overrides: dict[str, str]) -> list[str]:
    """Tell all lives twice; returns their prompts."""
    told = [json.loads(path.read_text()) for path in sorted(LIVES.glob("*.json"))]
    whole: dict[str, Any] = {"files": {}, "logs": {}, "exchanges": []}
    for number, life in enumerate((*told, *told)):
        folder = f"memory/life-{number}/" if number else ""
        whole["files"] |= {folder + path: text for path, text in life["files"].items()}
        for days, lines in life["logs"].items():
            whole["logs"].setdefault(str(int(days) + number), []).extend(lines)
        for one in life["exchanges"]:
            session, days_ago = f"{number}-{one['session']}", one["days_ago"] + number
            whole["exchanges"].append({**one, "session": session, "days_ago": days_ago})
    feed(home, whole, overrides)
    prompts = [prompt["text"] for life in told for prompt in life["prompts"]]
    random.Random(3).shuffle(prompts)
    return prompts


def made_up(home: Path, overrides: dict[str, str]) -> list[str]:
    """Write 10,000 log lines and 5,000 exchanges; returns questions."""
    rng = random.Random(7)
    start = NOW - timedelta(days=120)
    with Memory.open(home, Scope(session_id="old"), clock=FixedClock(start), overrides=overrides) as memory:
        memory.init()
        with memory.group.database("continuity").transaction():
            for number in range(5_000):
                at = stamp(start + timedelta(minutes=30 * number))
                said = Exchange(0, f"session-{number // 12}", sentence(rng), sentence(rng) + ".", at)
                memory.group.exchanges.add(said)
        for part in range(50):
            day = (start + timedelta(days=part)).date().isoformat()
            lines = "\n".join(f"- [note|i=0.5] {sentence(rng)}" for _ in range(200))
            (home / "workspace" / "memory" / f"{day}.md").write_text(f"# {day}\n\n{lines}\n")
    return [
        text
        for _ in range(500)
        for text in (
            f"What is the {rng.choice(KEYS)} of {rng.choice(NAMES)} {rng.randrange(300)}?",
            f"Did we {rng.choice(VERBS)} the {rng.choice(NOUNS)} last week?",
        )
    ]


def sentence(rng: random.Random) -> str:
    who, verb, what, other = rng.choice(NAMES), rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    return f"{who} wants to {verb} the {what} before the {other} number {rng.randrange(400)} is due"


def complete(memory: Memory, facts: int) -> None:
    """Add facts, relations and lessons, and bring graph and index up to date."""
    rng = random.Random(5)
    with memory.group.database("facts").transaction():
        for number in range(facts):
            name = f"{rng.choice(NAMES)} {number // 10}"
            memory.graph.upsert(name, rng.choice(KEYS), f"{rng.choice(NOUNS)} {number}", "fact")
            if number % 3 == 0:
                other = f"{rng.choice(NAMES)} {rng.randrange(max(number // 10, 1))}"
                memory.graph.relate(name, "works_with", other)
    for noun in NOUNS[:20]:
        memory.lessons.add(f"Ask me before you touch the {noun}", f"{noun} work")
    memory.upkeep.run("ingest")
    memory.index()


# ---- measuring ----


class Meter:
    """CPU milliseconds that calls of a method take."""

    def __init__(self, owner: type, name: str) -> None:
        self.spent = 0.0
        method: Callable[..., Any] = getattr(owner, name)

        def measured(*arguments: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments, **options)
            finally:
                self.spent += (time.process_time() - began) * 1000

        setattr(owner, name, measured)


def resident(base: Memory, prompts: list[str]) -> list[list[float]]:
    """Of each turn its CPU, that of embedding and of the judge, wall time, whether it opens a session, has blocks."""
    meters = Meter(LocalEmbedder, "embed_query"), Meter(Judge, "_scores")
    found = []
    for start in range(0, len(prompts), SESSION):
        with base.for_session(f"session-{start}") as memory:
            for number, text in enumerate(prompts[start : start + SESSION]):
                before, began, wall = [one.spent for one in meters], time.process_time(), time.perf_counter()
                turn = memory.before_turn(text)
                spent = [(time.process_time() - began) * 1000]
                spent += [one.spent - known for one, known in zip(meters, before, strict=True)]
                spent += [(time.perf_counter() - wall) * 1000, float(not number), float(bool(turn.blocks))]
                found.append(spent)
                memory.after_turn(text, "Noted, and done as you asked.")
    return found[SESSION:]  # the first session loads the models


def cold(home: Path, prompts: list[str]) -> list[float]:
    """CPU milliseconds of whole processes `ncm turn`."""
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "turn"]
    return [cpu_of([*command, text, "--session", "cold"], runs=1) for text in prompts[:COLD]]


def row(name: str, values: list[float]) -> list[object]:
    ordered = sorted(values)
    return [name, ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--made-up", action="store_true")
    parser.add_argument("--facts", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--models", type=Path, default=MODELS)
    given = parser.parse_args()
    overrides = {"embeddings.modelPath": str(embedder(given.models)[1]), "plugins.timeoutMs": "60000"}
    compileall.compile_dir(str(Path(nanoclaw_memory.__file__).parent), quiet=1)
    gc.set_threshold(100_000, 10, 10)  # as `ncm serve` does, and the next
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        prompts = (made_up if given.made_up else lives)(home, overrides)
        with Memory.open(home, clock=FixedClock(NOW), overrides=overrides) as memory:
            complete(memory, given.facts)
            passages = memory.group.retrieval.index.passages.count()[1]
            processes = cold(home, prompts)
            memory.group.resources.resident = True
            memory.group.resources.listing.watch()
            turns = resident(memory, prompts[: given.turns])
        bare = [cpu_of([sys.executable, "-c", "pass"], runs=1) for _ in range(COLD)]
    later = [one for one in turns if not one[4]]
    print(
        f"{passages:,} passages, {given.facts:,} facts; {sum(bool(one[5]) for one in turns)} of {len(turns)} turns"
        " had a block\n"
    )
    table(
        ["CPU ms", "p50", "p95"],
        [
            row("resident turn besides embedding", [one[0] - one[1] for one in later]),
            row("the same, first of a session", [one[0] - one[1] for one in turns if one[4]]),
            row("resident turn besides embedding and judge", [one[0] - one[1] - one[2] for one in later]),
            row("embedding the message", [one[1] for one in later]),
            row("the judge", [one[2] for one in later]),
            row("resident turn, wall ms", [one[3] for one in later]),
            row("cold process `ncm turn`", processes),
            row("bare `python -c pass`", bare),
        ],
    )


if __name__ == "__main__":
    main()
