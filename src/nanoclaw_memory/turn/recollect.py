"""Recollection: which earlier exchanges a message calls to mind, and whether it calls any to mind at all."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.store.exchanges import Exchanges, Sight
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.text import sentences
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.types import Exchange

CANDIDATES = 60
NEXT, SECOND_NEXT = 0.3, 0.15  # what a neighbour in the same session lends of its own score
SAME_TOPIC = 1.5
RECENCY_DAYS = 90.0
RECENCY = 0.1
YOUNG = 50
BEST = 5  # candidates in which the words of a message are looked for
MOST_SENTENCES = 20
NEAR = 0.2968  # how far above unrelated texts a near one is: for the local model that is a cosine of 0.82
UNMEASURED = 0.5  # near, for a model of which nothing is known yet
_PHRASE = re.compile(
    r"\b(?:remember|recall|remind me|last (?:time|week|month|night|\w+day)|yesterday|the other day|earlier|previously|"
    r"(?:did|had|have) (?:we|i|you)\b|we (?:said|discussed|talked|decided|agreed|spoke)|i (?:said|told|mentioned)|"
    r"you (?:said|told|mentioned|suggested)|where were we|what was (?:that|the)|"
    r"erinner\w*|letztes mal|letzte woche|gestern|neulich|vorhin|hatten wir|haben wir|wir (?:sagten|besprachen)|"
    r"ich (?:sagte|erwähnte)|du (?:sagtest|meintest))\b",
    re.IGNORECASE,
)
_ASKS_FOR_MEMORY = re.compile(
    r"^\W*(?:do you (?:still )?remember|can you recall|what do you (?:know|remember) about|erinnerst du dich)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:i (?:don'?t|do not) (?:have (?:any )?(?:memory|record|recollection)|recall|remember)|"
    r"no (?:memory|record) of|i have no (?:memory|record)|daran erinnere ich mich nicht|ich habe keine erinnerung)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-ZÄÖÜ][\w'’-]+", re.UNICODE)


class Recollection(msgspec.Struct, frozen=True):
    """An exchange that comes to mind."""

    exchange: Exchange
    score: float


class Evidence(msgspec.Struct, frozen=True):
    """What speaks for having heard of this before."""

    phrase: bool  # the message asks about the past
    cosine: float  # of the nearest exchange; 0 without vectors
    covered: float  # share of the message's weight of words that the best exchange holds
    known_names: float  # share of the names in the message that were ever said; 1 when it holds none
    names: int
    near: float  # the cosine from which this embedder's vectors count as near

    @property
    def enough(self) -> bool:
        """Whether to speak at all."""
        if self.names and not self.known_names:
            return self.covered >= 0.6  # people and things nobody ever spoke of
        if self.cosine:
            return self.cosine >= self.near or self.covered >= 0.5 or (self.phrase and self.covered >= 0.2)
        if self.phrase:
            return self.covered >= 0.2
        return self.covered >= (0.32 if self.names else 0.35)


def near(unrelated: float | None) -> float:
    """The cosine from which an exchange is near, above the one that it has whatever it is about."""
    return UNMEASURED if unrelated is None else unrelated + NEAR * (1 - unrelated)


def is_noise(exchange: Exchange) -> bool:
    """Whether an exchange only asks for memory, or only denies it."""
    return bool(
        _ASKS_FOR_MEMORY.match(exchange.user_message) or _DENIAL.search(exchange.agent_response[:400])
    )


class Recollector:
    """Searches the archive, and remembers which exchanges are noise: an id is never given twice."""

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.exchanges: Exchanges = context.exchanges
        self._noise: dict[int, bool] = {}

    def search(
        self, message: str, sight: Sight, now: datetime, deadline: float, topic_words: Sequence[str] = ()
    ) -> tuple[list[Recollection], Evidence, str]:
        """Candidates best first, what speaks for them, and a note about what could not take part."""
        terms = terms_of(message)
        total = max(self.exchanges.count(), 1)
        spread = {term: self.exchanges.spread(term) for term in terms}
        by_words = self.exchanges.by_words(_telling(spread, total), sight, CANDIDATES)
        cosines, least, note = self._by_vector(message, sight, deadline)
        scores = self._fused(by_words, cosines)
        found = self.exchanges.get(list(scores))
        for number in found.keys() - self._noise.keys():
            self._noise[number] = is_noise(found[number])
        scores = {n: score for n, score in scores.items() if n in found and not self._noise[n]}
        lifted = self._with_neighbours(scores, found)
        ranked = sorted(
            (Recollection(found[n], self._weighed(found[n], s, now, topic_words)) for n, s in lifted.items()),
            key=lambda one: (-one.score, -one.exchange.id),
        )
        # A young archive knows few words: there, never having heard one says little.
        weights = {term: _rarity(spread[term], total + YOUNG) for term in terms}
        texts = [f"{one.exchange.user_message} {one.exchange.agent_response}" for one in ranked[:BEST]]
        covered = _covered(message, weights, texts, chance=math.log(total + YOUNG))
        return ranked, self.evidence(message, spread, covered, cosines, least), note

    def _by_vector(self, message: str, sight: Sight, deadline: float) -> tuple[dict[int, float], float, str]:
        """Cosines of the nearest exchanges, the cosine from which one is near, and why there are none."""
        try:
            asked = self.context.query_embedding(message, deadline)
        except ProviderError as error:
            return {}, 1.0, f"vectors: {error.message}"
        if asked is None:
            return {}, 1.0, self.context.without_embedder
        found = self.exchanges.by_vector(asked.identity.key, asked.vector, sight, CANDIDATES)
        return dict(found), near(self.context.unrelated(asked)), ""

    def _fused(self, by_words: list[tuple[int, float]], cosines: dict[int, float]) -> dict[int, float]:
        """Keyword score by its maximum, cosine by its span, weighed as the embedder asks."""
        chain = self.context.embedder
        of_vectors, of_words = chain.weights if chain is not None and cosines else (0.0, 1.0)
        most = max((score for _, score in by_words), default=0.0) or 1.0
        fused = {number: of_words * max(score, 0.0) / most for number, score in by_words}
        if cosines:
            low, high = min(cosines.values()), max(cosines.values())
            span = (high - low) or 1.0
            for number, cosine in cosines.items():
                fused[number] = fused.get(number, 0.0) + of_vectors * (cosine - low) / span
        return fused

    def _with_neighbours(self, scores: dict[int, float], found: dict[int, Exchange]) -> dict[int, float]:
        """What stands beside a good exchange in its session is likely about the same."""
        by_session: dict[str, list[int]] = {}
        for number in sorted(scores):
            by_session.setdefault(found[number].session_id, []).append(number)
        lifted = dict(scores)
        for numbers in by_session.values():
            for place, number in enumerate(numbers):
                for other in numbers[max(place - 2, 0) : place + 3]:
                    distance = abs(other - number)
                    if distance in (1, 2):
                        share = NEXT if distance == 1 else SECOND_NEXT
                        lifted[number] += share * scores[other]
        return lifted

    @staticmethod
    def _weighed(exchange: Exchange, score: float, now: datetime, topic_words: Sequence[str]) -> float:
        age = max((now - moment_of(exchange.timestamp)).total_seconds() / 86_400, 0.0)
        fresh = 1.0 - RECENCY + RECENCY * 2.0 ** (-age / RECENCY_DAYS)
        topic = exchange.topic.casefold() if topic_words else ""
        same = any(word in topic for word in topic_words)
        return float(score * fresh * (SAME_TOPIC if same else 1.0))

    # ---- is there anything to remember? ----

    def evidence(
        self,
        message: str,
        spread: Mapping[str, int],
        covered: float,
        cosines: Mapping[int, float],
        least: float,
    ) -> Evidence:
        """What speaks for having heard of this before."""
        names = {name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(message)}
        names = {name for name in names if len(name) > 2}
        known = sum((spread.get(name) or self.exchanges.spread(name, 1)) > 0 for name in names)
        return Evidence(
            phrase=bool(_PHRASE.search(message)),
            cosine=max(cosines.values(), default=0.0),
            covered=covered,
            known_names=known / len(names) if names else 1.0,
            names=len(names),
            near=least,
        )


def _telling(spread: Mapping[str, int], total: int) -> list[str]:
    """The terms without those in over half of the exchanges, unless there are no others."""
    most = max(total // 2, 20)
    return [term for term, number in spread.items() if number <= most] or list(spread)


def _rarity(spread: int, total: int) -> float:
    """How much a word tells: much when few exchanges hold it, most when none does."""
    return math.log(1 + total / (spread + 0.5))


def _covered(message: str, weights: Mapping[str, float], texts: Sequence[str], chance: float) -> float:
    """The share of a message, or of one of its sentences, that one text holds, by the weight of words.

    Who asks two things at once has not spoken of both together. A sentence counts by itself only when what a text
    holds of it weighs more than what some text of so many holds by chance: "Good idea" stands in many.
    """
    folded = [_folded(text) for text in texts]
    best = 0.0
    parts = sentences(message)[:MOST_SENTENCES]
    for part in (message, *(parts if len(parts) > 1 else ())):
        whole = part is message
        own = weights if whole else {term: weights[term] for term in terms_of(part) if term in weights}
        held = max((_held(text, own) for text in folded), default=0.0)
        if whole or held > chance:
            best = max(best, held / (sum(own.values()) or 1.0))
    return best


def _held(text: str, weights: Mapping[str, float]) -> float:
    return sum(weight for term, weight in weights.items() if _holds(text, term))


def _folded(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _holds(text: str, term: str) -> bool:
    stem = term[:-1] if term.endswith("s") and len(term) > 3 else term
    return f" {stem}" in text
