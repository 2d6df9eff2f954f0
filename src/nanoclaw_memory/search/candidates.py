"""The pool of one question: what its words find, what its meaning finds, and the turns beside those."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.index.indexer import Index
from nanoclaw_memory.providers.embedder import Identity
from nanoclaw_memory.store.chunks import Chunks, Place, StoredChunk
from nanoclaw_memory.store.keywords import LONG_WORD, parts_of, terms_of

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Embedded
    from nanoclaw_memory.store.vectors import Matrix

POOL = 100
POSTINGS = 2_500  # rows ranked by words, at least; more in a large index
REACH = 2  # turns before and after that lend a turn their score
_SHORTEST_PART = 5


@dataclass
class Pool:
    """The candidates with what each index says of them."""

    keyword: dict[int, float] = field(default_factory=dict)
    vector: dict[int, float] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    background: float = 0.0  # the mean cosine of the whole index: what an unrelated text has
    weights: tuple[float, float] = (0.0, 1.0)
    degraded: list[str] = field(default_factory=list)


@dataclass
class Candidate:
    """A chunk on its way to a hit, with every component of its score."""

    stored: StoredChunk
    score: float
    parts: dict[str, float]


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

    def pool(self, question: str, fast: bool) -> Pool:
        """The candidates for a question; `fast` looks for words only."""
        files = self._files()
        pool = Pool()
        pool.keyword = dict(self._index.chunks.match(self._terms(question), POOL, files))
        if not fast:
            self._add_vectors(question, files, pool)
        found = pool.keyword.keys() | pool.vector.keys()
        pool.places = {place.id: place for place in self._index.chunks.places(found, REACH)}
        return pool

    def _files(self) -> list[int] | None:
        """The files this scope may see; None means all."""
        if self._visible is None:
            return None
        return [number for number, path in self._index.chunks.paths() if self._visible(path)]

    def _terms(self, question: str) -> list[str]:
        names = self._expand(question) if self._expand else []
        terms = list(dict.fromkeys(term for text in (question, *names) for term in terms_of(text)))
        # Ranking costs by the row: the rarest words come first, and common ones only while they are affordable.
        left = most = POSTINGS + self._index.chunks.last_id() // 100
        chosen: list[str] = []
        for count, known in sorted(pair for term in terms for pair in _known(self._index.chunks, term, most)):
            if chosen and count > left:
                break
            chosen.append(known)
            left -= count
        return chosen

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
        self._nearest(embedded, files, pool)

    def _nearest(self, embedded: Embedded, files: Sequence[int] | None, pool: Pool) -> None:
        matrix = self._matrix(embedded.identity.key, embedded.identity.dimensions)
        found, pool.background = matrix.nearest(embedded.vector, POOL, files)
        pool.vector = dict(found)

    def _matrix(self, identity: str, dimensions: int) -> Matrix:
        from nanoclaw_memory.store.vectors import Matrix

        with self._guard:
            if identity not in self._matrices:
                self._matrices = {identity: Matrix(self._index.chunks, identity, dimensions)}
            matrix = self._matrices[identity]
            matrix.refresh()
            return matrix


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
