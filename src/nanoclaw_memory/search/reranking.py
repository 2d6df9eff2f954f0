"""The best candidates read again by a slower, better judge; time-boxed, blended, never required."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.index.prepare import embedded_text
from nanoclaw_memory.search import ranking
from nanoclaw_memory.search.candidates import Candidate
from nanoclaw_memory.store.chunks import Chunks

if TYPE_CHECKING:
    from nanoclaw_memory.providers.reranker import Reranker

SHARE = 0.5  # of the judge's score; the rest is the retrieval's


def blended(head: Sequence[Candidate], judged: Sequence[float | None]) -> list[Candidate]:
    """Retrieval and judge in equal shares, each within its own band; the unjudged keep their score."""
    own = ranking.min_max({place: candidate.score for place, candidate in enumerate(head)})
    other = ranking.min_max(
        {place: _log_odds(score) for place, score in enumerate(judged) if score is not None}
    )
    best, worst = head[0].score, head[-1].score
    for place, candidate in enumerate(head):
        if place in other:
            share = (1 - SHARE) * own[place] + SHARE * other[place]
            candidate.parts["rerank"] = other[place]
            candidate.score = worst + (best - worst) * share
    return sorted(head, key=lambda candidate: -candidate.score)


def _log_odds(score: float) -> float:
    """A probability on the scale where differences between good and better still show."""
    sure = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(sure / (1 - sure))


@dataclass(frozen=True)
class Reranking:
    """Who reads again, how many candidates, and for how long at most (seconds)."""

    reranker: Callable[[], Reranker | None]
    candidates: int
    limit: float

    def of(
        self, question: str, ranked: Sequence[Candidate], chunks: Chunks
    ) -> tuple[list[Candidate], list[str]]:
        """The candidates in their new order; the old one, and why, when the judge fails."""
        reranker = self.reranker()
        head = list(ranked[: self.candidates])
        if reranker is None or not head:
            return list(ranked), []
        texts = [embedded_text(candidate.stored.chunk) for candidate in head]
        try:
            judged = reranker.rerank(question, texts, time.monotonic() + self.limit)
        except ProviderError as error:
            return list(ranked), [f"rerank: {error.message}" + (f"; {error.hint}" if error.hint else "")]
        left_out = sum(score is None for score in judged)
        said = [f"rerank: no time for {left_out} of {len(head)} candidates"] if left_out else []
        return [*blended(head, judged), *ranked[self.candidates :]], said
