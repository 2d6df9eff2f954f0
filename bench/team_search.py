"""Search on PostgreSQL at size: CPU of the database for a question, and which vector index finds what.

    python bench/team_search.py --keep DIR [--size 100000] [--models DIR] [--indexes]

Texts are docstrings of the installed packages and, more than half of them, log lines out of a few patterns: the
near-duplicates that logs have. All of them are embedded by the local model (an hour of CPU at 100,000; they are kept
in DIR). CPU is that of the server's processes, so that other work on the machine does not count. PostgreSQL comes out
of a Python package; `--indexes` compares pgvector's indexes with an exact scan.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from measure import table
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval.candidates import Candidates
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.searcher import Question, Searcher
from nanoclaw_memory.store.passages import FileRow, NewPassage, Passages
from nanoclaw_memory.store.postgres import PostgresDatabase
from nanoclaw_memory.store.vectors import coded
from nanoclaw_memory.types import Passage
from scale import Prepared, docstrings, questions_of, still
from team import percentile, server

HOSTS = [f"{kind}-{number}" for kind in ("web", "db", "cache", "worker", "edge") for number in range(1, 13)]
PROJECTS = ("Keystone", "Heron", "Atlas", "Nightjar", "ledger", "billing", "importer", "scheduler")
LINES = (
    "{day} {host} deploy of {project} {release} finished in {number} s",
    "{day} {host} deploy of {project} {release} failed: exit code {small}",
    "{day} backup of {project} written, {number} MB in {small} s",
    "{day} {host} disk at {small} %, cleaned {number} MB",
    "{day} cron {project} nightly run: {number} rows read, {small} rows changed, 0 errors",
    "{day} WARNING {host} slow query on {project}: {number} ms",
    "{day} certificate of {host} renewed, valid for {small} days",
    "{day} merged pull request {number} into {project}",
)
ASKED = ("did the deploy of {project} fail on {host}?", "how long did the backup of {project} take?",
         "slow queries of {project} on {host}", "when was the certificate of {host} renewed?")  # fmt: skip
PROSE = 0.44  # of all texts
PER_FILE = 500
NEAREST = "SELECT id FROM v ORDER BY e <#> %(query)s::halfvec(384) LIMIT 100"


def lines(patterns: tuple[str, ...], seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    while True:
        yield chance.choice(patterns).format(
            day=f"2026-{chance.randint(1, 9):02}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:00",
            host=chance.choice(HOSTS),
            project=chance.choice(PROJECTS),
            release=f"{chance.randint(1, 4)}.{chance.randint(0, 20)}",
            number=chance.randint(2, 5_000),
            small=chance.randint(1, 99),
        )


def texts_of(size: int) -> tuple[list[str], list[str]]:
    """The texts, and questions about prose and about log lines, half each."""
    prose = list(itertools.islice(docstrings(), int(size * PROSE)))
    texts = prose + list(itertools.islice(lines(LINES, 1), size - len(prose)))
    random.Random(1).shuffle(texts)
    asked = questions_of(random.Random(2).sample(prose, 60))[:40]
    return texts, asked + list(dict.fromkeys(itertools.islice(lines(ASKED, 3), 80)))[:40]


def vectors_of(texts: list[str], model: LocalEmbedder, kept: Path) -> Any:
    if not kept.exists():
        parts = [model.embed_documents(texts[at : at + 512]) for at in range(0, len(texts), 512)]
        np.save(kept, np.concatenate(parts).astype(np.float16))
    return np.load(kept).astype(np.float32)


def server_cpu(folder: Path) -> float:
    """Seconds of CPU of the server: of its first process with those that ended, and of those that run."""
    first, ticks = (folder / "postgres" / "postmaster.pid").read_text().split()[0], 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if first in (stat.parent.name, fields[1]):
            ticks += sum(map(int, fields[11 : 15 if stat.parent.name == first else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def fill(passages: Passages, key: str, texts: list[str], vectors: Any) -> None:
    for first in range(passages.count()[1], len(texts), PER_FILE):
        part = range(first, min(first + PER_FILE, len(texts)))
        new = [
            NewPassage(Passage(n + 1, n + 1, texts[n]), texts[n], "", f"note {n}", n.to_bytes(32, "big"))
            for n in part
        ]
        with passages.database.transaction():
            passages.put_file(FileRow(0, f"memory/note-{first}.md", 1, 1, str(first), "bench", ""), new)
            passages.put_vectors(
                key, coded([one.fingerprint for one in new], vectors[part.start : part.stop])
            )
    with passages.database.transaction():
        passages.database.execute("ANALYZE passages")
        passages.database.execute("ANALYZE passages_fts")


def searched(passages: Passages, chain: Chain, questions: list[str], folder: Path) -> list[list[object]]:
    index = Index(passages, folder / "lock", lambda: (), Chunking(), lambda: chain)
    searcher = Searcher(still(index), 30)
    began = time.perf_counter()
    Candidates(index).pool(questions[0], fast=False)
    print(f"vectors are read in {time.perf_counter() - began:.1f} s by a process that starts\n")
    rows: list[list[object]] = []
    for name, fast in (("words", True), ("words and meaning", False)):
        took, before = [], server_cpu(folder)
        for question in questions:
            start = time.perf_counter()
            searcher.search(Question(question, 10, date(2026, 1, 1), fast=fast))
            took.append((time.perf_counter() - start) * 1000)
        spent = (server_cpu(folder) - before) * 1000 / len(questions)
        rows.append([name, f"{spent:.1f}", f"{percentile(took, 0.5):.0f}", f"{percentile(took, 0.95):.0f}"])
    return rows


def compared(url: str, vectors: Any, queries: Any, folder: Path) -> list[list[object]]:
    """An exact scan beside pgvector's indexes: the database's CPU, and what is found of the exact top 10."""
    import psycopg

    exact = [set(np.argsort(-(vectors @ query))[:10].tolist()) for query in queries]
    lists, rows = int(len(vectors) ** 0.5), list[list[object]]()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector; SET max_parallel_workers_per_gather = 0")
        connection.execute("SET maintenance_work_mem = '1GB'; CREATE TEMP TABLE v (id int, e halfvec(384))")
        with connection.cursor() as cursor, cursor.copy("COPY v FROM STDIN") as copy:
            for number, one in enumerate(vectors):
                copy.write_row((number, str(one.tolist())))
        for name, index, settings in (
            ("exact scan", "", ()),
            (f"ivfflat, {lists} lists", f"ivfflat (e halfvec_ip_ops) WITH (lists = {lists})",
             tuple(f"SET ivfflat.probes = {lists // part}" for part in (8, 4, 3))),
            ("HNSW", "hnsw (e halfvec_ip_ops)", tuple(f"SET hnsw.ef_search = {ef}" for ef in (100, 200, 400))),
        ):  # fmt: skip
            connection.execute(
                f"DROP INDEX IF EXISTS i; {f'CREATE INDEX i ON v USING {index}' if index else ''}"
            )
            for setting in settings or ("",):
                connection.execute(f"SET enable_seqscan = {'off' if index else 'on'}; {setting}")
                before, found = server_cpu(folder), []
                for query, best in zip(queries, exact, strict=True):
                    got = connection.execute(NEAREST, {"query": str(query.tolist())}).fetchall()
                    found.append(len(best & {key for (key,) in got[:10]}) / 10)
                half = len(found) // 2
                spent = (server_cpu(folder) - before) * 1000 / len(found)
                shares = [f"{np.mean(part):.3f}" for part in (found[:half], found[half:])]
                rows.append([f"{name} {setting.removeprefix('SET ')}", f"{spent:.1f}", *shares])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--indexes", action="store_true")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    texts, questions = texts_of(given.size)
    model = LocalEmbedder(*embedder(given.models))
    vectors = vectors_of(texts, model, given.keep / f"vectors-{given.size}.npy")
    known = {question: model.embed_query(question) for question in questions}
    chain = Chain((Prepared(model.identity, known),))
    url = server(given.keep)
    path = given.keep / "data" / f"index{given.size}.db"
    passages = Passages(PostgresDatabase(url, given.keep, path, "index"))
    fill(passages, chain.identity.key, texts, vectors)
    table(
        ["search", "CPU of the database, ms", "p50 ms", "p95 ms"],
        searched(passages, chain, questions, given.keep),
    )
    if given.indexes:
        print()
        rows = compared(url, vectors, np.stack(list(known.values())), given.keep)
        table(["index", "CPU of the database, ms", "found of prose", "of log lines"], rows)


if __name__ == "__main__":
    main()
