"""Read the training texts, and say how well scores tell two kinds apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
TEXTS = HERE / "texts"
LIVES = sorted((HERE / "lives").glob("*.json"))


def rows(folder: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Author and line of every text of a task."""
    for path in sorted(folder.glob(f"*/{name}.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield path.parent.name, json.loads(line)


def auc(right: Sequence[bool], scores: Sequence[float]) -> float:
    """The probability that one that is right has a higher score than one that is not."""
    order = np.argsort(np.argsort(scores)) + 1.0
    yes = np.array(right, dtype=bool)
    if yes.all() or not yes.any():
        return float("nan")
    count = yes.sum()
    return float((order[yes].sum() - count * (count + 1) / 2) / (count * (~yes).sum()))


def found_at(right: Sequence[bool], scores: Sequence[float], false: float) -> float:
    """The share found where at most so many of the others are taken for one."""
    yes, values = np.array(right, dtype=bool), np.array(scores)
    limit = np.quantile(values[~yes], 1 - false)
    return float((values[yes] > limit).mean())
