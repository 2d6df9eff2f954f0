"""The Database protocol: what a repository may ask of its engine. SQLite is the only one today."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Params = Mapping[str, Any]
Row = tuple[Any, ...]


class Database(Protocol):
    """One database. SQL is SQLite's, with `:name` parameters; rows are plain tuples."""

    def query(self, sql: str, params: Params | None = None) -> list[Row]:
        """All rows of a reading statement."""
        ...

    def query_within(self, limit_ms: int, sql: str, params: Params) -> list[Row]:
        """All rows of a statement that a caller has composed; StoreBusy when it takes longer."""
        ...

    def rows(self, sql: str, params: Params | None = None) -> Iterator[Row]:
        """The rows one by one, for results too large to hold."""
        ...

    def execute(self, sql: str, params: Params | None = None) -> int:
        """Run one writing statement inside `transaction`; returns the number of rows changed."""
        ...

    def insert(self, sql: str, params: Params | None = None) -> int:
        """Run one INSERT inside `transaction`; returns the new row's id."""
        ...

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of parameters, inside `transaction`."""
        ...

    def transaction(self, wait_ms: int | None = None) -> AbstractContextManager[None]:
        """A write transaction: all or nothing, one writer at a time over all processes; may be nested.

        With `wait_ms` it raises StoreBusy after that time: for writes that may be left out.
        """
        ...

    def match(
        self, table: str, terms: Sequence[str], limit: int, only: str = "", params: Params | None = None
    ) -> list[tuple[int, float]]:
        """Row ids of the keyword index `table` that contain any of `terms`, best first (higher is better).

        `only` is a condition of our own SQL on `rowid`, tested before the limit; `params` are its values.
        """
        ...

    def occurrences(
        self, table: str, term: str, most: int, only: str = "", params: Params | None = None
    ) -> int:
        """How many rows of the keyword index `table` contain the term; counting stops at `most`."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether nothing that is written would last."""
        ...

    @property
    def place(self) -> str:
        """What is the same for all who read the same rows, and no others, in this process."""
        ...

    def version(self) -> int:
        """A number that changes whenever another connection has written."""
        ...

    def check(self) -> list[str]:
        """What an integrity check finds wrong; empty when sound."""
        ...

    def close(self) -> None:
        """Close every connection of this process."""
        ...
