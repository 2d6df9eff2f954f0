"""Answer questions in processes beside the server while many wait: one Python process uses one core."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from nanoclaw_memory.interfaces.http.fair_queue import FairQueue
from nanoclaw_memory.types import Scope

MOST = 3
IDLE_SECONDS = 60  # without a question, after which a process ends
GRACE_SECONDS = 10  # for what a process has been given, when the server ends
AHEAD = 2  # frames that a process is given at a time: it need not wait for the next one
AT_ONCE = 4  # questions in one frame, where many wait: each frame wakes a process and, answered, the server
LONGEST = (
    4096  # bytes of a question for a process: those given to it fit into the pipe, and nobody waits to write
)
READY = b"ready"
CROWD = 6  # questions that wait, from which one more process is worth its start
# What needs no model; a search only with `fast`. What may write changes at most what anybody may change at any time.
# No graph query, which may take two seconds: here all others would wait for it.
OPERATIONS = frozenset({"search", "recall", "graph_search", "get", "log"})


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


Answered = Callable[[ReaderAnswer | None], None]


class ReaderJob(msgspec.Struct, frozen=True, eq=False):
    """A question that waits for a process; `answered` gets None if that ends before it answers."""

    question: bytes
    answered: Answered
    future: Future[Any]


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
        self._given: deque[list[Answered]] = deque()
        self._lock = threading.Lock()

    @property
    def given(self) -> int:
        """Return how many frames it has not answered yet."""
        return len(self._given)

    def ask(self, jobs: Sequence[ReaderJob]) -> None:
        """Send it questions in one frame."""
        with self._lock:
            if is_open := self.is_open:
                self._given.append([job.answered for job in jobs])
                frame = msgspec.msgpack.encode([msgspec.Raw(job.question) for job in jobs])
                with suppress(OSError, ValueError):  # it has ended: `receive` is told so too
                    send(self.process.stdin, frame)
        for job in () if is_open else jobs:
            job.answered(None)

    def receive(self, hand_out: Callable[[], None]) -> None:
        """Pass on its answers until it ends; `hand_out` is called whenever it has room for another question."""
        with suppress(OSError, ValueError):
            self.is_open = receive(self.process.stdout) == READY
            while True:
                hand_out()
                found = msgspec.msgpack.decode(receive(self.process.stdout), type=list[ReaderAnswer])
                for answered, one in zip(self._given.popleft(), found, strict=True):
                    answered(one)
        with self._lock:
            self.is_open = False
        self.process.kill()  # it only reads, or writes in transactions
        self.process.wait()
        for stream in filter(None, (self.process.stdin, self.process.stdout)):
            with suppress(OSError):  # what was not sent
                stream.close()
        for answered in itertools.chain(*self._given):
            answered(None)

    def close(self) -> None:
        """Send it nothing more: it answers what it has, and ends."""
        assert self.process.stdin is not None
        with self._lock, suppress(OSError):
            self.is_open = False
            self.process.stdin.close()


class Readers:
    """The processes of one server; started when questions queue up; they end by themselves when idle."""

    def __init__(self, home: Path, most: int | None = None) -> None:
        self._home = home
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # On one core they would only take turns with the server.
        self._most = min(MOST, cores if cores > 1 else 0) if most is None else most
        self._running: dict[threading.Thread, ReaderProcess | None] = {}
        self._queue: FairQueue[ReaderJob] = FairQueue()
        self._closed = False
        self._guard = threading.Lock()
        self._handing = threading.Lock()

    def crowded(self, waiting: int) -> None:
        """Start one more process if so many waiting questions justify it; nobody waits for it."""
        with self._guard:
            starting = any(one is None or not one.is_open for one in self._running.values())
            few = waiting + self._queue.waiting < CROWD
            if not few and len(self._running) < self._most and not starting and not self._closed:
                thread = threading.Thread(target=self._run, name="reader", daemon=True)
                self._running[thread] = None
                thread.start()

    def ask(self, asked: ReaderQuestion, answered: Answered, future: Future[Any]) -> bool:
        """Queue a question for the processes; return False if none runs, or if it is too long."""
        question = msgspec.msgpack.encode(asked)
        if len(question) > LONGEST or not self._open():
            return False
        client = asked.scope.client, asked.scope.session_id
        self._queue.put(client, ReaderJob(question, answered, future))
        self._hand_out()
        return True

    def _open(self) -> list[ReaderProcess]:
        return [one for one in list(self._running.values()) if one is not None and one.is_open]

    def _hand_out(self) -> None:
        """Send waiting questions to processes that have room; return them to the server if none runs any more."""
        with self._handing:
            while True:
                running = self._open()
                process = min(running, key=lambda one: one.given, default=None)
                if process is not None and process.given >= AHEAD:
                    return
                fair = self._queue.waiting // (AHEAD * len(running) or 1)
                jobs = self._taken(min(fair, AT_ONCE))
                if not jobs:
                    return
                if process is not None:
                    process.ask(jobs)
                else:
                    for job in jobs:
                        job.answered(None)

    def _taken(self, most: int) -> list[ReaderJob]:
        """Return the next questions, at least one if any waits; skip those that nobody waits for any more."""
        taken: list[ReaderJob] = []
        while len(taken) < max(most, 1) and (job := self._queue.take()) is not None:
            if job.future.set_running_or_notify_cancel():
                taken.append(job)
        return taken

    def close(self) -> None:
        """End the processes; their open questions are answered."""
        with self._guard:
            self._closed = True
            running = dict(self._running)
        for process in filter(None, running.values()):
            process.close()
        self._hand_out()
        for thread, one in running.items():
            thread.join(GRACE_SECONDS)
            if thread.is_alive() and one is not None:
                one.process.kill()

    def _run(self) -> None:
        own = threading.current_thread()
        try:
            process = ReaderProcess(self._home)
            with self._guard:
                self._running[own] = process
            process.receive(self._hand_out)
        finally:
            with self._guard:
                del self._running[own]
            self._hand_out()


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
