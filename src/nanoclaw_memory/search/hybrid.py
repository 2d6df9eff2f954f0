"""A question to hits: keyword and vector candidates, fused, aged, spread over files, and explained."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.index.indexer import Index
from nanoclaw_memory.search import ranking
from nanoclaw_memory.store.chunks import StoredChunk
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.types import Hit

if TYPE_CHECKING:
    from nanoclaw_memory.store.vectors import Matrix

POOL = 100
PERMANENT = 0.8  # log lines of this importance never age

Visible = Callable[[str], bool]


@dataclass(frozen=True)
class Question:
    """What is asked, and how."""

    text: str
    limit: int
    today: date
    fast: bool = False
    explain: bool = False
    mmr: bool = False


@dataclass
class Candidates:
    """The pool of one question with every component of each candidate's score."""

    keyword: dict[int, float] = field(default_factory=dict)
    vector: dict[int, float] = field(default_factory=dict)
    background: float = 0.0
    weights: tuple[float, float] = (0.0, 1.0)
    degraded: list[str] = field(default_factory=list)

    @property
    def ids(self) -> set[int]:
        return self.keyword.keys() | self.vector.keys()


class Searcher:
    """Searches one index; keeps its vectors in memory between questions."""

    def __init__(
        self,
        index: Index,
        half_life: int,
        visible: Visible | None = None,
        weights: tuple[float, float] | None = None,
        expand: Callable[[str], list[str]] | None = None,
        corpus: str = "",
    ) -> None:
        self.index = index
        self.corpus = corpus
        self._half_life = half_life
        self._visible = visible
        self._weights = weights
        self._expand = expand
        self._matrices: dict[str, Matrix] = {}
        self._guard = threading.Lock()

    def search(self, question: Question) -> tuple[list[Hit], list[str]]:
        """Hits, best first, and what could not take part."""
        degraded = self.index.refresh(embed=not question.fast)
        pool = self._candidates(question)
        degraded += pool.degraded
        stored = self.index.chunks.load(pool.ids)
        scores, parts = self._scored(question, pool, stored)
        ranked = sorted(scores, key=lambda key: (-scores[key], key))
        if question.mmr:
            texts = {key: stored[key].chunk.text for key in ranked[: question.limit * 4]}
            ranked = ranking.mmr(list(texts), scores, texts, question.limit)
        hits = [self._hit(question, stored[key], scores[key], parts[key]) for key in ranked[: question.limit]]
        return hits, degraded

    # ---- candidates ----

    def _candidates(self, question: Question) -> Candidates:
        files = self._files()
        terms = terms_of(question.text)
        if self._expand is not None:
            terms += [
                term for name in self._expand(question.text) for term in terms_of(name) if term not in terms
            ]
        pool = Candidates()
        pool.keyword = dict(self.index.chunks.match(terms, POOL, files))
        if not question.fast:
            self._add_vectors(question, files, pool)
        return pool

    def _files(self) -> list[int] | None:
        """The files this scope may see; None means all."""
        if self._visible is None:
            return None
        return [number for number, path in self.index.chunks.paths() if self._visible(path)]

    def _add_vectors(self, question: Question, files: Sequence[int] | None, pool: Candidates) -> None:
        chain = self.index.embedder()
        if chain is None:
            pool.degraded.append("vectors: embeddings are off; keywords alone answer")
            return
        present = self.index.chunks.identities()
        try:
            embedded = chain.embed_query(
                question.text, [one for one in chain.identities if one.key in present]
            )
        except ProviderError as error:
            pool.degraded.append(f"vectors: {error.message}" + (f"; {error.hint}" if error.hint else ""))
            return
        matrix = self._matrix(embedded.identity.key, embedded.identity.dimensions)
        found, pool.background = matrix.nearest(embedded.vector, POOL, files)
        pool.vector = dict(found)
        others = [key for key in pool.keyword if key not in pool.vector]
        rows = matrix.rows_of(others)
        known = [(key, row) for key, row in zip(others, rows.tolist(), strict=True) if row >= 0]
        scores = matrix.similarities(embedded.vector, rows[rows >= 0])
        pool.vector.update({key: score for (key, _), score in zip(known, scores.tolist(), strict=True)})
        pool.weights = self._weights or chain.weights_of(embedded.identity)

    def _matrix(self, identity: str, dimensions: int) -> Matrix:
        from nanoclaw_memory.store.vectors import Matrix

        with self._guard:
            if identity not in self._matrices:
                self._matrices = {identity: Matrix(self.index.chunks, identity, dimensions)}
            matrix = self._matrices[identity]
            matrix.refresh()
            return matrix

    # ---- scores ----

    def _scored(
        self, question: Question, pool: Candidates, stored: dict[int, StoredChunk]
    ) -> tuple[dict[int, float], dict[int, dict[str, float]]]:
        keyword = ranking.of_maximum(pool.keyword)
        vector = ranking.min_max(pool.vector)
        vector_weight, keyword_weight = pool.weights
        total = vector_weight + keyword_weight or 1.0
        scores: dict[int, float] = {}
        parts: dict[int, dict[str, float]] = {}
        for key in stored:
            fused = (vector_weight * vector.get(key, 0.0) + keyword_weight * keyword.get(key, 0.0)) / total
            aged = self._recency(question, stored[key])
            scores[key] = fused * aged
            parts[key] = {
                "keyword": keyword.get(key, 0.0),
                "vector": vector.get(key, 0.0),
                "cosine": pool.vector.get(key, 0.0),
                "recency": aged,
            }
        return scores, parts

    def _recency(self, question: Question, stored: StoredChunk) -> float:
        chunk = stored.chunk
        if chunk.grain != "line" or (chunk.importance or 0.0) >= PERMANENT:
            return 1.0
        return ranking.recency(chunk.day, question.today, self._half_life)

    def _hit(self, question: Question, stored: StoredChunk, score: float, parts: dict[str, float]) -> Hit:
        chunk = stored.chunk
        start, end, text = ranking.snippet(chunk.text, chunk.start_line, question.text)
        return Hit(
            "chunk",
            stored.path,
            start,
            end,
            text,
            round(score, 4),
            _why(parts),
            str(stored.id),
            chunk.heading,
            chunk.day,
            chunk.speaker,
            self.corpus,
            parts={name: round(value, 4) for name, value in parts.items()} if question.explain else {},
        )


def _why(parts: dict[str, float]) -> str:
    reasons = [f"{name} {parts[name]:.2f}" for name in ("keyword", "vector") if parts[name] > 0]
    if parts["recency"] < 1:
        reasons.append(f"recency ×{parts['recency']:.2f}")
    return ", ".join(reasons)


def timed(began: float) -> float:
    """Milliseconds since `began`."""
    return round((time.monotonic() - began) * 1000, 1)


def merged(chunk_hits: Sequence[Hit], entry_hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Chunk and entry hits in one order; both scores are 0 to 1."""
    both = [*chunk_hits, *entry_hits]
    return tuple(sorted((replace(hit) for hit in both), key=lambda hit: -hit.score)[:limit])
