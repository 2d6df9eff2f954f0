"""Migrate databases of older systems and releases; rows of shared chats are moved into files of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import read_moment, stamp
from nanoclaw_memory.settings.sections import GraphSettings
from nanoclaw_memory.store.facts import digest, unspaced
from nanoclaw_memory.store.migrate import Adopt
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.table import insertion
from nanoclaw_memory.store.tombstones import MOVED, move_from_facts
from nanoclaw_memory.store.undecodable import tolerant_rows
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import SHARED

KEPT = "before_nanoclaw_"  # the old tables are renamed with this prefix, with whatever columns they had
_TABLES = {
    "facts": ("facts", "relations", "aliases", "co_occurrences", "growth_vectors", "vector_outcomes"),
    "continuity": ("exchanges",),
}
_DERIVED = ("facts_fts", "relations_fts")


def adopter(data: Path, kind: str = "facts") -> Adopt:
    """Return the migration of a facts.db or continuity.db: rename older tables, move tombstones and shared chats
    out.
    """

    def prepare(connection: Any, version: int) -> Callable[[Any], None]:
        if kind == "facts" and 0 < version < MOVED:
            move_from_facts(connection, data)
        finish = adopt(connection, version, kind)

        def move(connected: Any) -> None:
            if finish is not None:
                finish(connected)
            if 0 < version < SPLIT[kind] and connected.filename:
                _part(connected, kind)

        return move

    return prepare


def adopt(connection: Any, version: int, kind: str = "facts") -> Callable[[Any], None] | None:
    """Rename the tables of an older system; return a function that moves their rows, or None for a file of ours."""
    found = [name for name in _TABLES[kind] if not version and _exists(connection, name)]
    for name in _DERIVED if found else ():
        connection.execute(f'DROP TABLE IF EXISTS "{name}"')
    for name in found:
        _keep(connection, name)
    return (lambda connected: _move(connected, found)) if found else None


def _keep(connection: Any, name: str) -> None:
    """Rename a table, without its indexes and triggers."""
    attached = connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE tbl_name = :name AND type IN ('index', 'trigger')"
        " AND sql IS NOT NULL",
        {"name": name},
    ).fetchall()
    for kind, own in attached:
        quoted = own.replace('"', '""')
        connection.execute(f'DROP {kind} "{quoted}"')
    connection.execute(f'ALTER TABLE "{name}" RENAME TO "{KEPT}{name}"')


def _move(connection: Any, found: list[str]) -> None:
    for name in found:
        # Tables that no step of ours replaced (lessons, say) get their own name back.
        if not _exists(connection, name):
            connection.execute(f'ALTER TABLE "{KEPT}{name}" RENAME TO "{name}"')
    kept = [name for name in found if _exists(connection, KEPT + name)]
    moved: dict[int, int] = _facts(connection) if "facts" in kept else {}
    if "co_occurrences" in kept:
        _links(connection, moved)
    copies = {
        "relations": _relations,
        "aliases": _aliases,
        "growth_vectors": _lessons,
        "vector_outcomes": _outcomes,
        "exchanges": _exchanges,
    }
    for name, copy in copies.items():
        if name in kept:
            copy(connection)


def _facts(connection: Any) -> dict[int, int]:
    """Copy the facts; return the new id for every old id."""
    moved: dict[int, int] = {}
    seen: dict[tuple[str, str, str], int] = {}
    for row in _rows(connection, "facts"):
        entity, key, value = (str(row.get(name) or "") for name in ("entity", "key", "value"))
        if not (entity.strip() and key.strip() and value.strip()):
            continue
        identity = (fold(entity), slot_of(key), digest(value))
        if identity in seen:
            moved[row["rowid"]] = seen[identity]
            _merge(connection, seen[identity], row)
            continue
        moved[row["rowid"]] = seen[identity] = row["rowid"]
        _learn(connection, entity)
        created = _moment(row.get("created_at"))
        new = {
            "id": row["rowid"],
            "entity": entity,
            "key": key,
            "value": value,
            "category": str(row.get("category") or "fact"),
            "source": row.get("source"),
            "created_at": created,
            "last_accessed": row.get("last_accessed"),
            "access_count": int(_number(row.get("access_count"), 0)),
            "permanent": int(bool(row.get("permanent"))),
            "decay_score": row.get("decay_score"),
            "activation": _number(row.get("activation"), 1.0),
            "importance": _number(row.get("importance"), 0.5),
            "valid_from": created,
            "name": identity[0],
            "slot": identity[1],
            "digest": identity[2],
            "spaced": unspaced(entity, key, value),
        }
        _insert(connection, "facts", new)
    _end_older_values(connection)
    return moved


def _end_older_values(connection: Any) -> None:
    """Make the newest of several values current, unless the key allows several."""
    several = {slot_of(key) for key in GraphSettings().multi_valued_keys}
    last: tuple[str, str] | None = None
    later: tuple[int, str] = (0, "")
    rows = connection.execute(
        "SELECT id, name, slot, valid_from FROM facts ORDER BY name, slot, valid_from DESC, id DESC"
    )
    for number, name, slot, start in rows.fetchall():
        if (name, slot) == last and slot not in several:
            sql = "UPDATE facts SET valid_to = :end, superseded_by = :by WHERE id = :id"
            connection.execute(sql, {"id": number, "by": later[0], "end": later[1] or start})
        last, later = (name, slot), (number, start)


def _merge(connection: Any, fact_id: int, row: dict[str, Any]) -> None:
    """Merge a duplicate: add the counts, keep the higher activation and importance."""
    connection.execute(
        "UPDATE facts SET access_count = access_count + :count, activation = max(activation, :activation),"
        " importance = max(importance, :importance), permanent = max(permanent, :permanent) WHERE id = :id",
        {
            "id": fact_id,
            "count": int(_number(row.get("access_count"), 0)),
            "activation": _number(row.get("activation"), 0.0),
            "importance": _number(row.get("importance"), 0.0),
            "permanent": int(bool(row.get("permanent"))),
        },
    )


def _relations(connection: Any) -> None:
    seen: set[tuple[str, str, str]] = set()
    for row in _rows(connection, "relations"):
        subject, predicate, object_ = (
            str(row.get(name) or "") for name in ("subject", "predicate", "object")
        )
        identity = (fold(subject), slot_of(predicate), fold(object_))
        if not all(identity) or identity in seen:
            continue
        seen.add(identity)
        _learn(connection, subject)
        _learn(connection, object_)
        created = _moment(row.get("created_at"))
        new = {
            "id": row["rowid"],
            "subject": subject,
            "predicate": predicate,
            "object": object_,
            "source": row.get("source"),
            "created_at": created,
            "valid_from": created,
            "subject_name": identity[0],
            "slot": identity[1],
            "object_name": identity[2],
            "spaced": unspaced(subject, predicate, object_),
        }
        _insert(connection, "relations", new)


def _aliases(connection: Any) -> None:
    for row in _rows(connection, "aliases"):
        alias, entity = str(row.get("alias") or ""), str(row.get("entity") or "")
        if alias.strip() and entity.strip():
            _learn(connection, alias)
            _learn(connection, entity)
            new = {"alias": alias, "entity": entity, "name": fold(alias), "target": fold(entity)}
            _insert(connection, "aliases", new)


def _links(connection: Any, moved: dict[int, int]) -> None:
    """Copy links, which name facts by number, or in one system by a text with the number or `entity.key`."""
    named = {
        f"{entity}.{key}".casefold(): fact_id
        for fact_id, entity, key in connection.execute("SELECT id, entity, key FROM facts")
    }
    for row in _rows(connection, "co_occurrences"):
        ends = [_fact_id(row.get(side), moved, named) for side in ("fact_a", "fact_b")]
        if None in ends or ends[0] == ends[1]:
            continue
        connection.execute(
            "INSERT INTO co_occurrences (fact_a, fact_b, weight, last_wired)"
            " VALUES (:a, :b, :weight, :wired) ON CONFLICT (fact_a, fact_b)"
            " DO UPDATE SET weight = max(weight, :weight)",
            {
                "a": min(end for end in ends if end is not None),
                "b": max(end for end in ends if end is not None),
                "weight": _number(row.get("weight"), 1.0),
                "wired": row.get("last_wired"),
            },
        )


def _lessons(connection: Any) -> None:
    """Copy the lessons without their vectors, whose embedder is unknown."""
    for row in _rows(connection, "growth_vectors"):
        trigger, lesson = (str(row.get(name) or "").strip() for name in ("trigger_pattern", "lesson_text"))
        if not (trigger or lesson):
            continue
        metabolized = bool(row.get("is_metabolized"))
        new = {
            "id": row["rowid"],
            "trigger_pattern": trigger or lesson,
            "lesson_text": lesson or trigger,
            "principle": row.get("principle"),
            "effectiveness_score": _number(row.get("effectiveness_score"), 1.0),
            "injection_count": int(_number(row.get("injection_count"), 0)),
            "maturity_days": int(_number(row.get("maturity_days"), 0)),
            "is_metabolized": int(metabolized),
            "activation": _number(row.get("activation"), 1.0),
            "created_at": _moment(row.get("created_at")),
            "state": "metabolized" if metabolized else "active",
            "origin": "import",
        }
        _insert(connection, "growth_vectors", new)


def _outcomes(connection: Any) -> None:
    known = {row[0] for row in connection.execute("SELECT id FROM growth_vectors").fetchall()}
    for row in _rows(connection, "vector_outcomes"):
        if row.get("vector_id") in known:
            columns = ("vector_id", "query_text", "pre_entropy", "post_entropy", "user_feedback", "helped")
            new = {name: row.get(name) for name in columns}
            new["user_feedback"] = new["user_feedback"] or "neutral"
            new["injection_time"] = _moment(row.get("injection_time"))
            _insert(connection, "vector_outcomes", new)


def _exchanges(connection: Any) -> None:
    """Copy every non-empty exchange without vectors, which belong to a model."""
    for row in _rows(connection, "exchanges"):
        session, user, agent, topic = (
            str(row.get(name) or "") for name in ("session_id", "user_message", "agent_response", "topic")
        )
        if not (user.strip() or agent.strip()):
            continue
        new = {
            "id": row["rowid"],
            "session_id": session,
            "user_message": user,
            "agent_response": agent,
            "timestamp": _moment(row.get("timestamp")) or "1970-01-01T00:00:00.000Z",
            "topic": topic,
            "private": 1,
            "fingerprint": fingerprint(f"{user}\x00{agent}"),
        }
        _insert(connection, "exchanges", new)


def _fact_id(said: Any, moved: dict[int, int], named: dict[str, int]) -> int | None:
    text = str(said if said is not None else "").strip()
    if text.isdecimal():
        return moved.get(int(text))
    return named.get(text.casefold())


def _rows(connection: Any, name: str) -> Iterator[dict[str, Any]]:
    columns = ["rowid", *(row[1] for row in connection.execute(f'PRAGMA table_info("{KEPT}{name}")'))]
    sql = f'SELECT rowid AS rowid, * FROM "{KEPT}{name}" ORDER BY rowid'  # noqa: S608
    for row in tolerant_rows(connection, sql, {}):
        yield dict(zip(columns, row, strict=True))


def _insert(connection: Any, table: str, row: dict[str, Any]) -> None:
    connection.execute(f"{insertion(table, row)} ON CONFLICT DO NOTHING", row)


def _learn(connection: Any, label: str) -> None:
    name = fold(label)
    _insert(connection, "names", {"name": name, "label": label, "mirror": name[::-1]})


def _exists(connection: Any, name: str) -> bool:
    sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :name"
    return bool(connection.execute(sql, {"name": name}).fetchall())


def _moment(text: Any) -> str:
    """Return a time in the stored format; an invalid one becomes 'always'."""
    try:
        return stamp(read_moment(str(text)))
    except (ValueError, OverflowError):
        return ""


def _number(value: Any, otherwise: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return otherwise


# ---- releases that stored shared chats beside private memory ----


SPLIT = {"continuity": 4, "facts": 7}  # the schema from which on they are separate
_EXCHANGES = "SELECT id FROM exchanges WHERE private = 0"
_LESSONS = "SELECT id FROM growth_vectors WHERE private = 0"
_STATED = "shared AND coalesce(source, '') NOT LIKE '%.md:%'"  # facts from files are read again
_NAMES = " UNION ".join(
    f"SELECT {column} FROM {table} WHERE {_STATED}"  # noqa: S608
    for table, column in (
        ("facts", "name"),
        ("relations", "subject_name"),
        ("relations", "object_name"),
        ("aliases", "name"),
        ("aliases", "target"),
    )
)
# The tables of each database with the rows to move, referenced tables first.
_SAID = {
    "continuity": (
        ("exchanges", "private = 0"),
        ("measures", f"exchange_id IN ({_EXCHANGES})"),
        ("signs", f"exchange_id IN ({_EXCHANGES})"),
    ),
    "facts": (
        ("names", f"name IN ({_NAMES})"),
        ("facts", _STATED),
        ("relations", _STATED),
        ("aliases", _STATED),
        ("growth_vectors", "private = 0"),
        ("vector_outcomes", f"vector_id IN ({_LESSONS})"),
    ),
}
_UNUSED = (
    "DELETE FROM names WHERE name NOT IN (SELECT name FROM facts UNION SELECT subject_name FROM relations"
    " UNION SELECT object_name FROM relations UNION SELECT name FROM aliases UNION SELECT target FROM aliases)"
)


def _part(connection: Any, kind: str) -> None:
    """Copy the rows into the file of shared chats, then delete them here; after a kill in between both are repeated."""
    path = Path(connection.filename)
    shared = SqliteDatabase(path.with_name(f"{SHARED}{kind}.db"), kind)
    rows = {table: _rows_of_shared_chats(connection, table, where) for table, where in _SAID[kind]}
    if path.name.startswith(SHARED) or not any(rows.values()):
        return
    try:
        with shared.transaction():
            shared.query("PRAGMA defer_foreign_keys = ON")
            for table, found in rows.items():
                columns = found[0] if found else {}
                shared.execute_many(f"{insertion(table, columns)} ON CONFLICT DO NOTHING", found)
            if kind == "facts":
                kept = "superseded_by NOT IN (SELECT id FROM facts)"
                shared.execute(f"UPDATE facts SET superseded_by = NULL WHERE {kept}")  # noqa: S608
    finally:
        shared.close()
    for table, where in reversed(_SAID[kind]):
        if table != "names":
            connection.execute(f"DELETE FROM {table} WHERE {where}")  # noqa: S608
    if kind == "facts":
        connection.execute(_UNUSED)


def _rows_of_shared_chats(connection: Any, table: str, where: str) -> list[dict[str, Any]]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    found = connection.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}")  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in found]
