"""The resident: memories kept open between requests, each used by one thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.settings.load import FILE_NAME, project_file
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain

T = TypeVar("T")

MOST_ROOMS = 8
MOST_SESSIONS = 16  # a room; each has its plugins, their thread and its connections


class Room:
    """One group's memory as one kind of asker sees it; its sessions share what is open."""

    def __init__(self, base: Memory, is_warm: Callable[[], bool]) -> None:
        self._base = base
        self._is_warm = is_warm
        self._sessions: OrderedDict[str, Memory] = OrderedDict()
        # One thread: databases keep a connection a thread, and plugins are not made for two at a time.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="room")

    def submit(self, work: Callable[[Room], T]) -> Future[T]:
        """Do this when everything asked before is done."""
        return self._thread.submit(work, self)

    def session(self, session_id: str) -> Memory:
        """The memory of one session; only work in the room's thread may ask."""
        memory = self._sessions.pop(session_id, None) or self._base.for_session(session_id)
        self._sessions[session_id] = memory
        memory.resident = self._is_warm()
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)[1].close()
        return memory

    def close(self) -> None:
        """Finish what was asked, then close everything."""
        self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    def _close(self) -> None:
        for memory in self._sessions.values():
            memory.close()
        self._base.close()


class Resident:
    """The rooms of one home; those not asked for longest are closed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._rooms: OrderedDict[tuple[str, bool, str, Path | None], tuple[tuple[int, int], Room]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()
        self._closed = False
        self._settings_at: int | None = None
        self._embedder: Chain | None = None
        self._warm = False

    def ask(self, scope: Scope, work: Callable[[Memory], T]) -> T:
        """The result of some work on a scope's memory; waits for it."""
        return self.submit(scope, work).result()

    async def answer(self, scope: Scope, work: Callable[[Memory], T]) -> T:
        """The same for the event loop."""
        return await asyncio.wrap_future(self.submit(scope, work))

    def submit(self, scope: Scope, work: Callable[[Memory], T], directory: Path | None = None) -> Future[T]:
        """Queue some work on a scope's memory."""
        return self.enter(scope, lambda room: work(room.session(scope.session_id)), directory)

    def enter(self, scope: Scope, work: Callable[[Room], T], directory: Path | None = None) -> Future[T]:
        """Queue some work on a room, whatever the session; `directory` may hold a project's settings."""
        with self._lock:
            room, left = self._room(scope, directory)
            future = room.submit(work)
        for other in left:
            other.close()
        return future

    async def settled(self, seconds: float) -> None:
        """Wait until nothing is being worked on, up to a limit."""
        with self._lock:
            ends = [asyncio.wrap_future(room.submit(lambda room: None)) for _, room in self._rooms.values()]
        if ends:
            await asyncio.wait(ends, timeout=seconds)
        await asyncio.sleep(0.05)  # answers on their way out

    def alone(self, scope: Scope, work: Callable[[Memory], T]) -> T:
        """The result of work that may last, on a memory of its own: nobody waits for it."""
        with self.open(scope) as memory:
            return work(memory)

    def open(self, scope: Scope, directory: Path | None = None) -> Memory:
        """A memory of the caller's own that shares the embedding model."""
        memory = Memory.open(self.home, scope, directory=directory)
        if self._embedder is not None:
            memory.embedder = self._embedder
        return memory

    def warm(self) -> None:
        """Load the local embedding model, if it is installed: turns use it only once it is there."""
        with Memory.open(self.home) as memory:
            if memory.settings.embeddings.provider == "local" and memory.embedder is not None:
                try:
                    memory.embedder.embed_query("warm")
                except NanoClawError:
                    return  # not installed; `ncm doctor` says so
                self._embedder = memory.embedder
        with self._lock:
            self._warm = True
            left = self._emptied()
        for room in left:
            room.close()

    def close(self) -> None:
        """Finish what was asked, and close everything; whoever asks now is refused."""
        with self._lock:
            self._closed = True
            left = self._emptied()
        for room in left:
            room.close()

    @property
    def rooms(self) -> int:
        """How many rooms are open."""
        return len(self._rooms)

    def _room(self, scope: Scope, directory: Path | None) -> tuple[Room, list[Room]]:
        """The scope's room, and those that were given up for it."""
        if self._closed:
            raise NanoClawError("the server is stopping", "ask again without it")
        found = project_file(directory, self.home) if directory else None
        key = (scope.group, scope.private, scope.origin, found)
        state = (_changed_at(self.home / FILE_NAME), _changed_at(found))
        self._notice_settings(state[0])
        known, room = self._rooms.pop(key, (state, None))
        left = [room] if room is not None and known != state else []
        if room is None or left:
            base = self.open(replace(scope, session_id=""), found.parent if found else None)
            room = Room(base, lambda: self._warm)
        self._rooms[key] = (state, room)
        if len(self._rooms) > MOST_ROOMS:
            left.append(self._rooms.popitem(last=False)[1][1])
        return room, left

    def _notice_settings(self, changed_at: int) -> None:
        """Another home's file may mean another model."""
        if self._settings_at not in (None, changed_at):
            self._embedder, self._warm = None, False
            threading.Thread(target=self.warm, name="warm", daemon=True).start()
        self._settings_at = changed_at

    def _emptied(self) -> list[Room]:
        left = [room for _, room in self._rooms.values()]
        self._rooms.clear()
        return left


def _changed_at(path: Path | None) -> int:
    try:
        return path.stat().st_mtime_ns if path else 0
    except OSError:
        return 0
