"""Processes that answer questions beside the server under load: one Python process uses one core."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from nanoclaw_memory.types import Scope

MOST = 3
IDLE_SECONDS = 60  # idle time after which a process ends
GRACE_SECONDS = 10  # for open questions of a process, when the server ends
AHEAD = 3  # questions that a process has at a time, so that it need not wait for the next one
READY = b"ready"
CROWD = 6  # waiting questions that justify one more process
# Operations that need no model; a search only with `fast`. Their writes are idempotent and safe at any time.
OPERATIONS = frozenset({"search", "recall", "graph_search", "graph_query", "get", "log"})


class ReaderQuestion(msgspec.Struct, frozen=True):
    """A question for another process: an operation of the JSON API, as it arrived."""

    scope: Scope
    operation: str
    given: dict[str, Any]
    asked_at: float


class ReaderAnswer(msgspec.Struct, frozen=True):
    """The answer: a status and JSON."""

    status: int
    body: bytes


Answered = Callable[[ReaderAnswer | None], None]


class ReaderProcess:
    """One process and its open questions; its answers come in their order."""

    def __init__(self, home: Path) -> None:
        answer = "from nanoclaw_memory.interfaces.http.reader import main; main()"
        command = [sys.executable, "-c", answer, str(home)]
        # A session of its own: Ctrl-C at the server's terminal ends the server, and that ends the process.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.is_open = False
        self._given: deque[Answered] = deque()
        self._lock = threading.Lock()

    def ask(self, asked: ReaderQuestion, answered: Answered) -> bool:
        """Send it a question, unless it has enough; `answered` gets None if it ends before it answers."""
        with self._lock:
            if not self.is_open or len(self._given) >= AHEAD:
                return False
            self._given.append(answered)
            with suppress(OSError, ValueError):  # it has ended: `receive` notices too
                send(self.process.stdin, msgspec.msgpack.encode(asked))
            return True

    def receive(self) -> None:
        """Pass on its answers until it ends."""
        with suppress(OSError, ValueError):
            self.is_open = receive(self.process.stdout) == READY
            while True:
                found = msgspec.msgpack.decode(receive(self.process.stdout), type=ReaderAnswer)
                self._given.popleft()(found)
        with self._lock:
            self.is_open = False
        self.process.kill()  # it only reads, or writes in transactions
        self.process.wait()
        for stream in filter(None, (self.process.stdin, self.process.stdout)):
            with suppress(OSError):  # buffered bytes that were not sent
                stream.close()
        for answered in self._given:
            answered(None)

    def close(self) -> None:
        """Send it nothing more: it answers what it has, and ends."""
        assert self.process.stdin is not None
        with self._lock, suppress(OSError):
            self.is_open = False
            self.process.stdin.close()


class Readers:
    """The processes of one server; started when questions queue up, ended by themselves when they are idle."""

    def __init__(self, home: Path, most: int | None = None) -> None:
        self._home = home
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._most = min(MOST, cores - 1) if most is None else most
        self._running: dict[threading.Thread, ReaderProcess | None] = {}
        self._closed = False
        self._guard = threading.Lock()

    def crowded(self, waiting: int) -> None:
        """Start one more process if so many waiting questions justify it; nobody waits for it."""
        with self._guard:
            starting = any(
                reader_process is None or not reader_process.is_open
                for reader_process in self._running.values()
            )
            if waiting >= CROWD and len(self._running) < self._most and not starting and not self._closed:
                thread = threading.Thread(target=self._run, name="reader", daemon=True)
                self._running[thread] = None
                thread.start()

    def ask(self, asked: ReaderQuestion, answered: Answered) -> bool:
        """Send a question to a process; return False when all have enough."""
        return any(
            reader_process.ask(asked, answered)
            for reader_process in list(self._running.values())
            if reader_process is not None
        )

    def close(self) -> None:
        """End the processes; their open questions are answered."""
        with self._guard:
            self._closed = True
            running = dict(self._running)
        for process in filter(None, running.values()):
            process.close()
        for thread, reader_process in running.items():
            thread.join(GRACE_SECONDS)
            if thread.is_alive() and reader_process is not None:
                reader_process.process.kill()

    def _run(self) -> None:
        own = threading.current_thread()
        try:
            process = ReaderProcess(self._home)
            with self._guard:
                self._running[own] = process
            process.receive()
        finally:
            with self._guard:
                del self._running[own]


def send(stream: IO[bytes] | None, frame: bytes) -> None:
    assert stream is not None
    stream.write(len(frame).to_bytes(4, "big") + frame)
    stream.flush()


def receive(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    head = stream.read(4)
    frame = stream.read(int.from_bytes(head, "big"))
    if len(head) < 4 or len(frame) < int.from_bytes(head, "big"):
        raise ValueError("the stream has ended")
    return frame
