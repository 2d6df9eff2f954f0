"""Whether turns and log lines should be chunks of their own: LoCoMo as conversations and as daily logs, cut both ways.

    python bench/grain.py [DATA] [--models DIR]

A section shows more lines than a turn, so hits are not counted but tokens: the share of the evidence lines that stand
in the first 500, 1,000 and 2,000 tokens of what a search shows (its snippets, best first).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from locomo import DATA, Conversation, _conversation, _write
from measure import table
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.retrieval import chunker
from nanoclaw_memory.tokens import estimate
from nanoclaw_memory.types import Hit

BUDGETS = (500, 1_000, 2_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, nargs="?", default=DATA)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    options = parser.parse_args()
    talks = [_conversation(sample) for sample in json.loads(options.data.read_text(encoding="utf-8"))]
    rows = []
    for kind, made in (("conversation", lambda talk: talk), ("daily log", as_log)):
        for grain, cut in (("own", own_grain), ("section", as_sections)):
            with cut(), tempfile.TemporaryDirectory() as scratch:
                shares = list(measured(Path(scratch), talks, made, options.models))
            rows.append([kind, grain, *(statistics.fmean(column) for column in zip(*shares, strict=True))])
    table(["written as", "grain", *(f"in {budget:,} tokens" for budget in BUDGETS)], rows)


def as_log(talk: Conversation) -> Conversation:
    """Each session as the log of a day, each turn as a line of it."""
    files: dict[str, str] = {}
    turns: dict[tuple[str, int], str] = {}
    for path, text in talk.files.items():
        day = Path(path).name[:10]
        log = f"memory/{day}.md"
        lines = files.get(log, f"# {day}\n").splitlines()
        for number, line in enumerate(text.splitlines(), 1):
            if (path, number) in talk.turns:
                lines.append(f"- [note|i=0.5] {line.replace('**', '')}")
                turns[log, len(lines)] = talk.turns[path, number]
        files[log] = "\n".join(lines) + "\n"
    return Conversation(talk.name, files, turns, talk.questions)


@contextmanager
def own_grain() -> Iterator[None]:
    yield


@contextmanager
def as_sections() -> Iterator[None]:
    """Logs and conversations cut like every other file, into pieces of about 400 tokens."""
    log_lines, turns = chunker._log_lines, chunker._turns
    chunker._log_lines = lambda lines, day, chunking: [
        chunker._chunk(part, "section", day)
        for section in chunker._sections(lines)
        for part in chunker._cut(section, chunking)
    ]
    chunker._turns = lambda lines: []
    try:
        yield
    finally:
        chunker._log_lines, chunker._turns = log_lines, turns


def measured(
    root: Path, talks: list[Conversation], made: Callable[[Conversation], Conversation], models: Path
) -> Iterator[list[float]]:
    for talk in map(made, talks):
        _write(root / talk.name, talk, models)
        with Memory.open(root / talk.name) as memory:
            for asked in talk.questions:
                if asked.category != 5:
                    hits = memory.search(asked.text, 50).hits
                    shown = [(estimate(hit.text), lines_of(talk, hit)) for hit in hits]
                    yield [share_in(shown, set(asked.evidence), budget) for budget in BUDGETS]


def lines_of(talk: Conversation, hit: Hit) -> set[str | None]:
    return {talk.turns.get((hit.path, line)) for line in range(hit.start_line, hit.end_line + 1)}


def share_in(shown: list[tuple[int, set[str | None]]], wanted: set[str], budget: int) -> float:
    """The share of the wanted lines in the hits that fit the budget."""
    found: set[str | None] = set()
    for tokens, lines in shown:
        budget -= tokens
        if budget < 0:
            break
        found |= lines
    return len(found & wanted) / len(wanted)


if __name__ == "__main__":
    main()
