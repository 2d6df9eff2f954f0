"""The interface of a database, with what SQLite and PostgreSQL implement in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

Params = Mapping[str, Any]
Row = tuple[Any, ...]


class Database(Protocol):
    """One database. SQL is the subset common to both engines, with `:name` parameters; rows are plain tuples.

    A list is passed as JSON: `IN (SELECT value FROM json_each(:ids))`. Booleans are 1 or 0.
    """

    path: Path  # of the file, or where it would be
    name: str  # of its tables
    is_file: bool

    def query(self, sql: str, params: Params | None = None) -> list[Row]:
        """Return all rows of a reading statement."""

    def query_within(self, limit_ms: int, sql: str, params: Params) -> list[Row]:
        """Return all rows of a statement that a caller has composed; raise StoreBusy when it takes longer."""

    def rows(self, sql: str, params: Params | None = None) -> Iterator[Row]:
        """Yield the rows one by one, for results too large for memory."""

    def execute(self, sql: str, params: Params | None = None) -> None:
        """Run one writing statement inside `transaction`, at the latest before the next statement that returns
        something.
        """

    def update(self, sql: str, params: Params | None = None) -> int:
        """Run one writing statement inside `transaction`; return the number of rows changed."""

    def insert(self, sql: str, params: Params | None = None) -> int:
        """Run one INSERT inside `transaction`; return the new row's id."""

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of parameters, as `execute` does."""

    def transaction(self, wait_ms: int | None = None) -> AbstractContextManager[None]:
        """Return a write transaction: all or nothing, one writer at a time over all processes; may be nested.

        With `wait_ms` it raises StoreBusy after that time: for writes that may be omitted.
        """

    def match(
        self,
        table: str,
        terms: Sequence[str],
        limit: int,
        only: str = "",
        params: Params | None = None,
        newest: int = 0,
    ) -> list[tuple[int, float]]:
        """Return row ids of the keyword index `table` that contain any of `terms`, best (highest) first.

        `only` is a condition on `rowid` in our own SQL, tested before the limit; `params` are its values. With
        `newest` only about that many of the newest rows that contain all of the terms are ranked.
        """

    def occurrences(
        self, table: str, term: str, most: int, only: str = "", params: Params | None = None
    ) -> int:
        """Count the rows of the keyword index `table` that contain the term; stop at `most`."""
        found, given = self.containing(table, [term])
        where = found + (f" AND {only}" if only else "")
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {where} LIMIT :most) x"  # noqa: S608
        return int(self.query(sql, {**(params or {}), **given, "most": most})[0][0])

    def newest(self, table: str, terms: Sequence[str], most: int) -> int:
        """Return the row of the keyword index `table` from which on about `most` contain all of the terms."""
        found, params = self.containing(table, terms, every=True)
        newest = f"SELECT rowid FROM {table} WHERE {found} ORDER BY rowid DESC LIMIT :most"  # noqa: S608
        rows = self.query(f"SELECT coalesce(min(rowid), 0) FROM ({newest}) x", {**params, "most": most})  # noqa: S608
        return int(rows[0][0])

    def containing(
        self, table: str, terms: Sequence[str], every: bool = False, column: str = ""
    ) -> tuple[str, dict[str, Any]]:
        """Return the condition, and its values, for rows of the keyword index `table` with any or `every` one of the
        terms.

        `column` is empty for all, or the name of the index's first column.
        """

    @property
    def has_nearest(self) -> bool:
        """Return whether the engine searches vectors itself; if not, `store/vectors.py` does in this process."""
        return False

    def nearest(
        self,
        owner: int,
        vector: Any,
        limit: int,
        within: str = "",
        without: str = "",
        params: Params | None = None,
    ) -> list[tuple[int, float]]:
        """Return the nearest passages with the cosine of their vector of an identity, if the engine has them.

        `within` and `without` are conditions on `passages` in our own SQL, tested before the limit.
        """
        return []

    def index_vectors(self, owner: int, dimensions: int) -> None:
        """Prepare `nearest` for the present vectors of an identity, if the engine searches them."""
        return

    @property
    def read_only(self) -> bool:
        """Return whether writes would be lost."""

    @property
    def writing(self) -> bool:
        """Return whether this thread is inside a transaction: what it reads may be rolled back."""

    @property
    def place(self) -> str:
        """Return a key that is equal for exactly those readers in this process that read the same rows."""

    def version(self) -> int:
        """Return a number that changes whenever another connection has written."""

    def check(self) -> list[str]:
        """Return what an integrity check finds wrong; empty when sound."""

    # ---- the whole database ----

    def exists(self) -> bool:
        """Return whether it exists; checking must not create it."""

    def size(self) -> int:
        """Return its size in bytes."""

    def tables(self) -> dict[str, tuple[str, ...]]:
        """Return the tables with their columns; keyword indexes follow from them."""

    def held(self) -> AbstractContextManager[None]:
        """Block the writers of all processes; this thread may still write. Readers are not blocked."""

    def claimed(self, name: str) -> AbstractContextManager[bool]:
        """Take the lock of this name over all machines; yield whether it was free. It ends with its holder.

        Files are on one machine, where callers use a lock file.
        """
        return nullcontext(True)

    def let_read(self, group: str, allowed: bool) -> None:
        """Let the roles of another group's agents read it, or stop that, if the engine has roles.

        Only this program reads a file, and it checks the table of grants.
        """
        return

    def overwriting(self) -> Database:
        """Return the same, with deleted rows overwritten at once if the engine can."""

    def scrub(self, wait_ms: int = 10_000) -> bool:
        """Remove every trace of deleted rows; return False when another process keeps an older state."""

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy as a SQLite file, while others read and write."""

    def load_from(self, source: Path) -> None:
        """Replace the whole content by that of a SQLite file, in one transaction."""

    def at(self, path: Path) -> Database:
        """Return a SQLite file with the same tables."""

    def discard(self) -> None:
        """Remove it: for a database that is too damaged to be opened, or can be rebuilt."""

    def set_aside(self) -> None:
        """Move it away whole; the next use creates a new one."""

    def leave_replaced(self) -> bool:
        """Close a file that was replaced by another; return True if it was."""
        return False

    def lost_writes(self) -> int:
        """Return how many writes it must contain and does not."""
        return 0

    def close(self) -> None:
        """Close every connection of this process."""
