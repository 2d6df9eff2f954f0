"""The clock, passed as an argument, in the user's time zone; the stored format of moments and dates."""

from __future__ import annotations

import functools
import os
import time
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol

import msgspec

from nanoclaw_memory.errors import InvalidValue, SettingsError
from nanoclaw_memory.patterns import regex

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_FILE_TIME = 2**62  # in 2116; file systems have times that no database and no calendar can represent
_MONTH = regex(r"(\d{4})-(\d{2})\Z")
_DAY = regex(r"\d{4}-\d{2}-\d{2}\Z")


class Clock(Protocol):
    """Returns the time in the user's zone."""

    def now(self) -> datetime:
        """Return the current moment, aware, in the user's time zone."""


class SystemClock(msgspec.Struct, frozen=True):
    """The machine's clock; an empty zone means the machine's own."""

    timezone: str = ""

    def now(self) -> datetime:
        own = zone(self.timezone or _own_zone(os.environ.get("TZ", "")))
        return datetime.now(own) if own else datetime.now(UTC).astimezone()


class FixedClock(msgspec.Struct):
    """A clock that moves only when set; for tests, demos and simulations."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


def file_time(status: os.stat_result) -> int:
    """Return when a file was written, in nanoseconds since 1970, within the range that calendars can represent."""
    return min(max(status.st_mtime_ns, 0), _LAST_FILE_TIME)


def written_at(status: os.stat_result) -> str:
    """Return when a file was written, in the stored format."""
    return stamp(datetime.fromtimestamp(file_time(status) / 1e9, UTC))


def zone(name: str) -> tzinfo | None:
    """Return the time zone called `name`; None (the machine's own) when empty."""
    if not name:
        return None
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(
            f"unknown time zone {name!r}", "use an IANA name such as Europe/Berlin or America/Chicago"
        ) from None


def zone_named(typed: str) -> str:
    """Return the name of a time zone for its name or its city."""
    import zoneinfo

    from nanoclaw_memory.text import nearest_names

    cities = {one.rpartition("/")[2].lower(): one for one in sorted(zoneinfo.available_timezones())}
    city = typed.strip().replace(" ", "_").rpartition("/")[2].lower()
    found = typed if not typed or typed in cities.values() else cities.get(city, "")
    if typed and not found:
        near = ", ".join(cities[one] for one in nearest_names(city, cities))
        raise InvalidValue(
            f"there is no zone {typed!r}", f"{near or 'Europe/Berlin'}, or another large city of your zone"
        )
    return found


@functools.cache
def _own_zone(_setting: str) -> str:
    """Return the name of the machine's zone if its clocks change: today's offset is wrong for half of the year."""
    return machine_zone() if time.daylight else ""


def machine_zone() -> str:
    """Return the name of the machine's own time zone; empty if unknown."""
    named = os.environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    found = named or linked.removeprefix("posix/").removeprefix("Etc/")
    try:
        zone(found)
    except SettingsError:
        return ""
    return found


def next_by_cron(expression: str, after: datetime, hint: str) -> datetime:
    """Return the next moment of a cron expression, in the zone of `after`; 0 is Sunday."""
    from cronsim import CronSim, CronSimError

    try:
        found: datetime = next(CronSim(" ".join(expression.split()), after))
    except (CronSimError, StopIteration):
        raise InvalidValue(f"the cron expression {expression[:80]!r} never comes due", hint) from None
    return found


def stamp(moment: datetime) -> str:
    """Return a moment in the stored format: ISO 8601 in UTC, to the millisecond, sortable as text."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def read_moment(text: str) -> datetime:
    """Parse a moment that `stamp` wrote, or SQLite's `datetime('now')`; raise ValueError otherwise."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def moment_of(text: str) -> datetime:
    """Return the moment of a stored row; an unreadable one counts as long ago."""
    try:
        return read_moment(text)
    except ValueError:
        return LONG_AGO


def stored_day(text: str) -> str:
    """Return the day of a stored moment in UTC; an unreadable one counts as long ago."""
    try:
        return date.fromisoformat(text[:10]).isoformat() if text else ""
    except ValueError:
        return LONG_AGO.date().isoformat()


def local_day(text: str, zone: tzinfo | None) -> str:
    """Return the day of a stored moment in a zone, None the machine's own; a date stays that date."""
    return stored_day(text) if len(text) <= 10 else moment_of(text).astimezone(zone).date().isoformat()


def local_minute(text: str, zone: tzinfo | None) -> str:
    """Return a stored moment as a clock in a zone shows it, to the minute."""
    return moment_of(text).astimezone(zone).strftime("%Y-%m-%dT%H:%M") if text else ""


def start_of(text: str, now: datetime) -> str:
    """Return the stamp of the first moment of a date or month that a person wrote, in the user's zone."""
    return stamp(_local_moment(text, now))


def end_of(text: str, now: datetime) -> str:
    """Return the stamp of the last moment of a date or month that a person wrote, in the user's zone."""
    moment = _local_moment(text, now)
    plain = text.strip()
    if _MONTH.match(plain):
        following = (moment.replace(day=28) + timedelta(days=4)).replace(day=1)
        return stamp(following - timedelta(milliseconds=1))
    if _DAY.match(plain):
        return stamp(moment + timedelta(days=1) - timedelta(milliseconds=1))
    return stamp(moment)


def _local_moment(text: str, now: datetime) -> datetime:
    plain = text.strip()
    try:
        parsed = datetime.fromisoformat(f"{plain}-01" if _MONTH.match(plain) else plain)
    except (ValueError, OverflowError):
        raise InvalidValue(f"{text[:60]!r} is no date", "write it as YYYY-MM-DD, or YYYY-MM") from None
    if not 1 < parsed.year < 9999:
        raise InvalidValue(f"{text[:60]!r} is out of range", "write it as YYYY-MM-DD")
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=now.tzinfo)
