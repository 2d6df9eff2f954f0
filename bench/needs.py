"""Whether a prompt gets what it needs, and a prompt that needs nothing gets nothing.

    python bench/needs.py [--data FILE…] [--models DIR] [--cold]

A person's weeks of files, log lines and conversations are fed at their dates; then each prompt is the first message
of a new session. `needed` is the share of prompts that need memory whose blocks contain a gold string, `useful` the
share of injected lines that do; `idle` the share of the others that get anything, with the mean of tokens.
The texts are by authors who had not seen the code.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.types import Scope
from nanoclaw_memory.workspace.log import parse_line

ROOT = Path(__file__).parent.parent
FOLDER = ROOT.parent / "shared" / "data" / "needs"
FRESH = Path(__file__).parent / "data" / "fresh" / "life_3.json"  # by a further author
MODELS = ROOT / ".venv" / "models"
NOW = datetime(2026, 3, 12, 12, 0, tzinfo=UTC)


def now_of(life: dict[str, Any]) -> datetime:
    """Noon of the day on which a life's prompts are given."""
    person = life.get("person")  # only a name in some lives, none in a merged one
    day = person.get("now") if isinstance(person, dict) else None
    return datetime.combine(date.fromisoformat(day), NOW.timetz()) if day else NOW


def feed(home: Path, life: dict[str, Any], overrides: dict[str, str]) -> FixedClock:
    """Write a life's files, and tell its log lines and exchanges at their dates, oldest first."""
    now = now_of(life)
    clock = FixedClock(now)
    with Memory.open(home, clock=clock, overrides=overrides) as memory:
        memory.init()
        for path, text in life["files"].items():
            page = memory.home.workspace("main") / path
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
    logs = [(int(days), line) for days, lines in life["logs"].items() for line in lines]
    for days, line in sorted(logs, key=lambda pair: -pair[0]):
        clock.moment = now - timedelta(days=days)
        with Memory.open(home, clock=clock, overrides=overrides) as memory:
            told = parse_line(line)
            if told is not None:
                memory.write(told.text, told.tag, told.importance)
    for one in sorted(life["exchanges"], key=lambda one: -one["days_ago"]):
        clock.moment = now - timedelta(days=one["days_ago"])
        scope = Scope(session_id=one["session"], project=one["project"])
        with Memory.open(home, scope, clock=clock, overrides=overrides) as memory:
            memory.after_turn(one["user"], one["agent"])
    clock.moment = now
    return clock


def row(path: Path, overrides: dict[str, str], resident: bool) -> list[object]:
    life = json.loads(path.read_text())
    needed: list[tuple[bool, int, int, int]] = []  # gold is there, tokens, lines, lines with gold
    idle: list[int] = []
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        clock = feed(home, life, overrides)
        with Memory.open(home, clock=clock, overrides=overrides) as base:
            base.upkeep.run("ingest")
            base.index()
            base.group.resources.resident = resident
            for number, prompt in enumerate(life["prompts"]):
                with base.for_session(f"ask-{number}", prompt["project"]) as memory:
                    turn = memory.before_turn(prompt["text"])
                tokens = sum(block.tokens for block in turn.blocks)
                wrong += any(one.casefold() in turn.text.casefold() for one in prompt["wrong"])
                if not prompt["needs"]:
                    idle.append(tokens)
                    continue
                gold = [one.casefold() for one in prompt["gold"]]
                lines = [line for block in turn.blocks for line in block.text.split("\n")[2:-1]]
                useful = sum(any(one in line.casefold() for one in gold) for line in lines)
                found = any(one in turn.text.casefold() for one in gold)
                needed.append((found, tokens, len(lines), useful))
    return [
        path.stem,
        sum(one[0] for one in needed) / len(needed),
        sum(one[1] for one in needed) / len(needed),
        sum(one[3] for one in needed) / max(sum(one[2] for one in needed), 1),
        sum(tokens > 0 for tokens in idle) / len(idle),
        sum(idle) / len(idle),
        wrong,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[*sorted(FOLDER.glob("*.json")), FRESH])
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--cold", action="store_true", help="as a hook without a server: no model")
    arguments = parser.parse_args()
    overrides = {"embeddings.provider": "none"} if arguments.cold else {}
    if not arguments.cold:
        overrides["embeddings.modelPath"] = str(embedder(arguments.models)[1])
    head = ["life", "needed", "tokens", "useful lines", "idle", "tokens", "wrong values"]
    table(head, [row(path, overrides, not arguments.cold) for path in arguments.data])


if __name__ == "__main__":
    main()
