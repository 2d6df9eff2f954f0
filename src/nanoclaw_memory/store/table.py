"""The base of repositories: rows are read as value objects, and written by the names of their columns."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from nanoclaw_memory.store.database import Database, Params, Row

T = TypeVar("T")


class Table(Generic[T]):
    """A repository of one table's rows."""

    table: ClassVar[str]
    columns: ClassVar[str]
    value: ClassVar[type]  # the type of a row; its fields are the columns in their order

    def __init__(self, db: Database) -> None:
        self.db = db

    def read(self, row: Row) -> T:
        """Return a row of `columns` as a value object."""
        found: T = as_struct(self.value, row)
        return found

    def select(self, rest: str, params: Params | None = None) -> list[T]:
        """Return the rows for the rest of a query (WHERE, ORDER BY, LIMIT: our own SQL)."""
        rows = self.db.query(f"SELECT {self.columns} FROM {self.table} {rest}", params)  # noqa: S608
        return [self.read(row) for row in rows]

    def first(self, rest: str, params: Params | None = None) -> T | None:
        """Return the first of them."""
        found = self.select(f"{rest} LIMIT 1", params)
        return found[0] if found else None


def as_struct(kind: type, row: Row) -> Any:
    """Return a row as a struct; NULL becomes a field's default, if it has one, and 1 or 0 a boolean."""
    defaults, truths = _places(kind)
    values = [default if value is None else value for value, default in zip(row, defaults, strict=True)]
    for place in truths:
        if values[place] is not None:
            values[place] = bool(values[place])
    return kind(*values)


@functools.cache
def _places(kind: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return the defaults of a struct's fields, None for those without, and the positions of the booleans."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    truths = (place for place, name in enumerate(names) if kind.__annotations__[name].startswith("bool"))
    return (None,) * (len(names) - len(defaults)) + defaults, tuple(truths)


def insertion(
    table: str, columns: Iterable[str], same: Sequence[str] = (), change: Sequence[str] = ()
) -> str:
    """Return the INSERT of a row; if one with the `same` columns exists, `change` (or all others) are updated."""
    names = list(columns)
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"  # noqa: S608
    if not same:
        return sql
    changed = change or [name for name in names if name not in same]
    sets = ", ".join(f"{name} = excluded.{name}" for name in changed)
    return f"{sql} ON CONFLICT ({', '.join(same)}) DO UPDATE SET {sets}"


def note_of(db: Database, table: str, key: str) -> str | None:
    """Return the value of a key in a table of keys and values."""
    rows = db.query(f"SELECT value FROM {table} WHERE key = :key", {"key": key})  # noqa: S608
    return str(rows[0][0]) if rows else None


def keep_note(db: Database, table: str, key: str, value: str) -> None:
    """Set the value of a key."""
    db.execute(insertion(table, ("key", "value"), ["key"]), {"key": key, "value": value})


def assignments(names: Iterable[str]) -> str:
    """Return the assignments of an UPDATE for these columns."""
    return ", ".join(f"{name} = :{name}" for name in names)
