"""A circuit breaker on disk: an outage costs one time-out, not one per query or per new process."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock

FIRST_REST_S = 30.0
LONGEST_REST_S = 600.0


class Rest(msgspec.Struct, frozen=True):
    """An endpoint that is left alone for a while, and why."""

    until: float
    failures: int
    reason: str


class Breaker:
    """Whether an endpoint may be called now; the state is one small file, shared by all processes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def resting(self) -> Rest | None:
        """The rest that is on, or None when a call may be made.

        When a rest has just ended, the caller that asks becomes the one probe: for the others the rest goes
        on until the probe is `closed` or `opened`, or a first rest has passed without either.
        """
        rest = self._read()
        if rest is None:
            return None
        now = self._now()
        # A rest further away than the longest one means that the machine's clock was set back.
        if now < rest.until <= now + LONGEST_REST_S:
            return rest
        self._write(Rest(now + FIRST_REST_S, rest.failures, rest.reason))
        return None

    def opened(self, reason: str, retry_after: float | None = None) -> None:
        """The endpoint failed: rest twice as long as the last time, or as long as it asked for."""
        before = self._read()
        failures = before.failures + 1 if before else 1
        rest = FIRST_REST_S * 2.0 ** min(failures - 1, 10)
        self._write(Rest(self._now() + min(max(rest, retry_after or 0.0), LONGEST_REST_S), failures, reason))

    def closed(self) -> None:
        """The endpoint answered."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def seconds_left(self) -> float:
        """How long the rest still lasts; 0 when calls go through. Only looks, for status."""
        rest = self._read()
        return max(0.0, rest.until - self._now()) if rest else 0.0

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _read(self) -> Rest | None:
        try:
            fields = json.loads(self._path.read_text(encoding="utf-8"))
            return Rest(float(fields["until"]), int(fields["failures"]), str(fields["reason"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # no file, or one that is not ours: the endpoint is tried

    def _write(self, rest: Rest) -> None:
        fields = {"until": rest.until, "failures": rest.failures, "reason": rest.reason}
        scratch = self._path.with_name(f".{self._path.name}.{os.getpid()}.{threading.get_ident()}")
        with suppress(OSError):  # a read-only disk costs the memory of an outage, never an answer
            private.make_folder(self._path.parent)
            with open(scratch, "w", encoding="utf-8", opener=private.opener) as stream:
                stream.write(json.dumps(fields))
            scratch.replace(self._path)
