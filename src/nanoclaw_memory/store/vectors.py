"""Vectors in memory: exact search over small indexes, a one-bit sketch and exact rescoring over large."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias

from nanoclaw_memory.store.chunks import Chunks, Coded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]

EXACT_ROWS = 20_000
RESCORED = 2_000


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

    def __init__(self, chunks: Chunks, identity: str, dimensions: int) -> None:
        import numpy as np

        self._chunks = chunks
        self._identity = identity
        self._generation = -1
        self.ids: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.files: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._scales: Floats = np.empty(0, dtype=np.float32)
        self._codes: npt.NDArray[np.int8] = np.empty((0, dimensions), dtype=np.int8)
        self._mean: Floats = np.zeros(dimensions, dtype=np.float32)
        self._exact: Floats | None = None
        self._sketch: Sketch | None = None

    def refresh(self) -> None:
        """Catch up with the index; costs next to nothing when it has not changed."""
        import numpy as np

        now = self._chunks.generation()
        if now == self._generation:
            return
        first = self._generation < 0
        rows = list(self._chunks.vectors(self._identity, self._generation))
        keep = slice(None)
        if not first:
            gone = np.asarray(self._chunks.changed_files(self._generation), dtype=np.int64)
            keep = ~np.isin(self.files, gone)  # type: ignore[assignment]
        ids = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
        files = np.fromiter((row[1] for row in rows), dtype=np.int64, count=len(rows))
        scales = np.fromiter((row[2] for row in rows), dtype=np.float32, count=len(rows))
        codes = np.frombuffer(b"".join(row[3] for row in rows), dtype=np.int8)
        codes = codes.reshape(len(rows), self._codes.shape[1])
        order = np.argsort(joined := np.concatenate([self.ids[keep], ids]), kind="stable")
        self.ids = joined[order]
        self.files = np.concatenate([self.files[keep], files])[order]
        self._scales = np.concatenate([self._scales[keep], scales])[order]
        self._codes = np.concatenate([self._codes[keep], codes])[order]
        self._exact = self._sketch = None
        self._mean = _mean(self._codes, self._scales)
        self._generation = now

    def similarities(self, vector: Floats, rows: npt.NDArray[np.int64]) -> Floats:
        """The cosine of these rows with the vector."""
        import numpy as np

        found: Floats = (self._codes[rows].astype(np.float32) @ vector) * self._scales[rows]
        return found

    def nearest(
        self, vector: Floats, limit: int, files: Collection[int] | None = None
    ) -> tuple[list[tuple[int, float]], float]:
        """Chunk ids with their cosine, best first, and the mean cosine of all rows: the background."""
        import numpy as np

        if not len(self.ids):
            return [], 0.0
        allowed = None if files is None else np.isin(self.files, np.fromiter(files, dtype=np.int64))
        if len(self.ids) <= EXACT_ROWS:
            scores = self._all(vector)
            rows = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        else:
            rows = self._likely(vector, max(limit, RESCORED), allowed)
            scores = self.similarities(vector, rows)
        chosen = scores[rows] if len(scores) == len(self.ids) else scores
        order = np.argsort(-chosen, kind="stable")[:limit]
        background = float(self._mean @ vector)  # the mean of cosines is the cosine with the mean
        return list(zip(self.ids[rows[order]].tolist(), chosen[order].tolist(), strict=True)), background

    def _all(self, vector: Floats) -> Floats:
        import numpy as np

        if self._exact is None:
            self._exact = self._codes.astype(np.float32) * self._scales[:, None]
        found: Floats = self._exact @ vector
        return found

    def _likely(
        self, vector: Floats, count: int, allowed: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.int64]:
        if self._sketch is None:
            self._sketch = Sketch(self._codes, self._scales, self._mean)
        return self._sketch.likely(vector, count, allowed)


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
        """The rows whose bits differ least from the vector's."""
        import numpy as np

        packed = np.packbits(vector > self._mean)
        words = np.pad(packed, (0, self._columns.shape[0] * 8 - len(packed))).view(np.uint64)
        differing = np.zeros(self._columns.shape[1], dtype=np.uint16)
        for column, word in zip(self._columns, words, strict=True):
            differing += np.bitwise_count(column ^ word)
        if allowed is not None:
            differing[~allowed] = np.iinfo(np.uint16).max
        count = min(count, len(differing) if allowed is None else int(allowed.sum()))
        if count == len(differing):
            return np.arange(count)
        return np.argpartition(differing, count)[:count] if count else np.empty(0, dtype=np.int64)
