"""The embedded default: e5-small-v2, 8-bit, on the CPU; nothing leaves the machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.embedder import LOCAL_WEIGHTS, Identity, checked
from nanoclaw_memory.providers.models import EMBEDDER, Model, installed, load
from nanoclaw_memory.providers.wordpiece import WordPiece

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nanoclaw_memory.providers.embedder import Vectors

DIMENSIONS = 384
MAX_TOKENS = 512
BATCH_TOKENS = 512  # padded tokens a batch: more is slower here, and attention's memory grows with it


class OnnxModel:
    """A verified ONNX model and its tokenizer, loaded on first use; safe to share between threads."""

    def __init__(self, model: Model, folder: Path, threads: int = 0) -> None:
        self.model = model
        self.folder = folder
        self.threads = threads or min(os.cpu_count() or 1, 4)
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: WordPiece | None = None

    @property
    def installed(self) -> bool:
        """Whether the files are there (by name and size)."""
        return installed(self.model, self.folder)

    def ready(self) -> tuple[Any, WordPiece]:
        """The session and the tokenizer, loaded now if they were not."""
        with self._lock:
            if self._session is None or self._tokenizer is None:
                files = load(self.model, self.folder)
                self._tokenizer = WordPiece(files["vocab.txt"].decode("utf-8").split("\n")[:-1])
                self._session = self._open(files["model.onnx"])
            return self._session, self._tokenizer

    def run(self, rows: Sequence[Sequence[int]], segments: Sequence[int] | None = None) -> Any:
        """Output and mask of one batch of token ids; `segments` says where each second text starts."""
        import numpy as np

        session, _ = self.ready()
        width = max(len(row) for row in rows)
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        types = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
            if segments is not None:
                types[number, segments[number] : len(row)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return session.run([session.get_outputs()[0].name], feed)[0], mask

    def _open(self, weights: bytes) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_mem_pattern = False  # shapes vary: plans for each would cost memory and time
        # Idle worker threads must sleep: a resident server would otherwise burn a core between queries.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        except RuntimeError as error:
            raise ProviderError(
                f"{self.model.name} cannot be loaded: {error}", "run: nanoclaw-memory models verify"
            ) from None


class LocalEmbedder:
    """e5-small-v2: mean-pooled, with its own prefixes for questions and passages."""

    weights = LOCAL_WEIGHTS

    def __init__(
        self, folder: Path, threads: int = 0, max_tokens: int = MAX_TOKENS, batch_tokens: int = BATCH_TOKENS
    ) -> None:
        self._onnx = OnnxModel(EMBEDDER, folder, threads)
        self._max_tokens = max_tokens
        # A text cut elsewhere has another vector, so the cut belongs to the identity.
        cut = "" if max_tokens == MAX_TOKENS else f"-{max_tokens}"
        self.identity = Identity("local", f"{EMBEDDER.name}-int8-{EMBEDDER.sha256[:8]}{cut}", DIMENSIONS)
        self._batch_tokens = batch_tokens

    @property
    def installed(self) -> bool:
        """Whether the model's files are there; a cheap look."""
        return self._onnx.installed

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Vectors:
        return self._embed([f"passage: {text}" for text in texts])

    def embed_query(self, text: str, deadline: float | None = None) -> Vectors:
        row: Vectors = self._embed([f"query: {text}"])[0]
        return row

    def _embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        _, tokenizer = self._onnx.ready()
        rows = [tokenizer.encode(text, self._max_tokens) for text in texts]
        # Texts of like length share a batch, so that little is spent on padding.
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        pooled = np.empty((len(rows), DIMENSIONS), dtype=np.float32)
        for batch in batches(order, [len(row) for row in rows], self._batch_tokens):
            hidden, mask = self._onnx.run([rows[number] for number in batch])
            pooled[batch] = _mean(hidden, mask)
        return checked(pooled, len(texts), self.identity)


def batches(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers in their order, cut where a batch padded to its longest would pass `tokens`; never empty."""
    batch: list[int] = []
    width = 0
    for number in order:
        width = max(width, lengths[number])
        if batch and width * (len(batch) + 1) > tokens:
            yield batch
            batch, width = [], lengths[number]
        batch.append(number)
    if batch:
        yield batch


def _mean(hidden: Vectors, mask: npt.NDArray[np.int64]) -> Vectors:
    """The mean of the token vectors of each text, padding left out."""
    weight = mask[:, :, None].astype(hidden.dtype)
    mean: Vectors = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
    return mean
