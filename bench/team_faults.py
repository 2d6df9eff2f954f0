"""A team on one database while parts of it die: what is acknowledged stays, and every home ends the same.

    python bench/team_faults.py                     5 homes with 4 agents each, a partition of 60 s
    python bench/team_faults.py --agents 20 --partition 60

Every agent is a process with the whole program, in the home and the group that it belongs to: it stores facts, and
lines in a log that all homes share. A write that failed is repeated until it is acknowledged, and may so come twice.
Meanwhile agents are killed with -9, PostgreSQL is (all its processes, with fsync), and all of it stands still for the
time of the partition. Then hooks of a thin client are timed whose server is away.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.interfaces import shim
from team import percentile, restart, send, settings, with_connections

SHIM = [sys.executable, "-I", "-S", str(Path(str(shim.__file__)))]
AGENT = """
import sys, time
from pathlib import Path
from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope
home, url, group, agent, first = sys.argv[1:]
settings = {"store.url": url, "embeddings.provider": "none"}
number = int(first)
while True:
    try:
        with Memory.open(Path(home), Scope(group, agent), overrides=settings) as memory, Memory.open(
            Path(home), Scope("main", agent), overrides=settings) as common:
            while True:
                memory.graph.upsert(agent, f"key {number}", f"{group} {number}")
                if number % 10 == 0:
                    common.write(f"{agent} reached {number}")
                print(f"{group}/{agent}/{number}", flush=True)
                number += 1
    except NanoClawError as error:
        print(error.message, file=sys.stderr, flush=True)
        time.sleep(0.3)
"""


class Team:
    """The agents of all homes, restarted where they were killed."""

    def __init__(self, folder: Path, url: str, homes: int, agents: int) -> None:
        self.folder = folder
        self.url = url
        self.homes = homes
        self.running: dict[tuple[int, int], subprocess.Popen[bytes]] = {}
        for home in range(homes):
            for number in range(agents):
                self.start(home, number)

    def start(self, home: int, number: int) -> None:
        name = f"agent{home}x{number}"
        known = self.acknowledged(name)
        group, first = f"team{home}", str(max((int(one.rpartition("/")[2]) for one in known), default=-1))
        given = [str(self.folder / f"home{home}"), self.url, group, name, str(max(int(first), 0))]
        out, err = (self.folder / f"{name}.{kind}" for kind in ("out", "err"))
        with out.open("ab") as told, err.open("ab") as failed:
            self.running[home, number] = subprocess.Popen(
                [sys.executable, "-c", AGENT, *given], stdout=told, stderr=failed
            )

    def kill(self, home: int, number: int) -> None:
        self.running[home, number].kill()
        self.running[home, number].wait()

    def acknowledged(self, name: str = "*") -> list[str]:
        """What was acknowledged, some of it twice: an agent that starts again repeats its last write."""
        lines = [
            line for path in self.folder.glob(f"{name}.out") for line in path.read_text().splitlines(True)
        ]
        return [line.strip() for line in lines if line.endswith("\n")]

    def problems(self) -> int:
        return sum(len(path.read_text().splitlines()) for path in self.folder.glob("*.err"))

    def stop(self) -> None:
        for one in self.running.values():
            one.kill()
            one.wait()


def live(team: Team, data: Path, partition: float, quiet: float) -> list[tuple[str, int]]:
    """Let parts die one after the other; returns how many writes were acknowledged until each point."""
    seen = []

    def wait(what: str, seconds: float) -> None:
        time.sleep(seconds)
        seen.append((what, len(team.acknowledged())))

    while len({one.rpartition("/")[0] for one in team.acknowledged()}) < len(team.running):
        time.sleep(1)
    wait("undisturbed", quiet)
    for home in range(team.homes):
        team.kill(home, 0)
        team.start(home, 0)
    wait("one agent of each home killed with -9", quiet)
    send(data, signal.SIGKILL)
    time.sleep(2)
    restart(data)
    wait("PostgreSQL killed with -9", quiet)
    send(data, signal.SIGSTOP)
    time.sleep(partition)
    send(data, signal.SIGCONT)
    wait(f"PostgreSQL out of reach for {partition:.0f} s", quiet)
    return seen


def compared(team: Team) -> list[list[object]]:
    """What is there ten seconds later."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    told, rows, strange, twice = set(team.acknowledged()), set[str](), 0, 0
    pages: list[dict[str, bytes]] = []
    for home in range(team.homes):
        root, group = team.folder / f"home{home}", f"team{home}"
        with Memory.open(root, Scope(group), overrides=settings(team.url)) as memory:
            found = memory.group.database("facts").query(
                "SELECT entity, key, value FROM facts WHERE key LIKE 'key %'"
            )
        rows |= {f"{group}/{entity}/{key.split()[1]}" for entity, key, _ in found}
        strange += sum(not value.startswith(f"{group} ") for _, _, value in found)
        twice += len(found) - len(set(found))
    roots = [team.folder / f"home{home}" for home in range(team.homes)]
    # The first call brings along what a home's killed agents had written, the second what the others brought.
    for root in roots * 2:
        with Memory.open(root, Scope("main"), overrides=settings(team.url)) as memory:
            memory.search("reached", fast=True)
    for below in (root / "workspace" / "memory" for root in roots):
        pages.append(
            {str(path.relative_to(below)): path.read_bytes() for path in sorted(below.rglob("*.md"))}
        )
    lines = {line for one in pages[0].values() for line in one.decode().splitlines() if " reached " in line}
    return [
        ["acknowledged writes", len(told)],
        ["of them missing", len(told - rows)],
        ["rows of another group", strange],
        ["rows that are there twice", twice],
        ["homes whose pages are equal", f"{sum(one == pages[0] for one in pages)} of {team.homes}"],
        ["lines in the common log", len(lines)],
        ["errors that agents met", team.problems()],
        ["rows that a role reads of other groups", read_elsewhere(team)],
    ]


def read_elsewhere(team: Team) -> int:
    """What the role of a group gets of the tables of all others."""
    import psycopg

    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    read = 0
    for home in range(team.homes):
        with Memory.open(
            team.folder / f"home{home}", Scope(f"team{home}"), overrides=settings(team.url)
        ) as memory:
            url = memory.admin.make_role(f"bench{home}")
        for other in {f"team{number}" for number in range(team.homes)} - {f"team{home}"} | {"main"}:
            for name in ("facts", "entries", "continuity", "index", "pages"):
                with (
                    psycopg.connect(url) as connection,
                    suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable),
                ):
                    read += connection.execute(f'SELECT count(*) FROM "{other}/{name}".ncm_state').fetchall()[
                        0
                    ][0]
    return read


def hooks_away(folder: Path, times: int) -> list[list[object]]:
    """How long the hooks of a thin client take, from outside, whose server is away in each of several ways."""
    silent = socket.create_server(("127.0.0.1", 0), backlog=500)
    port = silent.getsockname()[1]
    rows: list[list[object]] = []
    for name, url in (
        ("refused", "http://127.0.0.1:9"),
        ("accepts, says nothing", f"http://127.0.0.1:{port}"),
        ("the same, by TLS", f"https://127.0.0.1:{port}"),
        ("no way there", "https://192.0.2.1"),
        ("no such name", "https://memory.invalid"),
        ("known to be away", "http://127.0.0.1:9"),
    ):
        for event in ("UserPromptSubmit", "Stop"):
            took, spent = zip(*(hooked(folder, url, event, name) for _ in range(times)), strict=True)
            rows.append([name, event, *(f"{percentile(list(took), one):.0f}" for one in (0.5, 0.95))])
            rows[-1].append(f"{percentile(list(spent), 0.5):.0f}")
    return rows


def hooked(folder: Path, url: str, event: str, name: str) -> tuple[float, float]:
    """Milliseconds of a hook in a home of its own, and of CPU; before an answer the question was noted."""
    home = Path(tempfile.mkdtemp(dir=folder))
    (home / "remote.json").write_text(json.dumps({"url": url, "token": "ncm_1a2b3c4d_secret"}))
    given = {"session_id": "s", "prompt": "What runs here?", "last_assistant_message": "Nothing."}

    def call(event: str) -> None:
        words = [*SHIM, "--home", str(home), "hook", event]
        done = subprocess.run(words, input=json.dumps(given), capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    (home / "remote-away").touch()
    if event == "Stop":
        call("UserPromptSubmit")
    if name != "known to be away":
        (home / "remote-away").unlink()
    before, began = os.times(), time.perf_counter()
    call(event)
    took, after = (time.perf_counter() - began) * 1000, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return took, cpu * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=5)
    parser.add_argument("--agents", type=int, default=4, help="of each home")
    parser.add_argument("--partition", type=float, default=60.0)
    parser.add_argument("--quiet", type=float, default=15.0, help="seconds between the faults")
    parser.add_argument("--hooks", action="store_true", help="only the hooks")
    given = parser.parse_args()
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        table(["server", "hook", "p50 ms", "p95 ms", "CPU"], hooks_away(folder, 20))
        if given.hooks:
            return
        url = with_connections(folder, given.homes * given.agents * 3 + 50)
        for home in range(given.homes):
            for group in ("main", f"team{home}"):
                with Memory.open(folder / f"home{home}", Scope(group), overrides=settings(url)) as memory:
                    memory.init()
        team = Team(folder, url, given.homes, given.agents)
        try:
            seen = live(team, folder / "postgres", given.partition, given.quiet)
        finally:
            team.stop()
        time.sleep(10)
        print(f"\n{given.homes} homes with {given.agents} agents each\n")
        table(["fault", "acknowledged until its end"], [list(one) for one in seen])
        print()
        rows: list[list[Any]] = compared(team)
        table(["ten seconds later", ""], rows)
        send(folder / "postgres", signal.SIGINT)
        time.sleep(3)


if __name__ == "__main__":
    main()
