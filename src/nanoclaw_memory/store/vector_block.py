"""An immutable block of vectors with a one-bit sketch for searching: in memory, or mapped from a file."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from nanoclaw_memory import private

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]
    Codes: TypeAlias = npt.NDArray[np.int8]
    Ids: TypeAlias = npt.NDArray[np.int64]

AT_ONCE = 8_192  # rows converted at once: all rows would not fit in memory
SCANNED = 65_536  # rows of a scan whose intermediate results fit into the processor's cache
_HEADER = 4_096  # bytes; the data begins on a page
_MOST_LEAD = 8_192  # maximal correction, in differing signs, for the row that leans least to the mean


class VectorFileHeader(msgspec.Struct, frozen=True):
    """The header of a file of vectors: identity, counts, and the state of the index from which it was written."""

    identity: str
    count: int
    dimensions: int
    generation: int
    last_vector: int  # of the index's table; 0 in a file that alone has its vectors
    step: float
    replaces: int = 0  # the generation of the file before it

    def follows(self, packed: int) -> bool:
        """Return whether it has everything that the index left to a file at that generation."""
        return packed in (self.generation, self.replaces)


class Sketch(msgspec.Struct, frozen=True):
    """Data for estimating a cosine: on which side of the mean each number is, and how far the vector leans to it.

    The cosine of x and q is, but for what all x share, (x - mean)(q - mean) + (x - mean)mean. Of the first product
    the signs of x - mean are known, and `step`, the usual length of its numbers; the second one is `leaning`.
    """

    mean: Floats
    step: float
    leaning: Floats
    bits: npt.NDArray[np.uint64]  # column-major: the same word of all rows is contiguous, for fast scans


class VectorBlock:
    """Vectors of passages in the order of their ids: eight bits a number, a scale, and the sketch."""

    def __init__(self, ids: Ids, scales: Floats, codes: Codes, sketch: Sketch, mapped: bool = False) -> None:
        self.ids = ids
        self.scales = scales
        self.codes = codes
        self.sketch = sketch
        self.mapped = mapped

    @classmethod
    def of(cls, ids: Ids, scales: Floats, codes: Codes) -> VectorBlock:
        """Return a block of these rows, in memory."""
        mean = mean_of(codes, scales)
        pieces = (codes[start : start + AT_ONCE] for start in range(0, len(codes), AT_ONCE))
        leaning, bits = _sketched(pieces, scales, mean)
        return cls(ids, scales, codes, Sketch(mean, step_of(codes, scales, mean), leaning, bits))

    @property
    def nbytes(self) -> int:
        """Return its size in memory; the system decides about pages of a file."""
        kept = (self.ids, self.scales, self.codes, self.sketch.leaning, self.sketch.bits)
        return 0 if self.mapped else sum(one.nbytes for one in kept)

    def likely(self, vector: Floats, count: int, allowed: npt.NDArray[np.bool_] | None) -> Ids:
        """Return the rows that seem nearest: `count`, and those that seem as near.

        A sign that differs from the vector's counts once, or three times if the vector's number is large.
        """
        import numpy as np

        own = self.sketch
        asked = vector - own.mean
        large = np.abs(asked) > np.abs(asked).mean()
        weights = np.where(large, 3.0, 1.0)
        # The length of a count of one.
        usual = float((np.abs(asked) * weights).sum() / (weights * weights).sum())
        words, heavy = _signs(asked[None])[0], _signs(np.where(large, 1.0, -1.0)[None])[0]
        # No cosine with the mean is more than 2 apart from another.
        unit = np.float32(max(2 * own.step * usual, 2 / _MOST_LEAD))
        differing, most = np.empty(len(self.ids), dtype=np.uint16), own.leaning.max(initial=0.0)
        for start in range(0, len(differing), SCANNED):
            part = differing[start : start + SCANNED]
            part[:] = (most - own.leaning[start : start + SCANNED]) / unit
            signs = np.empty(len(part), dtype=np.uint64)
            counts = np.empty(len(part), dtype=np.uint8)
            for bits, word, weight in zip(own.bits, words, heavy, strict=True):
                np.bitwise_xor(bits[start : start + SCANNED], word, out=signs)
                part += np.bitwise_count(signs, out=counts)
                np.bitwise_and(signs, weight, out=signs)
                part += np.left_shift(np.bitwise_count(signs, out=counts), 1, out=counts)
        beyond = 3 * 64 * len(words) + _MOST_LEAD + 1
        if allowed is not None:
            differing[~allowed] = beyond
        # How many rows differ by each number: cheaper than sorting a million rows.
        within = np.bincount(differing, minlength=beyond + 1)[:beyond].cumsum()
        return np.flatnonzero(differing <= min(int(np.searchsorted(within, count)), beyond - 1))

    # ---- in a file ----

    @classmethod
    def read(cls, path: Path, identity: str) -> tuple[VectorBlock, VectorFileHeader] | None:
        """Map the block in a file; return None if there is none of this identity, or it is incomplete."""
        import numpy as np

        try:
            with path.open("rb") as file:
                known = msgspec.json.decode(file.read(_HEADER).rstrip(b"\0"), type=VectorFileHeader)
                if known.identity != identity or os.fstat(file.fileno()).st_size != _size(known):
                    return None
                whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, msgspec.DecodeError):
            return None

        offset = _HEADER

        def array(kind: type[np.generic], *shape: int) -> npt.NDArray[Any]:
            nonlocal offset
            length = int(np.prod(shape))
            found = np.frombuffer(whole, dtype=kind, count=length, offset=offset).reshape(shape)
            offset += found.nbytes
            return found

        count, dimensions = known.count, known.dimensions
        ids, mean, scales = array(np.int64, count), array(np.float32, dimensions), array(np.float32, count)
        bits, leaning = array(np.uint64, _words(dimensions), count), array(np.float32, count)
        codes, sketch = array(np.int8, count, dimensions), Sketch(mean, known.step, leaning, bits)
        return cls(ids, scales, codes, sketch, mapped=True), known


def write(
    path: Path, known: VectorFileHeader, ids: Ids, scales: Floats, mean: Floats, codes: Iterator[Codes]
) -> None:
    """Write a block to a file, whole or not at all; `codes` come in pieces of `AT_ONCE` rows."""
    scratch = path.with_name(f"{path.name}.part")
    sketched = _HEADER + ids.nbytes + mean.nbytes + scales.nbytes
    with open(scratch, "wb", opener=private.opener) as file:
        file.write(msgspec.json.encode(known).ljust(_HEADER, b"\0"))
        for array in (ids, mean, scales):
            file.write(array.tobytes())
        file.seek(known.count * (8 * _words(known.dimensions) + 4), os.SEEK_CUR)

        def written() -> Iterator[Codes]:
            for piece in codes:
                file.write(piece.tobytes())
                yield piece

        leaning, bits = _sketched(written(), scales, mean)
        file.seek(sketched)
        file.write(bits.tobytes())
        file.write(leaning.tobytes())
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def _sketched(pieces: Iterator[Codes], scales: Floats, mean: Floats) -> tuple[Floats, npt.NDArray[np.uint64]]:
    """Return how far rows lean to the mean, and their signs; the codes come in pieces."""
    import numpy as np

    leaning = np.empty(len(scales), dtype=np.float32)
    bits = np.empty((_words(len(mean)), len(scales)), dtype=np.uint64)
    for number, piece in enumerate(pieces):
        part = slice(number * AT_ONCE, number * AT_ONCE + len(piece))
        centred = piece * scales[part, None] - mean
        leaning[part] = centred @ mean
        bits[:, part] = _signs(centred).T
    return leaning, bits


def mean_of(codes: Codes, scales: Floats) -> Floats:
    """Return the mean vector, of a sample if there are many."""
    import numpy as np

    if not len(codes):
        return np.zeros(codes.shape[1], dtype=np.float32)
    sample = slice(None, None, max(1, len(codes) // 10_000))
    mean: Floats = (codes[sample] * scales[sample, None]).mean(axis=0).astype(np.float32)
    return mean


def step_of(codes: Codes, scales: Floats, mean: Floats) -> float:
    """Return the length that a sign represents: that of a centred vector's numbers, larger ones counting more."""
    import numpy as np

    sample = slice(None, None, max(1, len(codes) // 10_000))
    centred = codes[sample] * scales[sample, None] - mean
    lengths = np.abs(centred).sum(axis=1)
    return (
        float(((centred * centred).sum(axis=1) / np.maximum(lengths, 1e-9)).mean()) if len(centred) else 1.0
    )


def _signs(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return which numbers of each row are above 0, as bits of whole words."""
    import numpy as np

    packed = np.packbits(rows > 0, axis=1)
    return np.pad(packed, ((0, 0), (0, _words(rows.shape[1]) * 8 - packed.shape[1]))).view(np.uint64)


def _words(dimensions: int) -> int:
    return -(-dimensions // 64)


def _size(known: VectorFileHeader) -> int:
    per_row = 8 + 4 + 8 * _words(known.dimensions) + 4 + known.dimensions
    return _HEADER + known.count * per_row + 4 * known.dimensions
