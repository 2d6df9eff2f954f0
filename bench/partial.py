"""Search while embedding still runs: LoCoMo with vectors of a random part of its turns.

    python bench/partial.py [DATA] [--models DIR] [--keep DIR]

R@5 and R@10 of questions of categories 1 to 4, by words alone and with vectors of a quarter, a half, three quarters and
all of the passages. No part may be below words alone.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from pathlib import Path

from locomo import DATA, MODES, Conversation, _conversation, _main_figure, _measure, _write
from measure import table
from nanoclaw_memory.memory import Memory

SHARES = (0.25, 0.5, 0.75, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, nargs="?", default=DATA)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument(
        "--keep", type=Path, help="keep the memories here, so that a second run embeds nothing"
    )
    options = parser.parse_args()
    talks = [_conversation(sample) for sample in json.loads(options.data.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory() as scratch:
        full = options.keep or Path(scratch) / "full"
        for talk in talks:
            _write(full / talk.name, talk, options.models)
        rows = [figures("words alone", full, talks, MODES["keyword"])]
        for share in SHARES:
            part = Path(scratch) / f"{share}"
            for talk in talks:
                shutil.copytree(full / talk.name, part / talk.name, symlinks=True)
                keep_vectors(part / talk.name, share)
            rows.append(figures(f"vectors of {share:.0%}", part, talks, {}))
    table(["", "R@5", "R@10"], rows)


def keep_vectors(home: Path, share: float) -> None:
    """Delete the other vectors, as if they had not been made yet."""
    chosen = random.Random(5)  # the same part every time
    with Memory.open(home) as memory:
        database = memory.group.database("index")
        rows = database.query("SELECT id FROM vectors ORDER BY id")
        gone = [{"id": number} for (number,) in rows if chosen.random() >= share]
        with database.transaction():
            database.execute_many("DELETE FROM vectors WHERE id = :id", gone)


def figures(name: str, root: Path, talks: list[Conversation], overrides: dict[str, str]) -> list[object]:
    found = _main_figure(_measure(root, talks, overrides)["turn"])
    return [name, f"{found.mean('r5'):.3f}", f"{found.mean('r10'):.3f}"]


if __name__ == "__main__":
    main()
