"""A question to hits: candidates fused, neighbours heard, aged, and explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

import msgspec

from nanoclaw_memory.retrieval import dates, ranking
from nanoclaw_memory.retrieval.candidates import Candidate, Candidates, Pool
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.reranking import Reranking
from nanoclaw_memory.store.chunks import StoredChunk
from nanoclaw_memory.types import Hit
from nanoclaw_memory.workspace.paths import ARCHIVE

PERMANENT = 0.8  # log lines of this importance never age
DOMAINS = "memory/domains/"
COMPARED = 12  # of the best, whose log lines are compared with each other
OUTDATED = 0.9  # what a line counts beside the later one that changes it
CONSIDERED = 60  # how many of the pool are loaded to be aged and reranked


class Question(msgspec.Struct, frozen=True):
    """What is asked, and how."""

    text: str
    limit: int
    today: date
    fast: bool = False
    explain: bool = False
    mmr: bool = False
    rerank: bool = False


class Searcher:
    """Searches one index as one scope sees it."""

    def __init__(
        self,
        index: Index,
        half_life: int,
        visible: Callable[[str], bool] | None = None,
        weights: tuple[float, float] | None = None,
        expand: Callable[[str], list[str]] | None = None,
        reranking: Reranking | None = None,
        corpus: str = "",
    ) -> None:
        self.index = index
        self.corpus = corpus
        self._half_life = half_life
        self._reranking = reranking
        self._candidates = Candidates(index, visible, weights, expand)

    def search(self, question: Question) -> tuple[list[Hit], list[str]]:
        """Hits, best first, and what could not take part."""
        degraded = self.index.refresh(embed=not question.fast)
        days = dates.asked(question.text, question.today)
        pool = self._candidates.pool(question.text, question.fast, days)
        ranked = self._ranked(question, pool)
        if question.rerank and self._reranking is not None:
            ranked, said = self._reranking.of(question.text, ranked, pool.places, self.index.chunks)
            pool.degraded += said
        ranked = _current_first(ranked)
        if question.mmr:
            ranked = _spread(ranked, question.limit)
        sure = _confidence(question, ranked[0], pool) if ranked else 0.0
        top = ranked[0].score if ranked else 0.0
        hits = [
            self._hit(question, candidate, sure * candidate.score / top if top > 0 else 0.0)
            for candidate in ranked[: question.limit]
        ]
        # Why there are no vectors is said once: by the embedding that failed, if one did.
        known = any(line.startswith("vectors:") for line in degraded)
        return hits, degraded + [
            line for line in pool.degraded if not (known and line.startswith("vectors:"))
        ]

    def _ranked(self, question: Question, pool: Pool) -> list[Candidate]:
        fused = ranking.fused(pool.keyword, pool.vector, pool.weights, pool.held)
        beside = ranking.lent(fused, pool.places)
        about = ranking.asked_about(question.text, {place.speaker for place in pool.places.values()})
        scores = {
            key: (fused.get(key, 0.0) + beside.get(key, 0.0))
            * (1 + ranking.SPEAKER if about and place.speaker == about else 1)
            * (1 + ranking.OF_THE_DAY if key in pool.of_days else 1)
            for key, place in pool.places.items()
        }
        scores |= {key: max(scores.get(key, 0.0), ranking.ONLY_THE_DAY) for key in pool.lines}
        best = sorted(scores, key=lambda key: (-scores[key], key))[: max(CONSIDERED, question.limit)]
        stored = self.index.chunks.load(best)
        found = []
        for key in best:
            if key not in stored:
                continue  # removed since the pool was made
            aged = 1.0 if key in pool.of_days else self._recency(question, stored[key])
            parts = {
                "keyword": pool.keyword.get(key, 0.0),
                "cosine": pool.vector.get(key, 0.0),
                "fused": fused.get(key, 0.0),
                "neighbours": beside.get(key, 0.0),
                "speaker": ranking.SPEAKER if about and stored[key].chunk.speaker == about else 0.0,
                "day": ranking.OF_THE_DAY if key in pool.of_days else 0.0,
                "recency": aged,
            }
            found.append(Candidate(stored[key], scores[key] * aged, parts))
        return _by_file(sorted(found, key=lambda candidate: -candidate.score))

    def _recency(self, question: Question, stored: StoredChunk) -> float:
        chunk = stored.chunk
        if chunk.grain != "line" or (chunk.importance or 0.0) >= PERMANENT:
            return 1.0
        aged = ranking.recency(chunk.day, question.today, self._half_life)
        return aged * ranking.ARCHIVED if stored.path.startswith(f"{ARCHIVE}/") else aged

    def _hit(self, question: Question, candidate: Candidate, score: float) -> Hit:
        stored, chunk = candidate.stored, candidate.stored.chunk
        start, end, text = ranking.snippet(chunk.text, chunk.start_line, question.text)
        parts = {name: round(value, 4) for name, value in candidate.parts.items()}
        return Hit(
            "chunk",
            stored.path,
            start,
            end,
            text,
            round(score, 4),
            _why(candidate),
            str(stored.id),
            chunk.heading,
            chunk.day,
            chunk.speaker,
            self.corpus,
            parts=parts if question.explain else {},
        )


def _confidence(question: Question, best: Candidate, pool: Pool) -> float:
    """How good the best candidate is in itself."""
    cosine = max(pool.vector.values(), default=0.0)
    background = min(pool.background, cosine - 0.1)  # few texts have no telling mean
    text = "\n".join((best.stored.chunk.text, best.stored.chunk.heading, best.stored.path))
    sure = ranking.confidence(cosine, background, ranking.covered(question.text, text), pool.weights)
    return max(sure, ranking.ONLY_THE_DAY) if best.stored.id in pool.lines else sure


def _by_file(ranked: list[Candidate]) -> list[Candidate]:
    """One long file leaves room for others; turns and log lines are answers of their own and stay."""
    sections = [candidate for candidate in ranked if candidate.stored.chunk.grain == "section"]
    shares = ranking.crowding([candidate.stored.file_id for candidate in sections])
    for candidate, share in zip(sections, shares, strict=True):
        candidate.parts["same file"] = share
        candidate.score *= share
    return sorted(ranked, key=lambda candidate: -candidate.score)


def _spread(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The best that also differ from each other; what is said twice word for word is given once."""
    first = {candidate.stored.chunk.text: candidate for candidate in reversed(ranked[: limit * 8])}
    by_id = {
        candidate.stored.id: candidate
        for candidate in ranked
        if first.get(candidate.stored.chunk.text) is candidate
    }
    scores = {key: candidate.score for key, candidate in by_id.items()}
    texts = {key: candidate.stored.chunk.text for key, candidate in by_id.items()}
    return [by_id[key] for key in ranking.mmr(list(by_id)[: limit * 4], scores, texts, limit)]


def _current_first(ranked: Sequence[Candidate]) -> list[Candidate]:
    """A log line that a later one gives up or changes comes after that one, and tells where it stands."""
    lines = [candidate for candidate in ranked[:COMPARED] if candidate.stored.chunk.grain == "line"]
    if len(lines) < 2:
        return list(ranked)
    from nanoclaw_memory.statements import contradiction, features

    lines.sort(key=lambda candidate: (candidate.stored.chunk.day, candidate.stored.position))
    said = [features(body_of(candidate.stored.chunk)) for candidate in lines]
    for place, older in enumerate(lines):
        for newer, changed in zip(lines[place + 1 :], said[place + 1 :], strict=True):
            if contradiction(said[place], changed):
                older.newer = f"{newer.stored.path}:{newer.stored.chunk.start_line}"
                newer.score = max(newer.score, older.score)
                older.score = min(older.score, newer.score * OUTDATED)
    return sorted(ranked, key=lambda candidate: -candidate.score)


def _why(candidate: Candidate) -> str:
    parts = candidate.parts
    names = {
        "keyword": "words",
        "cosine": "meaning",
        "neighbours": "turns beside it",
        "speaker": "speaker",
        "day": "the day",
    }
    reasons = [shown for name, shown in names.items() if parts[name] > 0]
    if parts["recency"] < 1:
        reasons.append(f"aged ×{parts['recency']:.2f}")
    if candidate.newer:
        reasons.append(f"newer: {candidate.newer}")
    return " + ".join(reasons)


def merged(hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Hits of several indexes in one order; their scores are `ranking.confidence`, 0 to 1.

    An entry stands for the line of the domain file that was written from it.
    """
    entries = [hit.text for hit in hits if hit.kind == "entry"]
    kept = [
        hit
        for hit in hits
        if not (
            hit.path.startswith(DOMAINS) and hit.kind == "chunk" and any(text in hit.text for text in entries)
        )
    ]
    return tuple(sorted(kept, key=lambda hit: -hit.score)[:limit])
