"""Where texts are in the databases: one table of places for each, and how rows are removed without a trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import EntryTable
from nanoclaw_memory.store.facts import digest
from nanoclaw_memory.store.keywords import long_words
from nanoclaw_memory.store.lessons import ABOUT, trigger_of
from nanoclaw_memory.store.names import NameTable, fold
from nanoclaw_memory.store.passages import FILES, Passages
from nanoclaw_memory.store.phrases import Phrases, Words, holds, texts_in, words_of
from nanoclaw_memory.store.tombstones import name_fingerprint
from nanoclaw_memory.store.vectors import drop_removed


class Wanted(msgspec.Struct, frozen=True):
    """What to remove: rows that contain a text, belong to a session or an entity, or are named by table and key."""

    matcher: Phrases = Phrases()
    session: str = ""
    names: frozenset[str] = frozenset()  # folded names of an entity
    keys: Mapping[str, frozenset[Any]] = msgspec.field(default_factory=dict)
    topics: frozenset[Words] = frozenset()  # of exchanges to remove; active-context.md names them


class Row(msgspec.Struct, frozen=True):
    """A row to remove, with its texts."""

    key: Any
    texts: tuple[str, ...]


class TextPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A table with texts. Its conditions and statements are SQL with the parameters of `parameters`, and `:key`."""

    table: str
    columns: tuple[str, ...] = ()
    key: str = "id"
    counted: str = ""  # the name under which the result counts its rows; empty: not counted
    joined: bool = False  # its columns form one sentence
    only: str = "1 = 1"  # the rows to which it applies at all
    also: str = "1 = 0"  # the rows to remove whatever they contain
    before: tuple[str, ...] = ()  # statements that remove the row's dependants
    instead: str = ""  # set this instead of removing the row


def remove_entries(db: Database, rows: Sequence[Row]) -> None:
    """Remove entries; entries that they had replaced are not restored."""
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


def remove_names(db: Database, rows: Sequence[Row]) -> None:
    """Drop names that only removed facts, relations and aliases used."""
    NameTable(db).prune({fold(text) for row in rows for text in row.texts})


_SESSION = "(session_id = :session AND :session <> '')"
_NAMED = "IN (SELECT value FROM json_each(:names))"
_EXCHANGES = "IN (SELECT value FROM json_each(:exchanges))"
_OPENINGS = "IN (SELECT value FROM json_each(:openings))"
_QUESTIONS = "IN (SELECT value FROM json_each(:questions))"
_LESSON = "CASE WHEN payload LIKE '{%}' THEN json_extract(payload, '$.lesson') END"  # unless it is damaged
_LESSONS = "IN (SELECT value FROM json_each(:lessons))"  # the remaining lessons
# A lesson's own words, without the subject that was added from the answer before it.
_RULE = (
    f"CASE WHEN instr(lesson_text, '{ABOUT}') > 0"
    f" THEN substr(lesson_text, 1, instr(lesson_text, '{ABOUT}') - 1) ELSE lesson_text END"
)
_CHATS = "IN (SELECT value FROM json_each(:chats))"
_TASKS = "(SELECT id FROM scheduled_tasks WHERE group_folder = :group)"
_SAID_IN_SESSION = (
    "rowid IN (SELECT m.rowid FROM replies r JOIN messages m ON m.chat_jid = r.chat_jid AND (m.id = r.id"
    " OR m.arrival BETWEEN coalesce(r.first_arrival, 0) AND coalesce(r.last_arrival, -1))"
    " WHERE r.session_id = :session AND :session <> '')"
)
_REPLY = "DELETE FROM replies WHERE (id, chat_jid) = (SELECT id, chat_jid FROM messages WHERE rowid = :key)"

ENTRY = TextPlace(
    table="entries",
    key="number",
    columns=("content", "reason", "tags", "source"),
    also=_SESSION,
    counted="entries",
)
WORDING = TextPlace(table="merges", columns=("content",), counted="wordings")
EXCHANGE = TextPlace(
    table="exchanges",
    columns=("user_message", "agent_response", "topic"),
    also=_SESSION,
    counted="exchanges",
)
# The places of each step, in order: lessons come from exchanges, so they are removed before them.
PLACES: dict[str, tuple[TextPlace, ...]] = {
    "published": (msgspec.structs.replace(ENTRY, counted="published"),),
    "messages": (
        TextPlace(
            table="messages",
            key="rowid",
            columns=("content", "sender_name"),
            only=f"chat_jid {_CHATS}",
            also=_SAID_IN_SESSION,
            before=(_REPLY,),
            counted="messages",
        ),
        TextPlace(
            table="chats",
            key="jid",
            columns=("name",),
            only=f"jid {_CHATS} AND name <> jid",
            instead="name = jid",
            counted="messages",
        ),
        TextPlace(
            table="task_run_logs",
            columns=("result", "error"),
            only=f"task_id IN {_TASKS}",
            instead="result = NULL, error = NULL",
            counted="tasks",
        ),
        TextPlace(
            table="scheduled_tasks",
            columns=("last_result",),
            only="group_folder = :group",
            instead="last_result = NULL",
            counted="tasks",
        ),
        TextPlace(
            table="scheduled_tasks",
            columns=("prompt",),
            only="group_folder = :group",
            before=(
                "DELETE FROM task_run_logs WHERE task_id = :key",
                "DELETE FROM task_leases WHERE task_id = :key",
            ),
            counted="tasks",
        ),
        TextPlace(
            table="registered_groups",
            key="jid",
            columns=("name",),
            only="folder = :group",
            instead="name = folder",
            counted="messages",
        ),
    ),
    "sdk": (
        TextPlace(table="history", columns=("item",), also=_SESSION, counted="sdk_items"),
        TextPlace(table="items", columns=("namespace", "key", "value"), counted="sdk_items"),
    ),
    "lessons": (
        TextPlace(
            table="growth_vectors",
            columns=(_RULE, "principle", "retired_because"),
            also=f"{_SESSION} OR exchange_id {_EXCHANGES}",
            counted="lessons",
        ),
        # A rule outlives the talk in which it was taught, and loses what it had noted of that.
        TextPlace(
            table="growth_vectors",
            columns=("trigger_pattern", "lesson_text"),
            also=f"trigger_pattern {_OPENINGS}",
            instead=f"trigger_pattern = {_RULE}, lesson_text = {_RULE}",
        ),
        TextPlace(
            table="vector_outcomes",
            columns=("query_text", "user_feedback"),
            also=f"{_SESSION} OR query_text {_QUESTIONS}",
            counted="turn_notes",
        ),
    ),
    "continuity": (
        EXCHANGE,
        TextPlace(table="signs", columns=("detail",), also=_SESSION, counted="turn_notes"),
        TextPlace(table="tool_calls", columns=("tool", "target"), also=_SESSION, counted="turn_notes"),
        TextPlace(table="injections", columns=("reason",), also=_SESSION, counted="turn_notes"),
        TextPlace(table="compactions", key="session_id", also=_SESSION, counted="turn_notes"),
        TextPlace(table="injections", also="lines <> '[]'", instead="lines = '[]'"),  # copies of any memory
        TextPlace(table="session_starts", also="1 = 1"),
        TextPlace(table="given_lines", also="1 = 1"),
        TextPlace(table="graph_answers", key="question", also="1 = 1"),  # a cache of one minute
    ),
    "graph": (
        TextPlace(
            table="facts",
            columns=("entity", "key", "value"),
            joined=True,
            also=f"name {_NAMED} OR source = :source",
            before=("DELETE FROM mentions WHERE kind = 'fact' AND item = :key",),
            counted="facts",
        ),
        TextPlace(
            table="relations",
            columns=("subject", "predicate", "object"),
            joined=True,
            also=f"subject_name {_NAMED} OR object_name {_NAMED} OR source = :source",
            before=("DELETE FROM mentions WHERE kind = 'relation' AND item = :key",),
            counted="relations",
        ),
        TextPlace(
            table="aliases",
            key="rowid",
            columns=("alias", "entity"),
            also=f"name {_NAMED} OR target {_NAMED} OR source = :source",
            counted="aliases",
        ),
        TextPlace(table="verdicts", key="rowid", columns=("reason",)),
        # An import may name any source: a remaining row loses a label that contains the text.
        TextPlace(table="facts", columns=("source",), instead="source = ''"),
        TextPlace(table="relations", columns=("source",), instead="source = ''"),
        TextPlace(table="aliases", key="rowid", columns=("source",), instead="source = ''"),
    ),
    "entries": (
        WORDING,
        TextPlace(
            table="proposals",
            key="number",
            columns=("payload", "why", "source", "diff"),
            also=f"kind = 'lesson' AND {_LESSON} NOT {_LESSONS}",
            counted="proposals",
        ),
        ENTRY,
    ),
}
DATABASES = {"lessons": "facts", "graph": "facts"}  # of the steps that are not named after theirs
# How rows are removed on which other rows depend.
_REMOVERS: dict[str, Callable[[Database, Sequence[Row]], None]] = {"entries": remove_entries}


def parameters(
    wanted: Wanted,
    exchanges: Sequence[Row] = (),
    *,
    group: str = "",
    chats: Sequence[str] = (),
    lessons: Sequence[int] = (),
) -> dict[str, str]:
    """Return the parameters of all places.

    `exchanges` are those to remove, on which lessons and outcomes depend; `lessons` are the remaining ones, whose
    proposals remain too.
    """
    asked = [row.texts[0] for row in exchanges if row.texts and row.texts[0]]
    talked = [trigger_of(row.texts[0], row.texts[1]) for row in exchanges if len(row.texts) > 1]
    return {
        "session": wanted.session,
        "source": f"session {wanted.session}",
        "names": json.dumps(sorted(wanted.names)),
        "exchanges": json.dumps([row.key for row in exchanges]),
        "openings": json.dumps([*(text[:200] for text in asked), *talked]),
        "questions": json.dumps([text[:500] for text in asked]),
        "group": group,
        "chats": json.dumps(list(chats)),
        "lessons": json.dumps(list(lessons)),
    }


def rows_of(db: Database, place: TextPlace, wanted: Wanted, given: Mapping[str, str]) -> list[Row]:
    """Return the rows of a table that are to be removed."""
    named = frozenset() if place.instead else wanted.keys.get(place.table, frozenset())
    columns = ", ".join([place.key, place.also, *place.columns])
    found = []
    for key, also, *values in db.rows(
        f"SELECT {columns} FROM {place.table} WHERE {place.only}",  # noqa: S608
        given,
    ):
        texts = tuple(text for value in values if value for text in texts_in(value))
        if (
            also
            or key in named
            or any(holds(wanted.matcher, text) for text in texts)
            or (place.joined and holds(wanted.matcher, " ".join(texts)))
        ):
            found.append(Row(key, texts))
    return found


def remove_rows(db: Database, place: TextPlace, rows: Sequence[Row]) -> None:
    """Remove rows or their marked columns, with everything that depends on them; inside a transaction."""
    if place.table in _REMOVERS:
        return _REMOVERS[place.table](db, rows)
    act = f"UPDATE {place.table} SET {place.instead}" if place.instead else f"DELETE FROM {place.table}"  # noqa: S608
    keys = [{"key": row.key} for row in rows]
    for statement in (*place.before, f"{act} WHERE {place.key} = :key"):
        db.execute_many(statement, keys)
    return None


# ---- values of the graph ----

_VALUES = {"facts": "name, slot, value", "relations": "subject_name, slot, object"}


def kept_away_keys(db: Database, kept_away: Collection[tuple[str, str, str]]) -> dict[str, frozenset[int]]:
    """Return keys of facts and relations whose value a tombstone refuses, under a veiled name."""
    if not kept_away:
        return {}
    return {
        table: frozenset(
            key
            for key, name, slot, value in db.rows(f"SELECT id, {columns} FROM {table}")  # noqa: S608
            if (name_fingerprint(name), name_fingerprint(slot), digest(value)) in kept_away
        )
        for table, columns in _VALUES.items()
    }


def graph_values(db: Database, rows: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, str, str]]:
    """Yield name, key and digest of facts and relations, for tombstones."""
    for table, columns in _VALUES.items():
        for row in rows.get(table, ()):
            sql = f"SELECT {columns} FROM {table} WHERE id = :id"  # noqa: S608
            for name, slot, value in db.query(sql, {"id": row.key}):
                yield name, slot, digest(value)


# ---- others ----


def topics_of(db: Database, exchanges: Sequence[Row]) -> frozenset[Words]:
    """Return what exchanges were about, in their own words."""
    sql = "SELECT topic FROM exchanges WHERE id IN (SELECT value FROM json_each(:exchanges))"
    said = (words_of(str(topic)) for (topic,) in db.query(sql, parameters(Wanted(), exchanges)))
    return frozenset(topic for topic in said if len(topic) > 1)


def chats_of(db: Database, group: str, main: bool) -> list[str]:
    """Return the chats of a group; chats of no group belong to the main one."""
    sql = (
        "SELECT c.jid FROM chats c LEFT JOIN registered_groups g ON g.jid = c.jid"
        " WHERE g.folder = :group OR (:main = 1 AND g.folder IS NULL)"
    )
    return [str(jid) for (jid,) in db.query(sql, {"group": group, "main": main})]


# ---- the search index ----


def files_with_passages(passages: Passages, wanted: Wanted) -> dict[str, int]:
    """Return the indexed files that contain a wanted text, with the number of their passages that do."""
    found: dict[str, int] = {}
    for _, source, name in _passages_with(passages, wanted):
        if source == FILES:
            found[name] = found.get(name, 0) + 1
    return found


def _passages_with(passages: Passages, wanted: Wanted) -> Iterator[tuple[int, str, str]]:
    sql = (
        "SELECT p.id, d.source, d.name, p.text, p.heading, p.speaker, p.tags, p.reference FROM passages p"
        " JOIN documents d ON d.id = p.document_id"
    )
    for number, source, name, *texts in passages.database.rows(sql):
        if any(holds(wanted.matcher, str(text)) for text in texts):
            yield number, source, name


def remove_from_index(passages: Passages, wanted: Wanted, paths: Iterable[str], texts: Iterable[str]) -> None:
    """Drop whole files (what remains of them is indexed anew) and passages of rows, with unused vectors."""
    words = {word for text in texts for word in long_words(text)}
    with passages.database.transaction():
        for path in paths:
            passages.remove_file(path)
        passages.remove([number for number, _, _ in _passages_with(passages, wanted)])
        passages.drop_empty_documents()
        passages.prune_vectors()
        passages.database.execute("UPDATE removed SET fingerprint = NULL")
        drop_removed(passages)
        for word in words:
            if not passages.search.occurrences(word):
                passages.database.execute("DELETE FROM long_words WHERE word = :word", {"word": word})
