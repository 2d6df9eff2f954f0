"""Processes that answer questions beside the server while many wait: one process of Python uses one core."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from nanoclaw_memory.types import Scope

MOST = 3
IDLE_SECONDS = 60  # without a question, after which a process ends
CROWD = 6  # questions that wait, from which one more process is worth its start
# What needs no model; a search only with `fast`. What may write changes at most what anybody may change at any time.
OPERATIONS = frozenset({"search", "recall", "graph_search", "graph_query", "get", "log"})


class ReaderQuestion(msgspec.Struct, frozen=True):
    """A question for another process: an operation of the JSON API, as it came in."""

    scope: Scope
    operation: str
    given: dict[str, Any]
    asked_at: float


class ReaderAnswer(msgspec.Struct, frozen=True):
    """The answer: a status and JSON."""

    status: int
    body: bytes


class Readers:
    """The processes of one server; started when questions queue up, ended by themselves when they are idle."""

    def __init__(self, home: Path, most: int | None = None) -> None:
        self._home = home
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._most = min(MOST, cores - 1) if most is None else most
        self._processes: list[subprocess.Popen[bytes]] = []
        self._free: list[subprocess.Popen[bytes]] = []
        self._starting = self._closed = False
        self._guard = threading.Lock()

    def crowded(self, waiting: int) -> None:
        """So many questions wait: start one more process if that is worth it; nobody waits for it."""
        with self._guard:
            wanted = waiting >= CROWD and len(self._processes) < self._most
            if wanted and not self._starting and not self._closed:
                self._starting = True
                threading.Thread(target=self._start, name="reader", daemon=True).start()

    def answer(self, asked: ReaderQuestion) -> ReaderAnswer | None:
        """The answer of a process that is free; None when none is, or it has ended."""
        with self._guard:
            process = self._free.pop() if self._free else None
        if process is None:
            return None
        try:
            send(process.stdin, msgspec.msgpack.encode(asked))
            found = msgspec.msgpack.decode(receive(process.stdout), type=ReaderAnswer)
        except (OSError, ValueError):  # it has ended; whoever asks answers the question here
            self._drop(process)
            return None
        with self._guard:
            self._free.append(process)
        return found

    def close(self) -> None:
        """End the processes."""
        with self._guard:
            self._closed = True
            processes = list(self._processes)
        for process in processes:
            self._drop(process)

    def _start(self) -> None:
        answer = "from nanoclaw_memory.interfaces.http.reader import main; main()"
        command = [sys.executable, "-c", answer, str(self._home)]
        # A session of its own: Ctrl-C at the server's terminal ends the server, and that ends the process.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        with self._guard:
            self._processes.append(process)
            self._starting = False
        try:
            receive(process.stdout)  # it is ready
        except (OSError, ValueError):
            self._drop(process)
            return
        with self._guard:
            self._free.append(process)
            closed = self._closed
        if closed:
            self._drop(process)

    def _drop(self, process: subprocess.Popen[bytes]) -> None:
        with self._guard:
            self._processes = [one for one in self._processes if one is not process]
            self._free = [one for one in self._free if one is not process]
        process.kill()  # it only reads, or writes in transactions
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout)):
            with suppress(OSError):  # what was not sent
                stream.close()


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
