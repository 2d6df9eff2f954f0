"""Tombstones of what a person rejected or asked to forget, in their own database `forgotten.db`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from nanoclaw_memory.errors import CorruptDatabase, StoreError
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.integrity import remedy
from nanoclaw_memory.store.names import placeholders
from nanoclaw_memory.store.phrases import Phrases
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.table import insertion
from nanoclaw_memory.store.write_count import WriteCount
from nanoclaw_memory.text import fingerprint

NAME = "forgotten"
MOVED = 4  # the schema of facts.db from which on it has no tombstones
_NAMES = ("name", "slot", "digest", "text_fingerprint", "reason", "created_at")
_COLUMNS = ", ".join(_NAMES)
_INSERT = f"{insertion('tombstones', _NAMES)} ON CONFLICT DO NOTHING"
_TEXTS = "FROM tombstones WHERE text_fingerprint <> ''"
_NONE = Phrases()
# The fingerprints as last read from each database: every message needs them, and they hardly ever change.
_read: WeakKeyDictionary[Database, tuple[Row, Phrases]] = WeakKeyDictionary()


class TombstoneTable:
    """The tombstones of one group. Writing needs an open transaction."""

    def __init__(self, db: Database) -> None:
        self.db = db

    # ---- texts ----

    def texts(self) -> Phrases:
        """Return the fingerprints of all forgotten texts."""
        # Ids are never reused, so these show whether any were added or removed.
        state = self.db.query(
            f"SELECT count(*), max(id), min(text_fingerprint), max(text_fingerprint) {_TEXTS}"
        )[0]
        if not state[0]:
            return _NONE
        known = _read.get(self.db)
        if known is None or known[0] != state:
            rows = self.db.query(f"SELECT text_fingerprint {_TEXTS}")
            known = _read[self.db] = (state, Phrases(known=frozenset(str(mark) for (mark,) in rows)))
        return known[1]

    def allow(self, phrases: Phrases) -> int:
        """Allow forgotten texts again; return how many were refused."""
        return sum(
            self.db.update("DELETE FROM tombstones WHERE text_fingerprint = :mark", {"mark": mark})
            for mark in phrases.marks()
        )

    # ---- values of the graph ----

    def has(self, names: Sequence[str], slot: str, digest: str) -> bool:
        """Return whether this value of an entity's key was rejected, under any of the entity's names."""
        where, params = _value(names, slot, digest)
        return bool(self.db.query(f"SELECT 1 FROM tombstones WHERE {where}", params))  # noqa: S608

    def remove(self, names: Sequence[str], slot: str, digest: str) -> bool:
        """Allow a value again; return False if it was not refused."""
        where, params = _value(names, slot, digest)
        return bool(self.db.update(f"DELETE FROM tombstones WHERE {where}", params))  # noqa: S608

    def forgotten_values(self) -> set[tuple[str, str, str]]:
        """Return the refused values, veiled: name, key and digest."""
        sql = "SELECT name, slot, digest FROM tombstones WHERE digest <> '' AND name LIKE '#%'"
        return {(str(name), str(slot), str(digest)) for name, slot, digest in self.db.query(sql)}

    def fingerprint_names(self, tells: Callable[[str, Sequence[str]], bool]) -> None:
        """Replace revealing names by fingerprints; `tells` is called with the name and all texts of a row."""
        for key, name, slot, reason in self.db.query("SELECT id, name, slot, reason FROM tombstones"):
            if name and tells(name, (name, slot, reason)):
                row = {"id": key, "name": name_fingerprint(name), "slot": name_fingerprint(slot)}
                same = "SELECT digest, text_fingerprint FROM tombstones WHERE id = :id"
                self.db.execute(
                    "DELETE FROM tombstones WHERE id <> :id AND name = :name AND slot = :slot"  # noqa: S608
                    f" AND (digest, text_fingerprint) IN ({same})",
                    row,
                )
                self.db.execute(
                    "UPDATE tombstones SET name = :name, slot = :slot, reason = '' WHERE id = :id", row
                )

    # ---- all ----

    def rows(self) -> list[Row]:
        """Return every tombstone, as `insert` takes it."""
        return self.db.query(f"SELECT {_COLUMNS} FROM tombstones ORDER BY id")  # noqa: S608

    def insert(self, rows: Iterable[Row]) -> None:
        """Add tombstones; existing ones stay as they are."""
        self.db.execute_many(_INSERT, [dict(zip(_NAMES, row, strict=True)) for row in rows])

    def discard(self, marks: Iterable[Row]) -> None:
        """Remove tombstones by name, key, digest and fingerprint."""
        self.db.execute_many(
            "DELETE FROM tombstones WHERE name = :name AND slot = :slot AND digest = :digest"
            " AND text_fingerprint = :text_fingerprint",
            [dict(zip(_NAMES[:4], mark, strict=True)) for mark in marks],
        )


def name_fingerprint(name: str) -> str:
    """Return a name as a fingerprint, so that a tombstone does not reveal it."""
    return name if not name or name.startswith("#") else f"#{fingerprint(name)[:24]}"


def _value(names: Sequence[str], slot: str, digest: str) -> tuple[str, dict[str, Any]]:
    marks, params = placeholders("n", [*names, *map(name_fingerprint, names)])
    where = f"name IN ({marks}) AND slot IN (:slot, :veiled) AND digest = :digest"
    return where, {**params, "slot": slot, "veiled": name_fingerprint(slot), "digest": digest}


# ---- the file ----


def forgotten_database(data: Path) -> SqliteDatabase:
    """Return the tombstones of one group; a new file imports those that an older release stored in facts.db."""

    def adopt(connection: Any, version: int) -> Callable[[Any], None] | None:
        rows = _rows_in_facts(data) if version == 0 else []
        return (lambda connected: _carry(connected, rows)) if rows else None

    return SqliteDatabase(data / f"{NAME}.db", NAME, adopt, durable=True, counted=True)


def has_list(data: Path, mark: str) -> bool:
    """Return whether there are tombstones. If they are lost although the file `mark` exists, raise an error."""
    path = f"{data}/{NAME}.db"  # no Path: called for every incoming text
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        found = None
    if found is not None and stat.S_ISLNK(found.st_mode) and data.parent.parent.name == "groups":
        raise StoreError(f"{NAME}.db of {data.parent.name} is a link", "put the file itself there")
    if found is not None and (found.st_size or os.path.exists(f"{path}-wal")):  # noqa: PTH110
        return True
    if _is_older(f"{data}/facts.db"):
        return bool(_rows_in_facts(data))
    if os.path.exists(f"{data}/{mark}") or WriteCount.of(Path(path)).known:  # noqa: PTH110
        raise CorruptDatabase(f"{NAME}.db is gone", remedy(Path(path), NAME))
    return False


def move_from_facts(connection: Any, data: Path) -> None:
    """Copy the tombstones of a facts.db that is about to lose them; the copy is on disk when this returns."""
    if Path(connection.filename) != data / "facts.db":  # a copy: of a checkpoint, or in memory
        return
    rows = connection.execute(f"SELECT {_COLUMNS} FROM tombstones").fetchall()  # noqa: S608
    if not rows:
        return
    database = forgotten_database(data)
    try:
        with database.transaction():
            TombstoneTable(database).insert(rows)
    finally:
        database.close()


def _is_older(facts: str) -> bool:
    """Return whether facts.db may still have tombstones; read only the file's header, because hooks ask."""
    try:
        with open(facts, "rb", buffering=0) as stream:  # noqa: PTH123
            header = stream.read(64)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3\0") and 0 < int.from_bytes(header[60:64], "big") < MOVED


def _rows_in_facts(data: Path) -> list[Row]:
    if not _is_older(f"{data}/facts.db"):
        return []
    with SqliteDatabase(data / "facts.db", "facts").unmigrated() as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'tombstones'").fetchall():
            return []  # moved by another process since
        return list(connection.execute(f"SELECT {_COLUMNS} FROM tombstones"))  # noqa: S608


def _carry(connection: Any, rows: Sequence[Row]) -> None:
    connection.executemany(_INSERT, [dict(zip(_NAMES, row, strict=True)) for row in rows])
