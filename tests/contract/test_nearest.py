"""The vectors of an index: the same results whether the process or the database searches them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nanoclaw_memory.store import vectors
from nanoclaw_memory.store.passage_search import PassageFilter
from nanoclaw_memory.store.passages import FileRow, NewPassage, Passages
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.vectors import VectorCache, searched
from nanoclaw_memory.types import Passage
from postgres import fresh_database

IDENTITY = "fake@32"


@pytest.fixture(params=["sqlite", "postgres", "postgres without pgvector"])
def passages(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Passages]:
    if request.param == "sqlite":
        database = SqliteDatabase(tmp_path / "index.db", "index")
        yield Passages(database)
        database.close()
        return
    from nanoclaw_memory.store import postgres_vectors
    from nanoclaw_memory.store.postgres import PostgresDatabase

    if "without" in request.param:
        monkeypatch.setattr(postgres_vectors, "EXTENSION", "not_installed_here")
    with fresh_database() as url:
        made = PostgresDatabase(url, tmp_path, tmp_path / "data" / "index.db", "index")
        assert made.has_nearest is ("without" not in request.param)
        yield Passages(made)


def put(passages: Passages, path: str, rows: np.ndarray, prints: list[bytes] | None = None) -> None:
    prints = prints or [f"{path}{number}".encode() for number in range(len(rows))]
    new = [
        NewPassage(Passage(at + 1, at + 1, f"{path} {at}"), f"{path} {at}", "", "", one)
        for at, one in enumerate(prints)
    ]
    passages.put_file(FileRow(0, path, 1, 1, path, "k", ""), new)
    passages.put_vectors(IDENTITY, vectors.coded(prints, rows))


def unit(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, 32)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def near(passages: Passages) -> vectors.Matrix | vectors.StoredVectors:
    return searched(passages, IDENTITY, 32, VectorCache(1 << 30))


def paths(passages: Passages, found: list[tuple[int, float]]) -> list[str]:
    stored = passages.search.load(number for number, _ in found)
    return [stored[number].passage.text for number, _ in found]


def test_the_nearest_come_first_with_their_cosine(passages: Passages):
    rows = unit(50)
    put(passages, "a.md", rows)
    found = near(passages).nearest(rows[7], 10)
    best = np.argsort(-(rows @ rows[7]))[:10]
    assert paths(passages, found) == [f"a.md {number}" for number in best]
    assert np.allclose([score for _, score in found], (rows @ rows[7])[best], atol=0.01)


def test_a_filter_is_tested_before_the_limit(passages: Passages):
    rows = unit(20)
    put(passages, "a.md", rows[:10])
    put(passages, "b.md", rows[10:])
    files = {path: number for number, _, path in passages.documents()}
    chosen = passages.search.selection(PassageFilter(documents=(files["b.md"],)))
    found = near(passages).nearest(rows[3], 10, chosen)
    assert sorted(paths(passages, found)) == [f"b.md {number}" for number in range(10)]
    kept_out = passages.search.selection(PassageFilter(left_out=("files",)))
    assert near(passages).nearest(rows[3], 10, kept_out) == []


def test_passages_with_one_text_share_a_vector_and_are_both_found(passages: Passages):
    rows = unit(2)
    put(passages, "a.md", rows, [b"same", b"other"])
    put(passages, "b.md", rows[:1], [b"same"])
    assert set(paths(passages, near(passages).nearest(rows[0], 2))) == {"a.md 0", "b.md 0"}


def test_what_is_gone_is_not_near_and_what_came_is(passages: Passages):
    rows = unit(3)
    put(passages, "a.md", rows[:2])
    assert len(near(passages).nearest(rows[0], 9)) == 2
    passages.remove_file("a.md")
    put(passages, "b.md", rows[2:])
    assert paths(passages, near(passages).nearest(rows[0], 9)) == ["b.md 0"]


def test_one_passage_is_asked_for_its_vector_and_its_cosine(passages: Passages):
    rows = unit(60)
    put(passages, "a.md", rows)
    put(passages, "c.md", rows[:0])
    found = near(passages)
    ids = sorted(passages.search.rows_of("files"))
    vector = found.vectors([ids[4]])[ids[4]]
    assert vector is not None and np.allclose(vector, rows[4], atol=0.01)
    assert found.vectors([ids[-1] + 9]) == {}
    assert found.cosines(rows[1], [ids[1], ids[2], ids[-1] + 9]) == {
        ids[1]: pytest.approx(1.0, abs=0.01),
        ids[2]: pytest.approx(float(rows[1] @ rows[2]), abs=0.01),
    }
    assert found.without([ids[0], ids[-1] + 9]) == {ids[-1] + 9}
    assert found.background(rows[0]) == pytest.approx(float((rows @ rows[0]).mean()), abs=0.05)


def test_many_vectors_are_found_by_an_index(passages: Passages, monkeypatch: pytest.MonkeyPatch):
    from nanoclaw_memory.store import postgres_vectors

    monkeypatch.setattr(postgres_vectors, "EXACT_ROWS", 200)
    topics = unit(20, seed=1)
    rows = np.concatenate([topics + unit(20, seed) * 0.3 for seed in range(2, 42)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    put(passages, "a.md", rows)
    VectorCache(1 << 30).pack(passages, IDENTITY, 32)
    VectorCache(1 << 30).pack(passages, IDENTITY, 32)  # nothing is to be done
    wanted = [{f"a.md {number}" for number in np.argsort(-(rows @ query))[:10]} for query in topics]
    found = [set(paths(passages, near(passages).nearest(query, 10))) for query in topics]
    assert np.mean([len(a & b) / 10 for a, b in zip(found, wanted, strict=True)]) > 0.8
    if passages.database.has_nearest:
        made = "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '%ivfflat%'"
        assert passages.database.query(made) == [(1,)]
        assert passages.database.scrub()
        assert passages.database.check() == []
