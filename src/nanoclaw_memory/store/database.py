"""What the project may ask of a database, and what SQLite and PostgreSQL do of it in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

Params = Mapping[str, Any]
Row = tuple[Any, ...]


class Database(Protocol):
    """One database. SQL is what both engines know, with `:name` parameters; rows are plain tuples.

    A list is a parameter of JSON: `IN (SELECT value FROM json_each(:ids))`. What is yes or no is 1 or 0.
    """

    path: Path  # of the file, or where it would be
    name: str  # of its tables
    is_file: bool

    def query(self, sql: str, params: Params | None = None) -> list[Row]:
        """All rows of a reading statement."""

    def query_within(self, limit_ms: int, sql: str, params: Params) -> list[Row]:
        """All rows of a statement that a caller has composed; StoreBusy when it takes longer."""

    def rows(self, sql: str, params: Params | None = None) -> Iterator[Row]:
        """The rows one by one, for results too large to hold."""

    def execute(self, sql: str, params: Params | None = None) -> None:
        """Run one writing statement inside `transaction`, at the latest before the next one that returns something."""

    def update(self, sql: str, params: Params | None = None) -> int:
        """Run one writing statement inside `transaction`; returns the number of rows changed."""

    def insert(self, sql: str, params: Params | None = None) -> int:
        """Run one INSERT inside `transaction`; returns the new row's id."""

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of parameters, as `execute` does."""

    def transaction(self, wait_ms: int | None = None) -> AbstractContextManager[None]:
        """A write transaction: all or nothing, one writer at a time over all processes; may be nested.

        With `wait_ms` it raises StoreBusy after that time: for writes that may be left out.
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
        """Row ids of the keyword index `table` that contain any of `terms`, best (highest) first.

        `only` is a condition of our own SQL on `rowid`, tested before the limit; `params` are its values. Where a
        number of `newest` is given, only about so many are ranked, and each contains all of the terms.
        """

    def occurrences(
        self, table: str, term: str, most: int, only: str = "", params: Params | None = None
    ) -> int:
        """How many rows of the keyword index `table` contain the term; counting stops at `most`."""
        found, given = self.containing(table, [term])
        where = found + (f" AND {only}" if only else "")
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {where} LIMIT :most) x"  # noqa: S608
        return int(self.query(sql, {**(params or {}), **given, "most": most})[0][0])

    def newest(self, table: str, terms: Sequence[str], most: int) -> int:
        """The row of the keyword index `table` from which on about `most` contain all of the terms."""
        found, params = self.containing(table, terms, every=True)
        newest = f"SELECT rowid FROM {table} WHERE {found} ORDER BY rowid DESC LIMIT :most"  # noqa: S608
        rows = self.query(f"SELECT coalesce(min(rowid), 0) FROM ({newest}) x", {**params, "most": most})  # noqa: S608
        return int(rows[0][0])

    def containing(
        self, table: str, terms: Sequence[str], every: bool = False, column: str = ""
    ) -> tuple[str, dict[str, Any]]:
        """The condition, and its values, of rows of the keyword index `table` with any or `every` one of the terms.

        `column` is empty for all, or the name of the index's first column.
        """

    @property
    def has_nearest(self) -> bool:
        """Whether the engine searches vectors itself; if not, `store/vectors.py` does in this process."""
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
        """Passages with the cosine of their vector of an identity, nearest first, where the engine has them.

        Both are conditions of our own SQL on `passages`, tested before the limit.
        """
        return []

    def index_vectors(self, owner: int, dimensions: int) -> None:
        """Prepare `nearest` for the vectors that an identity has now, where the engine searches them."""
        return

    @property
    def read_only(self) -> bool:
        """Whether nothing that is written would last."""

    @property
    def writing(self) -> bool:
        """Whether this thread is inside a transaction: what it reads may never have been."""

    @property
    def place(self) -> str:
        """What is the same for all who read the same rows, and no others, in this process."""

    def version(self) -> int:
        """A number that changes whenever another connection has written."""

    def check(self) -> list[str]:
        """What an integrity check finds wrong; empty when sound."""

    # ---- the whole ----

    def exists(self) -> bool:
        """Whether it is there: looking must not create it."""

    def size(self) -> int:
        """Its bytes."""

    def tables(self) -> dict[str, tuple[str, ...]]:
        """The tables with their columns; keyword indexes follow from them."""

    def held(self) -> AbstractContextManager[None]:
        """Block the writers of all processes; this thread may still write. Readers are not blocked."""

    def claimed(self, name: str) -> AbstractContextManager[bool]:
        """Take the lock of this name over all machines; yields whether it was free. It ends with its holder.

        Files have one machine, and whoever claims there has a lock file.
        """
        return nullcontext(True)

    def let_read(self, group: str, allowed: bool) -> None:
        """Let the roles of another group's agents read it, or no longer, where the engine has roles.

        A file is read by this program alone, which asks the table of grants.
        """
        return

    def overwriting(self) -> Database:
        """The same, with deleted rows overwritten at once where the engine can."""

    def scrub(self, wait_ms: int = 10_000) -> bool:
        """Leave nothing of deleted rows; False when another process keeps an older state."""

    def copy_to(self, target: Path) -> None:
        """A consistent copy as a SQLite file, while others read and write."""

    def load_from(self, source: Path) -> None:
        """Replace the whole content by that of a SQLite file, in one transaction."""

    def at(self, path: Path) -> Database:
        """A SQLite file with the same tables."""

    def discard(self) -> None:
        """Remove it: for one that is too damaged to be opened, or can be made anew."""

    def set_aside(self) -> None:
        """Move it away whole; the next use makes a new one."""

    def leave_replaced(self) -> bool:
        """Close a file that another was put in the place of; True if that was so."""
        return False

    def lost_writes(self) -> int:
        """How many writes it must contain and does not."""
        return 0

    def close(self) -> None:
        """Close every connection of this process."""
