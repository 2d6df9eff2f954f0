"""Where texts stand in the databases, and how they leave them without a trace or a revival."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.store.chunks import Chunks
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import EntryTable
from nanoclaw_memory.store.facts import digest
from nanoclaw_memory.store.keywords import long_words
from nanoclaw_memory.store.names import NameTable
from nanoclaw_memory.store.phrases import Matcher, Phrases, Words, holds, texts_in, words_of
from nanoclaw_memory.store.tombstones import veiled


class Wanted(msgspec.Struct, frozen=True):
    """What is to go: whatever holds a text, belongs to a session or an entity, or is named by table and key."""

    matcher: Matcher = msgspec.field(default_factory=Phrases)
    session: str = ""
    names: frozenset[str] = frozenset()  # folded names of an entity
    keys: Mapping[str, frozenset[Any]] = msgspec.field(default_factory=dict)
    topics: frozenset[Words] = frozenset()  # of exchanges that go; active-context.md names them


class Place(msgspec.Struct, frozen=True):
    """A table with texts. With `instead` a row stays and only loses them."""

    table: str
    key: str
    columns: tuple[str, ...]
    session: str = ""  # the column that names the session
    joined: bool = False  # its columns make one sentence
    instead: str = ""
    only: str = ""


class Row(msgspec.Struct, frozen=True):
    """A row that is to go, with its texts."""

    key: Any
    texts: tuple[str, ...]


ENTRIES = (
    Place("entries", "number", ("content", "reason", "tags", "source"), "session_id"),
    Place("merges", "id", ("content",)),
    Place("proposals", "number", ("payload", "why", "source", "diff")),
)
LESSONS = (
    Place(
        "growth_vectors",
        "id",
        ("trigger_pattern", "lesson_text", "principle", "retired_because"),
        "session_id",
    ),
    Place("vector_outcomes", "id", ("query_text", "user_feedback"), "session_id"),
)
GRAPH = (
    Place("facts", "id", ("entity", "key", "value"), joined=True),
    Place("relations", "id", ("subject", "predicate", "object"), joined=True),
    Place("aliases", "rowid", ("alias", "entity")),
)
CONTINUITY = (
    Place("exchanges", "id", ("user_message", "agent_response", "topic"), "session_id"),
    Place("signs", "id", ("detail",), "session_id"),
    Place("tool_calls", "id", ("tool", "target"), "session_id"),
    Place("injections", "id", ("reason",), "session_id"),
    Place("compactions", "session_id", (), "session_id"),
)
SDK = (
    Place("history", "id", ("item",), "session_id"),
    Place("items", "id", ("namespace", "key", "value")),
)
MESSAGES = (
    Place(
        "messages",
        "rowid",
        ("content", "sender_name"),
        only="chat_jid IN (SELECT value FROM json_each(:chats))",
    ),
    Place(
        "chats",
        "jid",
        ("name",),
        instead="name = jid",
        only="jid IN (SELECT value FROM json_each(:chats)) AND name <> jid",
    ),
    Place(
        "task_run_logs",
        "id",
        ("result", "error"),
        instead="result = NULL, error = NULL",
        only="task_id IN (SELECT id FROM scheduled_tasks WHERE group_folder = :group)",
    ),
    Place(
        "scheduled_tasks",
        "id",
        ("last_result",),
        instead="last_result = NULL",
        only="group_folder = :group",
    ),
    Place("scheduled_tasks", "id", ("prompt",), only="group_folder = :group"),
    Place("registered_groups", "jid", ("name",), instead="name = folder", only="folder = :group"),
)


def rows_of(db: Database, place: Place, wanted: Wanted, params: Mapping[str, Any] | None = None) -> list[Row]:
    """The rows of a table that are to go."""
    named = wanted.keys.get(place.table, frozenset())
    columns = ", ".join([place.key, place.session or "''", *place.columns])
    where = f" WHERE {place.only}" if place.only else ""
    found = []
    for key, session, *values in db.rows(f"SELECT {columns} FROM {place.table}{where}", params):  # noqa: S608
        texts = tuple(text for value in values if value for text in texts_in(value))
        if (
            key in named
            or (wanted.session and session == wanted.session)
            or any(holds(wanted.matcher, text) for text in texts)
            or (place.joined and holds(wanted.matcher, " ".join(texts)))
        ):
            found.append(Row(key, texts))
    return found


def remove_rows(db: Database, place: Place, rows: Sequence[Row]) -> None:
    """Take rows of an ordinary table out; inside a transaction."""
    act = f"UPDATE {place.table} SET {place.instead}" if place.instead else f"DELETE FROM {place.table}"  # noqa: S608
    db.execute_many(f"{act} WHERE {place.key} = :key", [{"key": row.key} for row in rows])


def remove_entries(db: Database, rows: Sequence[Row]) -> None:
    """Take entries out; what they had replaced stays replaced: forgetting brings nothing back."""
    table = EntryTable(db)
    for row in rows:
        ((entry_id, successor),) = db.query(
            "SELECT id, superseded_by FROM entries WHERE number = :number", {"number": row.key}
        )
        db.execute(
            "UPDATE entries SET superseded_by = :successor WHERE superseded_by = :id",
            {"id": entry_id, "successor": successor},
        )
        table.delete(entry_id)


# ---- the graph ----


def graph_rows(
    db: Database, wanted: Wanted, kept_away: Collection[tuple[str, str, str]]
) -> dict[str, list[Row]]:
    """Facts, relations and aliases that are to go: by their texts, entity, session, or a tombstone."""
    found: dict[str, list[Row]] = {}
    names = {"names": json.dumps(sorted(wanted.names)), "source": f"session {wanted.session}"}
    named = "IN (SELECT value FROM json_each(:names))"
    marks = {"facts": "name, slot", "relations": "subject_name, slot", "aliases": "name, ''"}
    conditions = {
        "facts": f"name {named} OR source = :source",
        "relations": f"subject_name {named} OR object_name {named} OR source = :source",
        "aliases": f"name {named} OR target {named} OR source = :source",
    }
    for place in GRAPH:
        chosen = {row.key: row for row in rows_of(db, place, wanted)}
        columns = ", ".join([place.key, conditions[place.table], marks[place.table], *place.columns])
        for key, asked, name, slot, *texts in db.rows(f"SELECT {columns} FROM {place.table}", names):  # noqa: S608
            if asked or (kept_away and (veiled(name), veiled(slot), digest(texts[-1])) in kept_away):
                chosen[key] = Row(key, tuple(texts))
        found[place.table] = list(chosen.values())
    return found


def remove_graph(db: Database, rows: Mapping[str, Sequence[Row]]) -> None:
    """Take facts, relations and aliases out with their mentions, wires and unused names."""
    names: set[str] = set()
    for table, kind, columns in (
        ("facts", "fact", "name"),
        ("relations", "relation", "subject_name, object_name"),
        ("aliases", "", "name, target"),
    ):
        key = "rowid" if table == "aliases" else "id"
        for row in rows.get(table, ()):
            one = {"key": row.key, "kind": kind}
            for found in db.query(f"SELECT {columns} FROM {table} WHERE {key} = :key", one):  # noqa: S608
                names.update(found)
            db.execute("DELETE FROM mentions WHERE kind = :kind AND item = :key", one)
            db.execute(f"DELETE FROM {table} WHERE {key} = :key", one)  # noqa: S608
    NameTable(db).prune(names)


def clear_sources(db: Database, wanted: Wanted) -> None:
    """An import may name any source: one that tells is taken off what it is the source of."""
    for table in ("facts", "relations", "aliases"):
        for (source,) in db.query(f"SELECT DISTINCT source FROM {table} WHERE source <> ''"):  # noqa: S608
            if holds(wanted.matcher, str(source)):
                db.execute(
                    f"UPDATE {table} SET source = '' WHERE source = :source",  # noqa: S608
                    {"source": source},
                )


def graph_marks(db: Database, rows: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, str, str]]:
    """Name, key and digest of facts and relations, so that tombstones can keep them away."""
    for table, columns in (("facts", "name, slot, value"), ("relations", "subject_name, slot, object")):
        for row in rows.get(table, ()):
            sql = f"SELECT {columns} FROM {table} WHERE id = :id"  # noqa: S608
            for name, slot, value in db.query(sql, {"id": row.key}):
                yield name, slot, digest(value)


# ---- what exchanges leave behind ----


def lessons_from(db: Database, exchanges: Sequence[Row]) -> list[Row]:
    """Lessons that were learnt from exchanges, or that a question in them may call up."""
    ids = json.dumps([row.key for row in exchanges])
    openings = json.dumps([row.texts[0][:200] for row in exchanges if row.texts and row.texts[0]])
    sql = (
        "SELECT id FROM growth_vectors WHERE exchange_id IN (SELECT value FROM json_each(:ids))"
        " OR trigger_pattern IN (SELECT value FROM json_each(:openings))"
    )
    return [Row(key, ()) for (key,) in db.query(sql, {"ids": ids, "openings": openings})]


def topics_of(db: Database, exchanges: Sequence[Row]) -> frozenset[Words]:
    """What exchanges were about, in words of their own."""
    ids = json.dumps([row.key for row in exchanges])
    sql = "SELECT topic FROM exchanges WHERE id IN (SELECT value FROM json_each(:ids))"
    said = (words_of(str(topic)) for (topic,) in db.query(sql, {"ids": ids}))
    return frozenset(topic for topic in said if len(topic) > 1)


def outcomes_of(db: Database, exchanges: Sequence[Row]) -> list[Row]:
    """Injections that were made for the messages of exchanges."""
    asked = json.dumps([row.texts[0][:500] for row in exchanges if row.texts and row.texts[0]])
    sql = "SELECT id FROM vector_outcomes WHERE query_text IN (SELECT value FROM json_each(:asked))"
    return [Row(key, ()) for (key,) in db.query(sql, {"asked": asked})]


# ---- the search index ----


def files_with_chunks(chunks: Chunks, wanted: Wanted) -> dict[str, int]:
    """The indexed files that hold a wanted text, with the number of their chunks that do."""
    sql = "SELECT f.path, c.text, c.heading, c.speaker FROM chunks c JOIN files f ON f.id = c.file_id"
    found: dict[str, int] = {}
    for path, *texts in chunks.database.rows(sql):
        if any(holds(wanted.matcher, str(text)) for text in texts):
            found[path] = found.get(path, 0) + 1
    return found


def remove_from_index(chunks: Chunks, paths: Iterable[str], texts: Iterable[str]) -> None:
    """Drop whole files: what is left of them is indexed anew. Vectors go with their last chunk."""
    words = {word for text in texts for word in long_words(text)}
    with chunks.database.transaction():
        for path in paths:
            chunks.remove_file(path)
        chunks.database.execute(
            "DELETE FROM vectors WHERE fingerprint NOT IN (SELECT fingerprint FROM chunks)"
        )
        for word in words:
            if not chunks.occurrences(word):
                chunks.database.execute("DELETE FROM long_words WHERE word = :word", {"word": word})


# ---- the host's messages ----


def messages_of_session(db: Database, session: str, chats: Sequence[str]) -> frozenset[int]:
    """Row ids of what was asked and answered in a session."""
    if not session:
        return frozenset()
    sql = (
        "SELECT m.rowid FROM replies r JOIN messages m ON m.chat_jid = r.chat_jid AND (m.id = r.id OR"
        " m.arrival BETWEEN coalesce(r.first_arrival, 0) AND coalesce(r.last_arrival, -1))"
        " WHERE r.session_id = :session AND r.chat_jid IN (SELECT value FROM json_each(:chats))"
    )
    return frozenset(
        int(row[0]) for row in db.query(sql, {"session": session, "chats": json.dumps(list(chats))})
    )


def remove_replies(db: Database, messages: Sequence[Row]) -> None:
    """What was noted of answers that are to go."""
    db.execute_many(
        "DELETE FROM replies WHERE (id, chat_jid) = (SELECT id, chat_jid FROM messages WHERE rowid = :key)",
        [{"key": row.key} for row in messages],
    )


def chats_of(db: Database, group: str, main: bool) -> list[str]:
    """The chats of a group; those that belong to no group are the main one's."""
    sql = (
        "SELECT c.jid FROM chats c LEFT JOIN registered_groups g ON g.jid = c.jid"
        " WHERE g.folder = :group OR (:main AND g.folder IS NULL)"
    )
    return [str(jid) for (jid,) in db.query(sql, {"group": group, "main": main})]
