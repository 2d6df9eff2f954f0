"""A thread that runs plugins so that none can hold up the turn, print into it, or keep the process alive."""

from __future__ import annotations

import io
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec


class Ran(msgspec.Struct, frozen=True):
    """What became of a piece of work: its result, or why there is none; and what it printed."""

    result: Any = None
    failure: str = ""
    printed: int = 0


class Worker:
    """Runs one piece of work at a time; one that hangs is left behind and a new thread takes over."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] | None = None
        self._lock = threading.Lock()

    def run(self, work: Callable[[], Any], seconds: float) -> Ran:
        """The outcome of `work`, after at most `seconds`."""
        job = _Job(work)
        with self._lock:
            if self._jobs is None:
                self._jobs = queue.SimpleQueue()
                # A daemon: whoever hangs must not keep the process from ending.
                threading.Thread(target=_serve, args=(self._jobs,), daemon=True, name="turn").start()
            self._jobs.put(job)
            if job.done.acquire(timeout=max(seconds, 0.0)):
                return job.ran
            self._jobs.put(_LAST)
            self._jobs = None
        return Ran(failure=f"passed its time limit of {seconds * 1000:.0f} ms", printed=job.sink.size)

    def close(self) -> None:
        """Let the thread end."""
        with self._lock:
            if self._jobs is not None:
                self._jobs.put(_LAST)
                self._jobs = None


class _Job:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Lock()  # held until it is; an Event costs twice as much
        self.done.acquire()
        self.ran = Ran()
        self.sink = _Sink()

    def perform(self) -> None:
        _printing.claim(self.sink)
        try:
            result = self.work()
        except BaseException as error:  # noqa: BLE001 the one place: a plugin's failure costs its block only
            self.ran = Ran(failure=f"failed: {_words(error)}", printed=self.sink.size)
        else:
            self.ran = Ran(result, printed=self.sink.size)
        finally:
            _printing.release()
            self.done.release()


def _serve(jobs: queue.SimpleQueue[_Job]) -> None:
    while (job := jobs.get()) is not _LAST:
        job.perform()


def _words(error: BaseException) -> str:
    said = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class _Sink(io.TextIOBase):
    """Counts what is written to it."""

    def __init__(self) -> None:
        self.size = 0
        self.buffer = self

    def write(self, text: Any) -> int:
        self.size += len(text)
        return len(text)

    def writable(self) -> bool:
        return True


class _Printing:
    """Standard output while plugins run: their threads write into a sink, all others as before."""

    def __init__(self) -> None:
        self._sinks: dict[int, _Sink] = {}
        self._lock = threading.Lock()

    def claim(self, sink: _Sink) -> None:
        with self._lock:
            self._sinks[threading.get_ident()] = sink
            if not isinstance(sys.stdout, _Divided):
                sys.stdout = _Divided(sys.stdout, self._sinks)

    def release(self) -> None:
        with self._lock:
            self._sinks.pop(threading.get_ident(), None)
            if not self._sinks and isinstance(sys.stdout, _Divided):
                sys.stdout = sys.stdout.real


class _Divided:
    """A standard output that asks which thread is writing."""

    def __init__(self, real: Any, sinks: dict[int, _Sink]) -> None:
        self.real = real
        self._sinks = sinks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sinks.get(threading.get_ident()) or self.real, name)

    def write(self, text: str) -> int:
        written: int = (self._sinks.get(threading.get_ident()) or self.real).write(text)
        return written


_printing = _Printing()
_LAST = _Job(lambda: None)  # tells a thread to end
