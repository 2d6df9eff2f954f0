"""Move what shared chats said out of the databases of older releases, which kept it beside private memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanoclaw_memory.store.migrate import Adopt
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.table import insertion
from nanoclaw_memory.types import SHARED

SPLIT = {"continuity": 4, "facts": 7}  # the schema from which on they are apart
_EXCHANGES = "SELECT id FROM exchanges WHERE private = 0"
_LESSONS = "SELECT id FROM growth_vectors WHERE private = 0"
_STATED = "shared AND coalesce(source, '') NOT LIKE '%.md:%'"  # what files state is read again
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
# Tables of each database with the rows that go, what others refer to first.
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


def splitter(kind: str, before: Adopt | None = None) -> Adopt:
    """What a database of this kind needs after its steps, besides what `before` does."""

    def prepare(connection: Any, version: int) -> Callable[[Any], None]:
        finish = before(connection, version) if before is not None else None

        def move(connected: Any) -> None:
            if finish is not None:
                finish(connected)
            if 0 < version < SPLIT[kind] and connected.filename:
                _move(connected, kind)

        return move

    return prepare


def _move(connection: Any, kind: str) -> None:
    """Copy the rows into the file of shared chats, then delete them here; killed in between, both happen again."""
    path = Path(connection.filename)
    shared = SqliteDatabase(path.with_name(f"{SHARED}{kind}.db"), kind)
    rows = {table: _rows(connection, table, where) for table, where in _SAID[kind]}
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


def _rows(connection: Any, table: str, where: str) -> list[dict[str, Any]]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    found = connection.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}")  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in found]
