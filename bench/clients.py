"""What a client's model sees of us, in tokens: the schemas of tools, and the hits of a search.

    python bench/clients.py [--clients DIR] [--part shown,long]

`shown` starts each client (those of NANOCLAW_TEST_CLIENTS or DIR) with a memory of a few dozen lines and a model on
loopback that calls `memory_search` once; what it counts is in the requests to that model. `long` asks LoCoMo's
questions, whose turns are long, and counts the lines of evidence that are cut in ten hits.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory import tokens
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

ROOT = Path(__file__).parent.parent
LINES = (
    "Keystone was deployed to Frankfurt on Tuesday; the rollback plan is in the wiki",
    "Keystone's nightly backup failed because the bucket was full",
    "Mara takes over the Keystone release from Jonas in March",
    "The Keystone dashboard moved to the new monitoring host",
)
MARKS = {"claude-code": "tool_result", "codex": "function_call_output", "gemini": "functionResponse"}


def fill(home: Path) -> None:
    """A memory as an agent leaves it after some days."""
    with Memory.open(
        home, Scope(session_id="s", origin="agent"), overrides={"embeddings.provider": "none"}
    ) as memory:
        memory.init()
        for line in LINES:
            memory.write(line, "decision", 0.8)
        memory.store("Keystone deployments need the approval of the release manager", "instruction")
        memory.store("Prefers Keystone's changelog in one sentence a change", "preference")
        memory.graph.upsert("Keystone", "port", "3000", "project")
        memory.graph.relate("Mara", "manages", "Keystone")
        memory.after_turn("We decided that Keystone uses PostgreSQL 16 on port 5433", "Noted: PostgreSQL 16.")


def shown(folder: Path) -> None:
    """Tokens of schemas and of hits, as each client sends them to its model."""
    sys.path.insert(0, str(ROOT / "tests" / "interfaces"))
    import test_clients as clients  # type: ignore[import-not-found]
    from model_server import model_server, offers  # type: ignore[import-not-found]

    rows: list[list[object]] = []
    for name, mark in MARKS.items():
        home, work = folder / name, folder / name / "work"
        work.mkdir(parents=True)
        os.environ.update(HOME=str(home), NANOCLAW_HOME=str(home / "memory"))
        fill(home / "memory")
        subprocess.run(
            [sys.executable, "-m", "nanoclaw_memory", "install", name], capture_output=True, check=True
        )
        with model_server(("memory_search", {"query": "What about Keystone?", "limit": 8})) as model:
            clients.ASKERS[name](model, work, "Look it up.")
            asked = [body for _, body in model.requests if offers(body)]
        schemas = [tokens.count(json.dumps(one)) for one in _tools(asked[0])]
        result = next((text for text in clients.results_in(asked, mark) if "Keystone" in text), "")
        hits = re.findall(r"^- \[.*$", result, re.MULTILINE)
        each = tokens.count(result) / len(hits) if hits else float("nan")
        lines = [tokens.count(line) for line in hits] or [0]
        rows.append([name, len(schemas), sum(schemas), len(hits), tokens.count(result), each, max(lines)])
    table(
        ["client", "our tools", "tokens of schema", "hits", "tokens of the result", "a hit", "longest"], rows
    )


def _tools(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Our tools in a request, as the client words them."""
    for tool in body.get("tools", ()):
        inner = tool.get("functionDeclarations") or tool.get("tools") or [tool]
        yield from (one for one in inner if "nanoclaw" in str(tool.get("name")) + str(one.get("name")))


def long(folder: Path) -> None:
    """Tokens of a hit where what is found is long, and how much of the evidence is cut."""
    import locomo

    spent = hits = found = cut = 0
    for sample in json.loads(locomo.DATA.read_text(encoding="utf-8"))[:2]:
        talk = locomo._conversation(sample)
        home = folder / talk.name
        with Memory.open(home, overrides={"embeddings.provider": "none"}) as memory:
            memory.init()
            for path, text in talk.files.items():
                (home / "workspace" / path).parent.mkdir(exist_ok=True)
                (home / "workspace" / path).write_text(text)
            for question in talk.questions[:100]:
                shown = memory.search(question.text, 10, fast=True).hits
                lines = memory.fenced(shown, question.text).split("\n")
                spent, hits = spent + tokens.count("\n".join(lines)), hits + len(shown)
                told = [
                    line
                    for hit, line in zip(shown, lines[1:], strict=False)
                    if talk.turns.get((hit.path, hit.start_line)) in question.evidence
                ]
                found, cut = found + len(told), cut + sum("…" in line for line in told)
    table(["tokens a hit", "lines of evidence", "cut"], [[spent / hits, found, cut]])


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--clients", default=os.environ.get("NANOCLAW_TEST_CLIENTS", ""))
    options.add_argument("--part", default="shown,long")
    given = options.parse_args()
    os.environ["NANOCLAW_TEST_CLIENTS"] = given.clients
    with tempfile.TemporaryDirectory() as folder:
        for name, work in {"shown": shown, "long": long}.items():
            if name in given.part.split(","):
                (Path(folder) / name).mkdir()
                work(Path(folder) / name)


if __name__ == "__main__":
    main()
