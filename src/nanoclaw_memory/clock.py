"""Time comes in as an argument: a Clock, in the user's time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from typing import Protocol

import msgspec

from nanoclaw_memory.errors import SettingsError


class Clock(Protocol):
    """Tells the time in the user's zone."""

    def now(self) -> datetime:
        """The current moment, aware, in the user's time zone."""
        ...


class SystemClock(msgspec.Struct, frozen=True):
    """The machine's clock; an empty zone means the machine's own."""

    timezone: str = ""

    def now(self) -> datetime:
        return datetime.now(UTC).astimezone(zone(self.timezone))


class FixedClock(msgspec.Struct):
    """A clock that stands still until told to move; for tests, demos and simulations."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


def zone(name: str) -> tzinfo | None:
    """The time zone called `name`; None (the machine's own) when empty."""
    if not name:
        return None
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(
            f"unknown time zone {name!r}", "use an IANA name such as Europe/Berlin or America/Chicago"
        ) from None


def stamp(moment: datetime) -> str:
    """A moment as stored: ISO 8601 in UTC, to the millisecond, sortable as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def moment_of(text: str) -> datetime:
    """The moment that `stamp` wrote, or SQLite's own `datetime('now')` text."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def day_of(text: str) -> date:
    """A date given by a person as YYYY-MM-DD; ValueError otherwise."""
    return date.fromisoformat(text)
