"""Search exchanges: those that share words with a text, and places where something was said."""

from __future__ import annotations

from datetime import datetime

from nanoclaw_memory.conversations.service import shortened
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.retrieval.service import Retrieval
from nanoclaw_memory.store.exchanges import Exchanges
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.types import Exchange, SessionHit

SOURCE = ("exchanges",)


class ExchangeSearch:
    """Search exchanges only."""

    def __init__(self, retrieval: Retrieval, exchanges: Exchanges) -> None:
        self._retrieval = retrieval
        self._exchanges = exchanges

    def matching(self, text: str, now: datetime, limit: int) -> list[Exchange]:
        """Return exchanges that share words with a text."""
        wanted = self._retrieval.filter(SOURCE, noise=True)
        ranking = self._retrieval.rank(Question(text, limit, now.date(), True, wanted=wanted), gated=False)
        numbers = dict.fromkeys(
            one.stored.passage.number for one in ranking.found if one.parts["keyword"] > 0
        )
        return list(self._exchanges.get(list(numbers)[:limit]).values())

    def said(self, query: str, limit: int) -> list[SessionHit]:
        """Search exchanges and lines of archived conversations."""
        wanted = self._retrieval.filter((*SOURCE, "files"), noise=True)
        today = self._retrieval.clock.now().date()
        found = self._retrieval.search(Question(query, 100, today, fast=True, wanted=wanted))
        live = dict[int, float]()
        matching = [hit for hit in found.hits if "words" in hit.why]
        for hit in matching:
            if hit.kind == "exchange":
                live.setdefault(int(hit.id), hit.score)
        exchanges = self._exchanges.get(list(live)[:limit])
        terms = set(terms_of(query))
        hits = [
            SessionHit(
                session_id=exchanges[number].session_id,
                timestamp=exchanges[number].timestamp,
                text=shortened(exchanges[number], terms),
                score=round(score, 3),
                exchange_id=number,
            )
            for number, score in live.items()
            if number in exchanges
        ]
        hits += [
            SessionHit("", hit.day, hit.text, round(hit.score, 3), path=hit.path, line=hit.start_line)
            for hit in matching
            if hit.path.startswith("conversations/")
        ]
        return hits[: limit * 2]
