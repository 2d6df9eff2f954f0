"""Text in a database that is not valid UTF-8: read with � in its place, listed row by row, and repaired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from nanoclaw_memory.store.database import Params, Row
from nanoclaw_memory.types import ORIGINS

_TABLES = "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
# Keyword indexes of a table: for a damaged row they differ from the row's text.
_KEYWORDS = (
    "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%content%'"
    " AND sql NOT LIKE '%content = ''''%'"
)

_INSTEAD = {"origin": ORIGINS[-1]}  # nobody knows who said it


class BadText(msgspec.Struct, frozen=True):
    """A text that cannot be decoded; `row` is its rowid, or its position in a table without one."""

    table: str
    column: str
    row: int
    raw: bytes

    def __str__(self) -> str:
        return f"{self.table}: row {self.row} has a {self.column} that is not valid text"


def tolerant_rows(connection: Any, sql: str, params: Params) -> Iterator[Row]:
    """Yield the rows of a SELECT; undecodable bytes become � and affect nothing else."""
    import apsw

    try:
        width = len(connection.execute(sql, params).get_description())
    except apsw.ExecutionCompleteError:  # no rows
        return
    names = [f"c{number}" for number in range(width)]
    raw = ", ".join(
        f"typeof({name}) = 'text', iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})"
        for name in names
    )
    wrapped = f"WITH given({', '.join(names)}) AS ({sql}) SELECT {raw} FROM given"  # noqa: S608 (our own SQL)
    for row in connection.execute(wrapped, params):
        pairs = zip(row[::2], row[1::2], strict=True)
        yield tuple(_decoded(value) if is_text else value for is_text, value in pairs)


def bad_texts(connection: Any) -> Iterator[BadText]:
    """Yield every undecodable text of the ordinary tables."""
    for table, without_rowid in connection.execute(_TABLES).fetchall():
        try:
            for _ in connection.execute(f"SELECT * FROM {_quoted(table)}"):  # noqa: S608 (a name of the schema)
                pass
        except UnicodeDecodeError:
            row = "row_number() OVER ()" if without_rowid else "rowid"
            for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall():
                yield from _in_column(connection, table, column, row)


def mend(connection: Any) -> int:
    """Write � for every byte that cannot be decoded; return how many texts changed. Needs a transaction."""
    found = list(bad_texts(connection))
    connection.execute("PRAGMA defer_foreign_keys = ON")  # a row may point to what has � now
    for bad in found:
        column = _quoted(bad.column)
        connection.execute(
            f"UPDATE OR IGNORE {_quoted(bad.table)} SET {column} = :text"  # noqa: S608
            f" WHERE typeof({column}) = 'text' AND CAST({column} AS BLOB) = :raw",
            {"text": _INSTEAD.get(bad.column) or _decoded(bad.raw), "raw": bad.raw},
        )
    for (table,) in connection.execute(_KEYWORDS).fetchall() if found else ():
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")  # noqa: S608
    return len(found)


def _in_column(connection: Any, table: str, column: str, row: str) -> Iterator[BadText]:
    sql = f"SELECT {row}, typeof({_quoted(column)}), CAST({_quoted(column)} AS BLOB) FROM {_quoted(table)}"  # noqa: S608
    for number, kind, raw in connection.execute(sql):
        if kind == "text" and _decoded(raw).encode() != raw:
            yield BadText(table, column, number, raw)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
