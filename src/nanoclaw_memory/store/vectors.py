"""Vector search: exact over small indexes, a sketch and exact rescoring over large ones; cached between questions."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.store.passage_search import Selection
from nanoclaw_memory.store.passages import EncodedVector, Passages
from nanoclaw_memory.store.vector_block import VectorBlock
from nanoclaw_memory.store.vector_rows import EXACT_ROWS, VectorRows, find_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nanoclaw_memory.store.vector_block import Floats, Ids

MOST_BYTES = 512 * 1024 * 1024  # of vectors cached in memory, unless the settings say otherwise
UNPACKED = 5_000  # rows that a file may be behind
RESCORED = 2_000  # minimal number of rows that are computed exactly after the sketch
SAMPLED = 500  # rows from which the mean is computed
RESCORED_SHARE = 0.005  # the same as a share of all rows: the sketch errs by a share of them


def coded(fingerprints: Sequence[bytes], vectors: Floats) -> list[EncodedVector]:
    """Return vectors as they are stored: eight bits a number, each with a scale."""
    import numpy as np

    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / 127
    codes = np.rint(vectors / scales[:, None]).astype(np.int8)
    return [
        EncodedVector(print_, float(scale), row.tobytes())
        for print_, scale, row in zip(fingerprints, scales, codes, strict=True)
    ]


class VectorCache:
    """A bounded cache of vectors in memory; all threads of a process may share one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[tuple[str, str], VectorRows] = OrderedDict()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._guard = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the present size."""
        with self._guard:
            return sum(rows.nbytes for rows in self._kept.values())

    def rows(self, passages: Passages, identity: str, dimensions: int) -> VectorRows:
        """Return the vectors of an identity in an index as it is now."""
        key = passages.database.place, identity
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # one thread reads new rows, the others wait for it
            found = self._kept.get(key) or VectorRows.read(passages.vector_file, identity, dimensions)
            found = found.caught_up(passages, identity)
            self._keep(key, found)
        return found

    def pack(self, passages: Passages, identity: str, dimensions: int) -> None:
        """Write the vectors to a mapped file if they are many and the file is outdated."""
        passages.database.index_vectors(passages.identities().get(identity, -1), dimensions)
        if passages.database.has_nearest:
            return
        if any(passages.packed(other) for other in passages.identities() if other != identity):
            return  # the previous model answers until this one's vectors are complete
        last, packed = passages.last_vector(), passages.packed(identity)
        rows = self.rows(passages, identity, dimensions)
        is_behind = rows.file is None or rows.file.generation != packed or rows.unpacked > UNPACKED
        many = rows.in_block + len(rows.beside) > EXACT_ROWS
        if not many or not is_behind or not passages.database.path.is_file():
            return
        repack(passages, identity, rows, last)
        found = VectorRows.read(passages.vector_file, identity, dimensions)
        self._keep((passages.database.place, identity), found)
        if not packed:
            passages.database.scrub()  # the moved rows leave half of the database empty

    def mend(self, passages: Passages, identity: str) -> bool:
        """Return whether the file that alone had the vectors of an identity is lost: they must be computed again."""
        packed = passages.packed(identity)
        found = VectorBlock.read(passages.vector_file, identity) if packed else None
        is_lost = bool(packed) and (found is None or not found[1].follows(packed))
        if is_lost:
            passages.lose_packed(identity)
        return is_lost

    def known(
        self, passages: Passages, identity: str, fingerprints: Collection[bytes]
    ) -> list[EncodedVector]:
        """Return the vectors of texts in the file, by passages that have or had the same text."""
        import numpy as np

        found = VectorBlock.read(passages.vector_file, identity) if passages.packed(identity) else None
        if found is None:
            return []
        block, owners = found[0], passages.with_fingerprints(fingerprints)
        ids = np.array(sorted(owners), dtype=np.int64)
        rows, there = find_rows(block.ids, ids)
        coded = {
            owners[int(number)]: EncodedVector(
                owners[int(number)], float(block.scales[row]), block.codes[row].tobytes()
            )
            for number, row in zip(ids[there], rows[there], strict=True)
        }
        return list(coded.values())

    def _keep(self, key: tuple[str, str], rows: VectorRows) -> None:
        """Keep the most recently used, as far as there is room."""
        with self._guard:
            self._kept[key] = rows
            self._kept.move_to_end(key)
            taken = sum(one.nbytes for one in self._kept.values())
            while taken > self.most:
                taken -= self._kept.popitem(last=False)[1].nbytes


def repack(passages: Passages, identity: str, rows: VectorRows, last: int) -> None:
    """Move rows to the file, which alone has them from then on; `last` is the vector that was read last."""
    newest = int(rows.all_ids.max(initial=0))
    rows.write(passages.vector_file, identity, passages.packed(identity))
    passages.hand_over(identity, rows.generation, newest, last)


def drop_removed(passages: Passages) -> None:
    """Rewrite the file without passages that were removed."""
    for identity in passages.identities():
        if passages.packed(identity) and (found := VectorBlock.read(passages.vector_file, identity)):
            last = passages.last_vector()
            rows = VectorRows.read(passages.vector_file, identity, found[1].dimensions)
            return repack(passages, identity, rows.caught_up(passages, identity), last)
    return passages.vector_file.unlink(missing_ok=True)


class Matrix:
    """All vectors of one identity in one index, searchable."""

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
    def ids(self) -> Ids:
        return self._held.ids

    def __len__(self) -> int:
        return self._held.in_block + len(self._held.beside)

    def similarities(self, vector: Floats, rows: Ids) -> Floats:
        """Return the cosine of these rows with the vector."""
        import numpy as np

        codes, scales = self._held.codes_of(rows)
        return _cosines(codes.astype(np.float32), vector) * scales

    def vectors(self, passages: Sequence[int]) -> dict[int, Floats]:
        """Return the vectors of those passages that have one."""
        import numpy as np

        asked = np.array(passages, dtype=np.int64)
        rows, known = self._held.find(asked)
        codes, scales = self._held.codes_of(rows[known])
        return dict(zip(asked[known].tolist(), codes.astype(np.float32) * scales[:, None], strict=True))

    def without(self, passages: Collection[int]) -> set[int]:
        """Return which of these passages have no vector yet."""
        import numpy as np

        asked = np.fromiter(passages, dtype=np.int64)
        return set(asked[~self._held.find(asked)[1]].tolist())

    def nearest(self, vector: Floats, limit: int, chosen: Selection | None = None) -> list[tuple[int, float]]:
        """Return passage ids with their cosine, best first."""
        import numpy as np

        held, allowed = self._held, self._allowed(chosen)
        first, block = held.in_block, held.block
        ids, scores = held.beside, _cosines(held.exact, vector)
        if allowed is not None:
            ids, scores = ids[allowed[first:]], scores[allowed[first:]]
        if block is not None:
            within = held.alive if allowed is None else allowed[:first]
            rows = block.likely(vector, max(limit, RESCORED + int(RESCORED_SHARE * first)), within)
            ids = np.concatenate((block.ids[rows], ids))
            scores = np.concatenate((self.similarities(vector, rows), scores))
        order = _best(scores, limit)
        return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))

    def cosines(self, vector: Floats, passages: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of these passages that has a vector."""
        import numpy as np

        asked = np.array(passages, dtype=np.int64)
        rows, known = self._held.find(asked)
        exact = self._held.block is None
        rows = rows[known]
        scores = _cosines(self._held.exact[rows], vector) if exact else self.similarities(vector, rows)
        return dict(zip(asked[known].tolist(), scores.tolist(), strict=True))

    def background(self, vector: Floats) -> float:
        """Return the mean cosine of all rows."""
        return float(self._held.mean @ vector)  # the mean of cosines is the cosine with the mean

    def _allowed(self, chosen: Selection | None) -> npt.NDArray[np.bool_] | None:
        """Return which rows a selection includes; None for all."""
        import numpy as np

        if chosen is None or not (chosen.within or chosen.without):
            return None
        allowed = np.full(len(self), not chosen.within, dtype=np.bool_)
        if chosen.within:
            sql = f"SELECT id FROM passages WHERE {chosen.within}"  # noqa: S608 (conditions of our own)
            allowed[self._rows(self._passages.search.ids(sql, chosen.params))] = True
        elif self._held.alive is not None:
            allowed[: self._held.in_block] = self._held.alive
        if chosen.without:
            found = chosen.excluded or self._passages.search.ids(chosen.without, chosen.params)
            allowed[self._rows(found)] = False
        return allowed

    def _rows(self, passages: Sequence[int]) -> Ids:
        """Return the rows of those passages that have one."""
        import numpy as np

        rows, known = self._held.find(np.array(passages, dtype=np.int64))
        return rows[known]


class StoredVectors:
    """The same interface, if the database searches its vectors itself."""

    def __init__(self, passages: Passages, identity: str) -> None:
        self._passages = passages
        self._database = passages.database
        self._owner = passages.identities().get(identity, -1)

    def __len__(self) -> int:
        return self._passages.last_id()

    def vectors(self, passages: Sequence[int]) -> dict[int, Floats]:
        """Return the vectors of those passages that have one."""
        rows = self._rows("SELECT passages.id, scale, codes FROM vectors JOIN", passages)
        return {number: _decoded([(scale, codes)])[0] for number, scale, codes in rows}

    def without(self, passages: Collection[int]) -> set[int]:
        """Return which of these passages have no vector yet."""
        return set(passages) - {
            number for (number,) in self._rows("SELECT passages.id FROM vectors JOIN", passages)
        }

    def nearest(self, vector: Floats, limit: int, chosen: Selection | None = None) -> list[tuple[int, float]]:
        """Return passage ids with their cosine, best first."""
        only = chosen or Selection()
        without = f"id NOT IN ({only.without})" if only.without else ""
        return self._database.nearest(self._owner, vector, limit, only.within, without, only.params)

    def cosines(self, vector: Floats, passages: Sequence[int]) -> dict[int, float]:
        """Return the cosine of each of these passages that has a vector."""
        of_ids, params = "id IN (SELECT value FROM json_each(:ids))", {"ids": json.dumps(list(passages))}
        return dict(self._database.nearest(self._owner, vector, len(passages), of_ids, "", params))

    def background(self, vector: Floats) -> float:
        """Return the mean cosine of all rows, estimated from some of them."""
        last = len(self)
        rows = self._rows("SELECT scale, codes FROM vectors JOIN", range(1, last + 1, last // SAMPLED + 1))
        return float(_decoded(rows).mean(axis=0) @ vector) if rows else 0.0

    def _rows(self, select: str, passages: Collection[int]) -> list[Any]:
        return self._database.query(
            f"{select} passages ON passages.fingerprint = vectors.fingerprint WHERE identity_id = :owner"  # noqa: S608
            " AND passages.id IN (SELECT value FROM json_each(:ids))",
            {"owner": self._owner, "ids": json.dumps(list(passages))},
        )


def searched(
    passages: Passages, identity: str, dimensions: int, cache: VectorCache
) -> Matrix | StoredVectors:
    """Return the vectors of an identity as they are now, searched by the database or in this process."""
    if passages.database.has_nearest:
        return StoredVectors(passages, identity)
    matrix = Matrix(passages, identity, dimensions, cache)
    matrix.refresh()
    return matrix


def _decoded(rows: Sequence[Any]) -> Floats:
    import numpy as np

    scales = np.array([scale for scale, _ in rows], dtype=np.float32)
    found: Floats = np.stack([np.frombuffer(codes, dtype=np.int8) for _, codes in rows]) * scales[:, None]
    return found


def _best(scores: Floats, limit: int) -> npt.NDArray[np.int64]:
    """Return the positions of the highest scores, best first, equal ones in their order."""
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
