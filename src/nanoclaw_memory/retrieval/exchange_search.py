"""Exchanges that a message calls to mind, and places where something was said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.conversations.service import shortened
from nanoclaw_memory.retrieval.relevance import Evidence
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.retrieval.service import Retrieval
from nanoclaw_memory.store.exchanges import Exchanges
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.types import Exchange, SessionHit

SOURCE = ("exchanges",)
OTHER_SIDE = 0.3  # of its score, what the weaker side adds to an exchange
SAME_TOPIC = 1.5
RECENCY_DAYS = 90.0
RECENCY = 0.1


class Recollection(msgspec.Struct, frozen=True):
    """An exchange that a message calls to mind."""

    exchange: Exchange
    score: float


class Recollections(msgspec.Struct, frozen=True):
    """Exchanges, best first, what speaks for them, and what could not take part."""

    found: list[Recollection]
    evidence: Evidence
    notes: tuple[str, ...]


class ExchangeSearch:
    """Asks the index for exchanges."""

    def __init__(self, retrieval: Retrieval, exchanges: Exchanges) -> None:
        self._retrieval = retrieval
        self._exchanges = exchanges

    def recollect(
        self,
        message: str,
        now: datetime,
        *,
        session: str = "",
        after: int = 0,
        topic_words: Sequence[str] = (),
        project: str = "",
        fast: bool = True,
        deadline: float | None = None,
    ) -> Recollections:
        """What was said before about a message; not what `session` said after `after`."""
        wanted = replace(self._retrieval.filter(SOURCE), statuses=("",), session=session, after=after)
        question = Question(
            text=message,
            limit=60,
            today=now.date(),
            fast=fast,
            wanted=wanted,
            deadline=deadline,
            project=project,
            searched=False,
        )
        ranking = self._retrieval.rank(question, gated=False)
        scores: dict[int, float] = {}
        for one in ranking.found:  # best first
            number = one.stored.passage.number
            scores[number] = scores[number] + OTHER_SIDE * one.score if number in scores else one.score
        found = self._exchanges.get(list(scores))
        weighed = [
            Recollection(found[number], _weighed(found[number], score, now, topic_words))
            for number, score in scores.items()
            if number in found and score > 0
        ]
        weighed.sort(key=lambda one: (-one.score, -one.exchange.id))
        return Recollections(weighed, ranking.evidence, tuple(ranking.degraded))

    def matching(self, text: str, now: datetime, private: bool, limit: int) -> list[Exchange]:
        """Exchanges that share words with a text."""
        wanted = replace(self._retrieval.filter(SOURCE, noise=True), private=private)
        ranking = self._retrieval.rank(Question(text, limit, now.date(), True, wanted=wanted), gated=False)
        numbers = dict.fromkeys(
            one.stored.passage.number for one in ranking.found if one.parts["keyword"] > 0
        )
        return list(self._exchanges.get(list(numbers)[:limit]).values())

    def said(self, query: str, limit: int) -> list[SessionHit]:
        """Where something was said: exchanges, and lines of archived conversations."""
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


def _weighed(exchange: Exchange, score: float, now: datetime, topic_words: Sequence[str]) -> float:
    age = max((now - moment_of(exchange.timestamp)).total_seconds() / 86_400, 0.0)
    fresh = 1.0 - RECENCY + RECENCY * 2.0 ** (-age / RECENCY_DAYS)
    topic = exchange.topic.casefold() if topic_words else ""
    same = any(word in topic for word in topic_words)
    return float(score * fresh * (SAME_TOPIC if same else 1.0))
