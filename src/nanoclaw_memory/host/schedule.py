"""Compute when a task runs next: cron in the user's time zone, an interval, or once."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from nanoclaw_memory.clock import next_by_cron, stamp
from nanoclaw_memory.errors import InvalidValue

KINDS = ("cron", "interval", "once")
MIN_INTERVAL_MS = 1_000
MAX_INTERVAL_MS = 366 * 86_400_000
_SPAN = re.compile(r"(\d{1,11})\s*(ms|s|m|h|d)?\Z")
_CRON_HINT = 'give five fields: minute hour day month weekday, 0 is Sunday, for example "0 9 * * 1"'
_UNIT = {"ms": 1, None: 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def checked_value(kind: str, value: str, now: datetime) -> str:
    """Return a schedule in the stored form: five fields, milliseconds or a moment; raise InvalidValue if never due."""
    if kind == "cron":
        return _checked_cron(value, now)
    if kind == "interval":
        return str(interval_ms(value))
    if kind == "once":
        return stamp(_moment(value, now))
    raise InvalidValue(f"there is no schedule {kind[:40]!r}", f"use one of {', '.join(KINDS)}")


def first_run(kind: str, value: str, now: datetime) -> str:
    """Return when a new task runs first."""
    if kind == "once":
        return stamp(_moment(value, now))
    return next_run(kind, value, "", now)


def next_run(kind: str, value: str, planned: str, now: datetime) -> str:
    """Return the next time after `now`; empty for none. Missed times are skipped."""
    if kind == "once":
        return ""
    if kind == "cron":
        return stamp(next_by_cron(value, now, _CRON_HINT))
    step = timedelta(milliseconds=interval_ms(value))
    start = datetime.fromisoformat(planned) if planned else now
    # Counted from the planned time, so that slow runs do not make the task drift.
    missed = max((now - start) // step, 0)
    return stamp(start + step * (missed + 1))


def interval_ms(value: str) -> int:
    """Parse `15m`, `2h`, `90s`, `1d`, or milliseconds as v1 stores them."""
    match = _SPAN.match(value.strip())
    span = int(match[1]) * _UNIT[match[2]] if match else 0
    if not MIN_INTERVAL_MS <= span <= MAX_INTERVAL_MS:
        raise InvalidValue(
            f"an interval of {value[:40]!r} is refused", "give 1s to 366d, for example 15m, 2h or 1d"
        )
    return span


def _checked_cron(value: str, now: datetime) -> str:
    fields = " ".join(value.split())
    if len(fields) > 200 or len(fields.split(" ")) != 5:
        raise InvalidValue(f"{value[:80]!r} is no cron expression", _CRON_HINT)
    next_by_cron(fields, now, _CRON_HINT)
    return fields


def _moment(value: str, now: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.year < 1970:
            raise ValueError(value)
        # A person's time without a zone is in their own.
        return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidValue(f"{value[:80]!r} is no time", "write it as 2026-03-01T09:00") from None
