"""Search on PostgreSQL at size: CPU of the database for a question, and which vector index finds what.

    python bench/team_search.py --keep DIR [--size 1000000] [--real 50000] [--models DIR] [--url URL] [--indexes]

Texts are docstrings of the installed packages and, more than half of them, log lines out of a few patterns: the
near-duplicates that logs have. The first `--real` are embedded by the local model (an hour of CPU at 100,000; they are
kept in DIR), the rest are copies of them with noise in their vectors. CPU is that of the server's processes for this
database, the least of three for each question, so that other work on the machine counts little. PostgreSQL comes out of
a Python package (shared_buffers of 3 GB need a restart by hand), or is at URL; `--indexes` compares pgvector's indexes
with an exact scan.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from measure import table
from nanoclaw_memory.caches import BoundedCache
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.searcher import Question, Searcher
from nanoclaw_memory.store import passage_search
from nanoclaw_memory.store.passages import FileRow, NewPassage, Passages
from nanoclaw_memory.store.postgres import PostgresDatabase
from nanoclaw_memory.store.vectors import StoredVectors, coded
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
TIMES = 3
NOISE = 0.012  # a copy's cosine is .97
COPIED = "COPY vectors (identity_id, fingerprint, scale, codes) FROM STDIN"
EXACT = "FROM vectors ORDER BY embedding::halfvec(384) <#> %(query)s::halfvec(384) LIMIT 10"
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


def server_cpu(root: Any) -> float:
    """Milliseconds of CPU of the other connections to this database."""
    others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    spent = 0
    for (process,) in root.execute(others).fetchall():
        with suppress(OSError):  # it has ended
            spent += int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    return spent / 1e6


def least(root: Any, act: Callable[[], object]) -> float:
    took = []
    for _ in range(TIMES):
        before = server_cpu(root)
        act()
        took.append(server_cpu(root) - before)
    return min(took)


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


def copy_up_to(size: int, root: Any, passages: Passages, vectors: Any) -> None:
    """Copies of all passages by SQL, which is a hundred times as fast; their vectors have noise."""
    real, noise = len(vectors), np.random.default_rng(5)
    ((owner,),) = root.execute("SELECT id FROM identities").fetchall()
    lists = {
        table: ", ".join(name for name in names if name not in ("id", "fingerprint"))
        for table, names in passages.database.tables().items()
    }
    words = "body, near, around, words, size"
    root.execute("SET session_replication_role = replica")  # no triggers
    for number in range(passages.count()[1] // real, size // real):
        named = f"int8send({number}) || substring(fingerprint FROM 9)"
        root.execute(
            f"INSERT INTO passages (id, fingerprint, {lists['passages']}) SELECT id + {number * real},"
            f" {named}, {lists['passages']} FROM passages WHERE id <= {real}"
        )
        root.execute(
            f"INSERT INTO passages_fts (rowid, {words}) SELECT rowid + {number * real}, {words}"
            f" FROM passages_fts WHERE rowid <= {real}"
        )
        noisy = vectors + noise.normal(0, NOISE, vectors.shape).astype(np.float32)
        noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
        prints = [number.to_bytes(8, "big") + n.to_bytes(24, "big") for n in range(real)]
        with root.cursor() as cursor, cursor.copy(COPIED) as copy:
            for one in coded(prints, noisy):
                copy.write_row((owner, one.fingerprint, one.scale, one.codes))
    root.execute("RESET session_replication_role; ANALYZE passages; ANALYZE passages_fts; ANALYZE vectors")
    passages.database.index_vectors(owner, vectors.shape[1])


def searched(passages: Passages, chain: Chain, questions: list[str], root: Any) -> list[list[object]]:
    passage_search._KEPT = BoundedCache(0)  # a question that nobody asked before
    index = Index(passages, Path("lock"), lambda: (), Chunking(), lambda: chain)
    searcher = Searcher(still(index), 30)
    rows: list[list[object]] = []
    for name, fast in (("words", True), ("words and meaning", False)):
        took = [
            least(root, lambda: searcher.search(Question(asked, 10, date(2026, 1, 1), fast=fast)))  # noqa: B023
            for asked in questions
        ]
        half = len(took) // 2
        parts = (took, took[:half], took[half:])
        rows.append(
            [name, *(f"{percentile(part, 0.5):.1f}" for part in parts), f"{percentile(took, 0.95):.1f}"]
        )
    return rows


def found_of_exact(passages: Passages, identity: str, queries: Any, root: Any) -> list[str]:
    """The share of the ten nearest by an exact scan that the program finds: of all, of prose, of log lines."""
    shares = []
    for query in queries:
        root.execute("SET enable_indexscan = off")
        exact = root.execute(f"SELECT fingerprint {EXACT}", {"query": str(query.tolist())}).fetchall()
        root.execute("RESET enable_indexscan")
        near = [number for number, _ in StoredVectors(passages, identity).nearest(query, 100)[:10]]
        got = root.execute("SELECT fingerprint FROM passages WHERE id = ANY(%(ids)s)", {"ids": near})
        shares.append(len({*exact} & {*got.fetchall()}) / 10)
    half = len(shares) // 2
    return [f"{np.mean(part):.3f}" for part in (shares, shares[:half], shares[half:])]


def compared(url: str, vectors: Any, queries: Any, root: Any) -> list[list[object]]:
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
                before, found = server_cpu(root), []
                for query, best in zip(queries, exact, strict=True):
                    got = connection.execute(NEAREST, {"query": str(query.tolist())}).fetchall()
                    found.append(len(best & {key for (key,) in got[:10]}) / 10)
                half = len(found) // 2
                spent = (server_cpu(root) - before) / len(found)
                shares = [f"{np.mean(part):.3f}" for part in (found[:half], found[half:])]
                rows.append([f"{name} {setting.removeprefix('SET ')}", f"{spent:.1f}", *shares])
    return rows


def main() -> None:
    import psycopg

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--real", type=int)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--url")
    parser.add_argument("--indexes", action="store_true")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    real = given.real or given.size
    texts, questions = texts_of(real)
    model = LocalEmbedder(*embedder(given.models))
    vectors = vectors_of(texts, model, given.keep / f"vectors-{real}.npy")
    known = {question: model.embed_query(question) for question in questions}
    queries = np.stack(list(known.values()))
    chain = Chain((Prepared(model.identity, known),))
    url = given.url or server(given.keep)
    path = given.keep / "data" / f"index{given.size}.db"
    database = PostgresDatabase(url, given.keep, path, "index")
    passages = Passages(database)
    fill(passages, chain.identity.key, texts, vectors)
    with psycopg.connect(url, autocommit=True) as root:
        root.execute(f'SET search_path = "{database.schema}", ncm, public')
        copy_up_to(given.size, root, passages, vectors)
        head = ["search", "CPU of the database, ms", "of prose", "of log lines", "p95 ms"]
        table(head, searched(passages, chain, questions, root))
        found = found_of_exact(passages, chain.identity.key, queries, root)
        print(f"\nfound of the exact top 10: {found[0]}, prose {found[1]}, log lines {found[2]}")
        if given.indexes:
            print()
            head = ["index", "CPU of the database, ms", "found of prose", "of log lines"]
            table(head, compared(url, vectors, queries, root))


if __name__ == "__main__":
    main()
