"""Dates as people give them: from the start of a day, until the end of a day or month."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import InvalidValue

_MONTH = re.compile(r"(\d{4})-(\d{2})\Z")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def start_of(text: str, now: datetime) -> str:
    """The stamp of a date's first moment (or of a moment) in the user's zone."""
    return stamp(_moment(text, now))


def end_of(text: str, now: datetime) -> str:
    """The stamp of a date's or month's last moment (or of a moment) in the user's zone."""
    moment = _moment(text, now)
    plain = text.strip()
    if _MONTH.match(plain):
        following = (moment.replace(day=28) + timedelta(days=4)).replace(day=1)
        return stamp(following - timedelta(milliseconds=1))
    if _DAY.match(plain):
        return stamp(moment + timedelta(days=1) - timedelta(milliseconds=1))
    return stamp(moment)


def _moment(text: str, now: datetime) -> datetime:
    plain = text.strip()
    try:
        parsed = datetime.fromisoformat(f"{plain}-01" if _MONTH.match(plain) else plain)
    except (ValueError, OverflowError):
        raise InvalidValue(f"{text[:60]!r} is no date", "write it as YYYY-MM-DD, or YYYY-MM") from None
    if not 1 < parsed.year < 9999:
        raise InvalidValue(f"{text[:60]!r} is out of range", "write it as YYYY-MM-DD")
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=now.tzinfo)
