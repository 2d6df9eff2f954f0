"""Rows of vectors between questions: an immutable block and newer rows; both follow the index."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.store.vector_block import AT_ONCE, VectorBlock, VectorFileHeader, mean_of, step_of, write

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nanoclaw_memory.store.vector_block import Codes, Floats, Ids

    _Rows: TypeAlias = tuple[Ids, Ids, Floats, Codes]

EXACT_ROWS = 20_000  # beside a block
ROOM = 1_024  # rows that can be added before all are copied


class GrowingRows:
    """Rows of an array that grows at its end; most additions copy only the new rows."""

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
        """Return these rows and more; only the newest object may be extended, since the others share its memory."""
        import numpy as np

        needed, room = self._used + len(more), self._room
        if needed > len(room):
            room = np.empty((needed + ROOM, *more.shape[1:]), dtype=room.dtype)
            room[: self._used] = self.rows
        room[self._used : needed] = more
        return GrowingRows(room, needed)


class VectorRows:
    """All vectors of one identity in one index at one generation; threads may share them.

    Most are in an immutable block, some rows of which may be removed; newer ones are beside it, up to `EXACT_ROWS`.
    Row numbers count through both.
    """

    def __init__(
        self,
        held: tuple[GrowingRows, GrowingRows, GrowingRows],
        exact: GrowingRows | None = None,
        block: VectorBlock | None = None,
        alive: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self._held = held  # ids, scales and codes of the rows beside the block
        self._exact = exact
        self.block = block
        self.alive = alive  # which rows of the block still exist; None for all
        self._known_mean: Floats | None = None
        self._guard = threading.RLock()
        self.generation = self.last_vector = 0
        self.file: VectorFileHeader | None = None  # the file from which the block is mapped

    @classmethod
    def of(cls, ids: Ids, scales: Floats, codes: Codes) -> VectorRows:
        """Return an object with these rows."""
        return cls((GrowingRows(ids), GrowingRows(scales), GrowingRows(codes)))

    @classmethod
    def none(cls, dimensions: int) -> VectorRows:
        """Return an object without rows."""
        import numpy as np

        codes = np.empty((0, dimensions), dtype=np.int8)
        return cls.of(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), codes)

    @classmethod
    def read(cls, path: Path, identity: str, dimensions: int) -> VectorRows:
        """Return the rows in a file, as they were when it was written."""
        made, found = cls.none(dimensions), VectorBlock.read(path, identity)
        if found is not None and found[1].dimensions == dimensions:
            made.block, made.file = found
            made.generation, made.last_vector = made.file.generation, made.file.last_vector
        return made

    @property
    def dimensions(self) -> int:
        return int(self._held[2].rows.shape[1])

    @property
    def in_block(self) -> int:
        """Return how many row numbers are those of the block."""
        return len(self.block.ids) if self.block else 0

    @property
    def beside(self) -> Ids:
        """Return the ids beside the block."""
        return self._held[0].rows

    @property
    def all_ids(self) -> Ids:
        """Return the ids by row number, including removed ones."""
        import numpy as np

        return self.beside if self.block is None else np.concatenate((self.block.ids, self.beside))

    @property
    def ids(self) -> Ids:
        """Return the ids of all rows, in order."""
        return self.beside if self.block is None else self.all_ids[self.ordered()]

    @property
    def nbytes(self) -> int:
        """Return their size in memory, including what a question computes from them."""
        held = sum(one.nbytes for one in self._held) + self._held[2].rows.nbytes * 4
        return held + (self.block.nbytes if self.block else 0)

    @property
    def unpacked(self) -> int:
        """Return how many rows a file of the block lacks or has too many; all while there is no file."""
        if self.block is None or not self.block.mapped:
            return self.in_block + len(self.beside)
        gone = 0 if self.alive is None else len(self.alive) - int(self.alive.sum())
        return len(self.beside) + gone

    @property
    def mean(self) -> Floats:
        with self._guard:
            if self._known_mean is None:
                own = mean_of(self._held[2].rows, self._held[1].rows)
                share = len(self.beside) / max(self.in_block + len(self.beside), 1)
                self._known_mean = (
                    own if self.block is None else own * share + self.block.sketch.mean * (1 - share)
                )
            return self._known_mean

    @property
    def exact(self) -> Floats:
        """Return the rows beside the block as numbers."""
        import numpy as np

        with self._guard:
            if self._exact is None:
                self._exact = GrowingRows(self._held[2].rows.astype(np.float32) * self._held[1].rows[:, None])
            return self._exact.rows

    def find(self, passages: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return the rows of passages, and which of these have one."""
        import numpy as np

        rows, known = find_rows(self.beside, passages)
        rows += self.in_block
        if self.block is not None:
            own, there = find_rows(self.block.ids, passages)
            if self.alive is not None:
                there &= self.alive[own]
            rows, known = np.where(there, own, rows), known | there
        return rows, known

    def codes_of(self, rows: Ids) -> tuple[Codes, Floats]:
        """Return codes and scales of rows."""
        import numpy as np

        _, scales, codes = (one.rows for one in self._held)
        if self.block is None:
            return codes.take(rows, axis=0), scales[rows]
        first = rows < self.in_block
        if first.all():
            return self.block.codes.take(rows, axis=0), self.block.scales[rows]
        found, scaled = np.empty((len(rows), codes.shape[1]), np.int8), np.empty(len(rows), np.float32)
        found[first], scaled[first] = self.block.codes[rows[first]], self.block.scales[rows[first]]
        late = rows[~first] - self.in_block
        found[~first], scaled[~first] = codes[late], scales[late]
        return found, scaled

    def ordered(self) -> Ids:
        """Return the row numbers in the order of their ids."""
        import numpy as np

        rows = np.arange(self.in_block + len(self.beside))
        if self.block is None:
            return rows
        if self.alive is not None:
            rows = np.concatenate((np.flatnonzero(self.alive), rows[self.in_block :]))
        return rows[np.argsort(self.all_ids[rows], kind="stable")]

    def caught_up(self, passages: Passages, identity: str) -> VectorRows:
        """Return the rows as the index has them now: this object if it has not changed, which costs next to nothing."""
        import numpy as np

        now = passages.generation()
        if now == self.generation:
            return self
        start = self._or_file(passages, identity)
        made, last = start._without_removed(passages), start.last_vector
        if made is None:
            start = start if start.file and passages.packed(identity) else VectorRows.none(self.dimensions)
            made, last = start._among(passages), 0
        newest = int(made.all_ids.max(initial=0))
        if batches := list(_batches(passages.vectors(identity, newest, last))):
            ids, numbers, scales, codes = map(np.concatenate, zip(*batches, strict=True))
            last, new = max(last, int(numbers.max())), ~made.find(ids)[1]
            made = made._and_also(ids[new], scales[new], codes[new]) if new.any() else made
        file = (made.block is start.block and start.file) or None
        if len(made.beside) > EXACT_ROWS:
            made, file = made._in_one_block(), None
        made.generation, made.last_vector, made.file = now, last, file
        return made

    def _or_file(self, passages: Passages, identity: str) -> VectorRows:
        """Return these rows, or those of the file to which the index has moved its vectors since."""
        packed = passages.packed(identity)
        if not packed or (self.file and self.file.follows(packed)):
            return self
        found = VectorRows.read(passages.vector_file, identity, self.dimensions)
        # If that file is missing, only the index's own vectors are left.
        return found if found.file and found.file.follows(packed) else VectorRows.none(self.dimensions)

    def _among(self, passages: Passages) -> VectorRows:
        """Return the rows of the block whose passages exist."""
        import numpy as np

        made = VectorRows.none(self.dimensions)
        if self.block is not None:
            made.block = self.block
            made.alive = np.isin(self.block.ids, np.fromiter(passages.all_ids(), dtype=np.int64))
        return made

    def _without_removed(self, passages: Passages) -> VectorRows | None:
        """Return the rows of existing passages; None if that is unknown."""
        import numpy as np

        gone = passages.removed_since(self.generation)
        if gone is None:
            return None
        alive = self.alive
        if self.block is not None:
            rows, there = find_rows(self.block.ids, np.asarray(gone, dtype=np.int64))
            if there.any():
                alive = np.ones(self.in_block, dtype=np.bool_) if alive is None else alive.copy()
                alive[rows[there]] = False
        keep = ~np.isin(self.beside, np.asarray(gone, dtype=np.int64))
        if keep.all():
            return VectorRows(self._held, self._exact, self.block, alive)
        ids, scales, codes = (GrowingRows(one.rows[keep]) for one in self._held)
        return VectorRows((ids, scales, codes), None, self.block, alive)

    def _and_also(self, ids: Ids, scales: Floats, codes: Codes) -> VectorRows:
        import numpy as np

        exact, held = None, (GrowingRows(ids), GrowingRows(scales), GrowingRows(codes))
        if len(self.beside):
            exact = self._exact and self._exact.and_also(codes.astype(np.float32) * scales[:, None])
            own = self._held
            held = own[0].and_also(ids), own[1].and_also(scales), own[2].and_also(codes)
        if np.any(np.diff(held[0].rows[-len(ids) - 1 :]) < 0):
            order = np.argsort(held[0].rows, kind="stable")
            ids_, scales_, codes_ = (GrowingRows(one.rows[order]) for one in held)
            return VectorRows((ids_, scales_, codes_), None, self.block, self.alive)
        return VectorRows(held, exact, self.block, self.alive)

    def _in_one_block(self) -> VectorRows:
        """Return the same with all rows in one block."""
        made, order = VectorRows.none(self._held[2].rows.shape[1]), self.ordered()
        codes, scales = self.codes_of(order)
        made.block = VectorBlock.of(self.all_ids[order], scales, codes)
        return made

    def write(self, path: Path, identity: str, replaces: int) -> None:
        """Write all rows to a file that alone will have them."""
        import numpy as np

        order = self.ordered()
        some, scaled = self.codes_of(order[:: max(1, len(order) // 10_000)])
        scales = np.concatenate((*((self.block.scales,) if self.block else ()), self._held[1].rows))
        step = step_of(some, scaled, self.mean)
        write(
            path,
            VectorFileHeader(identity, len(order), self.dimensions, self.generation, 0, step, replaces),
            self.all_ids[order],
            scales[order],
            self.mean,
            (self.codes_of(order[start : start + AT_ONCE])[0] for start in range(0, len(order), AT_ONCE)),
        )


def find_rows(ids: Ids, passages: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Return where passages are in a row of ids, and which of these are there."""
    import numpy as np

    if not len(ids):
        return np.zeros(len(passages), dtype=np.int64), np.zeros(len(passages), dtype=np.bool_)
    rows = np.searchsorted(ids, passages)
    rows[rows == len(ids)] = 0
    return rows, ids[rows] == passages


def _batches(rows: Iterator[tuple[int, int, float, bytes]]) -> Iterator[_Rows]:
    """Yield rows as arrays; in pieces, because Python's objects take more memory than the numbers."""
    import numpy as np

    while batch := list(itertools.islice(rows, 4_096)):
        ids, numbers, scales, codes = zip(*batch, strict=True)
        yield (
            np.array(ids, dtype=np.int64),
            np.array(numbers, dtype=np.int64),
            np.array(scales, dtype=np.float32),
            np.frombuffer(b"".join(codes), dtype=np.int8).reshape(len(batch), -1),
        )
