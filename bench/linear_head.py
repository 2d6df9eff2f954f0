"""A linear head on the embedder's vectors: what the judge is compared with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))

from common import auc

from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder

RIDGES = (10.0, 100.0, 1000.0)


class Linear:
    """Logistic regressions on the embedder's vectors."""

    def __init__(self, models: Path, kept: Path | None) -> None:
        self._embedder = LocalEmbedder(*embedder(models))
        self._kept = kept
        self._vectors: dict[str, np.ndarray] = {}
        if kept and kept.exists():
            with np.load(kept) as stored:
                self._vectors = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))

    def keep(self) -> None:
        if self._kept:
            np.savez(self._kept, texts=list(self._vectors), vectors=np.stack(list(self._vectors.values())))

    def vectors(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """One row a text; of a pair both, their difference and their product."""
        texts = {text for pair in pairs for text in pair if text} - self._vectors.keys()
        for text in sorted(texts):
            self._vectors[text] = self._embedder.embed_documents([text])[0]
        one = np.stack([self._vectors[text] for text, _ in pairs])
        if not any(other for _, other in pairs):
            return one
        two = np.stack([self._vectors[other] if other else np.zeros(one.shape[1]) for _, other in pairs])
        return np.hstack([one, two, np.abs(one - two), one * two * 20])

    def learn(self, given: Sequence[tuple[str, tuple[str, str], bool]]) -> Callable[[np.ndarray], np.ndarray]:
        """A scorer from author, texts and label; the ridge is that which does best on the last author."""
        x = self.vectors([pair for _, pair, _ in given])
        y = np.array([right for *_, right in given], dtype=float)
        mean, spread = x.mean(0), x.std(0) + 1e-6
        x = np.hstack([(x - mean) / spread, np.ones((len(x), 1))])
        last = np.array([author == given[-1][0] for author, *_ in given])
        best = RIDGES[1]
        if 0 < last.sum() < len(given):
            made = {ridge: fit(x[~last], y[~last], ridge) for ridge in RIDGES}
            best = max(RIDGES, key=lambda ridge: auc(y[last].tolist(), (x[last] @ made[ridge]).tolist()))
        weights = fit(x, y, best)
        return lambda rows: np.hstack([(rows - mean) / spread, np.ones((len(rows), 1))]) @ weights


def fit(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights by Newton's method."""
    weights = np.zeros(x.shape[1])
    shrink = np.full(x.shape[1], ridge)
    shrink[-1] = 1e-6
    for _ in range(12):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        curve = (x * (p * (1 - p) + 1e-6)[:, None]).T @ x + np.diag(shrink)
        step = np.linalg.solve(curve, x.T @ (y - p) - shrink * weights)
        weights += step
        if np.abs(step).max() < 1e-4:
            break
    return weights
