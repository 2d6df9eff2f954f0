"""A fair queue of work: clients take turns, and a flood is refused before it affects others."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Any

import msgspec

from nanoclaw_memory.errors import ServerBusy

MAX_WAITING = 256
LATER = object()  # returned by work that leaves its future to somebody else


class QueuedWork(msgspec.Struct, frozen=True, eq=False):
    """Work with its future, and when its question arrived (None for work that may write)."""

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
            if found is not LATER:
                self.future.set_result(found)


class FairQueue:
    """Jobs by client; iteration yields the next client's oldest, and ends when the queue is closed and empty."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._waiting: OrderedDict[Hashable, deque[QueuedWork]] = OrderedDict()
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()
        self.idle = 0  # threads that wait for a job, minus those that will be woken

    def put(self, client: Hashable, job: QueuedWork) -> None:
        """Queue a job; if the queue is full, the client with most jobs loses its newest."""
        refused = None
        with self._changed:
            if self._size >= self._most:
                greedy = max(self._waiting, key=lambda hashable: len(self._waiting[hashable]), default=client)
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
        """Accept no more work; queued work is still done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[QueuedWork]:
        while (job := self._next()) is not None:
            yield job

    def _next(self) -> QueuedWork | None:
        with self._changed:
            self.idle += 1
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            client, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft()
            self._size -= 1
            if jobs:
                self._waiting[client] = jobs  # behind all others
            return job


def _busy() -> ServerBusy:
    return ServerBusy("too many requests wait for this memory", "ask again in a second")
