"""Which rule or policy a message is about, and how risky a planned action is, by learnt maps of an embedder's vectors.

The vectors of a model say how alike two texts are; a rule and the task that it applies to are often not alike. Two
linear maps bring a task near to its rules and an action near to its policies; `training/affinity.py` learns them, and
`affinity.npz` contains them. They belong to one model: other embedders have none.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Vectors

FILE = Path(__file__).with_name("affinity.npz")


class Affinity(msgspec.Struct, frozen=True):
    """The learnt maps for the vectors of one model."""

    asked_mean: Vectors
    told_mean: Vectors
    asked_map: Vectors
    told_map: Vectors
    risk_weights: Vectors

    def likeness(self, asked: Vectors, told: Vectors) -> Vectors:
        """Return how near a message or an action is to each rule or policy (a row of `told`), from -1 to 1."""
        import numpy as np

        one = (asked - self.asked_mean) @ self.asked_map
        others = (told - self.told_mean) @ self.told_map
        lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(one)
        found: Vectors = others @ one / np.maximum(lengths, 1e-9)
        return found

    def risk(self, asked: Vectors) -> float:
        """Return the log odds that an action is one that policies are made for."""
        return float((asked - self.asked_mean) @ self.risk_weights[:-1] + self.risk_weights[-1])


def affinity_of(identity: str) -> Affinity | None:
    """Return the maps for an embedder, by the key of its identity; None for any other."""
    known = _learnt()
    return known[1] if identity == known[0] else None


@functools.cache
def _learnt() -> tuple[str, Affinity]:
    import numpy as np

    with np.load(FILE, allow_pickle=False) as held:
        asked_scale, told_scale = held["scales"]
        maps = Affinity(
            asked_mean=held["asked_mean"],
            told_mean=held["told_mean"],
            asked_map=held["asked_map"].astype(np.float32) * asked_scale,
            told_map=held["told_map"].astype(np.float32) * told_scale,
            risk_weights=held["risk"],
        )
        return str(held["identity"]), maps
