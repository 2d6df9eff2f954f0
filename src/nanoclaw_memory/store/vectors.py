"""Vectors in memory: exact search over small indexes, a one-bit sketch and exact rescoring over large."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from nanoclaw_memory.store.passage_search import Selection
from nanoclaw_memory.store.passages import Coded, Passages

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]
    _Rows: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats, npt.NDArray[np.int8]]

MOST_BYTES = 512 * 1024 * 1024  # of vectors kept in memory, unless the settings say otherwise
EXACT_ROWS = 20_000
ROOM = 1_024  # rows that can be added before all are copied
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


class GrowingRows:
    """Rows of an array that grows at its end; most additions copy nothing but the new rows."""

    def __init__(self, room: npt.NDArray[Any], used: int | None = None) -> None:
        self._room = room
        self._used = len(room) if used is None else used

    @property
    def rows(self) -> npt.NDArray[Any]:
        return self._room[: self._used]

    @property
    def nbytes(self) -> int:
        return int(self._room.nbytes)

    def and_also(self, more: npt.NDArray[Any]) -> GrowingRows:
        """These rows and more; only the newest may be added to, for the others share its room."""
        import numpy as np

        needed, room = self._used + len(more), self._room
        if needed > len(room):
            room = np.empty((needed + ROOM, *more.shape[1:]), dtype=room.dtype)
            room[: self._used] = self.rows
        room[self._used : needed] = more
        return GrowingRows(room, needed)


class VectorRows:
    """All vectors of one identity in one index as they were at one generation; threads may share them."""

    def __init__(
        self, ids: GrowingRows, scales: GrowingRows, codes: GrowingRows, exact: GrowingRows | None = None
    ) -> None:
        self._held = ids, scales, codes
        self._exact = exact
        self._known_mean: Floats | None = None
        self._sketch: Sketch | None = None
        self._guard = threading.RLock()
        self.generation = self.last_vector = 0

    @classmethod
    def of(cls, ids: npt.NDArray[np.int64], scales: Floats, codes: npt.NDArray[np.int8]) -> VectorRows:
        """These rows."""
        return cls(GrowingRows(ids), GrowingRows(scales), GrowingRows(codes))

    @classmethod
    def none(cls, dimensions: int) -> VectorRows:
        """No rows yet."""
        import numpy as np

        codes = np.empty((0, dimensions), dtype=np.int8)
        return cls.of(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), codes)

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        return self._held[0].rows

    @property
    def scales(self) -> Floats:
        return self._held[1].rows

    @property
    def codes(self) -> npt.NDArray[np.int8]:
        return self._held[2].rows

    @property
    def nbytes(self) -> int:
        """What they take in memory, with what a question makes of them."""
        codes = self.codes.nbytes
        made = codes * 4 if len(self.ids) <= EXACT_ROWS else codes // 8
        return sum(one.nbytes for one in self._held) + made

    @property
    def mean(self) -> Floats:
        with self._guard:
            if self._known_mean is None:
                self._known_mean = _mean(self.codes, self.scales)
            return self._known_mean

    @property
    def whole(self) -> Floats:
        """All rows as numbers."""
        import numpy as np

        with self._guard:
            if self._exact is None:
                self._exact = GrowingRows(self.codes.astype(np.float32) * self.scales[:, None])
            return self._exact.rows

    @property
    def sketch(self) -> Sketch:
        with self._guard:
            if self._sketch is None:
                self._sketch = Sketch(self.codes, self.scales, self.mean)
            return self._sketch

    def caught_up(self, passages: Passages, identity: str) -> VectorRows:
        """The rows as the index has them now: these if it has not changed, which costs next to nothing."""
        import numpy as np

        now = passages.generation()
        if now == self.generation:
            return self
        made, last = self._without_removed(passages), self.last_vector
        if made is None:
            made, last = VectorRows.none(self.codes.shape[1]), 0
        newest = int(made.ids[-1]) if len(made.ids) else 0
        if batches := list(_batches(passages.vectors(identity, newest, last))):
            ids, numbers, scales, codes = map(np.concatenate, zip(*batches, strict=True))
            made, last = made._and_also(ids, scales, codes), max(last, int(numbers.max()))
        made.generation, made.last_vector = now, last
        return made

    def _without_removed(self, passages: Passages) -> VectorRows | None:
        """The rows of passages that are still there; None when that cannot be told."""
        import numpy as np

        gone = passages.removed_since(self.generation)
        if gone is None:
            return None
        keep = ~np.isin(self.ids, np.asarray(gone, dtype=np.int64))
        if keep.all():
            return VectorRows(*self._held, self._exact)
        return VectorRows.of(self.ids[keep], self.scales[keep], self.codes[keep])

    def _and_also(
        self, ids: npt.NDArray[np.int64], scales: Floats, codes: npt.NDArray[np.int8]
    ) -> VectorRows:
        import numpy as np

        if not len(self.ids):
            made = VectorRows.of(ids, scales, codes)
        else:
            exact = self._exact and self._exact.and_also(codes.astype(np.float32) * scales[:, None])
            own = self._held
            made = VectorRows(own[0].and_also(ids), own[1].and_also(scales), own[2].and_also(codes), exact)
        if np.any(np.diff(made.ids[-len(ids) - 1 :]) < 0):
            order = np.argsort(made.ids, kind="stable")
            made = VectorRows.of(made.ids[order], made.scales[order], made.codes[order])
        return made


def _batches(rows: Iterator[tuple[int, int, float, bytes]]) -> Iterator[_Rows]:
    """Rows as arrays; in pieces, for Python's objects take more than the numbers."""
    import numpy as np

    while batch := list(itertools.islice(rows, 4_096)):
        ids, numbers, scales, codes = zip(*batch, strict=True)
        yield (
            np.array(ids, dtype=np.int64),
            np.array(numbers, dtype=np.int64),
            np.array(scales, dtype=np.float32),
            np.frombuffer(b"".join(codes), dtype=np.int8).reshape(len(batch), -1),
        )


class VectorCache:
    """Vectors in memory between questions, up to a bound in bytes; all threads of a process may share one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[tuple[str, str], VectorRows] = OrderedDict()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._guard = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What is kept now."""
        with self._guard:
            return sum(rows.nbytes for rows in self._kept.values())

    def rows(self, passages: Passages, identity: str, dimensions: int) -> VectorRows:
        """The vectors of an identity in an index as it is now."""
        key = passages.database.place, identity
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # one thread reads what is new, the others wait for it
            found = self._kept.get(key) or VectorRows.none(dimensions)
            found = found.caught_up(passages, identity)
            self._keep(key, found)
        return found

    def _keep(self, key: tuple[str, str], rows: VectorRows) -> None:
        """Keep what was used last, as far as there is room."""
        with self._guard:
            self._kept[key] = rows
            self._kept.move_to_end(key)
            taken = sum(one.nbytes for one in self._kept.values())
            while taken > self.most:
                taken -= self._kept.popitem(last=False)[1].nbytes


class Matrix:
    """All vectors of one identity in one index, searched."""

    def __init__(
        self, passages: Passages, identity: str, dimensions: int, cache: VectorCache | None = None
    ) -> None:
        self._passages = passages
        self._identity = identity
        self._dimensions = dimensions
        self._cache = cache or VectorCache(MOST_BYTES)
        self._held = VectorRows.none(dimensions)

    def refresh(self) -> None:
        """Catch up with the index; costs next to nothing when it has not changed."""
        self._held = self._cache.rows(self._passages, self._identity, self._dimensions)

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        return self._held.ids

    @property
    def _scales(self) -> Floats:
        return self._held.scales

    @property
    def _codes(self) -> npt.NDArray[np.int8]:
        return self._held.codes

    def similarities(self, vector: Floats, rows: npt.NDArray[np.int64]) -> Floats:
        """The cosine of these rows with the vector."""
        import numpy as np

        return _cosines(self._codes.take(rows, axis=0).astype(np.float32), vector) * self._scales[rows]

    def vector(self, passage: int) -> Floats | None:
        """The vector of one passage; None when it has none."""
        import numpy as np

        rows, known = self._known(np.array([passage]))
        if not known[0]:
            return None
        found: Floats = self._codes[rows[0]].astype(np.float32) * self._scales[rows[0]]
        return found

    def _known(self, passages: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The rows of passages, and which of these have one."""
        import numpy as np

        if not len(self.ids):
            return np.zeros(len(passages), dtype=np.int64), np.zeros(len(passages), dtype=np.bool_)
        rows = np.searchsorted(self.ids, passages)
        rows[rows == len(self.ids)] = 0
        return rows, self.ids[rows] == passages

    def without(self, passages: Collection[int]) -> set[int]:
        """Which of these passages have no vector yet."""
        import numpy as np

        asked = np.fromiter(passages, dtype=np.int64)
        return set(asked[~self._known(asked)[1]].tolist())

    def nearest(self, vector: Floats, limit: int, chosen: Selection | None = None) -> list[tuple[int, float]]:
        """Passage ids with their cosine, best first."""
        import numpy as np

        if not len(self.ids):
            return []
        allowed = self._allowed(chosen)
        if len(self.ids) > EXACT_ROWS:
            rows = self._held.sketch.likely(
                vector, max(limit, RESCORED + int(RESCORED_SHARE * len(self.ids))), allowed
            )
            scores = self.similarities(vector, rows)
        elif allowed is None:
            rows, scores = np.arange(len(self.ids)), _cosines(self._held.whole, vector)
        else:
            rows = np.flatnonzero(allowed)
            scores = _cosines(self._held.whole, vector)[rows]
        order = _best(scores, limit)
        return list(zip(self.ids[rows[order]].tolist(), scores[order].tolist(), strict=True))

    def cosines(self, vector: Floats, passages: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these passages that has a vector."""
        rows = self._rows(passages)
        exact = len(self.ids) <= EXACT_ROWS
        scores = _cosines(self._held.whole[rows], vector) if exact else self.similarities(vector, rows)
        return dict(zip(self.ids[rows].tolist(), scores.tolist(), strict=True))

    def background(self, vector: Floats) -> float:
        """The mean cosine of all rows."""
        return float(self._held.mean @ vector)  # the mean of cosines is the cosine with the mean

    def _allowed(self, chosen: Selection | None) -> npt.NDArray[np.bool_] | None:
        """Which rows a selection lets in; None for all."""
        import numpy as np

        if chosen is None or not (chosen.within or chosen.without):
            return None
        allowed = np.full(len(self.ids), not chosen.within, dtype=np.bool_)
        if chosen.within:
            sql = f"SELECT id FROM passages WHERE {chosen.within}"  # noqa: S608 (conditions of our own)
            allowed[self._rows(self._passages.search.ids(sql, chosen.params))] = True
        if chosen.without:
            found = chosen.excluded or self._passages.search.ids(chosen.without, chosen.params)
            allowed[self._rows(found)] = False
        return allowed

    def _rows(self, passages: Sequence[int]) -> npt.NDArray[np.int64]:
        """The rows of those passages that have one."""
        import numpy as np

        rows, known = self._known(np.array(passages, dtype=np.int64))
        return rows[known]


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
