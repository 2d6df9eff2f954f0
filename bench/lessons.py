"""Which lessons a message calls for: how many of those it needs are injected, and how many others.

    python bench/lessons.py [--models DIR] [--sweep]

bench/data/lessons.txt is our own: lessons, messages that ask for the same thing again in other words (close), messages
to which a lesson applies although they share no words with it (far), and near misses, most of which share a word on
purpose. Each half is a memory that holds the half's lessons; every message may get three. Odd lessons are the tune half
(`--sweep` shows how NEAR and FAR were chosen there), even ones the held-out half. `unrelated` is the mean cosine of the
tune half's messages with each other: what a text has that is about something else.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nanoclaw_memory.lessons import matching
from nanoclaw_memory.lessons.matching import Reach
from nanoclaw_memory.providers.calibration import calibration
from nanoclaw_memory.providers.judge import Judge, shared_judge
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.types import Lesson

DATA = Path(__file__).parent / "data" / "lessons.txt"
MODELS = Path(__file__).parent.parent / ".venv" / "models"
NEVER = Reach(2.0)
Vectors = npt.NDArray[np.float32]


class Half(NamedTuple):
    """Lessons, and messages as (kind, text, the lesson it stands under)."""

    lessons: list[Lesson]
    messages: list[tuple[str, str, int]]


def read() -> tuple[Half, Half]:
    halves = Half([], []), Half([], [])
    number = -1
    for line in DATA.read_text(encoding="utf-8").splitlines():
        kind, text = line[0], line[2:]
        if kind == "=":
            number += 1
            trigger, _, lesson = text.partition(" | ")
            halves[number % 2].lessons.append(Lesson(number, trigger, lesson, "", 1.0, 0, "active"))
        elif kind in "+*-":
            halves[number % 2].messages.append((kind, text, number))
    return halves


def cosines(half: Half, embedder: LocalEmbedder) -> list[dict[int, float]]:
    """How near each lesson is to each message."""
    known = embedder.embed_documents([f"{one.trigger}\n{one.lesson}" for one in half.lessons])
    asked = np.array([embedder.embed_query(text) for _, text, _ in half.messages])
    ids = [one.id for one in half.lessons]
    return [dict(zip(ids, map(float, row), strict=True)) for row in asked @ known.T]


def unrelated(half: Half, embedder: LocalEmbedder) -> float:
    """The cosine of a message with a text that is about something else."""
    texts = [text for _, text, _ in half.messages]
    asked = np.array([embedder.embed_query(text) for text in texts])
    return float((asked @ embedder.embed_documents(texts).T).mean())


def judged(
    half: Half,
    near_by: Sequence[dict[int, float]],
    reach: Reach,
    words: bool = True,
    judge: Judge | None = None,
) -> list[float]:
    """Precision, recall of close and of far messages, silence on near misses, precision of meaning alone."""
    given = right = by_meaning = right_by_meaning = silent = 0
    hits = {"+": 0, "*": 0, "-": 0}
    for (kind, text, wanted), near in zip(half.messages, near_by, strict=True):
        if judge is None:
            found = matching.match(text if words else "", half.lessons, near, reach, 3)
        else:
            found = matching.judged_match(text, half.lessons, near, reach, 3, judge)
        good = [one for one in found if one.lesson.id == wanted and kind != "-"]
        given, right = given + len(found), right + len(good)
        hits[kind] += bool(good)
        silent += kind == "-" and not found
        by_meaning += sum(one.why.startswith("meaning") for one in found)
        right_by_meaning += sum(one.why.startswith("meaning") for one in good)
    number = {kind: sum(one[0] == kind for one in half.messages) for kind in hits}
    return [
        right / max(given, 1),
        hits["+"] / number["+"],
        hits["*"] / number["*"],
        silent / number["-"],
        right_by_meaning / max(by_meaning, 1),
    ]


def row(name: str, values: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |"


def sweep(half: Half, near_by: Sequence[dict[int, float]], base: float) -> None:
    """The tune half at other values."""

    def above(share: float) -> float:
        return base + share * (1 - base)

    for near in np.arange(0.20, 0.46, 0.02):
        print(row(f"NEAR {near:.2f}, no FAR", judged(half, near_by, Reach(above(near)))))
    for far in np.arange(0.0, 0.31, 0.02):
        print(row(f"FAR {far:.2f}, no NEAR", judged(half, near_by, Reach(2.0, above(far)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--sweep", action="store_true")
    arguments = parser.parse_args()
    local = LocalEmbedder(*embedder(arguments.models))
    known = calibration(local.identity.key)
    tune, held_out = read()
    base = unrelated(tune, local)
    print(f"unrelated: {base:.3f} (in use: {known.unrelated})\n")
    print(
        "| half | precision | recall, close | recall, far | silent on near misses | precision of meaning alone |"
    )
    print("|---|---|---|---|---|---|")
    reach = matching.reach(known.unrelated, known)
    for name, half in (("tune", tune), ("held out", held_out)):
        near_by = cosines(half, local)
        print(row(f"{name}, words only", judged(half, near_by, NEVER)))
        print(row(f"{name}, words and vectors", judged(half, near_by, reach)))
        print(row(f"{name}, judge", judged(half, near_by, reach, judge=shared_judge()[0])))
        if arguments.sweep and half is tune:
            sweep(half, near_by, base)


if __name__ == "__main__":
    main()
