"""Search at 1k to 1M chunks: index rate, CPU of each stage, memory, disk; beside plain FTS5 + sqlite-vec.

    python bench/scale.py [--sizes 1000,10000,100000] [--real 2000] [--models DIR] [--keep DIR] [--baseline]

Texts are docstrings of the installed Python packages. The first `--real` are embedded by the local model; the vectors
of the rest are those with noise (embedding a million texts takes hours). What the one-bit sketch finds of an exact
search is measured at each size, and on the real vectors alone for several depths of rescoring.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from measure import table
from nanoclaw_memory.providers.embedder import Chain, Identity
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval.candidates import Candidates
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.searcher import Question, Searcher
from nanoclaw_memory.store import vectors
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.passages import FileRow, NewPassage, Passages
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.vector_block import VectorBlock
from nanoclaw_memory.store.vectors import VectorCache
from nanoclaw_memory.types import Passage

PER_FILE = 50
QUESTIONS = 60


class Prepared:
    """An embedder whose query vectors were made beforehand: the search itself is measured."""

    weights = (0.5, 0.5)

    def __init__(self, identity: Identity, known: dict[str, Any]) -> None:
        self.identity = identity
        self.known = known

    def embed_documents(self, texts: Any, deadline: float | None = None) -> Any:
        raise AssertionError("nothing is embedded here")

    def embed_query(self, text: str, deadline: float | None = None) -> Any:
        return self.known[text]


def main() -> None:
    options = _options()
    texts = list(itertools.islice(docstrings(), 40_000))
    random.Random(1).shuffle(texts)
    model = LocalEmbedder(*embedder(options.models))
    began = time.process_time()
    kept = options.keep / f"real-{options.real}.npy" if options.keep else None
    if kept and kept.exists():
        real = np.load(kept)
    else:
        real = model.embed_documents(texts[: options.real])
        print(f"embedding: {options.real / (time.process_time() - began):.0f} texts a second of CPU\n")
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.save(kept, real)
    questions = questions_of(texts[-QUESTIONS:])
    known = {question: model.embed_query(question) for question in questions}
    chain = Chain((Prepared(model.identity, known),))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in map(int, options.sizes.split(",")):
            folder = (options.keep or Path(scratch)) / str(size)
            rows.append(measure(folder, size, texts, real, chain, questions, options))
    head = [
        *("chunks", "index /s", "DB MB", "vectors MB", "load s", "RSS MiB", "not of files"),
        *("keyword p50", "vector p50", "hybrid p50", "hybrid p95", "of the top 10", "of the top 100"),
        *("plain FTS5", "sqlite-vec"),
    ]
    table(head, rows)
    print()
    recall(real, known)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--real", type=int, default=2_000, help="how many texts are really embedded")
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "--baseline", action="store_true", help="also plain FTS5 and sqlite-vec (if installed)"
    )
    return parser.parse_args()


def docstrings() -> Iterator[str]:
    """Prose that is on every machine: the docstrings of the standard library and installed packages."""
    for root in (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]):
        for path in sorted(Path(root).rglob("*.py")):
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (OSError, SyntaxError, ValueError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    text = ast.get_docstring(node) or ""
                    if 80 <= len(text) <= 1_500:
                        yield text


def questions_of(texts: list[str]) -> list[str]:
    """Questions of 4 to 9 words out of texts: rare and common words as they come."""
    chance = random.Random(2)
    return [
        "how does " + " ".join(words[start : start + chance.randint(4, 9)])
        for text in texts
        if len(words := text.split()) > 12
        for start in [chance.randint(0, 3)]
    ]


def build(folder: Path, size: int, texts: list[str], real: Any, key: str) -> tuple[Passages, float]:
    """An index of `size` chunks; gives the chunks stored a second of CPU."""
    chunks = Passages(SqliteDatabase(folder / "index.db", "index"))
    if chunks.count()[1] >= size:
        return chunks, float("nan")
    noise = np.random.default_rng(3)
    began = time.process_time()
    for first in range(0, size, PER_FILE):
        count = min(PER_FILE, size - first)
        new = [chunk_of(number, texts) for number in range(first, first + count)]
        row = FileRow(0, f"memory/note-{first}.md", 1, 1, str(first), "bench", "")
        base = real[[number % len(real) for number in range(first, first + count)]]
        if first >= len(real):
            base = base + noise.normal(0, 0.02, base.shape).astype(np.float32)
            base /= np.linalg.norm(base, axis=1, keepdims=True)
        coded = vectors.coded([one.fingerprint for one in new], base)
        with chunks.database.transaction():
            chunks.put_file(row, new)
            chunks.put_vectors(key, coded)
    return chunks, size / (time.process_time() - began)


def chunk_of(number: int, texts: list[str]) -> NewPassage:
    """Passage `number`: a text, and from the second round on its lines shuffled with another's."""
    text = texts[number % len(texts)]
    if number >= len(texts):
        chance = random.Random(number)
        lines = text.split(". ") + texts[chance.randrange(len(texts))].split(". ")
        chance.shuffle(lines)
        text = ". ".join(lines)[:1_200]
    # One in a hundred is a statement, which currency looks for among all that has its words.
    kind, day = (
        ("line", f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}") if number % 100 == 0 else ("section", "")
    )
    chunk = Passage(number % PER_FILE * 10 + 1, number % PER_FILE * 10 + 9, text, kind=kind, day=day)
    return NewPassage(chunk, text, "", f"note {number}", number.to_bytes(32, "big"))


def measure(
    folder: Path,
    size: int,
    texts: list[str],
    real: Any,
    chain: Chain,
    questions: list[str],
    options: argparse.Namespace,
) -> list[object]:
    folder.mkdir(parents=True, exist_ok=True)
    chunks, rate = build(folder, size, texts, real, chain.identity.key)
    index = Index(chunks, folder / "lock", lambda: (), Chunking(), lambda: chain)
    VectorCache(vectors.MOST_BYTES).pack(chunks, chain.identity.key, chain.identity.dimensions)
    searcher = Searcher(still(index), 30)
    candidates = Candidates(index)
    began = time.process_time()
    candidates.pool(questions[0], fast=False)
    load = time.process_time() - began
    searcher.search(Question(questions[0], 10, date(2026, 1, 1)))
    keyword = timed(
        lambda question: candidates.pool(question, fast=True).keyword,
        questions,
    )
    matrix = vectors.Matrix(chunks, chain.identity.key, chain.identity.dimensions, index.vectors)
    matrix.refresh()
    vector = timed(lambda question: matrix.nearest(chain.embed_query(question).vector, 100), questions)
    hybrid = timed(lambda question: searcher.search(Question(question, 10, date(2026, 1, 1))), questions)
    held = found_of_exact(matrix, [chain.embed_query(question).vector for question in questions])
    chunks.database.query("PRAGMA wal_checkpoint(TRUNCATE)")
    disk, mapped = (
        sum(path.stat().st_size for path in folder.glob(name)) / 1e6
        for name in ("index.db", "index.db-vectors")
    )
    memory = resident(folder, options.models, questions[:20])
    plain, brute = (
        baselines(folder, chunks, matrix, chain, questions)
        if options.baseline
        else (float("nan"), float("nan"))
    )
    chunks.database.close()
    return [
        f"{size:,}",
        rate,
        disk,
        mapped,
        load,
        *memory,
        keyword[0],
        vector[0],
        *hybrid,
        *held,
        plain,
        brute,
    ]


def resident(folder: Path, models: Path, questions: list[str]) -> list[float]:
    """Mebibytes of a process of its own that has loaded the model and the index, and searched: at most, and its own."""
    code = (
        "import re, sys; sys.path.insert(0, 'bench'); from scale import *\n"
        "folder, models, questions = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]\n"
        "chain = Chain((LocalEmbedder(*embedder(models)),))\n"
        "chunks = Passages(SqliteDatabase(folder / 'index.db', 'index'))\n"
        "index = Index(chunks, folder / 'lock', lambda: (), Chunking(), lambda: chain)\n"
        "searcher = Searcher(still(index), 30)\n"
        "for question in questions: searcher.search(Question(question, 10, date(2026, 1, 1)))\n"
        # Not getrusage: its maximum is handed down from the process that started this one.
        "status = Path('/proc/self/status').read_text()\n"
        "print(*(re.search(name + r':\\s+(\\d+)', status)[1] for name in ('VmHWM', 'RssAnon')))"
    )
    command = [sys.executable, "-c", code, str(folder), str(models), *questions]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent
    )
    return [float(one) / 1024 for one in done.stdout.split()]


def still(index: Index) -> Index:
    """The index without a look at the disk: there are no files here."""

    class Still(Index):
        def refresh(
            self, embed: bool, sources: Collection[str] | None = None, quiet: bool = False
        ) -> list[str]:
            return []

    return Still(index.passages, index.lock, index.files, index.chunking, index.embedder)


def timed(work: Callable[[str], object], questions: list[str]) -> tuple[float, float]:
    found = []
    for question in questions:
        began = time.process_time()
        work(question)
        found.append((time.process_time() - began) * 1000)
    found.sort()
    return found[len(found) // 2], found[int(len(found) * 0.95)]


def baselines(
    folder: Path, chunks: Passages, matrix: vectors.Matrix, chain: Chain, questions: list[str]
) -> tuple[float, float]:
    """CPU of OR over all words in plain FTS5, and of sqlite-vec's brute force over float vectors."""
    import apsw
    import sqlite_vec  # type: ignore[import-untyped]

    plain = timed(lambda question: chunks.database.match("passages_fts", terms_of(question), 100), questions)[
        0
    ]
    connection = apsw.Connection(str(folder / "vec.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS v USING vec0(e float[384] distance_metric=cosine)")
    if not connection.execute("SELECT rowid FROM v_rowids LIMIT 1").fetchall():
        with connection:
            for start in range(0, len(matrix.ids), 1_000):
                rows = np.arange(start, min(start + 1_000, len(matrix.ids)))
                codes, scales = matrix._held.codes_of(rows)
                floats = codes.astype(np.float32) * scales[:, None]
                connection.executemany(
                    "INSERT INTO v (rowid, e) VALUES (?, ?)",
                    ((int(matrix.ids[row]), one.tobytes()) for row, one in zip(rows, floats, strict=True)),
                )

    def nearest(question: str) -> object:
        query = chain.embed_query(question).vector.tobytes()
        return connection.execute(
            "SELECT rowid, distance FROM v WHERE e MATCH ? AND k = 100", (query,)
        ).fetchall()

    found = timed(nearest, questions[:10])[0]
    connection.close()
    return plain, found


def found_of_exact(matrix: vectors.Matrix, queries: list[Any]) -> list[float]:
    """What a search by vectors holds of the exact top 10 and top 100."""
    shares = []
    for query in queries:
        scores = np.concatenate(
            [
                matrix.similarities(query, np.arange(start, min(start + 50_000, len(matrix.ids))))
                for start in range(0, len(matrix.ids), 50_000)
            ]
        )
        exact = matrix.ids[np.argsort(-scores, kind="stable")[:100]].tolist()
        found = {key for key, _ in matrix.nearest(query, 100)}
        shares.append([len(found.intersection(exact[:top])) / top for top in (10, 100)])
    return [float(share) for share in np.mean(shares, axis=0)]


def recall(real: Any, known: dict[str, Any]) -> None:
    """How much of the exact top 10 and top 100 of real vectors the sketch finds, by how many rows are rescored."""
    coded = vectors.coded([b""] * len(real), real)
    codes = np.stack([np.frombuffer(one.codes, dtype=np.int8) for one in coded])
    scales = np.array([one.scale for one in coded], dtype=np.float32)
    block = VectorBlock.of(np.arange(len(codes)), scales, codes)
    rows = []
    for depth in (100, 200, 500, 1_000, 2_000):
        shares = []
        for query in known.values():
            exact = np.argsort(-(real @ query))
            likely = set(block.likely(query, depth, None).tolist())
            shares.append([len(likely & set(exact[:top].tolist())) / top for top in (10, 100)])
        rows.append([f"real, {len(real):,}", depth, *np.mean(shares, axis=0).tolist()])
    table(["vectors", "rescored", "of the top 10", "of the top 100"], rows)


if __name__ == "__main__":
    main()
