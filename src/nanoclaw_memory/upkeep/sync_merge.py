"""Merge two versions of one record, in whatever order they come: the newer holds, and no words are lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import reduce
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from nanoclaw_memory.store.records import StatementRecord
from nanoclaw_memory.types import ORIGINS

_STATUSES = ("held", "active", "expired", "archived", "superseded")
_STATES = ("candidate", "active", "metabolized", "retired")


def merge(versions: Iterable[Any]) -> Any:
    """All versions of one record as one; commutative, associative and idempotent."""
    return reduce(
        lambda one, other: one if one == other else _MERGES[type(one).__name__](one, other), versions
    )


def without_removed(record: Any, removed: Collection[str]) -> Any:
    """A statement that nothing has replaced any more: what did was deleted on purpose."""
    if isinstance(record, StatementRecord) and record.superseded_by in removed:
        return replace(record, valid_to=None, superseded_by="")
    return record


def _statement(one: Any, other: Any) -> Any:
    """An end stays an end, the earlier of two; the most trusted is the author."""
    ended = min((one, other), key=lambda row: (row.valid_to or "~", not row.superseded_by, row.superseded_by))
    least = {
        name: min(getattr(one, name), getattr(other, name))
        for name in one.__struct_fields__
        if name not in ("valid_to", "superseded_by", "origin", "shared", "importance", "permanent")
    }
    most = {
        name: max(getattr(one, name), getattr(other, name))
        for name in ("shared", "importance", "permanent")
        if name in one.__struct_fields__
    }
    author = min(one.origin, other.origin, key=ORIGINS.index)
    return type(one)(
        **least, **most, origin=author, valid_to=ended.valid_to, superseded_by=ended.superseded_by
    )


def _alias(one: Any, other: Any) -> Any:
    author = min(one.origin, other.origin, key=ORIGINS.index)
    least = {name: min(getattr(one, name), getattr(other, name)) for name in ("alias", "entity", "source")}
    return replace(one, **least, shared=one.shared or other.shared, origin=author)


def _entry(one: Any, other: Any) -> Any:
    """The one changed last, of two at once the one that has come further; the words of the other are kept."""
    older, newer = sorted(
        (one, other), key=lambda row: (row.updated_at, _STATUSES.index(row.status), _plain(row, "wordings"))
    )
    words = {*one.wordings, *other.wordings, older.content} - {newer.content}
    return replace(newer, wordings=tuple(sorted(words)))


def _proposal(one: Any, other: Any) -> Any:
    """The decision made last, under the id of the one that was made first."""
    first = min((one, other), key=lambda row: (row.created_at, row.id))
    last = max((one, other), key=lambda row: (row.decided_at or "", _plain(row, "id", "created_at")))
    return replace(last, id=first.id, created_at=first.created_at)


def _lesson(one: Any, other: Any) -> Any:
    """The one that was made again last; of two alike the one that a person has come further with."""
    return max((one, other), key=lambda row: (row.last_seen, row.seen, _STATES.index(row.state), _plain(row)))


def _exchange(one: Any, other: Any) -> Any:
    return max((one, other), key=_plain)


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "FactRecord": _statement,
    "RelationRecord": _statement,
    "AliasRecord": _alias,
    "EntryRecord": _entry,
    "ProposalRecord": _proposal,
    "LessonRecord": _lesson,
    "ExchangeRecord": _exchange,
}


def _plain(record: Any, *without: str) -> bytes:
    """A record as bytes, by which two can be put in order."""
    return msgspec.json.encode({name: value for name, value in asdict(record).items() if name not in without})
