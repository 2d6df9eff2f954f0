"""Passages: storing a row costs the same in a large index; what is kept in memory is what the index would answer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.store.passage_search import _KEPT, Selection
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


WORDS = st.sampled_from(["harbour", "harbours", "port", "plan", "the", "keystone port", "never"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=8).map(" ".join), max_size=12)


def stored(database: SqliteDatabase, texts: list[str]) -> Passages:
    passages = Passages(database)
    with database.transaction():
        passages.put_rows("entries", [row(number, text) for number, text in enumerate(texts, 1)])
    return passages


@given(
    TEXTS,
    st.lists(WORDS, unique=True, min_size=1, max_size=4),
    st.integers(1, 6),
    st.sets(st.integers(1, 12)),
)
def test_passages_are_ranked_by_words_as_the_keyword_index_ranks_them(
    texts: list[str], terms: list[str], limit: int, out: set[int]
):
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder) / "index.db", "index")
        passages = stored(database, texts)
        kept_out = ", ".join(map(str, out)) or "0"
        chosen = Selection(without=f"SELECT id FROM passages WHERE id IN ({kept_out})", excluded=tuple(out))
        for _ in range(2):  # read, then kept
            ranked = database.match("passages_fts", terms, limit)
            assert passages.search.match(terms, limit, None) == ranked
            ranked = database.match("passages_fts", terms, limit, f"rowid NOT IN ({kept_out})")
            assert passages.search.match(terms, limit, chosen if out else Selection()) == ranked
        database.close()


def answers(passages: Passages) -> tuple[object, ...]:
    """What is asked of an index again and again."""
    search = passages.search
    return search.occurrences("port", 9), search.load([1, 2, 3]), search.match(["port"], 9, None)


def test_what_others_have_changed_is_read_anew(tmp_path: Path):
    passages = stored(SqliteDatabase(tmp_path / "index.db", "index"), ["the port", "a plan"])
    assert passages.search.occurrences("port", 9) == 1 and set(passages.search.load([1, 2, 3])) == {1, 2}
    others = Passages(SqliteDatabase(tmp_path / "index.db", "index"))
    others.remove([1])
    assert answers(passages) == (0, passages.search.load([2]), []) == answers(others)
    with others.database.transaction():
        others.put_rows("entries", [row(2, "another port")])
    found, texts, _ = answers(passages)
    assert found == 1 and [one.passage.text for one in texts.values()] == ["another port"]
    assert answers(passages) == answers(others)


def test_nothing_is_kept_of_a_transaction_that_failed(tmp_path: Path):
    passages = stored(SqliteDatabase(tmp_path / "index.db", "index"), ["the port"])
    before = answers(passages)
    with pytest.raises(KeyError), passages.database.transaction():
        passages.put_rows("entries", [row(1, "port and port"), row(2, "port")])
        assert passages.search.occurrences("port", 9) == 2
        raise KeyError
    with passages.database.transaction():
        passages.put_rows("entries", [row(3, "a plan")])
    found, texts, ranked = answers(passages)
    assert (found, texts[1], len(ranked)) == (1, before[1][1], 1)


def test_of_common_words_what_a_filter_lets_in_is_found_however_old(tmp_path: Path):
    texts = ["the harbour port of old", *("the harbour port" for _ in range(20))]
    search = stored(SqliteDatabase(tmp_path / "index.db", "index"), texts).search
    assert 1 not in dict(search.match(["harbour", "port"], 10, None, newest=5))
    assert len(search.match(["harbour", "port"], 10, None, newest=5)) == 5
    old = Selection(within="id <= 3")
    assert set(dict(search.match(["harbour", "port"], 10, old, newest=5))) == {1, 2, 3}


def test_of_an_index_that_changes_what_it_said_long_ago_is_not_kept(tmp_path: Path):
    passages = stored(SqliteDatabase(tmp_path / "index.db", "index"), ["the harbour", "the port"])
    for number in range(10, 15):
        with passages.database.transaction():
            passages.put_rows("entries", [row(number, "another harbour")])
        for _ in range(2):  # nothing is kept of the first question of a process
            with passages.search.settled():
                passages.search.load([1, 2])
                assert len(passages.search.match(["harbour"], 20, None)) == number - 8
    keys = [key for key in (*_KEPT.lately, *_KEPT.before) if key[0][0] == passages.database.place]
    assert 0 < len({state for state, _ in keys}) <= 2
