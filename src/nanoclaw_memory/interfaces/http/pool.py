"""Memories kept open between requests, each used by one thread of its own; MCP tools for many scopes at once."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.settings.load import FILE_NAME, project_file
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.providers.embedder import Chain

T = TypeVar("T")

MAX_FILES = 8192
MAX_WORKERS = 8
MAX_SESSIONS = 16  # per worker; each has its plugins, their thread and its connections: some ten files


class MemoryWorker:
    """One group's memory for one privacy and origin, and the thread that uses it; its sessions share what is open."""

    def __init__(self, base: Memory, is_warm: Callable[[], bool], sessions: int) -> None:
        self._base = base
        self._is_warm = is_warm
        self._most = sessions
        self._sessions: OrderedDict[tuple[str, str, str], Memory] = OrderedDict()
        # One thread: databases keep a connection per thread, and plugins are not made for two at a time.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memory")

    def submit(self, work: Callable[[MemoryWorker], T]) -> Future[T]:
        """Queue work for the thread."""
        return self._thread.submit(work, self)

    def session(self, scope: Scope) -> Memory:
        """The memory of a scope's session in its project; only for work in the worker's thread."""
        key = (scope.session_id, scope.project, scope.client)
        memory = self._sessions.pop(key, None) or self._base.for_session(*key)
        self._sessions[key] = memory
        memory.group.resources.resident = self._is_warm()
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)[1].close()
        return memory

    def close(self) -> None:
        """Finish the queued work, then close everything."""
        self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    def _close(self) -> None:
        for memory in self._sessions.values():
            memory.close()
        self._base.close()


class MemoryPool:
    """The workers of one home; the least recently used ones are closed. Fewer `files` to open: fewer of them."""

    def __init__(self, home: Path, files: int = MAX_FILES) -> None:
        self.home = home
        self.files = files
        self._workers: OrderedDict[
            tuple[str, bool, str, Path | None], tuple[tuple[int, int], MemoryWorker]
        ] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self._settings_changed_at: int | None = None
        self._embedder: Chain | None = None
        self._warm = False

    async def run(self, scope: Scope, work: Callable[[Memory], T]) -> T:
        """The result of work on a scope's memory, for the event loop."""
        return await asyncio.wrap_future(self.submit(scope, work))

    def submit(self, scope: Scope, work: Callable[[Memory], T], directory: Path | None = None) -> Future[T]:
        """Queue work on the memory of a scope's session."""
        return self.submit_to_worker(scope, lambda worker: work(worker.session(scope)), directory)

    def submit_to_worker(
        self, scope: Scope, work: Callable[[MemoryWorker], T], directory: Path | None = None
    ) -> Future[T]:
        """Queue work that chooses its session itself; `directory` may contain a project's settings."""
        with self._lock:
            worker, retired = self._worker(scope, directory)
            future = worker.submit(work)
        for other in retired:
            other.close()
        return future

    def run_exclusive(self, scope: Scope, work: Callable[[Memory], T]) -> T:
        """The result of long work, on a memory of its own so that no request waits for it."""
        with self.open(scope) as memory:
            return work(memory)

    def open(self, scope: Scope, directory: Path | None = None) -> Memory:
        """A memory of the caller's own that shares the embedding model."""
        memory = Memory.open(self.home, scope, directory=directory)
        if self._embedder is not None:
            memory.group.resources.embedder = self._embedder
        return memory

    def warm(self) -> None:
        """Load the local embedding model if it is installed: turns use it only once it is loaded."""
        with Memory.open(self.home) as memory:
            if memory.settings.embeddings.provider == "local" and memory.group.resources.embedder is not None:
                try:
                    memory.group.resources.embedder.embed_query("warm")
                except NanoClawError:
                    return  # not installed; `ncm doctor` reports it
                self._embedder = memory.group.resources.embedder
        with self._lock:
            self._warm = True
            retired = self._take_all()
        for worker in retired:
            worker.close()

    def close(self) -> None:
        """Finish the queued work and close everything; new work is refused."""
        with self._lock:
            self._closed = True
            retired = self._take_all()
        for worker in retired:
            worker.close()

    def _worker(self, scope: Scope, directory: Path | None) -> tuple[MemoryWorker, list[MemoryWorker]]:
        """The scope's worker, and those it replaces."""
        if self._closed:
            raise NanoClawError("the server is stopping", "ask again without it")
        found = project_file(directory, self.home) if directory else None
        key = (scope.group, scope.private, scope.origin, found)
        state = (_changed_at(self.home / FILE_NAME), _changed_at(found))
        self._notice_settings(state[0])
        known, worker = self._workers.pop(key, (state, None))
        retired = [worker] if worker is not None and known != state else []
        if worker is None or retired:
            base = self.open(replace(scope, session_id="", project=""), found.parent if found else None)
            worker = MemoryWorker(base, lambda: self._warm, _share(self.files, 256, MAX_SESSIONS))
        self._workers[key] = (state, worker)
        if len(self._workers) > _share(self.files, 128, MAX_WORKERS):
            retired.append(self._workers.popitem(last=False)[1][1])
        return worker, retired

    def _notice_settings(self, changed_at: int) -> None:
        """Changed settings may name another model."""
        if self._settings_changed_at not in (None, changed_at):
            self._embedder, self._warm = None, False
            threading.Thread(target=self.warm, name="warm", daemon=True).start()
        self._settings_changed_at = changed_at

    def _take_all(self) -> list[MemoryWorker]:
        workers = [worker for _, worker in self._workers.values()]
        self._workers.clear()
        return workers


def _share(files: int, each: int, most: int) -> int:
    return max(1, min(most, files // each))


def _changed_at(path: Path | None) -> int:
    try:
        return path.stat().st_mtime_ns if path else 0
    except OSError:
        return 0


# Set for each connection and request, and inherited by the threads that serve it.
CURRENT_SCOPE: ContextVar[tuple[Scope, Path | None]] = ContextVar("current_scope")


class ScopedMemory:
    """Looks like a Memory to the tools; each call, of a part's method too, runs in the current scope's worker."""

    def __init__(self, pool: MemoryPool, method: str = "") -> None:
        self._pool = pool
        self._method = method

    def __getattr__(self, name: str) -> ScopedMemory:
        return ScopedMemory(self._pool, f"{self._method}.{name}" if self._method else name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        scope, directory = CURRENT_SCOPE.get()

        def work(memory: Memory) -> Any:
            return attrgetter(self._method)(memory)(*args, **kwargs)

        return self._pool.submit(scope, work, directory).result()


def servers(pool: MemoryPool) -> dict[str, MCPServer]:
    """The MCP server of each set of tools."""
    from nanoclaw_memory.interfaces.mcp.server import build_server

    memory = cast("Memory", ScopedMemory(pool))
    return {tools: build_server(memory, tools) for tools in ("core", "all", "none")}
