"""A pool of open memories, each used by one thread at a time; MCP tools for many scopes at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import NanoClawError, SettingsError
from nanoclaw_memory.interfaces.http.fair_queue import FairQueue, QueuedWork
from nanoclaw_memory.interfaces.http.readers import ReaderAnswer, ReaderQuestion, Readers
from nanoclaw_memory.interfaces.http.tokens import role_of
from nanoclaw_memory.interfaces.http.valid_settings import ValidSettings
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.memory.resources import Login
from nanoclaw_memory.settings.load import project_file
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.store.vectors import VectorCache

T = TypeVar("T")

MAX_FILES = 8192
MAX_WORKERS = 8
MAX_ROLES = 24  # workers where tokens are roles: each has its own, and few connections
MAX_THREADS = 4  # per worker; each has its connections
MAX_SESSIONS = 64  # per thread; each has its plugins
READING = frozenset({"search", "recall", "get", "log", "brief", "graph.search", "graph.query"})


class _Open(msgspec.Struct):
    """What one thread has open: a memory, and its views for sessions."""

    base: Memory
    sessions: OrderedDict[Hashable, Memory] = msgspec.field(default_factory=OrderedDict)


class MemoryWorker:
    """A group's memory for one privacy, origin and database role: a few threads, each with a memory of its own.

    All sessions that a thread serves share what it has open; nobody waits for a slow question of another.
    """

    def __init__(
        self,
        open_base: Callable[[], Memory],
        is_warm: Callable[[], bool],
        mistake: Callable[[], str],
        threads: int,
    ) -> None:
        self._open_base = open_base
        self._is_warm = is_warm
        self._mistake = mistake
        self._most = threads
        self._jobs: FairQueue[QueuedWork] = FairQueue()
        self._threads: list[threading.Thread] = []
        self._local = threading.local()

    def submit(self, client: Hashable, job: QueuedWork) -> None:
        """Queue work of a client for the next thread that is free."""
        self._jobs.put(client, job)
        if self._jobs.idle < 0 and len(self._threads) < self._most:
            self._threads.append(threading.Thread(target=self._serve, name="memory"))
            self._threads[-1].start()

    def session(self, scope: Scope) -> Memory:
        """Return the memory of a scope's session in its project; only for work in a thread of the worker's."""
        key = (scope.session_id, scope.project, scope.client)
        own: _Open = getattr(self._local, "own", None) or _Open(self._open_base())
        self._local.own = own
        memory = own.sessions.pop(key, None) or own.base.for_session(*key)
        own.sessions[key] = memory
        if len(own.sessions) > MAX_SESSIONS:
            own.sessions.popitem(last=False)[1].close()
        resources = memory.group.resources
        resources.resident = self._is_warm()
        resources.settings_mistake = self._mistake()
        resources.freshness.asked(self._local.asked_at)
        return memory

    def answer(self, scope: Scope, work: Callable[[Memory], T], asked_at: float) -> T:
        """Return the answer to a question in the calling thread."""
        self._local.asked_at = asked_at
        return work(self.session(scope))

    def opened(self, scope: Scope) -> nullcontext[Memory]:
        """Return the same as a context that does not close it."""
        return nullcontext(self.session(scope))

    @property
    def waiting(self) -> int:
        """Return how many jobs wait for a thread."""
        return self._jobs.waiting

    def close(self) -> None:
        """Finish the queued work, then close everything."""
        self._jobs.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        for job in self._jobs:
            self._local.asked_at = job.asked_at
            job.run()
        if own := getattr(self._local, "own", None):
            for memory in (*own.sessions.values(), own.base):
                memory.close()


class MemoryPool:
    """The workers of one home; the least recently used ones are closed. With fewer `files` to open there are fewer."""

    def __init__(self, home: Path, files: int = MAX_FILES, readers: int | None = None) -> None:
        self.home = home
        self.logins: dict[str, str] = {}  # tokens that are login roles of the database too, by their ids
        self._readers = Readers(home, readers)
        self.files = files
        self._workers: OrderedDict[
            tuple[str, bool, str, str, Path | None], tuple[tuple[int, int], MemoryWorker]
        ] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self.settings = ValidSettings(home)
        self._settings_changed_at: int | None = None
        self._closing: list[threading.Thread] = []
        self._embedder: Chain | None = None
        self._vectors: VectorCache | None = None
        self._warm = False
        self.used_at = time.monotonic()

    async def run(self, scope: Scope, work: Callable[[Memory], T], asked_at: float | None = None) -> T:
        """Return the result of work on a scope's memory, for the event loop."""
        return await asyncio.wrap_future(self.submit(scope, work, asked_at=asked_at))

    def submit(
        self,
        scope: Scope,
        work: Callable[[Memory], T],
        directory: Path | None = None,
        asked_at: float | None = None,
    ) -> Future[T]:
        """Queue work on the memory of a scope's session; raise ServerBusy if too much of its client's is waiting.

        `asked_at` is when a read-only question arrived.
        """
        return self.submit_to_worker(scope, lambda worker: work(worker.session(scope)), directory, asked_at)

    def answer(self, scope: Scope, work: Callable[[Memory], T], asked_at: float) -> T:
        """Return the answer to a question in the calling thread, which must be the only one that asks."""
        with self._lock:
            worker, retired = self._worker(scope, None)
            self._retire(retired)
        return worker.answer(scope, work, asked_at)

    def submit_reading(
        self, asked: ReaderQuestion, work: Callable[[Memory], T], convert: Callable[[ReaderAnswer], T]
    ) -> Future[T]:
        """Queue a question that another process answers, if one runs."""
        self.used_at = time.monotonic()
        future: Future[T] = Future()

        def answered(found: ReaderAnswer | None) -> None:
            if found is not None:
                future.set_result(convert(found))
                return
            try:  # the process has ended
                again = self.submit(asked.scope, work, asked_at=asked.asked_at)
            except NanoClawError as error:
                future.set_exception(error)
            else:
                again.add_done_callback(partial(_pass_on, future))

        alone = asked.scope.client in self.logins  # other processes do not know the role's password
        if alone or not self._readers.ask(asked, answered, future):
            future = self.submit(asked.scope, work, asked_at=asked.asked_at)
        self._readers.crowded(self._waiting())
        return future

    def _waiting(self) -> int:
        with self._lock:
            return sum(worker.waiting for _, worker in self._workers.values())

    def submit_to_worker(
        self,
        scope: Scope,
        work: Callable[[MemoryWorker], T],
        directory: Path | None = None,
        asked_at: float | None = None,
    ) -> Future[T]:
        """Queue work that chooses its session itself; `directory` may contain a project's settings."""
        self.used_at = time.monotonic()
        future: Future[T] = Future()
        with self._lock:
            worker, retired = self._worker(scope, directory)
            job = QueuedWork(lambda: work(worker), future, asked_at)
            worker.submit((scope.client, scope.session_id), job)
            self._retire(retired)
        return future

    def run_exclusive(self, scope: Scope, work: Callable[[Memory], T]) -> T:
        """Return the result of long work, on a separate memory so that no request waits for it."""
        with self.open(scope) as memory:
            return work(memory)

    def open(self, scope: Scope, directory: Path | None = None) -> Memory:
        """Return a separate memory that shares the embedding model; the caller closes it."""
        memory = Memory.open(self.home, scope, directory=directory)
        self._use_valid_settings(memory, directory)
        if token := self.logins.get(scope.client):
            memory.group.resources.login = Login(role_of(scope.client), token, shared=not scope.private)
        memory.group.resources.listing.watch()
        if self._embedder is not None:
            memory.group.resources.embedder = self._embedder
        with suppress(SettingsError):  # reported by whoever uses the settings
            self._vectors = self._vectors or memory.group.resources.vectors
            memory.group.resources.vectors = self._vectors
        return memory

    def warm(self) -> None:
        """Load the local models if they are installed: turns use them only once they are loaded."""
        with Memory.open(self.home) as memory, suppress(SettingsError):  # once they are repaired
            self._use_valid_settings(memory, None)
            own = memory.group.resources
            if not own.warm():
                return
            if memory.settings.embeddings.provider == "local":
                self._embedder = own.embedder
        with self._lock:
            self._warm = True
            self._retire(self._take_all())

    def close(self) -> None:
        """Finish the queued work and close everything; new work is refused."""
        with self._lock:
            self._closed = True
            self._retire(self._take_all())
        for thread in self._closing:
            thread.join()
        self._readers.close()

    def _retire(self, workers: list[MemoryWorker]) -> None:
        """Let workers finish what they have, without waiting for it."""
        self._closing = [thread for thread in self._closing if thread.is_alive()]
        for worker in workers:
            self._closing.append(threading.Thread(target=worker.close, name="closing"))
            self._closing[-1].start()

    def _worker(self, scope: Scope, directory: Path | None) -> tuple[MemoryWorker, list[MemoryWorker]]:
        """Return the scope's worker, and those it replaces."""
        if self._closed:
            raise NanoClawError("the server is stopping", "ask again without it")
        found = project_file(directory, self.home) if directory else None
        role = scope.client if scope.client in self.logins else ""
        key = (scope.group, scope.private, scope.origin, role, found)
        state = self.settings.of(found).changed_at
        self._notice_settings(state[0])
        known, worker = self._workers.pop(key, (state, None))
        retired = [worker] if worker is not None and known != state else []
        if worker is None or retired:
            own, where = replace(scope, session_id="", project=""), found.parent if found else None
            threads = _share(self.files, 512, MAX_THREADS)
            worker = MemoryWorker(
                lambda: self.open(own, where),
                lambda: self._warm,
                lambda: self.settings.of(found).mistake,
                threads,
            )
        self._workers[key] = (state, worker)
        most = MAX_ROLES if self.logins else MAX_WORKERS
        if len(self._workers) > _share(self.files, 128, most):
            retired.append(self._workers.popitem(last=False)[1][1])
        return worker, retired

    def _use_valid_settings(self, memory: Memory, directory: Path | None) -> None:
        """Let a memory use the last valid settings, if the files have a mistake now."""
        found = project_file(directory, self.home) if directory else None
        known = self.settings.of(found)
        if known.mistake and known.configuration:
            memory.group.resources.use(known.configuration, known.mistake)

    def _notice_settings(self, changed_at: int) -> None:
        """Discard workers after the settings changed, which may name another model."""
        if self._settings_changed_at not in (None, changed_at):
            self._embedder, self._vectors, self._warm = None, None, False
            threading.Thread(target=self.warm, name="warm", daemon=True).start()
        self._settings_changed_at = changed_at

    def _take_all(self) -> list[MemoryWorker]:
        workers = [worker for _, worker in self._workers.values()]
        self._workers.clear()
        return workers


def _pass_on(future: Future[Any], done: Future[Any]) -> None:
    if error := done.exception():
        future.set_exception(error)
    else:
        future.set_result(done.result())


def _share(files: int, each: int, most: int) -> int:
    return max(1, min(most, files // each))


def collect_less() -> None:
    """Collect cyclic garbage less often, and never among imported modules: that took a tenth of a question's time."""
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


# Set for each connection and request, and inherited by the threads that serve it.
CURRENT_SCOPE: ContextVar[tuple[Scope, Path | None]] = ContextVar("current_scope")


class ScopedMemory:
    """A Memory for the tools: each call, including those of a part's methods, runs in the current scope's worker."""

    def __init__(self, pool: MemoryPool, method: str = "") -> None:
        self._pool = pool
        self._method = method

    def __getattr__(self, name: str) -> ScopedMemory:
        return ScopedMemory(self._pool, f"{self._method}.{name}" if self._method else name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        scope, directory = CURRENT_SCOPE.get()

        def work(memory: Memory) -> Any:
            return attrgetter(self._method)(memory)(*args, **kwargs)

        asked_at = time.monotonic() if self._method in READING else None
        return self._pool.submit(scope, work, directory, asked_at).result()
