"""A circuit breaker on disk: an outage costs one time-out, not one per query or per new process."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock

FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 600.0


class Outage(msgspec.Struct, frozen=True):
    """Until when an endpoint is not called, after how many failures, and why."""

    until: float
    failures: int
    reason: str


class Breaker:
    """Whether an endpoint may be called now; the state is one small file, shared by all processes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def outage(self) -> Outage | None:
        """The outage that keeps calls back, or None when a call may be made.

        When a pause has just ended, the caller becomes the one probe: for the others the pause goes on until
        the probe is `closed` or `opened`, or a first pause has passed without either.
        """
        known = self._read()
        if known is None:
            return None
        now = self._now()
        # An end further away than the longest pause means that the machine's clock was set back.
        if now < known.until <= now + LONGEST_PAUSE_S:
            return known
        self._write(Outage(now + FIRST_PAUSE_S, known.failures, known.reason))
        return None

    def opened(self, reason: str, retry_after: float | None = None) -> None:
        """The endpoint failed: pause twice as long as the last time, or as long as it asked for."""
        before = self._read()
        failures = before.failures + 1 if before else 1
        pause = FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10)
        until = self._now() + min(max(pause, retry_after or 0.0), LONGEST_PAUSE_S)
        self._write(Outage(until, failures, reason))

    def closed(self) -> None:
        """The endpoint answered."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def seconds_left(self) -> float:
        """How long the pause still lasts; 0 when calls go through. Changes nothing."""
        known = self._read()
        return max(0.0, known.until - self._now()) if known else 0.0

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _read(self) -> Outage | None:
        try:
            fields = json.loads(self._path.read_text(encoding="utf-8"))
            return Outage(float(fields["until"]), int(fields["failures"]), str(fields["reason"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # no file, or one that is not ours: the endpoint is tried

    def _write(self, outage: Outage) -> None:
        with suppress(OSError):  # a read-only disk costs the memory of an outage, never an answer
            private.replace_file(self._path, json.dumps(msgspec.structs.asdict(outage)))
