"""Validate the fields of an entry, and compute how its importance fades."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime, time
from typing import Any

import msgspec

from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.store.entries import BEHAVIORAL, PRIORITIES
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Entry

FACTUAL = ("fact", "context", "project", "person", "decision", "insight")
TYPES = (*BEHAVIORAL, *FACTUAL)
MAX_CONTENT = 2_000
MAX_REASON = 500
MAX_TAGS = 10
MAX_TAG = 50
MAX_RELATED = 20
_BASE = {"critical": 1.0, "high": 0.75, "medium": 0.5, "low": 0.25}
_FADING_DAYS = 30
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Zs", "Zl", "Zp")


class EntryDraft(msgspec.Struct, frozen=True):
    """The checked fields of a new entry that a caller may set."""

    content: str
    type: str
    tags: tuple[str, ...] = ()
    priority: str = "medium"
    reason: str = ""
    related_to: tuple[str, ...] = ()
    supersedes: str | None = None
    expires: str | None = None


def draft(
    content: str,
    type: str = "",
    *,
    now: datetime,
    category: str = "",
    tags: Sequence[str] = (),
    priority: str = "",
    reason: str = "",
    context: str = "",
    related_to: Sequence[str] = (),
    supersedes: str | None = None,
    expires: str | None = None,
) -> EntryDraft:
    """Check every field and report the first wrong one. `category` means `type`, `context` means `reason`."""
    return EntryDraft(
        type=choice("type", _either("type", type, "category", category), TYPES),
        content=_text("content", content, MAX_CONTENT, required=True),
        tags=checked_tags(tags),
        priority=choice("priority", priority or "medium", PRIORITIES),
        reason=_text("reason", _either("reason", reason, "context", context), MAX_REASON),
        related_to=_ids("related_to", related_to),
        supersedes=_id("supersedes", supersedes),
        expires=expiry(expires, now),
    )


def choice(field: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words, or refuse the value."""
    if value == "":
        raise InvalidValue(f"{field}: it is missing", f"one of: {', '.join(allowed)}")
    if not isinstance(value, str) or value not in allowed:
        raise InvalidValue(f"{field}: {_shown(value)} is not allowed", f"one of: {', '.join(allowed)}")
    return value


def whole(field: str, value: Any, low: int, high: int) -> int:
    """Return a whole number within bounds, or refuse the value."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        number = isinstance(value, int) and not isinstance(value, bool)
        wrong = f"{value} is outside {low:,} to {high:,}" if number else f"{_shown(value)} is no whole number"
        raise InvalidValue(f"{field}: {wrong}", f"give a whole number from {low:,} to {high:,}")
    return value


def checked_tags(value: Any) -> tuple[str, ...]:
    """Return the tags without repeats; each is one line of at most 50 characters."""
    found: dict[str, str] = {}
    for tag in _strings("tags", value):
        if not tag or tag != one_line(tag) or len(tag) > MAX_TAG:
            raise InvalidValue(
                f"tags: {_shown(tag)} is refused", f"a tag is one line of 1 to {MAX_TAG} plain characters"
            )
        found.setdefault(tag.casefold(), tag)
    if len(found) > MAX_TAGS:
        raise InvalidValue(f"tags: {len(found)} are over the limit of {MAX_TAGS}", "keep the telling ones")
    return tuple(found.values())


def expiry(value: Any, now: datetime) -> str | None:
    """Return the moment of expiry in the stored format; a date lasts to its end in the user's zone."""
    if value in (None, ""):
        return None
    try:
        if not isinstance(value, str):
            raise ValueError
        moment = datetime.fromisoformat(value)
        if len(value) == 10:
            moment = datetime.combine(moment.date(), time(23, 59, 59))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
        text = stamp(moment)
    except (ValueError, OverflowError):
        raise InvalidValue(
            f"expires: {_shown(value)} is no date", "write it as YYYY-MM-DD or 2026-03-01T12:00:00Z"
        ) from None
    if moment <= now:
        raise InvalidValue(f"expires: {value} is in the past", "give a date that is still to come")
    return text


def united(one: tuple[str, ...], other: tuple[str, ...], most: int = MAX_TAGS) -> tuple[str, ...]:
    """Return both lists without repeats, up to a limit."""
    found: dict[str, str] = {}
    for text in (*one, *other):
        found.setdefault(text.casefold(), text)
    return tuple(found.values())[:most]


def higher(one: str, other: str) -> str:
    """Return the higher of two priorities."""
    return min(one, other, key=PRIORITIES.index)


def lower(one: str, other: str) -> str:
    """Return the lower of two priorities."""
    return max(one, other, key=PRIORITIES.index)


# ---- importance ----


def importance(entry: Entry, now: datetime) -> float:
    """Return 0 to 1: the priority's weight, fading logarithmically since the last use; critical never fades."""
    base = _BASE[entry.priority]
    if entry.priority == "critical":
        return base
    idle = max((now - moment_of(entry.used_at)).total_seconds() / 86_400, 0.0)
    return base / (1 + math.log1p(idle / (_FADING_DAYS * (1 + entry.reinforcements))))


# ---- inside ----


def _either(field: str, value: Any, alias: str, aliased: Any) -> Any:
    """Return the value set under either name; two different ones are refused."""
    if value and aliased and value != aliased:
        raise InvalidValue(f"{alias}: {_shown(aliased)} contradicts {field}", f"give {field} only")
    return value or aliased


def _text(field: str, value: Any, limit: int, required: bool = False) -> str:
    if value is None:
        value = ""
    if not isinstance(value, str):
        raise InvalidValue(f"{field}: {_shown(value)} is not text", f"{field} is plain text")
    if len(value) > limit:
        raise InvalidValue(
            f"{field}: {len(value):,} characters are over the limit of {limit:,}",
            "store the insight, not the conversation; split it if it holds several",
        )
    if "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidValue(f"{field}: it holds characters that are no text", "send it as plain UTF-8")
    if required and not _visible(value):
        raise InvalidValue(f"{field}: it is empty", "say what to remember in a sentence")
    return value.strip()


def _visible(text: str) -> bool:
    """Return whether a text has a visible character."""
    return any(unicodedata.category(char) not in _UNSEEN for char in one_line(text))


def _strings(field: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise InvalidValue(f"{field}: {_shown(value)} is not a list", f"{field} is a list of texts")
    for part in value:
        if not isinstance(part, str):
            raise InvalidValue(f"{field}: {_shown(part)} is not text", f"{field} is a list of texts")
    return list(value)


def _ids(field: str, value: Any) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(_strings(field, value)))
    if len(found) > MAX_RELATED:
        raise InvalidValue(f"{field}: {len(found)} are over the limit of {MAX_RELATED}", "name the closest")
    for entry_id in found:
        _id(field, entry_id)
    return found


def _id(field: str, value: Any) -> str | None:
    if value in (None, ""):
        return None
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_.:-]{1,80}", value):
        raise InvalidValue(
            f"{field}: {_shown(value)} is no entry id", "an id looks like mem-1f3c…; see: entries list"
        )
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…" + text[0]
