"""Records: the fields of a row that are exchanged with other machines, identified by an id that all machines share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import EntryTable
from nanoclaw_memory.store.facts import FactTable, StatementTable, digest
from nanoclaw_memory.store.names import NameTable, fold, slot_of
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.store.table import assignments, insertion
from nanoclaw_memory.text import fingerprint

Origin = Literal["owner", "user", "agent", "shared", "import", "tool", "web"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The exchanged fields of one row, without its number and its use on this machine."""


class StatementRecord(Record, frozen=True, kw_only=True):
    """The common fields of facts and relations; `superseded_by` is the id of another record."""

    source: str
    origin: Origin
    shared: bool
    created_at: str
    valid_from: str
    valid_to: str | None
    project: str
    superseded_by: str = ""


class FactRecord(StatementRecord, frozen=True, kw_only=True):
    entity: str
    key: str
    value: str
    category: str
    importance: float
    permanent: bool


class RelationRecord(StatementRecord, frozen=True, kw_only=True):
    subject: str
    predicate: str
    object: str


class AliasRecord(Record, frozen=True, kw_only=True):
    alias: str
    entity: str
    source: str
    shared: bool
    origin: Origin


class EntryRecord(Record, frozen=True, kw_only=True):
    """An entry; `wordings` are its former texts."""

    id: str
    type: Literal[
        "preference",
        "instruction",
        "correction",
        "fact",
        "context",
        "project",
        "person",
        "decision",
        "insight",
    ]
    content: str
    tags: str
    priority: Literal[0, 1, 2, 3]
    reason: str
    related_to: str
    supersedes: str | None
    superseded_by: str | None
    superseded_at: str | None
    expires_at: str | None
    status: Literal["active", "held", "superseded", "archived", "expired"]
    suspicions: str
    token_cost: int
    session_id: str
    group_name: str
    author: Origin
    source: str
    project: str
    private: bool
    confirmed: Literal["", "approved", "said"]
    created_at: str
    updated_at: str
    wordings: tuple[str, ...] = ()


class ExchangeRecord(Record, frozen=True, kw_only=True):
    session_id: str
    user_message: str
    agent_response: str
    timestamp: str
    topic: str
    private: bool
    project: str
    origin: Origin
    foreign_lines: str


class LessonRecord(Record, frozen=True, kw_only=True):
    """A lesson; `exchange` is the id of the record that taught it. Its effectiveness is measured on each machine."""

    trigger_pattern: str
    lesson_text: str
    principle: str
    state: Literal["candidate", "active", "metabolized", "retired"]
    seen: int
    general: bool
    private: bool
    reach: Literal["general", "topic", "once"]
    why: str
    origin: Origin
    session_id: str
    created_at: str
    last_seen: str
    retired_because: str
    project: str = ""
    only_there: bool = False
    exchange: str = ""


class ProposalRecord(Record, frozen=True, kw_only=True):
    fingerprint: str
    id: str
    kind: str
    payload: str
    why: str
    source: str
    diff: str
    status: Literal["open", "accepted", "rejected"]
    created_at: str
    decided_at: str | None
    origin: str
    effect: str
    text_key: str


class TombstoneRecord(Record, frozen=True, kw_only=True):
    name: str
    slot: str
    digest: str
    text_fingerprint: str


class RemovalRecord(Record, frozen=True, kw_only=True):
    """A record that was deleted on purpose: other machines must not restore it."""

    kind: str
    removed: str


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of record is stored: its table, its identity, and the order of its lines."""

    record: type[Record]
    identity: Callable[[Any], tuple[str, ...]]
    order: Callable[[Any], tuple[str, ...]] = lambda one: ()
    database: str = ""  # empty: no table of its own
    table: str = ""
    key: str = "id"
    where: str = "1 = 1"
    texts: tuple[str, ...] = ()  # fields that must not contain forgotten texts
    names: Mapping[str, str] = {}  # the column of a field, if it has another name
    apart: str = ""  # the field that is no column: it refers to other rows

    @property
    def fields(self) -> list[str]:
        """Return the fields that are columns."""
        return [field for field in self.record.__struct_fields__ if field != self.apart]


_STATED = {"source": "coalesce(source, '')"}
KINDS: dict[str, Kind] = {
    "tombstones": Kind(
        record=TombstoneRecord,
        database="forgotten",
        table="tombstones",
        identity=lambda one: (one.name, one.slot, one.digest, one.text_fingerprint),
    ),
    "exchanges": Kind(
        record=ExchangeRecord,
        database="continuity",
        table="exchanges",
        identity=lambda one: (one.session_id, one.timestamp, one.user_message, one.agent_response),
        order=lambda one: (one.timestamp,),
        texts=("user_message", "agent_response", "topic"),
    ),
    "facts": Kind(
        record=FactRecord,
        database="facts",
        table="facts",
        identity=lambda one: (
            *(fold(one.entity), slot_of(one.key), one.project),
            *(digest(one.value), one.created_at),
        ),
        order=lambda one: (fold(one.entity), slot_of(one.key), one.valid_from),
        texts=("entity", "key", "value", "source"),
        names=_STATED,
        apart="superseded_by",
    ),
    "relations": Kind(
        record=RelationRecord,
        database="facts",
        table="relations",
        identity=lambda one: (
            *(fold(one.subject), slot_of(one.predicate), one.project),
            *(fold(one.object), one.created_at),
        ),
        order=lambda one: (fold(one.subject), slot_of(one.predicate), one.valid_from),
        texts=("subject", "predicate", "object", "source"),
        names=_STATED,
        apart="superseded_by",
    ),
    "aliases": Kind(
        record=AliasRecord,
        database="facts",
        table="aliases",
        key="rowid",
        identity=lambda one: (fold(one.alias), fold(one.entity)),
        order=lambda one: (fold(one.entity), fold(one.alias)),
        texts=("alias", "entity", "source"),
        names=_STATED,
    ),
    "lessons": Kind(
        record=LessonRecord,
        database="facts",
        table="growth_vectors",
        identity=lambda one: (one.created_at, one.session_id, one.trigger_pattern, one.principle),
        order=lambda one: (one.created_at,),
        texts=("trigger_pattern", "lesson_text", "principle", "retired_because"),
        names={"principle": "coalesce(principle, '')"},
        apart="exchange",
    ),
    "entries": Kind(
        record=EntryRecord,
        database="entries",
        table="entries",
        key="number",
        identity=lambda one: (one.id,),
        order=lambda one: (one.created_at,),
        texts=("content", "reason", "tags", "source"),
        apart="wordings",
    ),
    "proposals": Kind(
        record=ProposalRecord,
        database="entries",
        table="proposals",
        key="number",
        where="kind <> 'lesson'",  # each machine proposes its lessons by their local numbers
        identity=lambda one: (one.fingerprint,),
        order=lambda one: (one.created_at,),
        texts=("payload", "why", "source", "diff"),
    ),
    "removed": Kind(
        record=RemovalRecord,
        identity=lambda one: (one.kind, one.removed),
        order=lambda one: (one.kind, one.removed),
    ),
}


class StoredRecord(msgspec.Struct, frozen=True):
    """A record with the number of its row here."""

    number: int
    record: Any


def id_of(kind: str, record: Any) -> str:
    """Return the id by which every machine knows a record."""
    own = json.dumps(KINDS[kind].identity(record), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(own, digest_size=10).hexdigest()


class RecordStore:
    """The records of one world (private, or shared chats) in its databases. Writing needs open transactions."""

    def __init__(self, database: Callable[[str], Database], has: Callable[[str], bool]) -> None:
        self.database = database
        self.has = has

    # ---- reading ----

    def rows(self, kind: str) -> dict[str, StoredRecord]:
        """Return every record of a kind with its id."""
        own = KINDS[kind]
        if not own.database or not self.has(own.database):
            return {}
        fields = own.fields
        columns = ", ".join([own.key, *(own.names.get(name, name) for name in fields)])
        links = self._links(kind)
        found: dict[str, StoredRecord] = {}
        for number, *values in self.database(own.database).rows(
            f"SELECT {columns} FROM {own.table} WHERE {own.where} ORDER BY {own.key}"  # noqa: S608
        ):
            given = {**dict(zip(fields, values, strict=True)), **links.get(number, {})}
            record = msgspec.convert(given, own.record, strict=False)
            found[id_of(kind, record)] = StoredRecord(
                number, record
            )  # of two in one millisecond the later counts
        return self._linked(kind, found)

    def _links(self, kind: str) -> dict[int, dict[str, Any]]:
        """Return what belongs to a row and is in another table."""
        if kind != "entries":
            return {}
        sql = (
            "SELECT DISTINCT e.number, m.content FROM merges m JOIN entries e ON e.id = m.entry_id"
            " WHERE m.content <> e.content ORDER BY m.content"
        )
        words: dict[int, list[str]] = {}
        for number, content in self.database("entries").rows(sql):
            words.setdefault(number, []).append(content)
        return {number: {"wordings": tuple(sorted(found))} for number, found in words.items()}

    def _linked(self, kind: str, found: dict[str, StoredRecord]) -> dict[str, StoredRecord]:
        """Replace references between rows by the ids of records."""
        if kind in ("facts", "relations"):
            numbers = {row.number: name for name, row in found.items()}
            sql = f"SELECT id, superseded_by FROM {kind} WHERE superseded_by IS NOT NULL"  # noqa: S608
            links = {number: numbers.get(other, "") for number, other in self.database("facts").rows(sql)}
            field = "superseded_by"
        elif kind == "lessons":
            exchanges = {row.number: name for name, row in self.rows("exchanges").items()}
            sql = "SELECT id, exchange_id FROM growth_vectors WHERE exchange_id > 0"
            links = {number: exchanges.get(other, "") for number, other in self.database("facts").rows(sql)}
            field = "exchange"
        else:
            return found
        return {
            name: StoredRecord(row.number, msgspec.structs.replace(row.record, **{field: links[row.number]}))
            if links.get(row.number)
            else row
            for name, row in found.items()
        }

    def cursor(self, name: str) -> tuple[int, int] | None:
        """Return the present position in a database's history; None if there is none."""
        if not self.has(name):
            return None
        rows = self.database(name).query("SELECT seq, mark FROM outbox ORDER BY seq DESC LIMIT 1")
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    def continues(self, name: str, cursor: tuple[int, int] | None) -> bool:
        """Return whether a database continued from there: it was neither restored nor replaced since."""
        if cursor is None or not self.has(name):
            return False
        sql = "SELECT 1 FROM outbox WHERE seq = :seq AND mark = :mark"
        return bool(self.database(name).query(sql, {"seq": cursor[0], "mark": cursor[1]}))

    # ---- writing ----

    def put(self, kind: str, record: Any, number: int = 0) -> int:
        """Store a record as a new row, or in place of one; return the row's number."""
        if kind == "entries":
            return self._put_entry(record, number)
        values = self._values(kind, record)
        own, db = KINDS[kind], self.database(KINDS[kind].database)
        if number:
            sql = f"UPDATE {own.table} SET {assignments(values)} WHERE {own.key} = :number"  # noqa: S608
            db.execute(sql, {**values, "number": number})
            return number
        if kind in ("facts", "relations"):
            return self._statements(kind).insert(values)
        return db.insert(insertion(own.table, values), values)

    def _values(self, kind: str, record: Any) -> dict[str, Any]:
        """Return the columns of a row."""
        given = asdict(record)
        values = {
            name: int(given[name]) if isinstance(given[name], bool) else given[name]
            for name in KINDS[kind].fields
        }
        names = NameTable(self.database("facts")) if KINDS[kind].database == "facts" else None
        if names and kind == "facts":
            values |= {"name": names.learn(record.entity), "slot": slot_of(record.key)}
        elif names and kind == "relations":
            ends = {
                "subject_name": names.learn(record.subject),
                "object_name": names.learn(record.object),
            }
            values |= {**ends, "slot": slot_of(record.predicate)}
        elif names and kind == "aliases":
            values |= {"name": names.learn(record.alias), "target": names.learn(record.entity)}
        elif kind == "exchanges":
            values["fingerprint"] = fingerprint(f"{record.user_message}\x00{record.agent_response}")
        elif kind == "lessons":
            values["is_metabolized"] = int(record.state == "metabolized")
        return values

    def _put_entry(self, record: EntryRecord, number: int) -> int:
        from nanoclaw_memory.statements import text_key

        db = self.database("entries")
        given = {**asdict(record), "private": int(record.private), "text_key": text_key(record.content)}
        words = given.pop("wordings")
        number = EntryTable(db).put(given, number)
        db.execute_many(
            "INSERT INTO merges (entry_id, content, session_id, origin, merged_at) SELECT :id, :content, :session_id,"
            " :author, :updated_at WHERE NOT EXISTS (SELECT 1 FROM merges WHERE entry_id = :id AND content = :content)",
            [
                {name: given[name] for name in ("id", "session_id", "author", "updated_at")}
                | {"content": word}
                for word in words
            ],
        )
        return number

    def link(self, kind: str, numbers: Iterable[tuple[int, int | None]]) -> None:
        """Set references between rows: each number with the other's."""
        column = "exchange_id" if kind == "lessons" else "superseded_by"
        table = KINDS[kind].table
        self.database("facts").execute_many(
            f"UPDATE {table} SET {column} = :other WHERE id = :id",  # noqa: S608
            [{"id": number, "other": other} for number, other in numbers],
        )

    def delete(self, kind: str, row: StoredRecord) -> None:
        """Delete a row; a value that it had replaced is valid again."""
        record = row.record
        if kind in ("facts", "relations"):
            self._statements(kind).delete(row.number)
            self._prune(fold(record.entity if kind == "facts" else record.subject))
            if kind == "relations":
                self._prune(fold(record.object))
        elif kind == "aliases":
            NameTable(self.database("facts")).remove_alias(fold(record.alias), fold(record.entity))
        elif kind == "entries":
            EntryTable(self.database("entries")).delete(record.id)
        else:
            own = KINDS[kind]
            sql = f"DELETE FROM {own.table} WHERE {own.key} = :number"  # noqa: S608
            self.database(own.database).execute(sql, {"number": row.number})

    def _prune(self, name: str) -> None:
        NameTable(self.database("facts")).prune([name])

    def _statements(self, kind: str) -> StatementTable[Any]:
        db = self.database("facts")
        return FactTable(db) if kind == "facts" else RelationTable(db)
