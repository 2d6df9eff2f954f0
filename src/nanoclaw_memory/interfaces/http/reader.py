"""A process that answers questions beside the server: what `Readers` starts."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import msgspec

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.http.api import answer, failure
from nanoclaw_memory.interfaces.http.operations import OPERATIONS
from nanoclaw_memory.interfaces.http.pool import MemoryPool, collect_less
from nanoclaw_memory.interfaces.http.readers import (
    IDLE_SECONDS,
    READY,
    ReaderAnswer,
    ReaderQuestion,
    receive,
    send,
)

_KNOWN = {operation.name: operation for operation in OPERATIONS}


def main() -> None:
    """Answer questions from standard input until it ends, or until none comes for a while."""
    pool = MemoryPool(Path(sys.argv[1]), readers=0)
    collect_less()
    source, out = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    send(out, READY)
    while True:
        signal.alarm(IDLE_SECONDS)  # which ends the process
        try:
            questions = msgspec.msgpack.decode(receive(source), type=list[ReaderQuestion])
        except ValueError:
            break
        signal.alarm(0)
        send(out, msgspec.msgpack.encode([_answered(pool, one) for one in questions]))
    os._exit(0)  # databases need no farewell, and the server does not wait for one


def _answered(pool: MemoryPool, asked: ReaderQuestion) -> ReaderAnswer:
    operation = _KNOWN[asked.operation]
    work = partial(answer, operation, arguments=operation.check(asked.given))
    try:
        response = pool.answer(asked.scope, work, asked.asked_at)
    except NanoClawError as error:
        response = failure(error)
    return ReaderAnswer(response.status_code, bytes(response.body))
