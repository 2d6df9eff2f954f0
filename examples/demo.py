"""A working memory in a minute: makes a sample home under .demo/ and runs the main job on it.

make demo
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from nanoclaw_memory.memory import Memory

HERE = Path(__file__).parent
HOME = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / ".demo" / "home"
ASKED, ANSWERED = "How do partners verify our webhooks?", "By an HMAC signature with their secret."
LATER = "What did we say about verifying webhooks?"
BOLD, DIM, PLAIN = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


STEPS = (
    ("Fetch the local embedding model once (offline, search uses words and the graph)", "models install", 2),
    ("What an agent gets at session start (first lines)", "boot", 12),
    ("Remember a decision", 'write "Webhooks move to the event bus" --tag decision -i 0.9', 2),
    ("Index the files", "index", 2),
    ("Ask in plain words", 'search "what did we decide about the database migration" -k 2', 12),
    ("Fill the knowledge graph from the files", "graph seed", 10),
    ("Ask for a fact", """graph search "When is Ida's birthday?" """, 1),
    ("A fact changes: the old value is history", "graph add Keystone port 4000 --category project", 2),
    ("… and never comes back as current", 'graph search "What port does Keystone run on?"', 2),
    (
        "Store what the agent learns, as a typed entry",
        'entries store "Prefers tea before noon" --type preference',
        2,
    ),
    ("The next session starts with a brief", "brief", 20),
    (
        "Something is said on Monday",
        f'--session monday exchange add --user "{ASKED}" --agent "{ANSWERED}"',
        2,
    ),
    ("What Friday's session gets before the model is called", f'--session friday turn "{LATER}"', 8),
    ("Would this plan break a rule we learned the hard way?", 'policy check "restart the gateway now"', 8),
    ("In a group chat private memory stays hidden", "get MEMORY.md --shared", 2),
    ("How is the memory doing?", "status", 10),
)


def main() -> None:
    """Build the sample home, then show each command as a person would type it."""
    build_home()
    print(f"{BOLD}A sample memory lives in {HOME}{PLAIN}")
    for about, command, head in STEPS:
        show(about, command.strip(), head)
    page = f".venv/bin/ncm --home {HOME}"
    print(f"\n{BOLD}Its page:{PLAIN} {page} serve    and in another terminal    {page} web")
    print(f"\n{BOLD}Yours:{PLAIN} .venv/bin/ncm init    then    .venv/bin/ncm install claude-code")


def build_home() -> None:
    """The sample workspace, with logs dated around today."""
    shutil.rmtree(HOME, ignore_errors=True)
    with Memory.open(HOME) as memory:
        workspace = memory.home.workspace("main")
        shutil.copytree(HERE / "sample", workspace, ignore=shutil.ignore_patterns("logs.json"))
        memory.init()
        today = memory.group.today
        for days, tag, importance, text in json.loads((HERE / "sample" / "logs.json").read_text()):
            day = today - timedelta(days=days)
            path = workspace / "memory" / f"{day.isoformat()}.md"
            before = path.read_text() if path.exists() else f"# {day.isoformat()}\n\n"
            path.write_text(f"{before}- [{tag}|i={importance:g}] {text}\n")


def show(about: str, command: str, head: int) -> None:
    """Run one command in a process of its own and print what it printed."""
    print(f"\n{BOLD}# {about}{PLAIN}\n{DIM}$ ncm {command}{PLAIN}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(HOME), *shlex.split(command)],
        capture_output=True,
        text=True,
        env={**os.environ, "NANOCLAW_GROUP": "main"},
    )
    lines = (done.stdout or done.stderr).splitlines()
    print("\n".join(lines[:head]) + ("\n…" if len(lines) > head else ""))


if __name__ == "__main__":
    main()
