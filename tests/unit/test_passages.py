"""Passages of rows: storing one costs the same in a large index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nanoclaw_memory.store.passages import NewPassage, NewRow, Passages
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.types import Passage


class Explained(SqliteDatabase):
    """A database that keeps how its queries for the passages of a row are answered."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "index")
        self.plans: list[str] = []

    def query(self, sql: str, params: Any = None) -> list[Any]:
        if "FROM passages WHERE number" in sql:
            self.plans += [row[3] for row in super().query(f"EXPLAIN QUERY PLAN {sql}", params)]
        return super().query(sql, params)


def row(number: int, text: str) -> NewRow:
    passage = Passage(0, 0, text, "entry", number=number)
    return NewRow(number, "fact", (NewPassage(passage, text, "", "", text.encode()),))


def test_a_row_is_stored_without_reading_the_rows_beside_it(tmp_path: Path):
    passages = Passages(Explained(tmp_path / "index.db"))
    with passages.database.transaction():
        passages.put_rows("entries", [row(1, "the first"), row(2, "the second")])
        passages.put_rows("entries", [row(1, "the first, corrected"), NewRow(2)])
    looked_up = [plan for plan in passages.database.plans if "passages" in plan]
    assert looked_up and all("passages_number" in plan for plan in looked_up)
    assert passages.count()[1] == 1 and passages.search.occurrences("corrected") == 1
