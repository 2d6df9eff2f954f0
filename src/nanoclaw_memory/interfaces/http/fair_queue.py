"""Work that waits for a thread: every client's turn comes round, and a flood is refused before it reaches others."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from nanoclaw_memory.errors import ServerBusy

MAX_WAITING = 256


class Queued(Protocol):
    """Something that waits for its turn."""

    @property
    def future(self) -> Future[Any]:
        """Return the future of its result."""


J = TypeVar("J", bound=Queued)


class QueuedWork(msgspec.Struct, frozen=True, eq=False):
    """Work, its future, and when a question arrived (None for work that may write)."""

    work: Callable[[], Any]
    future: Future[Any]
    asked_at: float | None

    def run(self) -> None:
        """Do the work, unless nobody waits for it any more."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            found = self.work()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self.future.set_exception(error)
        else:
            self.future.set_result(found)


class FairQueue(Generic[J]):
    """Jobs by client; iteration yields the next client's oldest, and ends when the queue is closed and empty."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._waiting: OrderedDict[Hashable, deque[J]] = OrderedDict()
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()
        self.idle = 0  # threads that wait for a job, less those that one is there for

    def put(self, client: Hashable, job: J) -> None:
        """Queue a job; if the queue is full, the client with most jobs loses its newest."""
        refused = None
        with self._changed:
            if self._size >= self._most:
                greedy = max(self._waiting, key=lambda one: len(self._waiting[one]), default=client)
                if len(self._waiting.get(greedy, ())) <= len(self._waiting.get(client, ())) + 1:
                    raise _busy()
                refused = self._waiting[greedy].pop()
                self._size -= 1
                self.idle += 1
            self._waiting.setdefault(client, deque()).append(job)
            self._size += 1
            self.idle -= 1
            self._changed.notify()
        if refused is not None and refused.future.set_running_or_notify_cancel():
            refused.future.set_exception(_busy())

    def close(self) -> None:
        """Accept no more jobs; queued ones are still done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[J]:
        while (job := self._next()) is not None:
            yield job

    def take(self) -> J | None:
        """Return the next job without waiting, or None if the queue is empty."""
        with self._changed:
            if not self._waiting:
                return None
            self.idle += 1
            return self._pop()

    @property
    def waiting(self) -> int:
        """Return how many jobs wait for a thread."""
        return max(0, -self.idle)

    def _next(self) -> J | None:
        with self._changed:
            self.idle += 1
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            return self._pop()

    def _pop(self) -> J:
        client, jobs = self._waiting.popitem(last=False)
        job = jobs.popleft()
        self._size -= 1
        if jobs:
            self._waiting[client] = jobs  # behind all others
        return job


def _busy() -> ServerBusy:
    return ServerBusy("too many requests wait for this memory", "ask again in a second")
