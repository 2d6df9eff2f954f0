"""The pool of one question: what its words find, what its meaning finds, and the turns beside those."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.embedder import Identity
from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.store.chunks import Chunks, Place, StoredChunk
from nanoclaw_memory.store.keywords import LONG_WORD, parts_of, terms_of

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain, Embedded
    from nanoclaw_memory.retrieval.dates import Days
    from nanoclaw_memory.store.vectors import Floats, Matrix

POOL = 100
LINES_OF_DAYS = 30  # log lines that a question for days brings in by their day alone
TOLD_WITHIN = timedelta(days=3)  # what happened is told on the day or soon after
POSTINGS = 2_500  # rows ranked by words, at least; more in a large index
REACH = 2  # turns before and after that lend a turn their score
NAMELESS = 0.75  # of a local query vector: the question without its speakers' names
_SHORTEST_PART = 5


class Pool(msgspec.Struct):
    """The candidates with what each index says of them."""

    keyword: dict[int, float] = msgspec.field(default_factory=dict)
    vector: dict[int, float] = msgspec.field(default_factory=dict)
    places: dict[int, Place] = msgspec.field(default_factory=dict)
    held: float = 1.0  # of the question's words, by rarity, what the best candidate has
    background: float = 0.0  # the mean cosine of the whole index: what an unrelated text has
    weights: tuple[float, float] = (0.0, 1.0)
    of_days: set[int] = msgspec.field(
        default_factory=set
    )  # told on the days that the question asks about, or soon after
    lines: set[int] = msgspec.field(default_factory=set)  # log lines of those days, whatever their words
    degraded: list[str] = msgspec.field(default_factory=list)


class Candidate(msgspec.Struct):
    """A chunk on its way to a hit, with every component of its score."""

    stored: StoredChunk
    score: float
    parts: dict[str, float]
    newer: str = ""  # where a later log line gives up or changes what this one says


class Candidates:
    """Gathers pools from one index; keeps its vectors in memory between questions."""

    def __init__(
        self,
        index: Index,
        visible: Callable[[str], bool] | None,
        weights: tuple[float, float] | None,
        expand: Callable[[str], list[str]] | None,
    ) -> None:
        self._index = index
        self._visible = visible
        self._weights = weights
        self._expand = expand
        self._matrices: dict[str, Matrix] = {}
        self._guard = threading.Lock()

    def pool(self, question: str, fast: bool, days: Days | None = None) -> Pool:
        """The candidates for a question about some days, if it names any; `fast` looks for words only."""
        files = self._files()
        pool = Pool()
        terms, full = self._terms(question)
        pool.keyword = dict(self._index.chunks.match(terms, POOL, files))
        pool.held = max(pool.keyword.values(), default=0.0) / full if full > 0 else 1.0
        self._add_places(pool, pool.keyword.keys())
        if not fast:
            self._add_vectors(question, files, pool)
            self._add_places(pool, pool.vector.keys() - pool.keyword.keys())
        if days is not None:
            self._add_days(pool, days, files)
        return pool

    def _add_days(self, pool: Pool, days: Days, files: Sequence[int] | None) -> None:
        chunks, first = self._index.chunks, days.first.isoformat()
        pool.lines = set(chunks.lines_of(first, days.last.isoformat(), LINES_OF_DAYS, files))
        self._add_places(pool, pool.lines - pool.places.keys())
        pool.of_days = chunks.among_days(pool.places, first, (days.last + TOLD_WITHIN).isoformat())

    def _add_places(self, pool: Pool, found: Collection[int]) -> None:
        if found:
            pool.places |= {place.id: place for place in self._index.chunks.places(found, REACH)}

    def _files(self) -> list[int] | None:
        """The files this scope may see; None means all."""
        if self._visible is None:
            return None
        return [number for number, path in self._index.chunks.paths() if self._visible(path)]

    def _terms(self, question: str) -> tuple[list[str], float]:
        """What the keyword index is asked for, and the score of a middling text that holds all of the question."""
        total = self._index.chunks.last_id()
        # Ranking costs by the row: the rarest words come first, and common ones only while they are affordable.
        left = most = POSTINGS + total // 100
        asked = {term: _known(self._index.chunks, term, most) for term in terms_of(question)}
        names = [term for text in self._names(question) for term in terms_of(text) if term not in asked]
        pairs = [pair for known in asked.values() for pair in known]
        pairs += [pair for name in names for pair in _known(self._index.chunks, name, most)]
        chosen: dict[str, None] = {}
        for count, known in sorted(pairs):
            if chosen and count > left:
                break
            chosen.setdefault(known)
            left -= count
        full = sum(
            _rarity(sum(count for count, _ in known), total)
            for known in asked.values()
            if not known or any(word in chosen for _, word in known)
        )
        return list(chosen), full

    def _names(self, question: str) -> list[str]:
        return self._expand(question) if self._expand else []

    def _add_vectors(self, question: str, files: Sequence[int] | None, pool: Pool) -> None:
        chain = self._index.embedder()
        if chain is None:
            pool.degraded.append("vectors: embeddings are off; keywords alone answer")
            return
        old = self._index.answering()
        replaced = old not in ("", chain.identity.key)
        present = self._index.chunks.identities()
        among = [Identity.of(old)] if replaced else [one for one in chain.identities if one.key in present]
        try:
            embedded = chain.embed_query(question, among)
        except ProviderError as error:
            anew = f"the index is made anew for {chain.identity.key}, words alone answer until then"
            said = f"{anew}; {error.message}" if replaced else error.message
            pool.degraded.append(f"vectors: {said}" + (f"; {error.hint}" if error.hint else ""))
            return
        if replaced:
            anew = f"is made anew for {chain.identity.key}, {old} answers until it is complete"
            pool.degraded.append(f"index: {anew}; run: nanoclaw-memory index")
        elif embedded.identity != chain.identity:
            pool.degraded.append(f"vectors: {chain.identity.key} is down, {embedded.identity.key} answers")
        pool.weights = self._weights or chain.weights_of(embedded.identity)
        matrix = self._matrix(embedded.identity.key, embedded.identity.dimensions)
        found, pool.background = matrix.nearest(_meaning(question, embedded, chain, pool), POOL, files)
        pool.vector = dict(found)

    def _matrix(self, identity: str, dimensions: int) -> Matrix:
        from nanoclaw_memory.store.vectors import Matrix

        with self._guard:
            if identity not in self._matrices:
                self._matrices = {identity: Matrix(self._index.chunks, identity, dimensions)}
            matrix = self._matrices[identity]
            matrix.refresh()
            return matrix


def _meaning(question: str, embedded: Embedded, chain: Chain, pool: Pool) -> Floats:
    """The question's vector, mostly without its speakers' names.

    Turns are embedded with their speaker, and a name in the question pulls in whatever that person said. A
    service is not asked twice: that would cost money and a round trip.
    """
    nameless = ranking.without_names(question, {place.speaker for place in pool.places.values()})
    if embedded.identity.provider != "local" or nameless == question:
        return embedded.vector
    import numpy as np

    try:
        other = chain.embed_query(nameless, [embedded.identity]).vector
    except ProviderError:
        return embedded.vector
    both = (1 - NAMELESS) * embedded.vector + NAMELESS * other
    mixed: Floats = (both / np.linalg.norm(both)).astype(np.float32)
    return mixed


def _rarity(count: int, total: int) -> float:
    """What a word that `count` of `total` chunks hold is worth: the weight that the keyword index gives it."""
    return max(math.log((total - count + 0.5) / (count + 0.5)), 0.0) if count < total else 0.0


def _known(chunks: Chunks, term: str, most: int) -> list[tuple[int, str]]:
    """The term with how often it occurs; when it never does, compounds of it, or the words it is made of."""
    count = chunks.occurrences(term, most)
    if count or len(term) < _SHORTEST_PART or " " in term:
        return [(count, term)] if count else []
    found = chunks.compounds(term)
    if not found and len(term) >= LONG_WORD:
        found = next(
            (
                [first, second]
                for first, second in parts_of(term)
                if chunks.occurrences(first) and chunks.occurrences(second)
            ),
            [],
        )
    return [(chunks.occurrences(other, most), other) for other in found]
