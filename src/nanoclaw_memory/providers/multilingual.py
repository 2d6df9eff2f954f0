"""multilingual-e5-small, 4-bit: its file of weights and pieces, run by a graph of ours without weights.

The file comes from a package with an engine of its own; only its numbers are used. The graph (`multilingual.onnx`) is
written by `training/multilingual.py`. Rows of the table of pieces are read out of the mapped file as a text needs
them: of its 96 million weights a text uses a few thousand.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.models import INSTALL
from nanoclaw_memory.providers.unigram import Unigram

if TYPE_CHECKING:
    import numpy as np

    from nanoclaw_memory.providers.embedder import Vectors

GRAPH = Path(__file__).with_name("multilingual.onnx")
HIDDEN, LAYERS, BLOCK = 384, 12, 32
_ROWS = {"fi": 4 * HIDDEN}  # rows of a layer's matrices; the others have HIDDEN
_QUANTISED = 1
_MARKS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # pieces that a text must not be able to write


class WeightsFile:
    """The mapped file: pieces with their scores, and tensors by name."""

    def __init__(self, path: Path, sha256: str) -> None:
        try:
            with path.open("rb") as stream:
                self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise ProviderError(f"the model {path.parent.name} is not installed", INSTALL) from None
        except (OSError, ValueError) as error:  # it cannot be opened, or is empty
            raise ProviderError(f"{path} cannot be read: {error}", INSTALL) from None
        if hashlib.sha256(self._bytes).hexdigest() != sha256:
            raise ProviderError(
                f"{path} is not the file we know (its hash differs)",
                f"{INSTALL} --force",
            )
        if hasattr(mmap, "MADV_DONTNEED"):
            self._bytes.madvise(mmap.MADV_DONTNEED)  # hashing has read it all; what is needed is read again
        self._at = 4  # after the magic number
        self._read("I7ifi")  # version and sizes, which the graph also contains
        self._count, self.begin, self.end, _, self.unknown = self._read("5i")
        (length,) = self._read("Q")
        self._pieces_at, self._text_length = self._at, length
        self._at += 4 * (self._count + 1) + 4 * self._count + length
        _, normalised = self._read("iI")  # characters in another form, which Unicode's own NFKC covers
        self._at += normalised
        (tensors,) = self._read("i")
        self._tensors = dict(self._tensor() for _ in range(tensors))

    def _read(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{layout}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return found

    def _tensor(self) -> tuple[str, tuple[int, int, int, int]]:
        (length,) = self._read("H")
        name = self._bytes[self._at : self._at + length].decode()
        self._at += length
        kind, count, offset, size = (*self._read("B"), *self._read("I"), *self._read("Q"), *self._read("Q"))
        return name, (kind, count, offset, size)

    def tokenizer(self) -> Unigram:
        import numpy as np

        at, count = self._pieces_at, self._count
        offsets = np.frombuffer(self._bytes, "<u4", count + 1, at).tolist()
        scores = np.frombuffer(self._bytes, "<f4", count, at + 4 * (count + 1)).tolist()
        start = at + 4 * (2 * count + 1)
        text = self._bytes[start : start + self._text_length]
        pieces = {text[offsets[i] : offsets[i + 1]].decode(): i for i in range(count)}
        for mark in _MARKS:
            pieces.pop(mark, None)
        return Unigram(pieces, scores, self.begin, self.end, self.unknown)

    def numbers(self, name: str) -> Vectors:
        import numpy as np

        _, count, offset, _ = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", count, offset)

    def blocks(self, name: str) -> np.ndarray[Any, Any]:
        """Return blocks of 32 weights: a scale, and 16 bytes whose low halves are the first 16."""
        import numpy as np

        layout = np.dtype([("scale", "<f2"), ("halves", "u1", (BLOCK // 2,))])
        _, _, offset, size = self._tensors[name]
        return np.frombuffer(self._bytes, layout, size // layout.itemsize, offset)

    def initializers(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the inputs of the graph by their names in it."""
        import numpy as np

        found: dict[str, np.ndarray[Any, Any]] = {}
        for name, (kind, *_) in self._tensors.items():
            layer, part, last = (*name.split("."), "")[:3]
            if layer == "emb" and part != "ln":
                continue  # looked up by us, row by row
            if kind == _QUANTISED:
                blocks = self.blocks(name)
                found[name] = _paired(blocks["halves"]).reshape(_ROWS.get(part, HIDDEN), -1, BLOCK // 2)
                found[f"{layer}.{part}.s"] = blocks["scale"].astype(np.float32)
            elif part not in ("q", "k", "v") or last != "b":
                found[name] = self.numbers(name)
        for layer in (f"l{number}" for number in range(LAYERS)):
            found[f"{layer}.qkv.b"] = np.concatenate([self.numbers(f"{layer}.{part}.b") for part in "qkv"])
        return found


def _unpacked(halves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.concatenate([halves & 15, halves >> 4], axis=-1)


def _paired(halves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same weights as the graph expects them: two neighbours in a byte."""
    import numpy as np

    weights = _unpacked(halves)
    return np.ascontiguousarray(weights[:, 0::2] | (weights[:, 1::2] << 4))


class Encoder:
    """Compute the mean of the last states for the ids of a text's pieces."""

    def __init__(self, path: Path, sha256: str) -> None:
        self._file = WeightsFile(path, sha256)
        self.tokenizer = self._file.tokenizer()
        self._session = self._open()

    def _open(self) -> Any:
        import numpy as np

        from nanoclaw_memory.providers.local import runtime, session_options

        onnxruntime, options = runtime(), session_options()
        given = self._file.initializers()
        values = [
            onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value)) for value in given.values()
        ]
        options.add_external_initializers(list(given), values)
        return onnxruntime.InferenceSession(GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"])

    @cached_property
    def _places(self) -> Vectors:
        places: Vectors = self._file.numbers("emb.pos").reshape(-1, HIDDEN)
        return places + self._file.numbers("emb.type")[:HIDDEN]

    @cached_property
    def _table(self) -> np.ndarray[Any, Any]:
        return self._file.blocks("emb.word").reshape(-1, HIDDEN // BLOCK)

    def mean(self, ids: Sequence[int]) -> Vectors:
        """Return the mean over all pieces of a text, not normalised."""
        import numpy as np

        rows = self._table[list(ids)]
        weights = _unpacked(rows["halves"]).astype(np.float32) - 8
        words = (weights * rows["scale"].astype(np.float32)[..., None]).reshape(len(ids), HIDDEN)
        found: Vectors = self._session.run(None, {"embedded": (words + self._places[: len(ids)])[None]})[0][0]
        return found
