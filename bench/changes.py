"""Whether the answer shows today's value, and never an outdated one without saying so.

    python bench/changes.py [--data FILE…] [--models DIR] [--cold]

All cases are fed into one home at their dates, oldest first: log lines, bullets of MEMORY.md, entries that an agent
stored, things said in conversations, facts; a statement may name its project, its session and the reply that it got, a
case the project in which it is asked. Then every question is put to search (six hits), graph search (six),
recall and the turn, and the lines shown are judged by the case's `current` and `retired` strings. `--cold` loads no
model. A second table counts the marks themselves: of the pairs that currency knows, how many are of one case. The texts
are by authors who had not seen the code.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.types import Scope

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data" / "changes" / "dev.jsonl"
FRESH = Path(__file__).parent / "data" / "fresh" / "changes.jsonl"  # by a further author
MODELS = ROOT / ".venv" / "models"
TODAY = datetime(2026, 3, 12, 12, 0, tzinfo=UTC)
SUPERSEDED = re.compile(
    r"supersed|replaced|no longer|formerly|until |newer:|overtaken|outdated|retracted|nicht mehr|ehemals",
    re.I,
)
CALLED = re.compile(
    r"\bsuperseded, by |\[superseded\b"
)  # our own mark; "until" may be a word of the statement
MARK = re.compile(SUPERSEDED.pattern + r"|\b(?:earlier|older|previously|was|were|früher|vorher|war)\b", re.I)
DATED = re.compile(
    r"\d{4}-\d{2}-\d{2}|\b\d+ (?:days?|weeks?|months?) ago|\byesterday\b|\btoday\b|\blast (?:week|month)\b",
    re.I,
)
Face = Callable[[str, str], list[str]]  # a question, and the project in which it is asked


def feed(home: Path, cases: Sequence[dict[str, Any]], overrides: dict[str, str]) -> Memory:
    """A home that heard every statement at its date; opened today."""
    clock = FixedClock(TODAY)
    told = sorted(
        ((statement, case) for case in cases for statement in case["statements"]),
        key=lambda pair: -pair[0]["days_ago"],
    )
    with Memory.open(home, clock=clock, overrides=overrides) as memory:
        memory.init()
    for number, (statement, case) in enumerate(told):
        clock.moment = TODAY - timedelta(days=statement["days_ago"]) + timedelta(seconds=number)
        scope = Scope(
            session_id=f"{case['id']}-{statement['session']}" if "session" in statement else f"s{number}",
            origin="agent" if statement["via"] == "entry" else "owner",
            project=statement.get("project", ""),
        )
        with Memory.open(home, scope, clock=clock, overrides=overrides) as memory:
            tell(memory, statement)
    clock.moment = TODAY
    memory = Memory.open(home, Scope(session_id="now"), clock=clock, overrides=overrides)
    memory.upkeep.run("ingest")
    memory.index()
    return memory


def tell(memory: Memory, statement: dict[str, Any]) -> None:
    """One statement by its way in."""
    text, via = statement["text"], statement["via"]
    if via == "log":
        memory.write(text.removeprefix("- "))
    elif via == "memory_md":
        with (memory.home.workspace("main") / "MEMORY.md").open("a") as page:
            page.write(text if text.startswith("- ") else f"- {text}")
            page.write("\n")
    elif via == "entry":
        memory.store(text, "fact")
    elif via == "exchange":
        memory.after_turn(text, statement.get("reply", "Noted."))
    else:
        fact = statement["fact"]
        memory.graph.upsert(fact["entity"], fact["key"], fact["value"])


def faces(memory: Memory, cold: bool) -> dict[str, Face]:
    """What a person or an agent is shown for a question, line by line."""

    asked = count()

    def there(project: str) -> Memory:  # a session of its own: none is given a line twice
        return memory.for_session(f"ask-{next(asked)}", project)

    def search(question: str, project: str) -> list[str]:
        one = there(project)
        return one.fenced(one.search(question, 6, fast=cold).hits, question).split("\n")

    def graph(question: str, project: str) -> list[str]:
        return [hit.dated for hit in there(project).graph.search(question, 6).hits]

    def recall(question: str, project: str) -> list[str]:
        return there(project).recall(question, fast=cold).text.split("\n")

    def turn(question: str, project: str) -> list[str]:
        return there(project).before_turn(question).text.split("\n")

    return {"search": search, "graph": graph, "recall": recall, "turn": turn}


def judge(lines: Iterable[str], case: dict[str, Any]) -> dict[str, bool]:
    """What is true of the lines shown for one question."""
    current = [one.casefold() for one in case["current"]]
    retired = [one.casefold() for one in case["retired"]]
    shown: list[tuple[bool, bool, str]] = []  # current, outdated, the line
    for line in lines:
        folded = line.casefold()
        has_current = any(one in folded for one in current)
        shown.append((has_current, not has_current and any(one in folded for one in retired), line))
    telling = [one for one in shown if one[0] or one[1]]
    outdated = [line for _, is_outdated, line in telling if is_outdated]
    unmarked = [line for line in outdated if not MARK.search(line)]
    return {
        "current shown": any(one[0] for one in telling),
        "outdated first": bool(telling) and telling[0][2] in unmarked,
        "only outdated": bool(unmarked) and not any(one[0] for one in telling),
        "unmarked": bool(unmarked),
        "unmarked and undated": any(not DATED.search(line) for line in unmarked),
        "called superseded": any(CALLED.search(line) for _, _, line in telling),
    }


def rows(memory: Memory, cases: Sequence[dict[str, Any]], cold: bool) -> list[list[object]]:
    changes = [
        case for case in cases if case["retired"] and case["kind"] in ("change", "revert", "retraction")
    ]
    both = [case for case in cases if case["kind"] in ("both_hold", "refinement")]
    found: list[list[object]] = []
    for name, face in faces(memory, cold).items():
        judged, wrong = (
            [
                judge(face(question, case.get("project", "")), case)
                for case in some
                for question in case["questions"]
            ]
            for some in (changes, both)
        )
        cells = [
            sum(one[key] for one in judged) / len(judged) for key in judged[0] if key != "called superseded"
        ]
        found.append([name, *cells, sum(one["called superseded"] for one in wrong) / len(wrong)])
    return found


def pairs(memory: Memory, cases: Sequence[dict[str, Any]]) -> list[list[object]]:
    """Of the pairs that are marked: how many are of one case, and of superseded ones how many of a changed value."""
    of_text = {
        one["text"].removeprefix("- "): case
        for case in cases
        for one in case["statements"]
        if "fact" not in one
    }
    of_text |= {
        f"{fact['entity']} {fact['key'].replace('_', ' ')}: {fact['value']}": case
        for case in cases
        for one in case["statements"]
        if (fact := one.get("fact"))
    }
    rows = memory.group.database("index").query(
        "SELECT c.kind, o.text, n.text FROM currency c JOIN passages o ON o.id = c.older"
        " JOIN passages n ON n.id = c.newer"
    )
    found: dict[str, list[bool]] = {}
    for kind, *texts in rows:
        older, newer = (next((of_text[told] for told in of_text if told in text), None) for text in texts)
        if older is None or newer is None:
            continue  # a fact that was read from a line
        changed = kind == "earlier" or older["kind"] in ("change", "revert", "retraction")
        found.setdefault(kind, []).append(older["id"] == newer["id"] and changed)
    return [[kind, len(right), sum(right) / len(right)] for kind, right in sorted(found.items())]


def measure(path: Path, overrides: dict[str, str], cold: bool) -> None:
    """Print both tables of one file of cases."""
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        memory = feed(Path(folder) / "home", cases, overrides)
        memory.group.resources.resident = not cold
        with memory:
            head = ["current shown", "outdated first", "only outdated", "outdated unmarked", "and undated"]
            table(["face", *head, "both hold: called superseded"], rows(memory, cases, cold))
            print()
            table(["mark", "pairs", "right"], pairs(memory, cases))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[DATA, FRESH])
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--cold", action="store_true", help="load no model")
    arguments = parser.parse_args()
    overrides = {"embeddings.provider": "none"} if arguments.cold else {}
    if not arguments.cold:
        overrides["embeddings.modelPath"] = str(embedder(arguments.models)[1])
    for path in arguments.data:
        print(f"\n{path.parent.name}/{path.name}\n")
        measure(path, overrides, arguments.cold)


if __name__ == "__main__":
    main()
