"""Positions of a graph's nodes, computed here: the entity in the middle, its neighbours around it by their distance."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = 30


def positions(depths: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """A place for each node, the same for the same graph: rings first, then pushed apart and pulled by edges."""
    import numpy as np

    count = len(depths)
    angles = np.arange(count) * 2.399963  # the golden angle spreads a ring however many are on it
    places = np.stack([np.cos(angles), np.sin(angles)], 1) * np.asarray(depths, dtype=float)[:, None]
    if count < 3 or not edges:
        return [(float(x), float(y)) for x, y in places]
    ends = np.asarray(edges)
    ideal = 1.0 / np.sqrt(count) * 2
    for step in range(STEPS):
        apart = places[:, None, :] - places[None, :, :]
        squared = (apart**2).sum(2) + 0.01
        push = (apart * (ideal**2 / squared)[:, :, None]).sum(1)
        along = places[ends[:, 1]] - places[ends[:, 0]]
        pull = along * (np.sqrt((along**2).sum(1)) / ideal)[:, None]
        force = push
        np.add.at(force, ends[:, 0], pull)
        np.add.at(force, ends[:, 1], -pull)
        length = np.sqrt((force**2).sum(1))[:, None] + 1e-9
        places = places + force / length * np.minimum(length, 0.3 * (1 - step / STEPS))
    return [(round(float(x), 4), round(float(y), 4)) for x, y in places]
