"""The embedded models: one embedder out of two, on the CPU; nothing leaves the machine.

Texts are run one by one, in as many threads as there are cores. Batches, even of equal length, are no faster on a
CPU, take more memory, and share one 8-bit scale, so that a text's vector would depend on its company.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.calibration import LOCAL_WEIGHTS
from nanoclaw_memory.providers.embedder import Identity, checked
from nanoclaw_memory.providers.models import MULTILINGUAL, Model, installed, load
from nanoclaw_memory.providers.wordpiece import WordPiece

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Vectors
    from nanoclaw_memory.providers.multilingual import Encoder

DIMENSIONS = 384
MAX_TOKENS = 512
MAX_THREADS = 4
FEW = 8  # texts that somebody may wait for
LAST_CALL = 10.0  # seconds that the end of a process waits for a model; the slowest call is to load one
ASIDE = 15  # of the 19 steps of niceness: a thirtieth of a core that others need

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _NativeCalls:
    """Track the calls into native code, for which the end of the process waits.

    A daemon thread that comes back from native code when Python has ended is killed there, and C++ aborts the
    process.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._ended = False
        # Not by atexit: it runs after the threads of `each` have finished all their work.
        threading._register_atexit(self.end)  # type: ignore[attr-defined]

    def __enter__(self) -> None:
        with self._changed:
            if self._ended:
                raise ProviderError("the process ends", "nothing: it does not need an answer any more")
            self._running += 1

    def __exit__(self, *problem: object) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def end(self) -> None:
        """Admit no further call, and wait for those that are under way."""
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: self._running == 0, LAST_CALL)


_native = _NativeCalls()


class LocalModel:
    """A model of this machine: its verified files, and the threads that it may use."""

    def __init__(self, model: Model, folder: Path, threads: int = 0) -> None:
        self.model = model
        self.folder = folder
        self.threads = threads or min(os.cpu_count() or 1, MAX_THREADS)
        self._lock = threading.Lock()

    @property
    def installed(self) -> bool:
        """Return whether the files are there (by name and size)."""
        return installed(self.model, self.folder)

    def each(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item], aside: bool = False
    ) -> list[_Result]:
        """Run `work` on every item, started in their order, in as many threads as the model may use.

        `aside` lowers the priority, above all for a hook that waits.
        """
        if not aside and (len(items) < 2 or self.threads < 2):
            return [work(item) for item in items]
        pool = ThreadPoolExecutor(
            min(self.threads, len(items)), initializer=_lower_priority if aside else None
        )
        try:
            return list(pool.map(work, items))
        finally:
            pool.shutdown(cancel_futures=True)

    def _useless(self, error: Exception) -> ProviderError:
        return ProviderError(
            f"{self.model.name} cannot be used: {error}", "run: nanoclaw-memory models verify"
        )


class OnnxModel(LocalModel):
    """A verified ONNX model and its tokenizer, loaded on first use; safe to share between threads."""

    def __init__(self, model: Model, folder: Path, threads: int = 0) -> None:
        super().__init__(model, folder, threads)
        self._session: Any = None
        self._tokenizer: WordPiece | None = None

    @property
    def tokenizer(self) -> WordPiece:
        return self._ready()[1]

    def run(self, ids: Sequence[int], second: int | None = None, output: str = "") -> Vectors:
        """Return an output, by default the first, for one text's token ids; `second` is where the second text of a
        pair starts.
        """
        import numpy as np

        session, _ = self._ready()
        row = np.array([ids], dtype=np.int64)
        types = np.zeros_like(row)
        if second is not None:
            types[0, second:] = 1
        feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": types}
        try:
            with _native:
                found: Vectors = session.run([output or session.get_outputs()[0].name], feed)[0][0]
        except _onnx_errors() as error:
            raise self._useless(error) from None
        return found

    def mean(self, text: str, max_tokens: int) -> Vectors:
        """Return the mean over all pieces of a text, not normalised."""
        found: Vectors = self.run(self.ids(text, max_tokens)).mean(axis=0)
        return found

    def ids(self, text: str, max_tokens: int) -> list[int]:
        return self.tokenizer.encode(text, max_tokens)

    def _ready(self) -> tuple[Any, WordPiece]:
        with self._lock:
            if self._session is None or self._tokenizer is None:
                files = load(self.model, self.folder)
                self._tokenizer = WordPiece(files["vocab.txt"].decode("utf-8").split("\n")[:-1])
                with _native:
                    self._session = self._open(files["model.onnx"])
            return self._session, self._tokenizer

    def _open(self, weights: bytes) -> Any:
        try:
            session = runtime().InferenceSession(
                weights, session_options(), providers=["CPUExecutionProvider"]
            )
        except _onnx_errors() as error:
            raise self._useless(error) from None
        session._model_bytes = None  # a second copy of the weights, kept only to change providers later
        return session


class MultilingualModel(LocalModel):
    """multilingual-e5-small, loaded on first use; safe to share between threads."""

    _encoder: Encoder | None = None

    def mean(self, text: str, max_tokens: int) -> Vectors:
        """Return the mean over all pieces of a text, not normalised."""
        try:
            ids = self.ids(text, max_tokens)
            with _native:
                return self._ready().mean(ids)
        except _onnx_errors() as error:
            raise self._useless(error) from None

    def ids(self, text: str, max_tokens: int) -> list[int]:
        return self._ready().tokenizer.encode(text, max_tokens)

    def _ready(self) -> Encoder:
        from nanoclaw_memory.providers.multilingual import Encoder

        with self._lock:
            if self._encoder is None:
                with _native:
                    self._encoder = Encoder(self.folder / self.model.files[0].name, self.model.sha256)
            return self._encoder


def runtime() -> Any:
    """Import onnxruntime, which is imported nowhere else: it must be told first to report nothing."""
    # Since 1.29 the official build reports each session to its maker, and writes a device id into ~/.cache as soon as
    # it is imported. Nothing leaves this machine unasked.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def session_options() -> Any:
    """Return the options of a session: one thread, since texts are run in parallel."""
    options = runtime().SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # lengths vary: a plan for each would cost memory and time
    return options


def _lower_priority() -> None:
    """Lower this thread's priority; on Linux each thread has its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), ASIDE)


def _onnx_errors() -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises for an invalid model file; none of it is a RuntimeError."""
    state = runtime().capi.onnxruntime_pybind11_state
    own = (state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf, state.NotImplemented)
    return (*own, state.RuntimeException, RuntimeError, ValueError)


class LocalEmbedder:
    """A model of the e5 family: mean-pooled, with its own prefixes for questions and passages."""

    weights = LOCAL_WEIGHTS

    def __init__(self, model: Model, folder: Path, threads: int = 0, max_tokens: int = MAX_TOKENS) -> None:
        kind = MultilingualModel if model is MULTILINGUAL else OnnxModel
        self.model: OnnxModel | MultilingualModel = kind(model, folder, threads)
        self._max_tokens = max_tokens
        # A text cut elsewhere has another vector, so the cut belongs to the identity.
        cut = "" if max_tokens == MAX_TOKENS else f"-{max_tokens}"
        name = f"{model.name}-int{model.bits}-{model.sha256[:8]}{cut}"
        self.identity = Identity("local", name, DIMENSIONS)

    @property
    def installed(self) -> bool:
        """Return whether the model's files are there; a fast check."""
        return self.model.installed

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Vectors:
        # For many texts without a limit of time nobody waits.
        aside = deadline is None and len(texts) > FEW
        rows = self.model.each(lambda text: self._pooled(f"passage: {text}"), texts, aside)
        return checked(rows, len(texts), self.identity)

    def embed_query(self, text: str, deadline: float | None = None) -> Vectors:
        row: Vectors = checked([self._pooled(f"query: {text}")], 1, self.identity)[0]
        return row

    def _pooled(self, text: str) -> Vectors:
        return self.model.mean(text, self._max_tokens)
