"""What repositories have in common: rows are read as value objects, and written by the names of their columns."""

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
    value: ClassVar[type]  # what a row is read as; its fields are the columns in their order

    def __init__(self, db: Database) -> None:
        self.db = db

    def read(self, row: Row) -> T:
        """A row of `columns` as a value object."""
        found: T = as_struct(self.value, row)
        return found

    def select(self, rest: str, params: Params | None = None) -> list[T]:
        """The rows that the rest of a query (WHERE, ORDER BY, LIMIT: our own SQL) names."""
        rows = self.db.query(f"SELECT {self.columns} FROM {self.table} {rest}", params)  # noqa: S608
        return [self.read(row) for row in rows]

    def first(self, rest: str, params: Params | None = None) -> T | None:
        """The first of them."""
        found = self.select(f"{rest} LIMIT 1", params)
        return found[0] if found else None


def as_struct(kind: type, row: Row) -> Any:
    """A row as a struct with these values; NULL is a field's default, where it has one, and 1 or 0 yes or no."""
    defaults, truths = _places(kind)
    values = [default if value is None else value for value, default in zip(row, defaults, strict=True)]
    for place in truths:
        if values[place] is not None:
            values[place] = bool(values[place])
    return kind(*values)


@functools.cache
def _places(kind: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The defaults of a struct's fields, None for those without, and the places of those that are yes or no."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    truths = (place for place, name in enumerate(names) if kind.__annotations__[name].startswith("bool"))
    return (None,) * (len(names) - len(defaults)) + defaults, tuple(truths)


def insertion(
    table: str, columns: Iterable[str], same: Sequence[str] = (), change: Sequence[str] = ()
) -> str:
    """The INSERT of a row; where there is one with the `same` values of some columns, others `change` (all others)."""
    names = list(columns)
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"  # noqa: S608
    if not same:
        return sql
    changed = change or [name for name in names if name not in same]
    sets = ", ".join(f"{name} = excluded.{name}" for name in changed)
    return f"{sql} ON CONFLICT ({', '.join(same)}) DO UPDATE SET {sets}"


def note_of(db: Database, table: str, key: str) -> str | None:
    """What a table of keys and values has under a key."""
    rows = db.query(f"SELECT value FROM {table} WHERE key = :key", {"key": key})  # noqa: S608
    return str(rows[0][0]) if rows else None


def keep_note(db: Database, table: str, key: str, value: str) -> None:
    """Put a value under a key, in place of what was there."""
    db.execute(insertion(table, ("key", "value"), ["key"]), {"key": key, "value": value})


def assignments(names: Iterable[str]) -> str:
    """What an UPDATE sets, by the names of columns."""
    return ", ".join(f"{name} = :{name}" for name in names)
