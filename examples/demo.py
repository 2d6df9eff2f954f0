"""A working memory in a minute: makes a sample home under .demo/ and runs the main job on it.

make demo
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from nanoclaw_memory.memory import Memory

HERE = Path(__file__).parent
HOME = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / ".demo" / "home"
BOLD, DIM, PLAIN = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


def main() -> None:
    """Build the sample home, then show each command as a person would type it."""
    build_home()
    print(f"{BOLD}A sample memory lives in {HOME}{PLAIN}")
    show(
        "Fetch the local embedding model once (offline, search uses words and the graph)",
        "models",
        "install",
        may_fail=True,
    )
    show("What an agent gets at session start (first lines)", "boot", head=12)
    show("Remember a decision", "write", "Webhooks move to the event bus", "--tag", "decision", "-i", "0.9")
    show("Index the files", "index")
    show("Ask in plain words", "search", "what did we decide about the database migration", "-k", "2")
    show("Fill the knowledge graph from the files", "graph", "seed")
    show("Ask for a fact", "graph", "search", "When is Ida's birthday?", head=2)
    show(
        "A fact changes: the old value is history",
        "graph",
        "add",
        "Keystone",
        "port",
        "4000",
        "--category",
        "project",
    )
    show("… and never comes back as current", "graph", "search", "What port does Keystone run on?", head=2)
    show(
        "Store what the agent learns, as a typed entry",
        "entries",
        "store",
        "Prefers tea before noon",
        "--type",
        "preference",
    )
    show("The next session starts with a brief", "brief")
    earlier = (
        "--user",
        "How do partners verify our webhooks?",
        "--agent",
        "By an HMAC signature with their secret.",
    )
    show("Something is said in one session", "--session", "monday", "exchange", "add", *earlier)
    show("What a later session gets before the model is called", "--session", "friday", "turn",
         "What did we say about webhook signatures, and who owns Keystone?")  # fmt: skip
    show(
        "Would this plan break a rule we learned the hard way?", "policy", "check", "restart the gateway now"
    )
    show("In a group chat private memory stays hidden", "get", "MEMORY.md", "--shared", may_fail=True)
    show("How is the memory doing?", "status")
    print(f"\n{BOLD}Yours:{PLAIN} .venv/bin/ncm init    then    .venv/bin/ncm install claude-code")


def build_home() -> None:
    """The sample workspace, with logs dated around today."""
    shutil.rmtree(HOME, ignore_errors=True)
    with Memory.open(HOME) as memory:
        workspace = memory.home.workspace("main")
        shutil.copytree(HERE / "sample", workspace, ignore=shutil.ignore_patterns("logs.json"))
        memory.init()
        today = memory.today()
        for days, tag, importance, text in json.loads((HERE / "sample" / "logs.json").read_text()):
            day = today - timedelta(days=days)
            path = workspace / "memory" / f"{day.isoformat()}.md"
            before = path.read_text() if path.exists() else f"# {day.isoformat()}\n\n"
            path.write_text(f"{before}- [{tag}|i={importance:g}] {text}\n")


def show(about: str, *arguments: str, head: int = 40, may_fail: bool = False) -> None:
    """Run one command in a process of its own and print what it printed."""
    print(f"\n{BOLD}# {about}{PLAIN}\n{DIM}$ ncm {' '.join(map(quoted, arguments))}{PLAIN}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(HOME), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NANOCLAW_GROUP": "main"},
    )
    lines = (done.stdout or done.stderr).splitlines()
    print("\n".join(lines[:head]) + ("\n…" if len(lines) > head else ""))
    if done.returncode and not may_fail:
        sys.exit(done.stderr)


def quoted(argument: str) -> str:
    return f'"{argument}"' if " " in argument else argument


if __name__ == "__main__":
    main()
