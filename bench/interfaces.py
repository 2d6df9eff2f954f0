"""What hooks, MCP starts and many clients cost, with the resident server and without.

    python bench/interfaces.py [--chunks 10000] [--turns 10000] [--part hooks,mcp,clients,memory,schemas]

A home is filled with daily logs, facts, entries and past exchanges, indexed by words (no model: what a machine
without one pays). CPU is of whole processes, user and system; the server's own CPU for a hook is counted beside it.
Bytecode is cached, as after any installation, in a directory of the run's own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from measure import cpu_of, table
from nanoclaw_memory.interfaces import shim
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

SHIM = [sys.executable, "-I", "-S", shim.__file__]
COMMAND = [sys.executable, "-m", "nanoclaw_memory"]
NAMES = ("Keystone", "Harbour", "Lantern", "Meadow", "Orchard", "Quarry", "Summit", "Willow")
TOPICS = ("deployment", "invoice", "migration", "birthday", "garden", "database", "holiday", "meeting")
PROMPT = "What port does Keystone run on, and what did we say about the Harbour migration?"


def fill(home: Path, chunks: int) -> None:
    """A home of about this many chunks, with facts, entries and exchanges."""
    with Memory.open(home, Scope(session_id="fill"), overrides={"embeddings.provider": "none"}) as memory:
        memory.init()
        folder = home / "workspace" / "memory"
        per_day = 100
        for day in range(chunks // per_day):
            when = date(2026, 1, 1) - timedelta(days=day)
            lines = [
                f"## {NAMES[n % 8]} {TOPICS[(n + day) % 8]} {n}\n\n"
                f"- [context|i=0.5] {NAMES[(n + day) % 8]} spoke of the {TOPICS[n % 8]} and item {day * per_day + n}: "
                + " ".join(f"word{(n * 31 + k * 7 + day) % 5000}" for k in range(60))
                for n in range(per_day)
            ]
            (folder / f"{when}.md").write_text(f"# {when}\n\n" + "\n\n".join(lines) + "\n")
        for number, name in enumerate(NAMES):
            memory.graph.upsert(name, "port", str(3000 + number), "project")
        for number in range(2000):
            memory.graph.upsert(f"Person{number}", "birthday", f"{number % 28 + 1} March", "person")
        for number in range(20):
            memory.store(f"Prefers {TOPICS[number % 8]} notes of kind {number}", "preference")
        done = memory.index()
    print(f"home: {done.chunks:,} chunks in {done.files} files, {2000 + len(NAMES):,} facts", flush=True)
    for number in range(500):
        scope = Scope(session_id=f"old-{number // 10}")
        with Memory.open(home, scope, overrides={"embeddings.provider": "none"}) as memory:
            asked = f"What about the {NAMES[number % 8]} {TOPICS[number // 8 % 8]}, number {number}?"
            memory.after_turn(asked, f"We agreed on plan {number} for {NAMES[number % 8]}.")


@contextmanager
def served(home: Path) -> Iterator[dict[str, Any]]:
    """A running server of the home."""
    options = ["--home", str(home), "--json", "serve", "--port", "0", "--no-watch", "--no-upkeep"]
    process = subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    place: dict[str, Any] = json.loads(process.stdout.readline())
    try:
        yield place
    finally:
        process.terminate()
        process.wait(30)


def event(session: str = "s1") -> bytes:
    told = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": PROMPT}
    return json.dumps(told).encode()


def spent_by(command: list[str], stdin: bytes, runs: int) -> tuple[float, float, bytes]:
    """Median CPU and wall milliseconds of a process, and what it printed last."""
    cpu, wall, printed = [], [], b""
    for _ in range(runs):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        printed = subprocess.run(command, input=stdin, check=True, capture_output=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return statistics.median(cpu), statistics.median(wall), printed


def cpu_of_pid(pid: int) -> float:
    """CPU milliseconds that a running process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def hooks(home: Path) -> None:
    """Each hook: cold, and through the server."""
    bare = cpu_of([sys.executable, "-I", "-S", "-c", "pass"], runs=20)
    rows: list[list[object]] = [["python -I -S -c pass", bare, 0.0, 0.0, 0]]
    asked = {
        "user-prompt-submit": event(),
        "session-start": b'{"session_id": "s1", "source": "startup"}',
        "stop": b'{"session_id": "s1", "last_assistant_message": "It runs on port 3000."}',
        "session-end": b'{"session_id": "s1", "reason": "other"}',
    }
    for name, stdin in asked.items():
        spent_by([*SHIM, "--home", str(home), "hook", name], stdin, 1)
        cpu, wall, out = spent_by([*SHIM, "--home", str(home), "hook", name], stdin, 15)
        rows.append([f"{name}, no server", cpu, wall, 0.0, len(out)])
    with served(home) as place:
        for name, stdin in asked.items():
            command = [*SHIM, "--home", str(home), "hook", name]
            spent_by(command, stdin, 3)  # opens the memory
            before = cpu_of_pid(place["pid"])
            cpu, wall, out = spent_by(command, stdin, 30)
            own = (cpu_of_pid(place["pid"]) - before) / 30
            rows.append([f"{name}, server", cpu, wall, own, len(out)])
    table(["hook", "CPU ms", "wall ms", "server's CPU ms", "bytes out"], rows)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


def mcp(home: Path) -> None:
    """From spawning the command to the answer to `initialize`."""

    def once() -> float:
        began = time.perf_counter()
        command = [*SHIM, "--home", str(home), "mcp"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            assert b"nanoclaw-memory" in process.stdout.readline()
            took = (time.perf_counter() - began) * 1000
            process.stdin.close()
            process.wait(30)
        return took

    def measured(runs: int) -> tuple[float, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls = [once() for _ in range(runs)]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return spent * 1000 / runs, statistics.median(walls)

    once()
    rows: list[list[object]] = [["no server", *measured(5)]]
    with served(home):
        once()
        rows.append(["through the shim", *measured(20)])
    table(["spawn to initialize", "CPU ms", "wall ms"], rows)


def clients(home: Path, count: int = 50, rounds: int = 20) -> None:
    """Many clients at once, over HTTP and by hooks on the socket."""
    import httpx2

    with served(home) as place:
        token = (home / "token").read_text().strip()

        def over_http(number: int) -> list[tuple[float, bool]]:
            headers = {"Authorization": f"Bearer {token}", "X-NanoClaw-Session": f"client-{number}"}
            found = []
            with httpx2.Client(base_url=place["url"], headers=headers, timeout=60) as client:
                for turn in range(rounds):
                    began = time.perf_counter()
                    if turn % 2:
                        answer = client.post("/api/v1/turns/before", json={"message": PROMPT})
                    else:
                        answer = client.get("/api/v1/search", params={"query": "Harbour", "fast": True})
                    found.append(((time.perf_counter() - began) * 1000, answer.status_code == 200))
            return found

        def on_socket(number: int) -> list[tuple[float, bool]]:
            found = []
            for _ in range(rounds):
                began = time.perf_counter()
                said = hook(home, event(f"client-{number}"))
                found.append(((time.perf_counter() - began) * 1000, bool(said)))
            return found

        rows = []
        for name, work in {"HTTP: search and turns": over_http, "socket: prompt hooks": on_socket}.items():
            rows.append([name, *_together(work, count)])
    table([f"{count} clients × {rounds}", "p50 ms", "p95 ms", "requests/s", "errors"], rows)


def _together(work: Callable[[int], list[tuple[float, bool]]], count: int) -> list[object]:
    began = time.perf_counter()
    with ThreadPoolExecutor(count) as pool:
        found = [one for many in pool.map(work, range(count)) for one in many]
    took = time.perf_counter() - began
    times = sorted(ms for ms, _ in found)
    errors = sum(not good for _, good in found)
    return [times[len(times) // 2], times[int(len(times) * 0.95)], len(found) / took, errors]


def hook(home: Path, raw: bytes, what: str = "user-prompt-submit") -> bytes | None:
    """A hook through the server, from this process."""
    request = shim.parse(["--home", str(home), "hook", what])
    assert request is not None
    connection = shim.connect(request)
    return shim.ask(connection, request, raw) if connection else None


def memory_of(pid: int) -> tuple[float, int, int]:
    """Resident megabytes, threads and open files of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    kilobytes = int(text.partition("VmRSS:")[2].split()[0])
    threads = int(text.partition("Threads:")[2].split()[0])
    return kilobytes / 1024, threads, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def memory(home: Path, turns: int) -> None:
    """The server's memory while a great many turns pass, each with its prompt and answer, in many sessions."""
    rows: list[list[object]] = []
    with served(home) as place:
        threading.Event().wait(1)
        for done in range(turns + 1):
            if done in (0, turns // 20) or done % (turns // 10) == 0:
                rows.append([f"{done:,}", *memory_of(place["pid"])])
            session = f"long-{done // 20}"
            hook(home, event(session))
            answer = {
                "session_id": session,
                "last_assistant_message": f"Port {3000 + done % 8}, number {done}.",
            }
            hook(home, json.dumps(answer).encode(), "stop")
    table(["turns", "resident MB", "threads", "open files"], rows)


def schemas(home: Path) -> None:
    """Tokens of the tools' schemas, as a client puts them before its model."""
    import anyio
    from mcp import Client

    from nanoclaw_memory import tokens
    from nanoclaw_memory.interfaces.mcp.server import build_server

    async def listed(tools: str) -> tuple[int, int]:
        with Memory.open(home) as opened:
            async with Client(build_server(opened, tools)) as client:
                found = (await client.list_tools()).tools
        shown = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in found]
        return len(found), tokens.count(json.dumps(shown))

    rows: list[list[object]] = [[tools, *anyio.run(listed, tools)] for tools in ("core", "all")]
    table(["set", "tools", "tokens"], rows)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--chunks", type=int, default=10_000)
    options.add_argument("--turns", type=int, default=10_000)
    options.add_argument("--part", default="hooks,mcp,clients,memory,schemas")
    given = options.parse_args()
    parts = given.part.split(",")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        fill(home, given.chunks)
        for name, work in {"hooks": hooks, "mcp": mcp, "clients": clients, "schemas": schemas}.items():
            if name in parts:
                work(home)
        if "memory" in parts:
            memory(home, given.turns)


if __name__ == "__main__":
    main()
