"""Find a person's constraints (a diet, an allergy, a wheelchair, a fear, a day off) that a message's request
touches.

For six subjects two linear heads read vectors of multilingual-e5-small: one recognises a request on the subject, the
other a statement that somebody cannot or may not do something. The second is used as a search vector: its weights are
the direction in which such statements lie. `training/constraints.py` trains both; `constraints.json` contains them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from nanoclaw_memory.store.vector_block import Floats

FILE = Path(__file__).with_name("constraints.json")
MOST, SCALE = 40.0, 127  # the largest weight, and its code
ASKED, STATED = 0.4, 0.45  # minimal probabilities of a request and of a constraint
EACH = 12  # passages of a subject that are scored


class Head(msgspec.Struct, frozen=True):
    """The weights of a linear head in one byte each."""

    weights: bytes
    shift: float


class ConstraintSubject(msgspec.Struct, frozen=True):
    """A subject of constraints."""

    stated: Head
    asked: Head


def find_constraints(
    vector: Floats, nearest: Callable[[Floats, int], list[tuple[int, float]]]
) -> dict[int, float]:
    """Return the constraints on what a vector asks for, with their probabilities; none if it asks for nothing of the
    kind.
    """
    found: dict[int, float] = {}
    for subject in _subjects().values():
        if _probability(float(_direction(subject.asked.weights) @ vector) + subject.asked.shift) < ASKED:
            continue
        direction = _direction(subject.stated.weights)
        length = float((direction @ direction) ** 0.5)  # a database may search by angle only
        for passage, cosine in nearest(direction / length, EACH):
            sure = _probability(cosine * length + subject.stated.shift)
            if sure >= STATED:
                found[passage] = max(sure, found.get(passage, 0.0))
    return found


def _probability(score: float) -> float:
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


@functools.lru_cache(maxsize=16)
def _direction(weights: bytes) -> Floats:
    import numpy as np

    return np.frombuffer(weights, np.int8).astype(np.float32) * np.float32(MOST / SCALE)


@functools.cache
def _subjects() -> dict[str, ConstraintSubject]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, ConstraintSubject])
