"""Copy the rows of a database into one of another engine, table by table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from nanoclaw_memory.store.database import Database, Params
from nanoclaw_memory.store.entries import EntryTable
from nanoclaw_memory.store.table import insertion

DERIVED = ("outbox",)  # filled by the target's own triggers, whose rows make the index read everything again


def copy_rows(source: Database, target: Database) -> dict[str, int]:
    """Copy every row of `source` into the empty tables of `target`, inside its transaction; return the counts."""
    columns = source.tables()
    counts = {}
    for table, own in target.tables().items():
        if table not in DERIVED:
            shared = [name for name in own if name in columns.get(table, ())]
            target.execute(f"DELETE FROM {table}")  # noqa: S608
            target.execute_many(insertion(table, shared), _rows(source, table, shared))
            counts[table] = int(target.query(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608
    if target.name == "entries":
        EntryTable(target).reindex()
    return counts


class DatabaseContents(msgspec.Struct, frozen=True):
    """The content of a database, whatever its engine: row counts by table, and a digest of all rows."""

    counts: dict[str, int]
    digest: str

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


def contents(database: Database) -> DatabaseContents:
    """Count and digest the rows of every non-empty table, regardless of order, without derived tables."""
    counts: dict[str, int] = {}
    total = 0
    for table, columns in sorted(database.tables().items()):
        own = sorted(name for name in columns if name != "rowid")
        if table in DERIVED:
            continue
        for row in database.rows(f"SELECT {', '.join(own)} FROM {table}"):  # noqa: S608
            text = f"{table}\n{[_plain(value) for value in row]!r}"
            total += int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest())
            counts[table] = counts.get(table, 0) + 1
    return DatabaseContents(counts, f"{total % (1 << 128):032x}")


def _plain(value: Any) -> Any:
    """Return a value in the form common to both engines: whole numbers without a fraction, no NUL in a text."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value.replace("\x00", "\ufffd") if isinstance(value, str) else value


def _rows(source: Database, table: str, columns: list[str]) -> Iterator[Params]:
    sql = f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1"  # noqa: S608
    for row in source.rows(sql):
        yield dict(zip(columns, row, strict=True))
