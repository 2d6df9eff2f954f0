"""Rerank the best candidates with a slower, better model: within a time limit, blended, never required."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.prepare import body_of, embedded_text
from nanoclaw_memory.store.passage_search import Place, StoredPassage
from nanoclaw_memory.store.passages import Passages

if TYPE_CHECKING:
    from nanoclaw_memory.providers.reranker import Reranker

SHARE = 0.75  # weight of the reranker's score; the rest is the retrieval's
CLEAR_LEAD = 0.5  # a first hit with this lead over the second, as share of all scores' range, keeps its place


class Reranking(msgspec.Struct, frozen=True):
    """The reranker, how many candidates it reads, its time limit in seconds, and whether reading twice is cheap."""

    reranker: Callable[[], Reranker | None]
    candidates: int
    limit: float
    twice: bool

    def of(
        self, question: str, ranked: Sequence[Candidate], places: Mapping[int, Place], chunks: Passages
    ) -> tuple[list[Candidate], list[str]]:
        """Return the candidates in their new order, or in the old order with the reason if the reranker fails."""
        reranker = self.reranker()
        head = list(ranked[: self.candidates])
        if reranker is None or not head:
            return list(ranked), []
        try:
            judged = self._judged(reranker, question, head, _previous_turns(head, places, chunks))
        except ProviderError as error:
            return list(ranked), [f"rerank: {error.message}" + (f"; {error.hint}" if error.hint else "")]
        left_out = sum(score is None for score in judged)
        said = [f"rerank: no time for {left_out} of {len(head)} candidates"] if left_out else []
        return [*blended(head, judged), *ranked[self.candidates :]], said

    def _judged(
        self,
        reranker: Reranker,
        question: str,
        head: Sequence[Candidate],
        before: Mapping[int, StoredPassage],
    ) -> list[float | None]:
        """Return the log odds of each candidate, read alone; a turn also after the turn that it answers."""
        began = time.monotonic()
        alone = [embedded_text(candidate.stored.passage) for candidate in head]
        answers = [number for number, candidate in enumerate(head) if candidate.stored.id in before]
        dialog = [
            _spoken(before[head[number].stored.id]) + _spoken(head[number].stored) for number in answers
        ]
        if not self.twice:
            for number, text in zip(answers, dialog, strict=True):
                alone[number] = text
            return [_log_odds(score) for score in reranker.rerank(question, alone, began + self.limit)]
        share = self.limit / 2 if answers else self.limit
        first = [_log_odds(score) for score in reranker.rerank(question, alone, began + share)]
        if answers:
            again = reranker.rerank(question, dialog, began + self.limit)
            for number, score in zip(answers, again, strict=True):
                once, odds = first[number], _log_odds(score)
                first[number] = once if odds is None else odds if once is None else (once + odds) / 2
        return first


def blended(head: Sequence[Candidate], judged: Sequence[float | None]) -> list[Candidate]:
    """Blend both scores, each scaled to its own range; unread candidates keep their score, a clear first its place."""
    own = ranking.min_max({place: candidate.score for place, candidate in enumerate(head)})
    other = ranking.min_max({place: score for place, score in enumerate(judged) if score is not None})
    best, worst = head[0].score, head[-1].score
    first = head[0] if len(head) > 1 and own[0] - own[1] > CLEAR_LEAD else None
    for place, candidate in enumerate(head):
        if place in other:
            share = (1 - SHARE) * own[place] + SHARE * other[place]
            candidate.parts["rerank"] = other[place]
            candidate.score = worst + (best - worst) * share
    if first is not None:
        first.score = best
    return sorted(head, key=lambda candidate: -candidate.score)


def _previous_turns(
    head: Sequence[Candidate], places: Mapping[int, Place], chunks: Passages
) -> dict[int, StoredPassage]:
    """Return for each turn among the candidates the turn before it."""
    at = {(place.document_id, place.position): place.id for place in places.values() if place.kind == "turn"}
    wanted = {
        candidate.stored.id: at[key]
        for candidate in head
        if candidate.stored.passage.kind == "turn"
        and (key := (candidate.stored.document_id, candidate.stored.position - 1)) in at
    }
    stored = chunks.search.load(wanted.values())
    return {number: stored[other] for number, other in wanted.items() if other in stored}


def _spoken(stored: StoredPassage) -> str:
    return f"{stored.passage.speaker}: {body_of(stored.passage)}\n"


def _log_odds(score: float | None) -> float | None:
    """Return a probability as log odds, on which differences between good and better remain visible."""
    if score is None:
        return None
    sure = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(sure / (1 - sure))
