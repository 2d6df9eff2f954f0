"""Sixty questions over a sample workspace: keyword only, graph only, both; with and without boot files.

Repeat: .venv/bin/python bench/recall60.py [--misses]

A question counts when every expected answer stands in the texts returned (six hits, 700 characters each). The
graph holds only what `graph seed` and the ingestion of the daily logs read out of the same files; nothing was
entered by hand. Around the seven written logs stand 120 generated ones that use the same names and words and
hold no answer, so that six hits are a small share of the memory. "Without boot files" leaves out what an agent
has in its context anyway, and asks only the
questions whose answer still stands in some file.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from measure import table
from nanoclaw_memory.memory import Memory, evaluation
from nanoclaw_memory.store.keywords import terms_of

DATA = Path(evaluation.__file__).parent / "sixty_questions"
ALWAYS_LOADED = (
    "SOUL.md",
    "USER.md",
    "IDENTITY.md",
    "TOOLS.md",
    "HEARTBEAT.md",
    "MEMORY.md",
    "memory/active-context.md",
)
TOP = 6
SNIPPET = 700
Search = Callable[[str], list[str]]


def sections(text: str) -> list[str]:
    """A file's parts, each with its heading."""
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("#") and parts[-1]:
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts if part]


def keyword_search(files: list[Path]) -> Search:
    """Plain FTS5 over the files' sections: porter, any of the words, bm25."""
    import apsw

    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE parts USING fts5(text, tokenize='porter unicode61')")
    for path in files:
        for part in sections(path.read_text(encoding="utf-8")):
            connection.execute("INSERT INTO parts VALUES (?)", (part,))

    def search(query: str) -> list[str]:
        asked = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms_of(query))
        rows = connection.execute(
            "SELECT text FROM parts WHERE parts MATCH ? ORDER BY rank LIMIT ?", (asked, TOP)
        )
        return [row[0][:SNIPPET] for row in rows]

    return search


def prepared(root: Path, without_boot: bool) -> tuple[Memory, list[Path]]:
    """A home with the workspace, its graph filled from the files, its index built."""
    memory = Memory.open(root / "home")
    memory.init()
    workspace = memory.home.workspace("main")
    shutil.rmtree(workspace)
    shutil.copytree(DATA / "workspace", workspace)
    if without_boot:
        for name in ALWAYS_LOADED:
            (workspace / name).unlink()
    distract(workspace)
    files = sorted(workspace.rglob("*.md"))
    memory.graph.seed(memory.home)
    for path in files:
        relative = path.relative_to(workspace).as_posix()
        if path.name[:4].isdigit():
            memory.graph.ingest(relative, path.read_text(encoding="utf-8"))
    return memory, files


def distract(workspace: Path) -> None:
    """Routine logs of the four months before: the same people, projects and words, none of the answers."""
    dice = random.Random(60)
    who = ["Priya", "Dag", "Sunniva", "Jonas", "Tilda", "Kofi", "Birgit", "Otto", "Lea"]
    what = ["Tidewater", "Gridlock", "Lanterna", "maren", "the printer", "the guest wifi", "the buoys"]
    did = [
        "asked about {what}; answered by mail",
        "and Marta talked about the phone bill and the address list",
        "looked at the runtime of {what}, nothing unusual",
        "wants to postpone the release of {what} by a day or two",
        "sent notes on the backup, the port scan and the certificates of {what}",
        "found a typo in the deploy docs of {what}",
        "birthday present: still no idea",
        "works from home, name day cake in the office",
    ]
    day = date(2025, 10, 6)
    for number in range(120):
        lines = [f"- {dice.choice(who)} {dice.choice(did).format(what=dice.choice(what))}" for _ in range(6)]
        name = (day + timedelta(days=number)).isoformat()
        (workspace / "memory" / f"{name}.md").write_text(f"# {name}\n\n" + "\n".join(lines) + "\n", "utf-8")


def answered(query: dict[str, object], texts: list[str]) -> bool:
    whole = " ".join("\n".join(texts).casefold().split())
    return all(str(answer).casefold() in whole for answer in query["answer"])  # type: ignore[attr-defined]


def run(without_boot: bool, show_misses: bool) -> tuple[int, dict[str, dict[str, int]]]:
    queries = json.loads((DATA / "queries.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        memory, files = prepared(Path(folder), without_boot)
        everything = [path.read_text(encoding="utf-8") for path in files]
        queries = [q for q in queries if answered(q, everything) and not (without_boot and q.get("boot"))]
        memory.index()

        def graph(query: str) -> list[str]:
            return [hit.text[:SNIPPET] for hit in memory.graph.search(query, TOP).hits]

        def files_only(query: str) -> list[str]:
            return [hit.text[:SNIPPET] for hit in memory.search(query, TOP).hits]

        keyword = keyword_search(files)
        searches: dict[str, Search] = {
            "BM25 only": keyword,
            "graph only": graph,
            "graph + BM25": lambda query: graph(query) + keyword(query),
            "graph + our search": lambda query: graph(query) + files_only(query),
        }
        found: dict[str, dict[str, int]] = {}
        for name, search in searches.items():
            for query in queries:
                texts = search(query["query"])
                hit = answered(query, texts)
                found.setdefault(name, {}).setdefault("first", 0)
                found[name]["first"] += answered(query, texts[:1])
                found.setdefault(name, {}).setdefault(query["category"], 0)
                found[name][query["category"]] += hit
                if show_misses and not hit:
                    print(f"missed by {name}: {query['query']}", file=sys.stderr)
        memory.close()
    return len(queries), found


def main() -> None:
    for without_boot in (False, True):
        count, found = run(without_boot, "--misses" in sys.argv)
        categories = [name for name in next(iter(found.values())) if name != "first"]
        print(f"\n{'Without the boot files' if without_boot else 'All files'}: {count} questions\n")
        rows = [
            [
                name,
                f"{100 * sum(hits[category] for category in categories) / count:.1f} %",
                f"{100 * hits['first'] / count:.1f} %",
                *(hits[category] for category in categories),
            ]
            for name, hits in found.items()
        ]
        table(["method", "in six hits", "in the first", *categories], rows)


if __name__ == "__main__":
    main()
