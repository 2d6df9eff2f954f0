"""Random kill -9 over all writers, and a soak of `ncm serve` with its memory curve.

    python bench/faults.py [--kills 1000] [--minutes 8] [--soak 120] [--clients 8] [--models DIR]

Writers of every kind run at once on one home, each in a process that writes until it is killed at a random moment.
What it acknowledged before must be there afterwards: nothing lost, nothing twice, every database sound, no write
counted as lost, the audit log unbroken, what was forgotten gone. Restores are killed on a home of their own: the next
command must find the old state or the new one, never both. The soak asks a server for so many seconds with ever new
sessions and reports its resident memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory import Memory, Scope
from nanoclaw_memory.errors import NanoClawError

SETTINGS = {"embeddings.provider": "none", "judge.enabled": "false", "privacy.redactSecrets": "false"}
LONGEST = 0.5  # seconds that a writer lives
LONGER = {
    "exchange": 2.0,
    "forget": 6.0,
    "upkeep": 6.0,
    "index": 3.0,
    "checkpoint": 1.5,
}  # what takes longer is killed later
LANES = 3
PAUSE = 0.01  # between writes, so that the home does not outgrow the machine
WORDS = "anna bert oslo bergen ferry phone invoice garden tower window contract salary doctor school".split()
COLOURS = ("grey", "white")

Act = Callable[[Memory, str], object]


# ---- the writers ----


def said(token: str) -> str:
    made = random.Random(token)
    return f"{token} {' '.join(made.sample(WORDS, 5))}"


def spool(memory: Memory, token: str) -> None:
    memory.conversations.note("prompt", said(token))
    memory.conversations.note("answer", "Noted.")


def forget(memory: Memory, token: str) -> None:
    memory.write(said(token))
    memory.forget(text=token, agreed=lambda pages: True)


def message(memory: Memory, token: str) -> None:
    memory.host.state.store_message(token, "c@g", said(token), "2026-01-01T00:00:00Z")


WRITERS: dict[str, Act] = {
    "write": lambda memory, token: memory.write(said(token)),
    "entries": lambda memory, token: memory.store(said(token), type="fact"),
    "exchange": lambda memory, token: memory.after_turn(said(token), "Noted."),
    "graph": lambda memory, token: memory.graph.upsert(f"Thing {token}", "key", token),
    "lessons": lambda memory, token: memory.lessons.add(f"Always say {said(token)}"),
    "host": message,
    "sdk": lambda memory, token: memory.workspace.sdk_items.extend("s", [{"content": token}]),
    "spool": spool,
    "forget": forget,
    "checkpoint": lambda memory, token: memory.workspace.checkpoint(token),
    "index": lambda memory, token: memory.index(rebuild=True),
    "upkeep": lambda memory, token: memory.upkeep.run(),
}


def opened(home: Path, session: str = "s") -> Memory:
    return Memory.open(home, Scope(session_id=session), overrides=SETTINGS)


def write_until_killed(home: Path, kind: str, number: int, acknowledge: int) -> None:
    count = 0
    while True:
        try:
            with opened(home, f"s{number}x{count}") as memory:
                while True:
                    token = f"{kind}{number}x{count}q"
                    WRITERS[kind](memory, token)
                    os.write(acknowledge, f"{token}\n".encode())
                    count += 1
                    if kind == "entries" and count % 15 == 0:
                        break  # a session may store twenty
                    time.sleep(PAUSE)
        except NanoClawError as error:
            os.write(acknowledge, f"! {error.message}\n".encode())


class Lane:
    """A writer and when it dies."""

    def __init__(self, home: Path, kind: str, number: int, chance: random.Random) -> None:
        self.kind = kind
        self.pipe, theirs = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.pipe)
            os.setpgid(0, 0)
            write_until_killed(home, kind, number, theirs)
        os.close(theirs)
        self.until = time.monotonic() + chance.uniform(0.02, LONGER.get(kind, LONGEST))
        self.told = b""

    def wait(self) -> None:
        """Read what it acknowledges until its time has come."""
        while (left := self.until - time.monotonic()) > 0:
            if select.select([self.pipe], [], [], left)[0]:
                self.told += os.read(self.pipe, 65_536)

    def kill(self) -> list[str]:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while block := os.read(self.pipe, 65_536):
            self.told += block
        os.close(self.pipe)
        return self.told.decode().split("\n")[:-1]  # the last line may be half


# ---- what must be there ----


def held(home: Path) -> dict[str, Counter[str]]:
    """The tokens in each store, with how often each is there."""
    found: dict[str, Counter[str]] = defaultdict(Counter)

    def count(kind: str, text: str) -> None:
        found[kind].update({word for word in text.replace('"', " ").split() if word.endswith("q")})

    for path in (home / "workspace" / "memory").rglob("*.md"):
        if "checkpoints" not in path.parts and "domains" not in path.parts:
            for line in path.read_text("utf-8", "replace").splitlines():
                count("write", line)
    places = {
        "entries": ("data/entries.db", "SELECT content FROM entries UNION ALL SELECT content FROM merges"),
        "exchange": ("data/continuity.db", "SELECT user_message FROM exchanges"),
        "graph": ("data/facts.db", "SELECT value FROM facts WHERE valid_to IS NULL"),
        "lessons": ("data/facts.db", "SELECT lesson_text FROM growth_vectors"),
        "host": ("store/messages.db", "SELECT content FROM messages"),
        "sdk": ("data/sdk.db", "SELECT item FROM history"),
    }
    for kind, (name, sql) in places.items():
        if (home / name).exists():
            db = sqlite3.connect(home / name)
            for (text,) in db.execute(sql):
                count(kind, text)
            db.close()
    found["spool"] = Counter(found["exchange"])
    for path in (home / "data" / "spool").glob("*"):
        for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else ():
            count("spool", line)
    with opened(home) as memory:
        found["checkpoint"] = Counter(one.name for one in memory.workspace.checkpoints())
    return found


def verdict(home: Path, acked: dict[str, list[str]]) -> tuple[Counter[str], list[str]]:
    """How many acknowledged writes of each kind are lost, and what else is wrong."""
    with opened(home) as memory:
        while memory.conversations.drain(1000):
            pass
    there = held(home)
    lost: Counter[str] = Counter()
    wrong = []
    for kind, tokens in acked.items():
        if kind in ("index", "upkeep"):
            continue
        if kind == "forget":
            lost[kind] = sum(token in there["write"] for token in tokens)
        else:
            lost[kind] = sum(token not in there[kind] for token in tokens)
        if twice := [token for token in tokens if there[kind][token] > 1]:
            wrong.append(f"{kind}: {len(twice)} writes are there twice, as {twice[0]}")
    with opened(home) as memory:
        for check in memory.admin.check_databases():
            wrong += check.problems
        wrong += memory.status().problems
        wrong += memory.entries.verify().problems
    return lost, wrong


# ---- kills ----


def kill_writers(home: Path, kills: int, until: float) -> None:
    chance = random.Random(11)
    kinds = list(WRITERS)
    acked: dict[str, list[str]] = {kind: [] for kind in kinds}
    killed: Counter[str] = Counter()
    complaints: Counter[str] = Counter()
    lanes: list[Lane] = []
    for number in range(kills + LANES - 1):
        if number < kills and time.monotonic() < until:
            lanes.append(Lane(home, kinds[number % len(kinds)], number, chance))
            if len(lanes) < LANES:
                continue
        if not lanes:
            break
        first = min(lanes, key=lambda lane: lane.until)
        lanes.remove(first)
        first.wait()
        for line in first.kill():
            if line.startswith("! "):
                complaints[f"{first.kind}: {line[2:90]}"] += 1
            else:
                acked[first.kind].append(line)
        killed[first.kind] += 1
    lost, wrong = verdict(home, acked)
    rows = [[kind, killed[kind], len(acked[kind]), lost[kind]] for kind in kinds]
    total = [sum(killed.values()), sum(map(len, acked.values())), sum(lost.values())]
    table(["writer", "kills", "acknowledged", "lost"], [*rows, ["all", *total]])
    print(f"\nother damage: {'; '.join(wrong) or 'none'}")
    print(f"errors that a writer met: {dict(complaints) or 'none'}\n")


def kill_restores(home: Path, kills: int, until: float) -> None:
    """A restore dies at a random moment; afterwards log and graph must tell of the same colour."""
    chance = random.Random(12)
    mixed = done = finished = 0
    with opened(home) as memory:
        memory.init()
        for colour in COLOURS:
            paint(memory, colour)
            memory.workspace.checkpoint(colour)
    while done < kills and time.monotonic() < until:
        wanted = COLOURS[done % 2]
        child = os.fork()
        if not child:
            with opened(home) as memory:
                memory.workspace.restore_checkpoint(wanted)
            os._exit(0)
        time.sleep(chance.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with opened(home) as memory:
            page = memory.get("USER.md").text.split()[-1]
            facts = [fact.value for fact in memory.graph.history("Heron", "colour") if not fact.valid_to]
            mixed += [page] != facts
            finished += page == wanted
            for one in memory.workspace.checkpoints():
                if one.name not in COLOURS:
                    subprocess.run(["rm", "-r", one.path], check=True)
            paint(memory, COLOURS[1 - done % 2])
        done += 1
    print(
        f"restores: {done} kills, {finished} new and {done - finished} old states, {mixed} mixed\n",
        flush=True,
    )


def paint(memory: Memory, colour: str) -> None:
    (memory.home.workspace("main") / "USER.md").write_text(f"The heron is {colour}\n")
    memory.graph.upsert("Heron", "colour", colour)


# ---- soak ----


class Soak:
    """A server, clients that keep asking it, and its resident memory."""

    def __init__(self, home: Path, models: Path | None) -> None:
        self.home = home
        run = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home)]
        subprocess.run([*run, "init"], check=True, capture_output=True)
        if models:
            (home / "models").symlink_to(models)
        self.server = subprocess.Popen(
            [*run, "--json", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        assert self.server.stdout is not None
        self.url = json.loads(self.server.stdout.readline())["url"]
        self.token = (home / "token").read_text().strip()
        self.asked: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def ask(self, path: str, body: dict[str, Any] | None, session: str) -> None:
        headers = {"Authorization": f"Bearer {self.token}", "X-NanoClaw-Session": session}
        raw = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            f"{self.url}{path}",
            raw,
            {**headers, "Content-Type": "application/json"},
            method="POST" if raw else "GET",
        )
        kind = path.split("?")[0]
        try:
            urllib.request.urlopen(request, timeout=60).read()
            self.asked[kind] += 1
        except OSError as error:
            self.failed[f"{kind}: {error}"] += 1

    def client(self, number: int, until: float) -> None:
        chance = random.Random(number)
        for count in range(10**9):
            if time.monotonic() > until:
                return
            words = "%20".join(chance.sample(WORDS, 3))
            session = f"c{number}-{count // 5}"  # a session ends after a few turns, as agents' do
            text = f"{words.replace('%20', ' ')} {chance.randrange(10**6)}"
            for path, body in (
                ("/api/v1/sessions/start", {}) if count % 5 == 0 else ("/api/v1/status", None),
                ("/api/v1/turns/before", {"message": f"What about {text}?"}),
                ("/api/v1/turns/after", {"user_message": f"Remember {text}", "agent_response": "Noted."}),
                (f"/api/v1/search?query={words}", None),
                (f"/api/v1/graph/search?query={words}", None),
                ("/api/v1/log", {"content": text}),
                (f"/api/v1/recall?query={words}", None),
            ):
                self.ask(path, body, session)

    def resident(self) -> float:
        """Megabytes of memory that the server occupies."""
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000


def soak(home: Path, seconds: float, clients: int, models: Path | None) -> None:
    work = Soak(home, models)
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=work.client, args=(number, until)) for number in range(clients)]
    curve = [(0.0, work.resident(), 0)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    while time.monotonic() < until:
        time.sleep(max(seconds / 12, 1))
        curve.append((time.monotonic() - began, work.resident(), sum(work.asked.values())))
    for thread in threads:
        thread.join()
    work.server.send_signal(signal.SIGTERM)
    code = work.server.wait(60)
    table(
        ["seconds", "resident MB", "requests"], [[f"{at:.0f}", f"{mb:.0f}", asked] for at, mb, asked in curve]
    )
    half = curve[len(curve) // 2 :]
    per = (half[-1][1] - half[0][1]) / max(half[-1][2] - half[0][2], 1) * 1000
    print(f"\ngrowth in the second half: {per:.1f} MB per 1,000 requests; exit {code}")
    print(f"failed requests: {dict(work.failed) or 'none'}")


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--kills", type=int, default=1_000)
    given.add_argument("--minutes", type=float, default=8.0, help="for kills, and no longer")
    given.add_argument("--soak", type=float, default=120.0, help="seconds; 0: none")
    given.add_argument("--clients", type=int, default=8)
    given.add_argument("--models", type=Path)
    asked = given.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with opened(home) as memory:
            memory.init()
            memory.after_turn("warm", "up")  # imports happen once, before the first fork
        kill_restores(Path(folder) / "restored", asked.kills // 5, began + asked.minutes * 12)
        kill_writers(home, asked.kills - asked.kills // 5, began + asked.minutes * 60)
        print(f"{time.monotonic() - began:.0f} seconds\n", flush=True)
        if asked.soak:
            soak(Path(folder) / "served", asked.soak, asked.clients, asked.models)


if __name__ == "__main__":
    main()
