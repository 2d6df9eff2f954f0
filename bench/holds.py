"""How often a line that still holds is called earlier.

    python bench/holds.py [--data FILE…] [--models DIR] [--cold]

The weeks of notes and talk of `needs.py` are fed, and every prompt that needs something is put to search and to the
turn. A line holds if it has no value that the life calls wrong. `needed` are such lines with what the prompt needs,
`others` the rest of them; `marked` the share of each that is called earlier or superseded.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path

from measure import table
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from needs import FOLDER, FRESH, MODELS, ROOT, feed

LIVES = [*sorted(FOLDER.glob("*.json")), FRESH, *sorted((ROOT / "training" / "lives").glob("*.json"))]
MARK = re.compile(r"\b(?:earlier|superseded)\b(?! today)")
_NEWER_FIRST = re.compile(r'^• ".*" \(\d{4}-\d\d-\d\d\); (?:earlier|superseded): ')


def lines_of(memory: Memory, asked: str, cold: bool) -> dict[str, list[tuple[str, bool]]]:
    """The lines that a person or an agent is shown, and whether each is marked."""
    hits = [(hit.text, bool(hit.mark)) for hit in memory.search(asked, 6, fast=cold).hits]
    shown = [line for block in memory.before_turn(asked).blocks for line in block.text.split("\n")[2:-1]]
    return {"search": hits, "turn": [_told(line) for line in shown]}


def _told(line: str) -> tuple[str, bool]:
    """The statement of a line of the turn without its mark and its newer statement."""
    if found := _NEWER_FIRST.match(line):
        return line[found.end() :], True
    text, opening, tail = line.rpartition(" (")
    if line.startswith("- ["):  # a recalled line has its mark before it
        tail, _, text = line.partition("] ")
        return text, bool(MARK.search(tail))
    return text or line, bool(opening) and bool(MARK.search(_outside_quotes(tail)))


def _outside_quotes(text: str) -> str:
    return "".join(text.split('"')[::2])


def rows(path: Path, overrides: dict[str, str], cold: bool) -> list[list[object]]:
    life = json.loads(path.read_text())
    wrong = {one.casefold() for prompt in life["prompts"] for one in prompt["wrong"]}
    found: defaultdict[str, dict[bool, list[bool]]] = defaultdict(lambda: {True: [], False: []})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        clock = feed(home, life, overrides)
        with Memory.open(home, clock=clock, overrides=overrides) as base:
            base.upkeep.run("ingest")
            base.index()
            base.group.resources.resident = not cold
            for number, prompt in enumerate(life["prompts"]):
                if not prompt["needs"]:
                    continue
                gold = [one.casefold() for one in prompt["gold"]]
                memory = base.for_session(f"ask-{number}", prompt["project"])
                for face, lines in lines_of(memory, prompt["text"], cold).items():
                    for text, marked in lines:
                        folded = text.casefold()
                        if not any(one in folded for one in wrong):
                            found[face][any(one in folded for one in gold)].append(marked)
    return [
        [path.stem, face, len(own[True]), _share(own[True]), len(own[False]), _share(own[False])]
        for face, own in found.items()
    ]


def _share(marked: list[bool]) -> float:
    return sum(marked) / max(len(marked), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=LIVES)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--cold", action="store_true", help="as a hook without a server: no model")
    arguments = parser.parse_args()
    overrides = {"embeddings.provider": "none"} if arguments.cold else {}
    if not arguments.cold:
        overrides["embeddings.modelPath"] = str(embedder(arguments.models)[1])
    told = [row for path in arguments.data for row in rows(path, overrides, arguments.cold)]
    for face in ("search", "turn"):
        own = [row for row in told if row[1] == face]
        needed, others = (sum(int(str(row[at])) for row in own) for at in (2, 4))
        shares = (
            sum(int(str(row[at])) * float(str(row[at + 1])) for row in own) / max(count, 1)
            for at, count in ((2, needed), (4, others))
        )
        first, second = shares
        told.append(["all", face, needed, first, others, second])
    table(["life", "face", "needed", "marked", "others", "marked"], told)


if __name__ == "__main__":
    main()
