"""What the screens of the page cost the server, and how much of them travels.

    python bench/web.py [--passages 10000] [--facts 2000] [--proposals 500] [--runs 15] [--poison DIR]

A home is filled and indexed by words (no model). A real server answers; its CPU is that of all its threads, in
nanoseconds, before and after each request. "First" is the first request of a screen after the start of the server,
"step" the median of those that follow. Bytes are compressed, as a browser gets them; "with assets" adds what a browser
that has nothing of ours yet must fetch. With --poison every text of that data is put on a page, and each screen that
shows it is checked: no tag of a text may become one of the page.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import httpx2

from measure import table
from nanoclaw_memory.interfaces.web.sessions import PageSessions
from nanoclaw_memory.memory import Memory

NAMES = ("Keystone", "Harbour", "Lantern", "Meadow", "Orchard", "Quarry", "Summit", "Willow")
TOPICS = ("deployment", "invoice", "migration", "birthday", "garden", "database", "holiday", "meeting")
SCREENS = (
    "/ /review /review?page=7 /search /search?q=harbour+migration /search?q=who+spoke+of+the+garden&kind=files /turn "
    "/graph /graph?entity=Hub /graph/data?entity=Hub /timeline /timeline?day=2026-01-01 /changes?since=2026-01-01 "
    "/pages /pages/MEMORY.md /pages/memory/2026-01-01.md?view=lines /pages/MEMORY.md?view=edit /entries /lessons "
    "/conversations /conversations/fill /groups /forget /settings /audit"
).split()
COMMAND = [sys.executable, "-m", "nanoclaw_memory"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--facts", type=int, default=2000)
    parser.add_argument("--proposals", type=int, default=500)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--poison", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        fill(home, given.passages, given.facts, given.proposals)
        with served(home) as (process, url):
            measure(home, process.pid, url, given.runs)
            if given.poison:
                attack(home, url, given.poison)


def fill(home: Path, passages: int, facts: int, proposals: int) -> None:
    """A home with logs, facts around a hub, entries, exchanges and open proposals."""
    with Memory.open(home, overrides={"embeddings.provider": "none"}) as memory:
        memory.init()
        talk = memory.for_session("fill")
        folder, per_day = home / "workspace" / "memory", 40
        for day in range(passages // per_day):
            when = date(2026, 1, 1) - timedelta(days=day)
            lines = [
                f"- [context|i=0.5] {NAMES[(n + day) % 8]} spoke of the {TOPICS[n % 8]} and item {day * per_day + n}: "
                + " ".join(f"word{(n * 31 + k * 7 + day) % 5000}" for k in range(12))
                for n in range(per_day)
            ]
            (folder / f"{when}.md").write_text(f"# {when}\n\n" + "\n".join(lines) + "\n")
        for number in range(facts):
            memory.graph.upsert(f"Person{number % 400}", f"key{number // 400}", f"value {number}", "person")
        for number in range(150):
            memory.graph.relate("Hub", "knows", f"Person{number}")
        for number in range(200):
            memory.store(f"{NAMES[number % 8]} keeps item {number} in the {TOPICS[number % 7]}", "fact")
            said = f"What of {TOPICS[number % 8]} {number}?", f"{NAMES[number % 8]} has it."
            talk.after_turn(*said)
        for number in range(proposals):
            text = f"{NAMES[number % 8]} decided on the {TOPICS[number % 8]} number {number}"
            memory.group.proposals.propose(
                "promotion",
                {
                    "file": "MEMORY.md",
                    "section": "Decisions",
                    "text": text,
                    "sources": [f"memory/2026-01-01.md:{number % 40 + 3}"],
                },
                why="importance 0.9",
                key=text,
                moment=memory.group.moment(),
                diff=f"## Decisions\n+ {text}",
                origin="owner",
                effect="stands in MEMORY.md",
            )
        memory.index()


@contextmanager
def served(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of the home, by words only."""
    options = [
        "--home",
        str(home),
        "--json",
        "--set",
        "embeddings.provider=none",
        "serve",
        "--port",
        "0",
        "--no-watch",
    ]
    subprocess.run(
        [*COMMAND, "--home", str(home), "config", "set", "embeddings.provider", "none"], check=True
    )
    process = subprocess.Popen([*COMMAND, *options, "--no-upkeep"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, str(json.loads(process.stdout.readline())["url"])
    finally:
        process.terminate()
        process.wait(30)


def cpu_of_threads(pid: int) -> float:
    """Milliseconds of CPU that all threads of a process have used."""
    used = (task.joinpath("schedstat").read_text().split()[0] for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(map(int, used)) / 1e6


def browser(home: Path, url: str) -> httpx2.Client:
    """A browser that is logged in."""
    client = httpx2.Client(
        base_url=url, headers={"Accept-Encoding": "gzip"}, follow_redirects=True, timeout=60
    )
    client.get(f"/open/{PageSessions(home).new_link()}")
    return client


def size_of(answer: httpx2.Response) -> int:
    return int(answer.headers["content-length"])


def measure(home: Path, pid: int, url: str, runs: int) -> None:
    """CPU and bytes of each screen."""
    client = browser(home, url)
    rows = []
    for path in SCREENS:
        used, answer = [], client.get("/healthz")
        for _ in range(runs + 1):
            before = cpu_of_threads(pid)
            answer = client.get(path)
            used.append(cpu_of_threads(pid) - before)
            assert answer.status_code == 200, (path, answer.status_code)
        assets = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text))
        whole = size_of(answer) + sum(size_of(client.get(asset)) for asset in assets)
        step = statistics.median(used[1:])
        rows.append([path, used[0], step, max(used[1:]), size_of(answer) / 1024, whole / 1024])
    table(["screen", "first, CPU ms", "step, CPU ms", "worst step", "KB", "KB with assets"], rows)
    token = re.search(r'name="csrf" value="(\w+)"', client.get("/").text)
    assert token is not None
    ids = re.findall(r'value="reject (prop-\w+)"', client.get("/review").text)
    acts: dict[str, tuple[str, Callable[[int], dict[str, str]]]] = {
        "reject one of the proposals": ("/review", lambda n: {"decide": f"reject {ids[n]}"}),
        "inspect a turn": ("/turn", lambda n: {"message": f"Who spoke of the garden {n}?"}),
        "write a line": ("/write", lambda n: {"text": f"A line {n}"}),
    }
    rows = []
    for name, (path, fields) in acts.items():
        used = []
        for number in range(8):
            before = cpu_of_threads(pid)
            form = {"csrf": token[1], **fields(number)}
            answer = client.post(path, data=form, headers={"Origin": url})
            used.append(cpu_of_threads(pid) - before)
            assert answer.status_code == 200, (path, answer.status_code)
        rows.append([name, used[0], statistics.median(used[1:]), max(used[1:])])
    print()
    table(["act, with the screen that follows", "first, CPU ms", "step, CPU ms", "worst step"], rows)


def attack(home: Path, url: str, data: Path) -> None:
    """Put every text on pages and look for a tag that is not ours."""
    texts = [
        text for path in sorted(data.rglob("*.json*")) for text in texts_in(path.read_text(encoding="utf-8"))
    ]
    texts += ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</textarea><script>1</script>"]
    client, broken = browser(home, url), 0
    for number in range(0, len(texts), 50):
        name = f"memory/attack-{number}.md"
        part = texts[number : number + 50]
        (home / "workspace" / name).write_text("# Attack\n\n" + "\n\n".join(part) + "\n")
        for view in ("read", "lines", "edit"):
            page = client.get(f"/pages/{name}?view={view}").text
            tags = set(re.findall(r"<(script|img|iframe|svg|object|embed|style|meta http)\b[^>]*", page))
            foreign = [tag for tag in re.findall(r"<script[^>]*>", page) if "/static/" not in tag]
            hidden = view != "edit" and re.search(r"[\u202a-\u202e\x1b]", page)
            broken += bool(tags - {"script"} or foreign or hidden)
    shown = f"{len(texts)} texts of attacks on {len(texts) // 50 + 1} pages, three views each"
    print(f"\n{shown}: {broken} views show more than text")


def texts_in(raw: str) -> list[str]:
    """Every longer text in JSON or JSON lines."""
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, str) and len(value) > 15:
            found.append(html.unescape(value))
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(one)

    for part in [raw] if raw.lstrip().startswith("[") else raw.splitlines():
        try:
            walk(json.loads(part))
        except ValueError:
            continue
    return found


if __name__ == "__main__":
    main()
