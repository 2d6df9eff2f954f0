"""Compare embedders on a person's own notes: which finds a chunk by a vague form of one of its sentences, at which
cost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import InvalidValue, ProviderError, SettingsError
from nanoclaw_memory.progress import report
from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.store.keywords import spaced, terms_of
from nanoclaw_memory.text import content_words, sentences, words
from nanoclaw_memory.tokens import estimate
from nanoclaw_memory.types import Compared, EmbeddingCost, EmbeddingPrice

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Embedder
    from nanoclaw_memory.settings.sections import EmbeddingsSettings

MIN_WORDS = 4
FEWEST = 5
SAMPLE = 500

Scores = Callable[[str], dict[int, float]]


class _Pair(msgspec.Struct, frozen=True):
    """A chunk, and one of its sentences without its telling words."""

    text: str
    question: str


def compare(index: Index, texts: int) -> list[Compared]:
    """Compare keyword search, each configured embedder, and both fused."""
    pairs = _pairs(index, texts)
    if len(pairs) < FEWEST:
        raise InvalidValue(
            f"only {len(pairs)} chunks are long enough", "write more notes, then: nanoclaw-memory index"
        )
    by_words = _word_scores([pair.text for pair in pairs])
    found = [_measured("keyword", pairs, by_words)]
    chain = index.embedder()
    for member in chain.members if chain else ():
        try:
            by_meaning = _vector_scores(member, [pair.text for pair in pairs])
            found.append(_measured(member.identity.key, pairs, by_meaning))
            found.append(_measured("hybrid with it", pairs, _both(by_words, by_meaning, member.weights)))
        except ProviderError as error:
            found.append(Compared(member.identity.key, 0.0, 0.0, 0.0, 0.0, error.message))
    return found


def _pairs(index: Index, wanted: int) -> list[_Pair]:
    """Return passages from all over the index, each with a vague form of its most telling sentence."""
    chosen: list[tuple[str, str]] = []
    rows = index.passages.database.rows("SELECT text FROM passages ORDER BY id * 2654435761 % 4294967296")
    for (text,) in rows:
        long = [part for part in sentences(text) if len(content_words(part)) >= MIN_WORDS]
        if long and len(chosen) < wanted:
            chosen.append((text, max(long, key=lambda sentence: len(set(content_words(sentence))))))
    common = Counter(word for text, _ in chosen for word in set(content_words(text)))
    return [_Pair(text, _vague(sentence, common)) for text, sentence in chosen]


def _vague(sentence: str, common: Counter[str]) -> str:
    """Return the sentence without the rarer half of its words: as somebody asks who forgot the wording."""
    telling = sorted(set(content_words(sentence)), key=lambda word: (common[word], word))
    dropped = set(telling[: len(telling) // 2])
    return " ".join(word for word in words(sentence) if word not in dropped)


def _word_scores(texts: Sequence[str]) -> Scores:
    bags = [set(words(spaced(text))) for text in texts]
    held = {term: sum(term in bag for bag in bags) for bag in bags for term in bag}

    def scores(question: str) -> dict[int, float]:
        asked = [term for term in terms_of(question) if term in held]
        return {
            number: sum(1 / held[term] for term in asked if term in bag) for number, bag in enumerate(bags)
        }

    return scores


def _vector_scores(member: Embedder, texts: Sequence[str]) -> Scores:
    import numpy as np

    parts = []
    for start in range(0, len(texts), 32):
        parts.append(member.embed_documents(texts[start : start + 32]))
        report(member.identity.model, min(start + 32, len(texts)), len(texts))
    matrix = np.concatenate(parts)
    return lambda question: dict(enumerate((matrix @ member.embed_query(question)).tolist()))


def _both(first: Scores, second: Scores, weights: tuple[float, float]) -> Scores:
    return lambda question: ranking.fused(first(question), second(question), weights)


def _measured(name: str, pairs: Sequence[_Pair], scores: Scores) -> Compared:
    places, began = [], time.monotonic()
    for number, pair in enumerate(pairs):
        found = scores(pair.question)
        places.append(1 + sum(score > found[number] for score in found.values()))
    took = (time.monotonic() - began) * 1000 / len(pairs)
    return Compared(
        name,
        sum(place == 1 for place in places) / len(places),
        sum(place <= 5 for place in places) / len(places),
        sum(1 / place for place in places) / len(places),
        took,
    )


def cost(index: Index, settings: EmbeddingsSettings, most: int | None) -> EmbeddingCost:
    """Return what embedding `most` texts of the index, or all, would cost; estimated on a sample without a call."""
    database = index.passages.database
    ((count, chars),) = database.query("SELECT count(*), coalesce(sum(length(text)), 0) FROM passages")
    texts = min(count, most or count)
    some = database.query(
        "SELECT text FROM passages ORDER BY id * 2654435761 % 4294967296 LIMIT :most", {"most": SAMPLE}
    )
    sampled = sum(len(text) for (text,) in some)
    tokens = round(sum(estimate(text) for (text,) in some) / max(sampled, 1) * chars * texts / max(count, 1))
    try:
        chain = index.embedder()
        waiting = index.passages.count_pending(chain.identity.key, texts) if chain else texts
    except (ProviderError, SettingsError):
        waiting = texts
    service = {"azure-openai": settings.deployment, "openai": settings.model}.get(
        settings.provider, settings.provider
    )
    prices = {**({service: 0.0} if service else {}), **settings.prices}
    models = tuple(
        EmbeddingPrice(
            name, price, price * tokens / 1e6, price * tokens / 1e6 * waiting / max(texts, 1), name == service
        )
        for name, price in prices.items()
    )
    return EmbeddingCost(texts, tokens, waiting, models)
