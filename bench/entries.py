"""Typed entries: store, search, recall and brief at 1k, 10k and 100k entries; what a cosine says of duplicates.

python bench/entries.py [--sizes 1000,10000,100000] [--runs 30] [--models DIR] [--only-duplicates]

CPU is this process's; wall time includes the disk (fsync of the database and of the audit log). Alongside a
store stands a bare 100-byte write + fsync on the same disk in the same run, to read the wall time against.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measure import table
from nanoclaw_memory import Memory, statements, tokens
from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries import rules
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.store.entries import BEHAVIORAL
from nanoclaw_memory.types import Entry, Provenance

NOW = datetime.now(UTC)
PRIORITIES = ("critical", "high", "medium", "medium", "medium", "low")
QUESTIONS = (
    "who leads the billing team",
    "staging port of the gateway",
    "how should reports be written",
    "wiki",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--models", type=Path, default=Path(__file__).parents[1] / ".venv/models")
    parser.add_argument("--only-duplicates", action="store_true")
    given = parser.parse_args()
    if not given.only_duplicates:
        rows = [row for size in given.sizes.split(",") for row in measured(int(size), given.runs)]
        table(["entries", "what", "CPU ms p50", "CPU ms p95", "wall ms p50", "wall ms p95"], rows)
        print()
    duplicates(given.models)


def measured(size: int, runs: int) -> list[list[object]]:
    with tempfile.TemporaryDirectory() as folder:
        filled(Path(folder), size)
        with Memory.open(folder, overrides={"embeddings.provider": "none"}) as memory:
            memory.index()
            memory.brief()
            tokens.count("load the table once")
            memory.store("the first store writes the domain file whole", "fact")
            words = random.Random(size)
            work: dict[str, Callable[[], object]] = {
                "store (dedupe, audit, domain file)": lambda: memory.store(sentence(words), "fact"),
                "search, keyword": lambda: memory.search(words.choice(QUESTIONS), types=("fact", "person")),
                "recall, 3,000 tokens": lambda: memory.recall(words.choice(QUESTIONS)),
                "brief": memory.brief,
                "write + fsync of 100 bytes (baseline)": lambda: synced(Path(folder) / "probe"),
            }
            return [[size, name, *timed(call, runs)] for name, call in work.items()]


def timed(work: Callable[[], object], runs: int) -> list[float]:
    cpu, wall = [], []
    for _ in range(runs):
        began, at = time.process_time(), time.perf_counter()
        work()
        cpu.append((time.process_time() - began) * 1000)
        wall.append((time.perf_counter() - at) * 1000)
    late = min(int(runs * 0.95), runs - 1)
    return [sorted(cpu)[runs // 2], sorted(cpu)[late], sorted(wall)[runs // 2], sorted(wall)[late]]


def synced(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, b"x" * 100)
    os.fsync(handle)
    os.close(handle)


def filled(home: Path, size: int) -> None:
    """A store of `size` entries of all types, four of five sentences from a common vocabulary."""
    chance = random.Random(7)
    with Memory.open(home) as memory:
        memory.init()
        ledger = memory.group.entries.ledger
        with ledger.db.transaction():
            for number in range(size):
                entry = made(chance, number)
                ledger.table.add(entry, statements.text_key(entry.content))


def made(chance: random.Random, number: int) -> Entry:
    moment = stamp(NOW - timedelta(minutes=chance.randrange(500_000)))
    kind = rules.TYPES[number % len(rules.TYPES)]
    content = sentence(chance)
    return Entry(
        id=f"mem-{uuid.UUID(int=chance.getrandbits(128))}",
        type=kind,
        content=content,
        priority=chance.choice(PRIORITIES),
        tags=(chance.choice(SUBJECTS),),
        behavioral=kind in BEHAVIORAL,
        provenance=Provenance(f"s{number // 20}", "main", moment, chance.choice(("owner", "agent"))),
        status="active",
        token_cost=tokens.estimate(content),
        used_at=moment,
        updated_at=moment,
    )


SUBJECTS = (
    "billing gateway staging wiki search index wedding kitchen garden report review invoice server router "
    "database release calendar meeting office travel budget camera printer school team customer contract "
    "dashboard backup certificate"
).split()
VERBS = "leads uses owns moved prefers avoids writes checks plans runs signed booked paused".split()
NAMES = "Anna Bob Carla Dmitri Elif Farid Greta Hiro Ines Jamal Kira Luis Mara Nils Oda Priya".split()


def sentence(chance: random.Random) -> str:
    """An ordinary entry of some 12 words: a few common ones, a number, a rare word."""
    subjects = chance.sample(SUBJECTS, 3)
    rare = "".join(chance.choice("bcdfghklmnprstvz") + chance.choice("aeiou") for _ in range(3))
    return (
        f"{chance.choice(NAMES)} {chance.choice(VERBS)} the {subjects[0]} of the {subjects[1]} team and the "
        f"{subjects[2]} on port {chance.randrange(1000, 9999)} for {rare}"
    )


def duplicates(folder: Path) -> None:
    """How our rule by words and a cosine judge pairs of three authors, half of which say the same."""
    from nanoclaw_memory.providers.local import LocalEmbedder

    lines = (Path(__file__).parent / "data/pairs.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    said = {"words (ours)": [_merged(one["a"], one["b"]) for one in pairs]}
    local = LocalEmbedder(*embedder(folder))
    if local.installed:
        first, second = (local.embed_documents([one[side] for one in pairs]) for side in ("a", "b"))
        cosines = [float(one @ other) for one, other in zip(first, second, strict=True)]
        for limit in (0.92, 0.95, 0.97):
            said[f"cosine ≥ {limit}, e5-small-v2"] = [cosine >= limit for cosine in cosines]
    rows: list[list[object]] = []
    for by, merged in said.items():
        kinds = [
            [m for m, one in zip(merged, pairs, strict=True) if one["same"] is same] for same in (True, False)
        ]
        rows.append([by, *(f"{sum(kind)} of {len(kind)}" for kind in kinds)])
    table(["duplicates by", "the same, merged", "another fact, merged"], rows)


def _merged(one: str, other: str) -> bool:
    return statements.normal(one) == statements.normal(other) or statements.near_duplicate(one, other)


if __name__ == "__main__":
    main()
