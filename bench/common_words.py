"""What is lost where all words of a question are so common that only passages with all of them are ranked.

    python bench/common_words.py INDEX.db [--questions 200]

INDEX.db is one that `bench/scale.py --keep DIR` made. Each question is three words of one passage, all of them too
common to be ranked by; how often that passage is among the first 10 and 100 by words, with the limit and without.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from measure import table
from nanoclaw_memory.retrieval import candidates
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.store.sqlite import SqliteDatabase


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    given = parser.parse_args()
    passages = Passages(SqliteDatabase(given.index, "index"))
    index = Index(passages, given.index.with_name("lock"), lambda: (), Chunking(), lambda: None)
    pools = candidates.Candidates(index)
    total, limit = passages.last_id(), candidates.ALL_POSTINGS
    most = max(candidates.POSTINGS + total // 100, limit * limit // max(total, limit))
    asked = questions(passages, most, total, given.questions)
    rows = []
    for name, bound in (("with all words", limit), ("all ranked", total * 10)):
        candidates.ALL_POSTINGS = bound
        began, places = time.process_time(), []
        for source, text in asked:
            found = pools.pool(text, fast=True).keyword
            order = sorted(found, key=lambda key: -found[key])
            places.append(order.index(source) if source in found else total)
        spent = (time.process_time() - began) * 1000 / len(asked)
        rows.append([name, *(sum(place < top for place in places) / len(places) for top in (10, 100)), spent])
    print(f"{total:,} passages, {len(asked)} questions of words that at least {most:,} passages have\n")
    table(["ranked", "its passage in the first 10", "in the first 100", "CPU ms"], rows)


def questions(passages: Passages, most: int, total: int, number: int) -> list[tuple[int, str]]:
    """Passages with three of their words, all of them common."""
    chance, common = random.Random(4), dict[str, bool]()
    made: list[tuple[int, str]] = []
    while len(made) < number:
        source = chance.randrange(1, total + 1)
        rows = passages.database.query("SELECT text FROM passages WHERE id = :id", {"id": source})
        terms = terms_of(rows[0][0]) if rows else []
        for term in terms:
            if term not in common:
                common[term] = passages.search.occurrences(term, most) >= most
        known = [term for term in terms if common[term]]
        if len(known) >= 3:
            made.append((source, " ".join(chance.sample(known, 3))))
    return made


if __name__ == "__main__":
    main()
