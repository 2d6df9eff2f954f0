"""What a turn costs: `before_turn` in a resident process, and a cold process from start to end.

    python bench/turn.py [--facts 3000] [--exchanges 5000] [--chunks 10000] [--models DIR] [--turns 200]

Builds a home with made-up facts, relations, exchanges and lessons, and as many indexed chunks as asked for; then asks
questions of which half name something known. CPU time of the whole process (all threads) and wall time; the machine's
noise is in the wall time. The resident figures are given with and without the embedding of the message. Bytecode is
compiled first, as an installer does.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

MODELS = Path(__file__).parent.parent / ".venv" / "models"
NOUNS = (
    "gateway invoice migration dashboard kitchen garden deployment budget contract database printer bicycle holiday"
    " meeting backup release server parser cache queue tariff insurance recipe concert apartment passport router"
).split()
VERBS = "plan move repair renew check cancel paint restart compare book measure rewrite".split()
NAMES = "Heidi Keystone Marvin Zephyr Bruno Atlas Ingrid Orion Wanda Pluto Carmen Nimbus Ludwig Vega Paula".split()
KEYS = "port owner birthday phone status city language version colour budget".split()


def sentence(rng: random.Random) -> str:
    who, verb, what, other = rng.choice(NAMES), rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    return f"{who} wants to {verb} the {what} before the {other} number {rng.randrange(400)} is due"


def build(home: Path, arguments: argparse.Namespace, overrides: dict[str, str]) -> None:
    """A home of the sizes asked for."""
    rng = random.Random(7)
    start = datetime(2025, 11, 1, tzinfo=UTC)
    clock = FixedClock(start)
    with Memory.open(home, Scope(session_id="old"), clock=clock, overrides=overrides) as memory:
        memory.init()
        with memory.group.database("facts").transaction():
            for number in range(arguments.facts):
                name = f"{rng.choice(NAMES)} {number // 10}"
                memory.graph.upsert(name, rng.choice(KEYS), f"{rng.choice(NOUNS)} {number}", "fact")
                if number % 3 == 0:
                    memory.graph.relate(
                        name, "works_with", f"{rng.choice(NAMES)} {rng.randrange(max(number // 10, 1))}"
                    )
        context = memory.group
        with memory.group.database("continuity").transaction():
            for number in range(arguments.exchanges):
                at = start + timedelta(minutes=30 * number)
                stamp = at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
                context.exchanges.add(f"session-{number // 12}", sentence(rng), sentence(rng) + ".", stamp)
        for noun in NOUNS[:20]:
            memory.lessons.add(f"Ask me before you touch the {noun}", f"{noun} work")
        lines = [f"- [note|i=0.5] {sentence(rng)}" for _ in range(arguments.chunks)]
        for part in range(0, len(lines), 200):
            day = (start + timedelta(days=part // 200)).date().isoformat()
            path = home / "workspace" / "memory" / f"{day}.md"
            path.write_text(f"# {day}\n\n" + "\n".join(lines[part : part + 200]) + "\n", encoding="utf-8")


def questions(number: int) -> list[str]:
    rng = random.Random(11)
    known = [
        f"What is the {rng.choice(KEYS)} of {rng.choice(NAMES)} {rng.randrange(300)}?" for _ in range(number)
    ]
    other = [f"Did we {rng.choice(VERBS)} the {rng.choice(NOUNS)} last week?" for _ in range(number)]
    return [text for pair in zip(known, other, strict=True) for text in pair][:number]


def resident(
    home: Path, turns: int, overrides: dict[str, str]
) -> tuple[list[float], list[float], list[float], int]:
    """CPU and wall of each turn, CPU of embedding alone, and how many gave a block."""
    clock = FixedClock(datetime(2026, 3, 1, tzinfo=UTC))
    cpu, wall, embedding, blocks = [], [], [], 0
    with Memory.open(home, Scope(session_id="now"), clock=clock, overrides=overrides) as memory:
        memory.group.resources.resident = True
        while memory.conversations.embed(512):
            pass
        asked = questions(turns + 10)
        for number, text in enumerate(asked):
            clock.moment += timedelta(minutes=2)
            began, clock_began = time.process_time(), time.perf_counter()
            turn = memory.before_turn(text)
            spent = ((time.process_time() - began) * 1000, (time.perf_counter() - clock_began) * 1000)
            if number >= 10:
                cpu.append(spent[0])
                wall.append(spent[1])
                blocks += bool(turn.blocks)
        chain = memory.group.resources.embedder
        for text in asked[:50] if chain else ():
            began = time.process_time()
            chain.embed_query(text)  # type: ignore[union-attr]
            embedding.append((time.process_time() - began) * 1000)
    return cpu, wall, embedding, blocks


def cold(home: Path, runs: int) -> list[float]:
    """CPU milliseconds of whole processes `ncm turn`."""
    spent = []
    for text in questions(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "turn", text, "--session", "cold"],
            check=True,
            capture_output=True,
            env={**os.environ, "NANOCLAW_HOME": str(home)},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return spent


def at(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--facts", type=int, default=3_000)
    parser.add_argument("--exchanges", type=int, default=5_000)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--models", type=Path, default=MODELS)
    arguments = parser.parse_args()
    overrides = {"embeddings.modelPath": str(arguments.models / "e5-small-v2"), "plugins.timeoutMs": "60000"}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        build(home, arguments, overrides)
        package = Path(__file__).parent.parent / "src" / "nanoclaw_memory"
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)
        bare = [cold_python() for _ in range(15)]
        processes = cold(home, 15)
        cpu, wall, embedding, blocks = resident(home, arguments.turns, overrides)
    print(
        f"### A turn at {arguments.facts:,} facts, {arguments.exchanges:,} exchanges, {arguments.chunks:,} log lines\n"
    )
    print("| what | p50 | p95 | × bare Python, p50 |\n|---|---|---|---|")
    rest = [value - at(embedding, 0.5) for value in cpu]
    rows = (
        ("resident, CPU ms", cpu),
        ("resident, CPU ms besides embedding the message", rest),
        ("embedding the message, CPU ms", embedding),
        ("resident, wall ms", wall),
        ("cold process `ncm turn`, CPU ms", processes),
        ("bare `python -c pass`, CPU ms", bare),
    )
    for name, values in rows:
        ratio = at(values, 0.5) / at(bare, 0.5)
        print(f"| {name} | {at(values, 0.5):.1f} | {at(values, 0.95):.1f} | {ratio:.2f} |")
    print(f"\n{blocks} of {arguments.turns} turns had a block.")


def cold_python() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


if __name__ == "__main__":
    main()
