"""Run plugins in a thread, so that none can delay the turn, print into its output, or keep the process alive."""

from __future__ import annotations

import io
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec


class PluginResult(msgspec.Struct, frozen=True):
    """The value that a call returned, or why there is none, and how much it printed."""

    value: Any = None
    failure: str = ""
    printed: int = 0


class PluginThread:
    """Run one call at a time; a call that hangs is abandoned, and a new thread takes over."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] | None = None
        self._lock = threading.Lock()

    def run(self, work: Callable[[], Any], seconds: float) -> PluginResult:
        """Return the result of `work`, after at most `seconds`."""
        job = _Job(work)
        with self._lock:
            if self._jobs is None:
                self._jobs = queue.SimpleQueue()
                # A daemon thread: a plugin that hangs must not keep the process from ending.
                threading.Thread(target=_serve, args=(self._jobs,), daemon=True, name="turn").start()
            self._jobs.put(job)
            if job.done.acquire(timeout=max(seconds, 0.0)):
                return job.result
            self._jobs.put(_STOP)
            self._jobs = None
        return PluginResult(
            failure=f"passed its time limit of {seconds * 1000:.0f} ms", printed=job.sink.size
        )

    def close(self) -> None:
        """Let the thread end."""
        with self._lock:
            if self._jobs is not None:
                self._jobs.put(_STOP)
                self._jobs = None


class _Job:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Lock()  # locked until the call is done; an Event costs twice as much
        self.done.acquire()
        self.result = PluginResult()
        self.sink = _CountingSink()

    def run(self) -> None:
        _router.claim(self.sink)
        try:
            value = self.work()
        except BaseException as error:  # noqa: BLE001 the one place: a plugin's failure costs its block only
            self.result = PluginResult(failure=f"failed: {_described(error)}", printed=self.sink.size)
        else:
            self.result = PluginResult(value, printed=self.sink.size)
        finally:
            _router.release()
            self.done.release()


def _serve(jobs: queue.SimpleQueue[_Job]) -> None:
    while (job := jobs.get()) is not _STOP:
        job.run()


def _described(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _CountingSink(io.TextIOBase):
    """Count what is written to it."""

    def __init__(self) -> None:
        self.size = 0
        self.buffer = self

    def write(self, text: Any) -> int:
        self.size += len(text)
        return len(text)

    def writable(self) -> bool:
        return True


class _StdoutRouter:
    """Replace standard output while plugins run: their threads write into a sink, all others as before."""

    def __init__(self) -> None:
        self._sinks: dict[int, _CountingSink] = {}
        self._lock = threading.Lock()
        # Kept: before Python 3.12 `print` holds no reference to the output it writes to, and crashes when that is
        # freed.
        self._routed: _RoutedStdout | None = None

    def claim(self, sink: _CountingSink) -> None:
        with self._lock:
            self._sinks[threading.get_ident()] = sink
            if not isinstance(sys.stdout, _RoutedStdout):
                if self._routed is None or self._routed.real is not sys.stdout:
                    self._routed = _RoutedStdout(sys.stdout, self._sinks)
                sys.stdout = self._routed

    def release(self) -> None:
        with self._lock:
            self._sinks.pop(threading.get_ident(), None)
            if not self._sinks and isinstance(sys.stdout, _RoutedStdout):
                sys.stdout = sys.stdout.real


class _RoutedStdout:
    """A standard output that writes to the sink of the calling thread, if it has one."""

    def __init__(self, real: Any, sinks: dict[int, _CountingSink]) -> None:
        self.real = real
        self._sinks = sinks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sinks.get(threading.get_ident()) or self.real, name)

    def write(self, text: str) -> int:
        written: int = (self._sinks.get(threading.get_ident()) or self.real).write(text)
        return written


_router = _StdoutRouter()
_STOP = _Job(lambda: None)  # tells a thread to end
