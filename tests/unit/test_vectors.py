"""Vectors in memory: near, filtered, and up to date."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nanoclaw_memory.store import vector_rows, vectors
from nanoclaw_memory.store.passage_search import PassageFilter
from nanoclaw_memory.store.passages import FileRow, NewPassage, Passages
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.types import Passage


@pytest.fixture
def chunks(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "index.db", "index")
    yield Passages(database)
    database.close()


def put(chunks: Passages, path: str, rows: np.ndarray) -> None:
    prints = [f"{path}{n}".encode() for n in range(len(rows))]
    new = [
        NewPassage(Passage(n + 1, n + 1, f"{path} {n}"), f"{path} {n}", "", "", p)
        for n, p in enumerate(prints)
    ]
    chunks.put_file(FileRow(0, path, 1, 1, path, "k", ""), new)
    chunks.put_vectors("fake@32", vectors.coded(prints, rows))


def unit(count: int, seed: int = 0, size: int = 32) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_eight_bits_keep_the_cosine(chunks: Passages):
    rows = unit(50)
    put(chunks, "a.md", rows)
    matrix = vectors.Matrix(chunks, "fake@32", 32)
    matrix.refresh()
    found = matrix.nearest(rows[7], 50)
    assert found[0][1] == pytest.approx(1.0, abs=0.01)
    exact = sorted((rows @ rows[7]).tolist(), reverse=True)
    assert np.allclose([score for _, score in found], exact, atol=0.01)


def test_only_rows_of_the_given_files_are_near(chunks: Passages):
    rows = unit(20)
    put(chunks, "a.md", rows[:10])
    put(chunks, "b.md", rows[10:])
    matrix = vectors.Matrix(chunks, "fake@32", 32)
    matrix.refresh()
    files = {path: number for number, _, path in chunks.documents()}
    found = matrix.nearest(rows[3], 10, chunks.search.selection(PassageFilter(documents=(files["b.md"],))))
    stored = chunks.search.load(number for number, _ in found)
    assert len(found) == 10
    assert {chunk.path for chunk in stored.values()} == {"b.md"}


def test_a_changed_and_a_removed_file_are_caught_up_with(chunks: Passages):
    put(chunks, "a.md", unit(5, 1))
    put(chunks, "b.md", unit(5, 2))
    matrix = vectors.Matrix(chunks, "fake@32", 32)
    matrix.refresh()
    put(chunks, "a.md", unit(3, 3))
    chunks.remove_file("b.md")
    matrix.refresh()
    whole = vectors.Matrix(chunks, "fake@32", 32)
    whole.refresh()
    assert len(matrix.ids) == 3
    assert matrix.ids.tolist() == whole.ids.tolist()
    assert matrix.nearest(unit(1, 9)[0], 3) == whole.nearest(unit(1, 9)[0], 3)


def test_rows_that_come_between_questions_are_found_as_by_a_new_process(
    chunks: Passages, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vector_rows, "ROOM", 2)
    matrix = vectors.Matrix(chunks, "fake@32", 32)
    query = unit(1, 9)[0]
    for number in range(12):
        rows = unit(1 + number % 3, number)
        put(chunks, f"{number}.md", rows)
        if number == 5:  # a text without a vector, which gets it after the next ones
            late = NewPassage(Passage(1, 1, "late"), "late", "", "", b"late")
            chunks.put_file(FileRow(0, "late.md", 1, 1, "", "k", ""), [late])
        if number == 8:
            chunks.put_vectors("fake@32", vectors.coded([b"late"], unit(1, 99)))
        matrix.refresh()
        whole = vectors.Matrix(chunks, "fake@32", 32)
        whole.refresh()
        assert matrix.ids.tolist() == whole.ids.tolist()
        assert matrix.nearest(query, 30) == whole.nearest(query, 30)
        assert matrix.background(query) == whole.background(query)


def test_the_sketch_finds_what_exact_search_finds(chunks: Passages, monkeypatch: pytest.MonkeyPatch):
    # Texts come in topics: vectors lie in clusters, as real ones do.
    topics = unit(60, 1, 128)
    rows = np.repeat(topics, 40, axis=0) + 0.5 * unit(2_400, 2, 128)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    prints = [str(n).encode() for n in range(len(rows))]
    new = [NewPassage(Passage(n + 1, n + 1, str(n)), str(n), "", "", p) for n, p in enumerate(prints)]
    chunks.put_file(FileRow(0, "a.md", 1, 1, "", "k", ""), new)
    chunks.put_vectors("fake@128", vectors.coded(prints, rows))
    matrix = vectors.Matrix(chunks, "fake@128", 128)
    matrix.refresh()
    exact = [set(dict(matrix.nearest(query, 10))) for query in topics]
    monkeypatch.setattr(vector_rows, "EXACT_ROWS", 100)
    monkeypatch.setattr(vectors, "RESCORED", 200)
    matrix = vectors.Matrix(chunks, "fake@128", 128)
    matrix.refresh()
    sketched = [set(dict(matrix.nearest(query, 10))) for query in topics]
    recall = np.mean([len(one & other) / 10 for one, other in zip(exact, sketched, strict=True)])
    assert recall >= 0.97


def test_filters_reach_into_the_sketch(chunks: Passages, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vector_rows, "EXACT_ROWS", 10)
    rows = unit(200)
    put(chunks, "a.md", rows[:195])
    put(chunks, "b.md", rows[195:])
    matrix = vectors.Matrix(chunks, "fake@32", 32)
    matrix.refresh()
    files = {path: number for number, _, path in chunks.documents()}
    found = matrix.nearest(rows[0], 10, chunks.search.selection(PassageFilter(documents=(files["b.md"],))))
    assert len(found) == 5


def test_threads_that_share_a_cache_read_the_vectors_once_and_keep_what_they_have(chunks: Passages):
    cache = vectors.VectorCache(10_000_000)
    put(chunks, "a.md", unit(5, 1))
    one, other = (vectors.Matrix(chunks, "fake@32", 32, cache) for _ in range(2))
    one.refresh()
    other.refresh()
    assert one.ids is not None and np.shares_memory(one.ids, other.ids)
    before = one.nearest(unit(1, 9)[0], 5)
    put(chunks, "b.md", unit(5, 2))
    other.refresh()
    assert len(other.ids) == 10
    assert (
        one.nearest(unit(1, 9)[0], 5) == before
    )  # a search that is under way goes on with what it began with


@pytest.mark.parametrize("most", [0, 100, 3_000])
def test_a_cache_stays_within_its_bound_and_answers_all_the_same(chunks: Passages, most: int):
    cache = vectors.VectorCache(most)
    rows = unit(50)
    put(chunks, "a.md", rows)
    for _ in range(3):
        matrix = vectors.Matrix(chunks, "fake@32", 32, cache)
        matrix.refresh()
        assert matrix.nearest(rows[7], 1)[0][1] == pytest.approx(1.0, abs=0.01)
        assert cache.nbytes <= most


def test_vectors_of_a_file_that_was_deleted_and_built_anew_are_not_mixed(tmp_path: Path):
    cache, query = vectors.VectorCache(10_000_000), unit(1, 9)[0]
    for seed in (1, 2):
        (tmp_path / "index.db").unlink(missing_ok=True)
        database = SqliteDatabase(tmp_path / "index.db", "index")
        chunks = Passages(database)
        put(chunks, "a.md", unit(5, seed))
        matrix = vectors.Matrix(chunks, "fake@32", 32, cache)
        matrix.refresh()
        alone = vectors.Matrix(chunks, "fake@32", 32)
        alone.refresh()
        assert matrix.nearest(query, 5) == alone.nearest(query, 5)
        database.close()
        for name in ("index.db-wal", "index.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)


def pack_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rows, "EXACT_ROWS", 10)
    monkeypatch.setattr(vectors, "EXACT_ROWS", 10)
    monkeypatch.setattr(vectors, "UNPACKED", 3)
    monkeypatch.setattr(vectors, "RESCORED", 1_000)


def in_table(chunks: Passages) -> int:
    return int(chunks.database.query("SELECT count(*) FROM vectors")[0][0])


def test_many_vectors_are_in_a_file_alone_that_catches_up_with_the_index(
    chunks: Passages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pack_early(monkeypatch)
    query, file = unit(1, 9)[0], Path(f"{chunks.database.path}-vectors")
    unpacked = Passages(SqliteDatabase(tmp_path / "unpacked.db", "index"))

    def answers(cache: vectors.VectorCache, index: Passages = chunks) -> list[tuple[int, float]]:
        matrix = vectors.Matrix(index, "fake@32", 32, cache)
        matrix.refresh()
        assert len(set(matrix.ids.tolist())) == len(matrix.ids) == chunks.count()[1]
        return matrix.nearest(query, 200)

    kept, other = vectors.VectorCache(10_000_000), vectors.VectorCache(10_000_000)
    for number in range(12):
        for index in (chunks, unpacked):
            put(index, f"{number % 9}.md", unit(7, number % 9))
            if number % 4 == 2:
                index.remove_file(f"{number - 1}.md")
                index.prune_vectors(["fake@32"])
        before = answers(kept)
        kept.pack(chunks, "fake@32", 32)
        alone = answers(vectors.VectorCache(10_000_000), unpacked)
        assert in_table(chunks) < 10 or number == 0
        for found in (before, answers(vectors.VectorCache(10_000_000)), answers(kept), answers(other)):
            assert [key for key, _ in found] == [key for key, _ in alone]
            assert np.allclose([score for _, score in found], [score for _, score in alone])
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_index_whose_pack_was_killed_half_way_has_every_vector_once(
    chunks: Passages, monkeypatch: pytest.MonkeyPatch
):
    pack_early(monkeypatch)
    for number in range(3):
        put(chunks, f"{number}.md", unit(12, number))
        cache = vectors.VectorCache(10_000_000)
        with monkeypatch.context() as killed:
            killed.setattr(Passages, "hand_over", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                cache.pack(chunks, "fake@32", 32)
        for again in (cache, vectors.VectorCache(10_000_000)):
            matrix = vectors.Matrix(chunks, "fake@32", 32, again)
            matrix.refresh()
            assert sorted(matrix.ids.tolist()) == sorted(chunks.all_ids())
        vectors.VectorCache(10_000_000).pack(chunks, "fake@32", 32)
        assert in_table(chunks) == 0


@pytest.mark.parametrize("damage", [None, b"", b"{}", b"x" * 5_000, "older"])
def test_a_lost_file_of_vectors_is_noticed_and_every_text_waits_to_be_embedded(
    chunks: Passages, monkeypatch: pytest.MonkeyPatch, damage: bytes | str | None
):
    pack_early(monkeypatch)
    file = Path(f"{chunks.database.path}-vectors")
    older = b""
    for number in range(3):
        put(chunks, f"{number}.md", unit(12, number))
        chunks.set_covered("fake@32", chunks.last_id())
        vectors.VectorCache(10_000_000).pack(chunks, "fake@32", 32)
        older = older or file.read_bytes()
    cache = vectors.VectorCache(10_000_000)
    assert not cache.mend(chunks, "fake@32")
    file.unlink()
    if damage is not None:
        file.write_bytes(older if isinstance(damage, str) else damage)
    matrix = vectors.Matrix(chunks, "fake@32", 32, cache)
    matrix.refresh()
    assert matrix.nearest(unit(1)[0], 5) == []  # words still answer
    assert cache.mend(chunks, "fake@32")
    assert not cache.mend(chunks, "fake@32")
    assert len(chunks.pending("fake@32")) == 36
    chunks.put_vectors(
        "fake@32", vectors.coded([print_ for print_, _ in chunks.pending("fake@32")], unit(36))
    )
    matrix.refresh()
    assert len(matrix) == 36
    cache.pack(chunks, "fake@32", 32)
    assert in_table(chunks) == 0


def test_a_text_that_comes_again_has_the_vector_that_the_file_has(
    chunks: Passages, monkeypatch: pytest.MonkeyPatch
):
    pack_early(monkeypatch)
    rows = unit(12)
    put(chunks, "a.md", rows)
    cache = vectors.VectorCache(10_000_000)
    cache.pack(chunks, "fake@32", 32)
    prints = {
        print_ for _, print_ in chunks.with_fingerprints([f"a.md{n}".encode() for n in range(12)]).items()
    }
    chunks.remove_file("a.md")
    known = cache.known(chunks, "fake@32", prints)
    assert {one.fingerprint for one in known} == prints and len(prints) == 12
    assert {one.codes for one in known} == {one.codes for one in vectors.coded([b""] * 12, rows)}


@pytest.mark.parametrize("damage", [b"", b"{}", b"x" * 5_000])
def test_a_damaged_file_of_vectors_is_passed_over(
    chunks: Passages, monkeypatch: pytest.MonkeyPatch, damage: bytes
):
    monkeypatch.setattr(vector_rows, "EXACT_ROWS", 10)
    monkeypatch.setattr(vectors, "EXACT_ROWS", 10)
    monkeypatch.setattr(vectors, "UNPACKED", 3)
    rows = unit(50)
    put(chunks, "a.md", rows)
    Path(f"{chunks.database.path}-vectors").write_bytes(damage)
    for _ in range(2):
        cache = vectors.VectorCache(10_000_000)
        matrix = vectors.Matrix(chunks, "fake@32", 32, cache)
        matrix.refresh()
        assert matrix.nearest(rows[7], 1)[0][1] == pytest.approx(1.0, abs=0.01)
        cache.pack(chunks, "fake@32", 32)
    assert Path(f"{chunks.database.path}-vectors").stat().st_size > 5_000
