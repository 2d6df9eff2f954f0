"""Merge two versions of one record, in any order; find conflicting changes of two machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from nanoclaw_memory.rendering import item_line
from nanoclaw_memory.settings.sections import GraphSettings
from nanoclaw_memory.statements import text_key
from nanoclaw_memory.store.names import slot_of
from nanoclaw_memory.store.records import KINDS, ProposalRecord, StatementRecord, StoredRecord, id_of
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import ORIGINS, trust

_STATUSES = ("held", "active", "expired", "archived", "superseded")
_STATES = ("candidate", "active", "metabolized", "retired")


def merge(versions: Iterable[Any]) -> Any:
    """Merge all versions of one record; commutative, associative and idempotent."""
    return reduce(
        lambda one, other: one if one == other else _MERGES[type(one).__name__](one, other), versions
    )


def without_removed(record: Any, removed: Collection[str]) -> Any:
    """Return a statement as current if its replacement was deleted on purpose."""
    if isinstance(record, StatementRecord) and record.superseded_by in removed:
        return replace(record, valid_to=None, superseded_by="")
    return record


def _statement(one: Any, other: Any) -> Any:
    """Merge statements: the earlier end wins; the most trusted author is kept."""
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
    """Merge entries: the latest change wins, of simultaneous ones the more advanced; the other's words are kept."""
    older, newer = sorted(
        (one, other), key=lambda row: (row.updated_at, _STATUSES.index(row.status), _plain(row, "wordings"))
    )
    words = {*one.wordings, *other.wordings, older.content} - {newer.content}
    return replace(newer, wordings=tuple(sorted(words)))


def _proposal(one: Any, other: Any) -> Any:
    """Merge proposals: the latest decision wins, under the id of the oldest."""
    first = min((one, other), key=lambda row: (row.created_at, row.id))
    last = max((one, other), key=lambda row: (row.decided_at or "", _plain(row, "id", "created_at")))
    return replace(last, id=first.id, created_at=first.created_at)


def _lesson(one: Any, other: Any) -> Any:
    """Merge lessons: the latest repetition wins, of equal ones the one with more decisions."""
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
    """Return a record as bytes, which define an order."""
    return msgspec.json.encode({name: value for name, value in asdict(record).items() if name not in without})


# ---- conflicts ----


WHY = "two machines did it without knowing of each other"


class ImportedRows(msgspec.Struct, frozen=True):
    """The rows of a kind after an import: which of them were imported, and which both machines had before."""

    kind: str
    rows: Mapping[str, StoredRecord]
    came: Collection[str]
    known: Collection[str]

    def concurrent_changes(self, found: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of imported and local rows since the last import; nothing if an older one exists beside them."""
        if found.keys() & set(self.known):  # both machines accepted it and added theirs
            return
        came = found.keys() & set(self.came)
        for name, other in product(sorted(came), sorted(found.keys() - came)):
            yield found[name], found[other]


def conflicting_values(merged: ImportedRows, own: GraphSettings, world: str) -> Iterator[ProposalRecord]:
    """Yield a proposal for every two values of a single-valued key."""
    named = own.multi_valued_keys if merged.kind == "facts" else own.single_valued_predicates
    slots = set(map(slot_of, named))
    values: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, row in merged.rows.items():
        if row.record.valid_to is None:
            about = KINDS[merged.kind].identity(row.record)[:3]
            if (about[1] in slots) != (merged.kind == "facts"):
                values.setdefault(about, {})[name] = row.record
    for found in values.values():
        for pair in merged.concurrent_changes(found):
            if trust(pair[0].origin) == trust(pair[1].origin):
                older, newer = sorted(pair, key=lambda one: (one.valid_from, _value(one)))
                yield _values_proposal(merged.kind, world, older, newer)


def _values_proposal(kind: str, world: str, older: Any, newer: Any) -> ProposalRecord:
    entity, key = (older.entity, older.key) if kind == "facts" else (older.subject, older.predicate)
    return _conflict(
        (world, kind, id_of(kind, older), id_of(kind, newer)),
        {"table": kind, "entity": entity, "key": key, "older": _value(older), "newer": _value(newer)},
        diff=f"- {item_line(f'{entity}.{key} = {_value(older)}')}\n+ {item_line(_value(newer))}",
        created_at=max(older.created_at, newer.created_at),
        origin=newer.origin,
        effect="the newer value holds and the older one is history; if rejected, both stay",
    )


def conflicting_successors(merged: ImportedRows, world: str) -> Iterator[ProposalRecord]:
    """Yield a proposal for every two entries that replace the same one."""
    successors: dict[str, dict[str, Any]] = {}
    for name, row in merged.rows.items():
        if row.record.supersedes and row.record.status == "active":
            successors.setdefault(row.record.supersedes, {})[name] = row.record
    for found in successors.values():
        for pair in merged.concurrent_changes(found):
            older, newer = sorted(pair, key=lambda one: (one.created_at, one.id))
            yield _conflict(
                (world, merged.kind, older.id, newer.id),
                {"table": "entries", "older": older.id, "newer": newer.id},
                diff=f"- {item_line(older.content)}\n+ {item_line(newer.content)}",
                created_at=max(older.created_at, newer.created_at),
                origin=newer.author,
                effect="the newer entry replaces the older one; if rejected, both stay",
            )


def _conflict(key: tuple[str, ...], payload: dict[str, str], **fields: str) -> ProposalRecord:
    """Return an open proposal under an id that is the same on every machine."""
    mark = fingerprint("\n".join(("conflict", *key)))
    return ProposalRecord(
        fingerprint=mark,
        id=f"prop-{mark[:12]}",
        kind="conflict",
        payload=json.dumps(payload, ensure_ascii=False),
        why=WHY,
        source=payload.get("entity", payload["older"]),
        status="open",
        decided_at=None,
        text_key="",
        **fields,
    )


def stored_twice(rows: Mapping[str, StoredRecord]) -> Iterator[tuple[str, Any, str]]:
    """Yield entries that repeat a more trusted or earlier one: id, new status, and the other's id."""
    said: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    for name, row in rows.items():
        if row.record.status == "active":
            said.setdefault((row.record.type, text_key(row.record.content)), []).append((name, row.record))
    for found in said.values():
        kept, *others = sorted(
            found, key=lambda one: (ORIGINS.index(one[1].author), one[1].created_at, one[1].id)
        )
        for name, one in others:
            moment = max(kept[1].updated_at, one.updated_at)
            ended = {"superseded_by": kept[1].id, "superseded_at": moment, "updated_at": moment}
            yield name, replace(one, status="superseded", **ended), kept[1].author


def _value(record: Any) -> str:
    return str(record.value if hasattr(record, "value") else record.object)
