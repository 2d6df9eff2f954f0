"""Vectors in memory: exact search over small indexes, a one-bit sketch and exact rescoring over large."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from nanoclaw_memory.store.passage_search import Selection
from nanoclaw_memory.store.passages import Coded, Passages

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]
    _Rows: TypeAlias = tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.int8]]

EXACT_ROWS = 20_000
RESCORED = 2_000  # rows that are computed exactly after the sketch, at least
RESCORED_SHARE = 0.02  # and of all rows: the sketch errs by a share of them


def coded(fingerprints: Sequence[bytes], vectors: Floats) -> list[Coded]:
    """Vectors as they are stored: eight bits a number, with a scale of their own."""
    import numpy as np

    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / 127
    codes = np.rint(vectors / scales[:, None]).astype(np.int8)
    return [
        Coded(print_, float(scale), row.tobytes())
        for print_, scale, row in zip(fingerprints, scales, codes, strict=True)
    ]


class Matrix:
    """All vectors of one identity in one index, brought up to date by what changed."""

    def __init__(self, passages: Passages, identity: str, dimensions: int) -> None:
        self._passages = passages
        self._identity = identity
        self._dimensions = dimensions
        self._reset()

    def _reset(self) -> None:
        import numpy as np

        self._generation = self._last_vector = 0
        self.ids: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._scales: Floats = np.empty(0, dtype=np.float32)
        self._codes: npt.NDArray[np.int8] = np.empty((0, self._dimensions), dtype=np.int8)
        self._mean: Floats = np.zeros(self._dimensions, dtype=np.float32)
        self._exact: Floats | None = None
        self._sketch: Sketch | None = None

    def refresh(self) -> None:
        """Catch up with the index; costs next to nothing when it has not changed."""
        import numpy as np

        now = self._passages.generation()
        if now == self._generation:
            return
        parts = [*self._kept(), *self._batches()]
        ids = np.concatenate([part[0] for part in parts])
        order = np.argsort(ids, kind="stable") if np.any(np.diff(ids) < 0) else slice(None)
        self.ids = ids[order]
        self._scales = np.concatenate([part[1] for part in parts])[order]
        self._codes = np.concatenate([part[2] for part in parts])[order]
        self._exact = self._sketch = None
        self._mean = _mean(self._codes, self._scales)
        self._generation = now

    def _kept(self) -> Iterator[_Rows]:
        """The rows of passages that are still there."""
        import numpy as np

        gone = self._passages.removed_since(self._generation)
        if gone is None:
            self._reset()
            gone = []
        keep = ~np.isin(self.ids, np.asarray(gone, dtype=np.int64))
        yield self.ids[keep], self._scales[keep], self._codes[keep]

    def _batches(self) -> Iterator[_Rows]:
        """The new rows; in pieces, for Python's objects take more than the numbers."""
        import numpy as np

        newest = int(self.ids[-1]) if len(self.ids) else 0
        rows = self._passages.vectors(self._identity, newest, self._last_vector)
        while batch := list(itertools.islice(rows, 4_096)):
            ids, numbers, scales, codes = zip(*batch, strict=True)
            self._last_vector = max(self._last_vector, *numbers)
            yield (
                np.array(ids, dtype=np.int64),
                np.array(scales, dtype=np.float32),
                np.frombuffer(b"".join(codes), dtype=np.int8).reshape(len(batch), -1),
            )

    def similarities(self, vector: Floats, rows: npt.NDArray[np.int64]) -> Floats:
        """The cosine of these rows with the vector."""
        import numpy as np

        return _cosines(self._codes.take(rows, axis=0).astype(np.float32), vector) * self._scales[rows]

    def vector(self, passage: int) -> Floats | None:
        """The vector of one passage; None when it has none."""
        import numpy as np

        row = int(np.searchsorted(self.ids, passage))
        if row == len(self.ids) or self.ids[row] != passage:
            return None
        found: Floats = self._codes[row].astype(np.float32) * self._scales[row]
        return found

    def without(self, passages: Collection[int]) -> set[int]:
        """Which of these passages have no vector yet."""
        import numpy as np

        asked = np.fromiter(passages, dtype=np.int64)
        return set(asked[~np.isin(asked, self.ids)].tolist())

    def nearest(
        self, vector: Floats, limit: int, chosen: Selection | None = None
    ) -> tuple[list[tuple[int, float]], float]:
        """Passage ids with their cosine, best first, and the mean cosine of all rows: the background."""
        import numpy as np

        if not len(self.ids):
            return [], 0.0
        allowed = self._allowed(chosen)
        if len(self.ids) <= EXACT_ROWS:
            scores = self._all(vector)
            rows = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        else:
            rows = self._likely(vector, max(limit, RESCORED + int(RESCORED_SHARE * len(self.ids))), allowed)
            scores = self.similarities(vector, rows)
        found = scores[rows] if len(scores) == len(self.ids) else scores
        order = _best(found, limit)
        background = float(self._mean @ vector)  # the mean of cosines is the cosine with the mean
        return list(zip(self.ids[rows[order]].tolist(), found[order].tolist(), strict=True)), background

    def _allowed(self, chosen: Selection | None) -> npt.NDArray[np.bool_] | None:
        """Which rows a selection lets in; None for all."""
        import numpy as np

        if chosen is None or not (chosen.within or chosen.without):
            return None
        allowed = np.ones(len(self.ids), dtype=np.bool_)
        if chosen.within:
            sql = f"SELECT id FROM passages WHERE {chosen.within}"  # noqa: S608 (conditions of our own)
            allowed &= np.isin(self.ids, self._passages.search.ids(sql, chosen.params))
        if chosen.without:
            allowed &= ~np.isin(self.ids, self._passages.search.ids(chosen.without, chosen.params))
        return allowed

    def _all(self, vector: Floats) -> Floats:
        import numpy as np

        if self._exact is None:
            self._exact = self._codes.astype(np.float32) * self._scales[:, None]
        return _cosines(self._exact, vector)

    def _likely(
        self, vector: Floats, count: int, allowed: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.int64]:
        if self._sketch is None:
            self._sketch = Sketch(self._codes, self._scales, self._mean)
        return self._sketch.likely(vector, count, allowed)


def _best(scores: Floats, limit: int) -> npt.NDArray[np.int64]:
    """Where the highest scores are, best first, equal ones in their order."""
    import numpy as np

    if len(scores) > limit:
        least = np.partition(scores, len(scores) - limit)[-limit]
        likely = np.flatnonzero(scores >= least)
    else:
        likely = np.arange(len(scores))
    best: npt.NDArray[np.int64] = likely[np.argsort(-scores[likely], kind="stable")[:limit]]
    return best


def _cosines(rows: Floats, vector: Floats) -> Floats:
    import numpy as np

    # Not `@`: BLAS starts threads for this, which cost more than they save.
    found: Floats = np.einsum("ij,j->i", rows, vector)
    return found


def _mean(codes: npt.NDArray[np.int8], scales: Floats) -> Floats:
    """The mean vector, of a sample where there are many."""
    import numpy as np

    if not len(codes):
        return np.zeros(codes.shape[1], dtype=np.float32)
    sample = slice(None, None, max(1, len(codes) // 10_000))
    mean: Floats = (codes[sample] * scales[sample, None]).mean(axis=0).astype(np.float32)
    return mean


class Sketch:
    """One bit a number, centred: the sign says on which side of the mean a vector lies."""

    def __init__(self, codes: npt.NDArray[np.int8], scales: Floats, mean: Floats) -> None:
        import numpy as np

        self._mean = mean
        bits = np.empty((codes.shape[0], -(-codes.shape[1] // 64) * 8), dtype=np.uint8)
        for start in range(0, len(codes), 8_192):  # in pieces: the floats of all rows would not fit
            part = slice(start, start + 8_192)
            above = codes[part] * scales[part, None] > self._mean
            packed = np.packbits(above, axis=1)
            bits[part] = np.pad(packed, ((0, 0), (0, bits.shape[1] - packed.shape[1])))
        # Column by column: each word of all rows lies together, so that a scan runs through memory once.
        self._columns = np.ascontiguousarray(bits.view(np.uint64).T)

    def likely(
        self, vector: Floats, count: int, allowed: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.int64]:
        """The rows whose bits differ least from the vector's: `count`, and those that differ as little."""
        import numpy as np

        packed = np.packbits(vector > self._mean)
        words = np.pad(packed, (0, self._columns.shape[0] * 8 - len(packed))).view(np.uint64)
        differing = np.zeros(self._columns.shape[1], dtype=np.uint16)
        for column, word in zip(self._columns, words, strict=True):
            differing += np.bitwise_count(column ^ word)
        beyond = 64 * len(words) + 1
        if allowed is not None:
            differing[~allowed] = beyond
        # How many rows differ by each number of bits: cheaper than to order a million rows.
        within = np.bincount(differing, minlength=beyond + 1)[:beyond].cumsum()
        return np.flatnonzero(differing <= min(int(np.searchsorted(within, count)), beyond - 1))
