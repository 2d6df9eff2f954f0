"""Positions of a graph's nodes, computed here: the entity in the middle, its neighbours around it by their distance."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = 25


def positions(depths: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """A place for each node, the same for the same graph: rings first, then pushed apart and pulled by edges."""
    import numpy as np

    count = len(depths)
    angles = np.arange(count) * 2.399963  # the golden angle spreads a ring however many are on it
    rings = np.asarray(depths, dtype=np.float32)[:, None]
    places = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32) * rings
    if count < 3 or not edges:
        return [(float(x), float(y)) for x, y in places]
    ends = np.asarray(edges)
    ideal = 1.0 / np.sqrt(count) * 2
    for step in range(STEPS):
        # Each is pushed from each by ideal²/distance; the sum over all others is a product of matrices.
        lengths = (places**2).sum(1)
        near = ideal**2 / (lengths[:, None] + lengths[None, :] - 2 * places @ places.T + 0.01)
        push = places * near.sum(1)[:, None] - near @ places
        along = places[ends[:, 1]] - places[ends[:, 0]]
        pull = along * (np.sqrt((along**2).sum(1)) / ideal)[:, None]
        force = push
        np.add.at(force, ends[:, 0], pull)
        np.add.at(force, ends[:, 1], -pull)
        length = np.sqrt((force**2).sum(1))[:, None] + 1e-9
        places = places + force / length * np.minimum(length, 0.3 * (1 - step / STEPS))
    return [(round(float(x), 4), round(float(y), 4)) for x, y in places]
