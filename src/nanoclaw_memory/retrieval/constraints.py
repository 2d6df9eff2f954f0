"""Find a person's constraints (a diet, an allergy, a wheelchair, a fear, a day off) that a message's request
touches.

For six subjects three linear heads read vectors of multilingual-e5-small. One recognises a request on the subject. The
second is used as a search vector: its weights are the direction in which statements lie that somebody cannot or may not
do something. The third reads the sentences and clauses of what the second found. `training/constraints.py` trains them;
`constraints.json` contains them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import sentences

if TYPE_CHECKING:
    from nanoclaw_memory.store.vector_block import Floats

FILE = Path(__file__).with_name("constraints.json")
MOST, SCALE = 40.0, 127  # the largest weight, and its code
ASKED, STATED = 0.4, 0.3  # minimal probabilities of a request and of a constraint
EACH = 20  # passages of a subject that are read
MOST_READ, MOST_CLAUSES = 1_200, 16  # characters and clauses of a passage
FEWEST_WORDS = 2  # of a clause
_CLAUSE = regex(r"(?:[,;:!]|\s[–—-])\s+")


class Head(msgspec.Struct, frozen=True):
    """The weights of a linear head in one byte each."""

    weights: bytes
    shift: float

    @property
    def direction(self) -> Floats:
        return _direction(self.weights)

    def probability(self, vector: Floats) -> float:
        return _probability(float(self.direction @ vector) + self.shift)


class ConstraintSubject(msgspec.Struct, frozen=True):
    """A subject of constraints."""

    stated: Head
    clause: Head
    asked: Head


def centred(vector: Floats) -> Floats:
    """Return a question's vector less the mean of its kind."""
    import numpy as np

    from nanoclaw_memory.retrieval.gate import gate_weights  # which imports the candidates that use this

    apart = vector - np.array(gate_weights().centres.question, dtype=np.float32)
    return cast("Floats", apart / (np.linalg.norm(apart) or 1.0))


def asked_subjects(vector: Floats) -> list[str]:
    """Return the subjects of which a message's vector asks for something."""
    asking = centred(vector)
    return [name for name, one in _subjects().items() if one.asked.probability(asking) >= ASKED]


def near_constraints(
    vector: Floats, nearest: Callable[[Floats, int], list[tuple[int, float]]]
) -> dict[str, list[int]]:
    """Return for each subject of which a vector asks for something the passages that may state a constraint on it,
    the likeliest first.
    """
    found: dict[str, list[int]] = {}
    for name in asked_subjects(vector):
        direction = _subjects()[name].stated.direction
        length = float((direction @ direction) ** 0.5)  # a database may search by angle only
        found[name] = [passage for passage, _ in nearest(direction / length, EACH)]
    return found


def read_clauses(text: str) -> list[str]:
    """Return the sentences of a text and the clauses of each: what binds is often said beside something else."""
    found: dict[str, None] = {}
    for sentence in sentences(text[:MOST_READ]):
        found.setdefault(sentence)
        parts = [part.strip() for part in _CLAUSE.split(sentence)]
        found |= dict.fromkeys(part for part in parts if len(part.split()) >= FEWEST_WORDS)
    return list(found)[:MOST_CLAUSES]


def stated_constraint(subject: str, vectors: Iterable[Floats]) -> float:
    """Return how probable it is that one of the sentences and clauses states a constraint."""
    head = _subjects()[subject].clause
    return max((head.probability(centred(vector)) for vector in vectors), default=0.0)


def _probability(score: float) -> float:
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


@functools.lru_cache(maxsize=32)
def _direction(weights: bytes) -> Floats:
    import numpy as np

    return np.frombuffer(weights, np.int8).astype(np.float32) * np.float32(MOST / SCALE)


@functools.cache
def _subjects() -> dict[str, ConstraintSubject]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, ConstraintSubject])
