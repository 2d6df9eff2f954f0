"""How probable it is that two statements that a question finds are on one subject: a linear model, learnt.

`training/pairing.py` learns the weights from statements whose authors said which tell of one thing; `pairing.json` has
them, with vectors and without.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.retrieval.changing import holds_now, says_change
from nanoclaw_memory.retrieval.currency import NAMED, SURE, Currency
from nanoclaw_memory.retrieval.gate import probability
from nanoclaw_memory.retrieval.pairs import (
    is_foreign,
    of_two_projects,
    says_nothing_new,
    statement_of,
    states_of,
    subject_words,
)
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.statements import features as compared
from nanoclaw_memory.store.currency import EARLIER, ONE_SUBJECT, Overtaken
from nanoclaw_memory.store.passage_search import StoredPassage
from nanoclaw_memory.text import stem

if TYPE_CHECKING:
    from nanoclaw_memory.retrieval.candidates import Meaning

LOOKED_AT = 8  # of the first hits, of which each two are compared
LIKELY = 0.25  # probability from which the older one is marked
NAMED_LIKELY = 0.15  # the same of two that share a name, and that were compared when they came in
LONG = 400  # characters


class Pair(msgspec.Struct, frozen=True):
    """Two hits, and what speaks for one subject."""

    older: StoredPassage
    newer: StoredPassage
    signs: Mapping[str, float]
    by_meaning: bool

    @property
    def probability(self) -> float:
        return probability(_weights()["vectors" if self.by_meaning else "words"], self.signs)


def on_one_subject(
    currency: Currency,
    question: str,
    found: Sequence[StoredPassage],
    known: Sequence[Overtaken],
    meaning: Meaning | None,
) -> list[Overtaken]:
    """The known rows, those of two hits on one subject decided anew for this question."""
    hits = {one.id for one in found[:LOOKED_AT]}
    named = {
        (row.older, row.newer)
        for row in known
        if row.sure == NAMED and hits.issuperset((row.older, row.newer))
    }
    others = [row for row in known if (row.older, row.newer) not in named]
    decided = {(row.older, row.newer) for row in others}
    for pair in pairs_among(currency, question, found, known, meaning):
        two = pair.older.id, pair.newer.id
        if two not in decided and pair.probability >= (NAMED_LIKELY if two in named else LIKELY):
            others.append(Overtaken(*two, EARLIER, ONE_SUBJECT, SURE))
    return others


def pairs_among(
    currency: Currency,
    question: str,
    found: Sequence[StoredPassage],
    known: Sequence[Overtaken],
    meaning: Meaning | None,
) -> Iterator[Pair]:
    """The pairs of the first hits of which the newer may overtake the older."""
    rules = {(row.older, row.newer): row.sure for row in known}
    together = {frozenset(pair) for pair in currency.together(question, found[:LOOKED_AT])}
    asked = {stem(word): currency.rarity(word) for word in subject_words(question)}
    for one, other in itertools.combinations(found[:LOOKED_AT], 2):
        older, newer = (one, other) if currency.is_later(other, one) else (other, one)
        if not currency.is_later(newer, older) or not _may_overtake(older, newer):
            continue
        sure = rules.get((older.id, newer.id), 0.0)
        likeness = meaning.likeness(older.id, newer.id) if meaning else None
        signs = {
            "sure by rule": float(sure >= SURE),
            "named by rule": float(sure == NAMED),
            "asked about together": float(frozenset((older.id, newer.id)) in together),
            **_of_words(currency, older, newer, asked),
            **_of_statements(older, newer),
        }
        signs["likeness"] = likeness or 0.0
        signs["likeness and asked"] = signs["likeness"] * signs["asked in both"]
        yield Pair(older, newer, signs, likeness is not None)


def _may_overtake(older: StoredPassage, newer: StoredPassage) -> bool:
    believed = is_foreign(newer) > is_foreign(older)  # and others say otherwise
    if believed or of_two_projects(older, newer) or says_nothing_new(older, newer):
        return False
    return states_of(newer, older)


def _of_words(
    currency: Currency, older: StoredPassage, newer: StoredPassage, asked: Mapping[str, float]
) -> dict[str, float]:
    """What the words say that two statements share, with each other and with the question."""
    before, after = (
        {stem(word): word for word in subject_words(body_of(one.passage))} for one in (older, newer)
    )
    shared = before.keys() & after.keys()
    rare = [currency.rarity(before[one]) for one in shared]
    names = [one for one in shared if subject_words(body_of(older.passage))[before[one]]]
    whole = sum(asked.values()) or 1.0

    def share(held: Collection[str]) -> float:
        return sum(asked[one] for one in asked if one in held) / whole

    return {
        "rarest shared": max(rare, default=0.0) / 10,
        "rarity shared": min(sum(rare), 30) / 30,
        "share of shorter": len(shared) / max(min(len(before), len(after)), 1),
        "share of newer": len(shared) / max(len(after), 1),
        "names shared": min(len(names), 3) / 3,
        "only names": float(bool(names) and len(names) == len(shared)),
        "asked in both": share(shared),
        "asked in older": share(before),
        "asked in newer": share(after),
    }


def _of_statements(older: StoredPassage, newer: StoredPassage) -> dict[str, float]:
    """What kinds of statements they are, and of what kinds their values are."""
    before, after = compared(body_of(older.passage)), compared(body_of(newer.passage))
    said = statement_of(newer)
    return {
        "another number": float(bool(before.numbers and after.numbers - before.numbers)),
        "another name": float(bool(before.names and after.names - before.names)),
        "says a change": float(says_change(said)),
        "holds now": float(holds_now(said)),
        "agent before": float(older.passage.speaker == "Agent"),
        "agent after": float(newer.passage.speaker == "Agent"),
        "length before": min(len(older.passage.text), LONG) / LONG,
        "length after": min(len(newer.passage.text), LONG) / LONG,
    }


@functools.cache
def _weights() -> dict[str, dict[str, float]]:
    return msgspec.json.decode(
        Path(__file__).with_name("pairing.json").read_bytes(), type=dict[str, dict[str, float]]
    )
