"""Find the later statement that overtakes an older one among the hits of a question, with a trained linear model.

Two statements may share no rare word and yet answer the same question at different times. `training/pairing.py` trains
the weights on statements and questions of people who had not seen the code; `pairing.json` contains them, for messages
of a conversation and for searches, with vectors and without.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.retrieval.candidates import Candidate, Likeness
from nanoclaw_memory.retrieval.currency import ALIKE, CERTAIN, NAMED, SURE, Currency
from nanoclaw_memory.retrieval.gate import probability
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.reports_only import outdates_nothing
from nanoclaw_memory.retrieval.statement_pairs import (
    is_copy,
    is_foreign,
    of_two_projects,
    says_nothing_new,
    statement_of,
    subject_words,
)
from nanoclaw_memory.retrieval.value_changes import says_change
from nanoclaw_memory.store.currency import EARLIER, Overtaken, is_statement
from nanoclaw_memory.store.passage_search import Selection, StoredPassage
from nanoclaw_memory.text import stems_in_any_language

POOLED = 16  # best hits among which later statements are looked for
LIKELY = 0.2  # minimal probability that a later statement overtakes an older one
CHOSEN = 0.15  # the same for the passages of a turn
LINKED = 0.15  # minimal probability of one attribute for a later statement that the question did not find
MOST_LINKED = 6  # best hits whose neighbours are looked at
FAR = 1e-3  # share of the best score below which all are alike


class Asked(msgspec.Struct, frozen=True):
    """A question with its best hits, and how near these are to each other."""

    text: str
    pool: Sequence[Candidate]
    likeness: Likeness | None = None  # None without vectors
    searched: bool = True  # False for a message of a conversation

    @property
    def model(self) -> str:
        """Return the name of the weights to use."""
        return f"{'search' if self.searched else 'turn'}, {'vectors' if self.likeness else 'words'}"


class Pair(msgspec.Struct, frozen=True):
    """Two statements that a question finds, with the features of their pair."""

    older: StoredPassage
    newer: StoredPassage
    features: Mapping[str, float]


def likely_rows(
    currency: Currency, asked: Asked, shown: Sequence[Candidate], known: Sequence[Overtaken]
) -> list[Overtaken]:
    """Return the likeliest row of each shown statement that no known row surely overtakes."""
    decided = {row.older for row in known if row.sure >= NAMED}
    least = LIKELY if asked.searched else CHOSEN
    likeliest: dict[int, tuple[float, int]] = {}
    for pair in pairs(currency, asked, [one for one in shown if one.stored.id not in decided], known):
        likely = probability(_weights()[asked.model], pair.features)
        if likely >= max(least, likeliest.get(pair.older.id, (0.0,))[0]):
            likeliest[pair.older.id] = likely, pair.newer.id
    return [
        Overtaken(older, newer, EARLIER, "it answers the same question", SURE)
        for older, (_, newer) in likeliest.items()
    ]


def linked_rows(
    currency: Currency, shown: Sequence[Candidate], known: Sequence[Overtaken], visible: Selection | None
) -> list[Overtaken]:
    """Return for each shown statement without a sure row the later one near it that is likeliest on its attribute."""
    decided = {row.older for row in known if row.sure >= NAMED}
    asked = {
        one.stored.id: one.stored
        for one in shown[:MOST_LINKED]
        if one.stored.id not in decided and is_statement(one.stored.passage)
    }
    near = currency.attributes.nearest(list(asked), visible)
    stored = currency.load({number for found in near.values() for number in found}) | asked
    pairs = [
        (older, newer)
        for older, found in near.items()
        for newer in found
        if newer in stored
        and is_statement(stored[newer].passage)
        and currency.is_later(stored[newer], stored[older])
        and _may_stand_for(stored[newer], stored[older])
    ]
    likely = currency.attributes.probabilities(pairs, stored)
    best: dict[int, tuple[float, int]] = {}
    fits = currency.best_older({newer for (_, newer), sure in likely.items() if sure >= LINKED})
    for (older, newer), probability_of_one in likely.items():
        if probability_of_one >= max(LINKED, fits.get(newer, 0.0) - 1e-6):
            best[older] = max(best.get(older, (0.0, 0)), (probability_of_one, newer))
    return [
        Overtaken(
            older,
            newer,
            EARLIER,
            "it says something else of the same",
            CERTAIN if likely_one >= ALIKE else SURE,
        )
        for older, (likely_one, newer) in best.items()
    ]


def pairs(
    currency: Currency, asked: Asked, shown: Sequence[Candidate], known: Sequence[Overtaken]
) -> Iterator[Pair]:
    """Yield each shown statement with each later one that may overtake it and is in no known row."""
    decided = {(row.older, row.newer) for row in known}
    best = max((one.score for one in asked.pool), default=0.0) or 1.0
    wanted = {word: currency.rarity(word) for word in subject_words(asked.text)}
    statements = {one.stored.id: one for one in asked.pool if is_statement(one.stored.passage)}
    last = currency.last_day()
    alone = {number: _alone(one, best, wanted) for number, one in statements.items()}
    for one, other in itertools.product(
        (one for one in shown if one.stored.id in statements), statements.values()
    ):
        older, newer = one.stored, other.stored
        if newer.passage.said < older.passage.said <= last or (older.id, newer.id) in decided:
            continue
        if not currency.is_later(newer, older) or not _may_stand_for(newer, older):
            continue
        yield Pair(
            older,
            newer,
            {
                "older answers": one.score / best,
                "newer answers": alone[newer.id].answers,
                "newer answers at all": math.log(max(alone[newer.id].answers, FAR)),
                "says a change": alone[newer.id].says_change,
                "days between": math.log(_days_between(older, newer) + 1),
                "asked in older": alone[older.id].asked,
                "asked in newer": alone[newer.id].asked,
                **_of_shared(currency, older, newer),
                **_of_meaning(asked.likeness, older, newer),
            },
        )


class _Alone(msgspec.Struct, frozen=True):
    """What a statement contributes to each of its pairs."""

    answers: float  # its score as a share of the best
    says_change: float
    asked: float  # share of the question's words that it has, by rarity


def _alone(one: Candidate, best: float, wanted: Mapping[str, float]) -> _Alone:
    forms = _forms(body_of(one.stored.passage)).keys()
    has = sum(rare for word, rare in wanted.items() if not _forms(word).keys().isdisjoint(forms))
    change = float(says_change(statement_of(one.stored)))
    return _Alone(one.score / best, change, has / (sum(wanted.values()) or 1.0))


def _may_stand_for(newer: StoredPassage, older: StoredPassage) -> bool:
    believed = is_foreign(newer) > is_foreign(older)  # and others say otherwise
    if believed or is_copy(newer) or of_two_projects(older, newer):
        return False
    return bool(statement_of(newer)) and not (
        says_nothing_new(older, newer) or outdates_nothing(newer, older)
    )


def _of_shared(currency: Currency, older: StoredPassage, newer: StoredPassage) -> dict[str, float]:
    """Return the features of the words that two statements share."""
    before, after = _forms(body_of(older.passage)), _forms(body_of(newer.passage))
    shared = {before[one] for one in before.keys() & after.keys()}
    shorter = min(len({*before.values()}), len({*after.values()}))
    return {
        "rarest shared": max(map(currency.rarity, shared), default=0.0) / 5,
        "share of shorter": len(shared) / max(shorter, 1),
    }


def _of_meaning(likeness: Likeness | None, older: StoredPassage, newer: StoredPassage) -> dict[str, float]:
    near, mutual = likeness.of(older.id, newer.id) if likeness else (0.0, 0.0)
    return {"near": near, "nearest of all": mutual}


@bounded(4 * 1024 * 1024)
def _forms(text: str) -> Mapping[str, str]:
    """Return the words that may name a statement's subject, by their stems in English and German."""
    return {one: word for word in subject_words(text) for one in stems_in_any_language([word])}


def _days_between(older: StoredPassage, newer: StoredPassage) -> int:
    try:
        days = [date.fromisoformat(one.passage.said) for one in (older, newer)]
    except ValueError:
        return 0
    return max((days[1] - days[0]).days, 0)


@functools.cache
def _weights() -> dict[str, dict[str, float]]:
    return msgspec.json.decode(
        Path(__file__).with_name("pairing.json").read_bytes(), type=dict[str, dict[str, float]]
    )
