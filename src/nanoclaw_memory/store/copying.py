"""Copies the rows of a database into one of another engine, table by table."""

from __future__ import annotations

from collections.abc import Iterator

from nanoclaw_memory.store.database import Database, Params
from nanoclaw_memory.store.entries import EntryTable

DERIVED = ("outbox",)  # the target's own triggers fill it; its marks tell the index to read everything again


def copy_rows(source: Database, target: Database) -> dict[str, int]:
    """Put every row of `source` into the empty tables of `target`, inside its transaction; returns how many of each."""
    columns = source.tables()
    counts = {}
    for table, own in target.tables().items():
        if table not in DERIVED:
            shared = [name for name in own if name in columns.get(table, ())]
            target.execute(f"DELETE FROM {table}")  # noqa: S608
            marks = ", ".join(f":{name}" for name in shared)
            sql = f"INSERT INTO {table} ({', '.join(shared)}) VALUES ({marks})"  # noqa: S608
            target.execute_many(sql, _rows(source, table, shared))
            counts[table] = int(target.query(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608
    if target.name == "entries":
        EntryTable(target).reindex()
    return counts


def _rows(source: Database, table: str, columns: list[str]) -> Iterator[Params]:
    sql = f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1"  # noqa: S608
    for row in source.query(sql):
        yield dict(zip(columns, row, strict=True))
