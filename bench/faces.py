"""Many clients at once over HTTP, beside an older version of this repository in the same run; memory in a soak.

    python bench/faces.py [--before REV] [--chunks 3000] [--rounds 20] [--clients 10,50] [--part clients,soak]
        [--loads "words and graph"] [--home DIR] [--minutes 3]

Every client is a session of its own with a kept connection. "Words and graph" alternates `search?fast=1` and
`graph/search`; every question differs. The versions take turns on copies of one home, without a model; the older one
filled it, and each has indexed its copy before it is asked. CPU is of the server's own process, and of all its
processes; the clients' is beside it. The soak has 20 new sessions every 200 requests, which search, ask the graph, ask
for blocks and report exchanges. Clients and server share the machine: on two cores nothing else should run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from interfaces import NAMES, TOPICS, cpu_of_pid, memory_of
from measure import table

ROOT = Path(__file__).parent.parent
WARM = 8  # rounds, three times before it is measured: what is asked for often is read
START_SECONDS = 2  # between them: processes start beside the server, one after another
Ask = Callable[[int, int], tuple[str, str, dict[str, Any] | None]]


def words(client: int, turn: int) -> tuple[str, str, dict[str, Any] | None]:
    asked = f"{NAMES[client % 8]} {TOPICS[turn % 8]} word{(client * 131 + turn * 37) % 5000}"
    return "GET", f"/api/v1/search?fast=true&query={quote(asked)}", None


def graph(client: int, turn: int) -> tuple[str, str, dict[str, Any] | None]:
    person = f"birthday of Person{(client * 131 + turn * 37) % 2000}"
    asked = f"What port does {NAMES[client % 8]} run on?" if turn % 2 else person
    return "GET", f"/api/v1/graph/search?query={quote(asked)}", None


def words_and_graph(client: int, turn: int) -> tuple[str, str, dict[str, Any] | None]:
    return (words if turn % 2 else graph)(client, turn // 2)


def turns(client: int, turn: int) -> tuple[str, str, dict[str, Any] | None]:
    asked = f"What did we say about the {NAMES[client % 8]} {TOPICS[turn % 8]}, number {client * 31 + turn}?"
    return "POST", "/api/v1/turns/before", {"message": asked}


def mixed(client: int, turn: int) -> tuple[str, str, dict[str, Any] | None]:
    """Every kind of request in turn, reading and writing."""
    kinds = (words, graph, turns, said, words)
    return kinds[turn % len(kinds)](client, turn)


def said(client: int, turn: int) -> tuple[str, str, dict[str, Any] | None]:
    asked = f"What about the {TOPICS[turn % 8]} of {NAMES[client % 8]}?"
    answer = f"We agreed on plan {(client * 7 + turn) % 50}."
    return "POST", "/api/v1/turns/after", {"user_message": asked, "agent_response": answer}


LOADS: dict[str, Ask] = {"words": words, "graph": graph, "words and graph": words_and_graph, "turns": turns}


# ---- servers ----


@contextmanager
def version(revision: str) -> Iterator[Path]:
    """The sources of a revision, checked out beside this tree; this tree's own for an empty name."""
    if not revision:
        yield ROOT / "src"
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(ROOT)]
        subprocess.run([*git, "worktree", "add", "--detach", "-q", folder + "/tree", revision], check=True)
        try:
            yield Path(folder) / "tree" / "src"
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", folder + "/tree"], check=True)


def fill(home: Path, chunks: int, sources: Path) -> None:
    """Fill a home as these sources do: an older version cannot read what a newer one has written."""
    bench = sources.parent / "bench"
    name = "interfaces" if (bench / "interfaces.py").exists() else "faces"  # as it was called before
    code = f"import sys, {name}; {name}.fill({name}.Path(sys.argv[1]), int(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", code, str(home), str(chunks)], check=True, env=_of(sources))


def _of(sources: Path) -> dict[str, str]:
    """The environment of a process that runs these sources, and may use the measurements that came with them."""
    return {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{sources.parent / 'bench'}"}


@contextmanager
def served(home: Path, sources: Path) -> Iterator[dict[str, Any]]:
    """A running server of a home, of these sources, which have indexed the home: it may be of an older version."""
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "--json"]
    subprocess.run([*command, "index"], stdout=subprocess.DEVNULL, check=True, env=_of(sources))
    options = ["serve", "--port", "0", "--no-watch", "--no-upkeep"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, env=_of(sources))
    assert process.stdout is not None
    place: dict[str, Any] = json.loads(process.stdout.readline())
    try:
        yield {**place, "token": (home / "token").read_text().strip()}
    finally:
        process.terminate()
        process.wait(30)


# ---- clients ----


class Client:
    """One kept connection, as light as a client can be: its own cost must not hide the server's."""

    def __init__(self, place: dict[str, Any], session: str) -> None:
        self._port = int(place["url"].rpartition(":")[2])
        self._head = (
            f"Host: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {place['token']}\r\n"
            f"X-NanoClaw-Session: {session}\r\n"
        )

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and body of an answer."""
        raw = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(raw)}\r\n\r\n"
        self._writer.write(head.encode() + raw)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(lines.partition("content-length:")[2].split()[0])
        return int(lines.split()[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


async def load(
    place: dict[str, Any], ask: Ask, clients: int, rounds: int, sessions: str = "client"
) -> tuple[list[float], int]:
    """Milliseconds of all requests, and how many failed."""
    took: list[float] = []
    failed = 0

    async def work(number: int) -> None:
        nonlocal failed
        client = Client(place, f"{sessions}-{number}")
        await client.open()
        for turn in range(rounds):
            began = time.perf_counter()
            status, _ = await client.ask(*ask(number, turn))
            took.append((time.perf_counter() - began) * 1000)
            failed += status != 200
        client.close()

    await asyncio.gather(*map(work, range(clients)))
    return took, failed


def measured(place: dict[str, Any], ask: Ask, clients: int, rounds: int) -> list[object]:
    """Percentiles, requests a second, CPU for one of the server, of all its processes, of the clients; failures."""
    for _ in range(3):
        asyncio.run(load(place, ask, clients, WARM))
        time.sleep(START_SECONDS)
    before, began = _cpu(place["pid"]), time.perf_counter()
    took, failed = asyncio.run(load(place, ask, clients, rounds))
    wall = time.perf_counter() - began
    spent = [(after - cpu) / len(took) for after, cpu in zip(_cpu(place["pid"]), before, strict=True)]
    took.sort()
    middle, late = took[len(took) // 2], took[int(len(took) * 0.95)]
    return [middle, late, len(took) / wall, *spent, failed]


def _cpu(pid: int) -> tuple[float, float, float]:
    """CPU milliseconds so far of a process, of it and those it started, and of this one."""
    started = " ".join(one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/children")).split()
    own = cpu_of_pid(pid)
    return own, own + sum(cpu_of_pid(int(child)) for child in started), time.process_time() * 1000


def clients(home: Path, options: argparse.Namespace) -> None:
    """Each load for each number of clients, version by version."""
    rows: list[list[object]] = []
    for revision in filter(None, [options.before, "now"]):
        with (
            version("" if revision == "now" else revision) as sources,
            tempfile.TemporaryDirectory() as folder,
        ):
            copy = Path(folder) / "home"
            shutil.copytree(home, copy, symlinks=True)
            with served(copy, sources) as place:
                for name in options.loads.split(","):
                    for count in map(int, options.clients.split(",")):
                        found = measured(place, LOADS[name], count, options.rounds)
                        rows.append([f"{name}, {count} clients", revision, *found])
    cpu = ["server's CPU ms", "all its processes'", "clients'"]
    table(
        ["load", "version", "p50 ms", "p95 ms", "requests/s", *cpu, "failed"],
        sorted(rows, key=lambda row: str(row[0])),
    )


def soak(home: Path, options: argparse.Namespace) -> None:
    """Memory, threads and files of the server under a mixed load, with sessions that come and go."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "home"
        shutil.copytree(home, copy, symlinks=True)
        with served(copy, ROOT / "src") as place:
            until, began, asked = time.monotonic() + options.minutes * 60, time.monotonic(), 0
            while time.monotonic() < until:
                took, failed = asyncio.run(load(place, mixed, 20, 10, f"round-{asked}"))
                asked += len(took)
                if not rows or time.monotonic() - began > (len(rows)) * options.minutes * 6:
                    minutes = (time.monotonic() - began) / 60
                    rows.append([minutes, asked, *memory_of(place["pid"]), failed])
    table(["minutes", "requests", "resident MB", "threads", "open files", "failed"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", default="")
    parser.add_argument("--chunks", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", default="10,50")
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--part", default="clients,soak")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--home", type=Path, help="a filled home of an earlier run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        home = options.home or Path(folder) / "home"
        if not home.exists():
            with version(options.before) as sources:
                fill(home, options.chunks, sources)
        for name, work in {"clients": clients, "soak": soak}.items():
            if name in options.part.split(","):
                work(home, options)


if __name__ == "__main__":
    main()
