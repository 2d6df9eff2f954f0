"""The order in which hits are shown: newer statements before the older ones that they overtake, which are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.currency import NAMED, SURE, Currency
from nanoclaw_memory.retrieval.pairing import Asked, likely_rows
from nanoclaw_memory.retrieval.pairs import is_foreign, says_nothing_new, statement_of, states_of
from nanoclaw_memory.retrieval.ranking import covered
from nanoclaw_memory.store.currency import EARLIER, Overtaken
from nanoclaw_memory.store.passage_search import Selection, StoredPassage
from nanoclaw_memory.text import words

NEARLY = 0.8  # of the best score: among these the newer comes first
AS_GOOD = 0.8  # of an older statement's score: from here on a newer one with the same name comes before it
BEST = 3  # the part of the hits, a third, with which newer statements come in that were not found themselves
LEAST = 10  # hits that are put in order, however few are shown

_Shown = TypeVar("_Shown")


def in_order(
    currency: Currency,
    ranked: Sequence[Candidate],
    asked: Asked,
    limit: int,
    visible: Selection | None,
    of_then: bool = False,
) -> list[Candidate]:
    """Ranked candidates as they are shown, at most `limit`, each older statement marked and after the newer one.

    Of those nearly as good as the best the newest comes first. A newer statement that was not found comes in directly
    before an older one among the best; after it when both share nothing but a name and the newer one answers less.
    `of_then`: the question asks about a day, and nothing gives way to the newer.
    """
    ordered = max(limit, LEAST)
    found = list(ranked if of_then else _newest_first(currency, asked.text, ranked))[:ordered]
    _mark(currency, found, asked, visible)
    return (found if of_then else _newer_before_older(found, ordered))[:limit]


def _newer_before_older(found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The candidates and newer statements that were not found, in order, with scores that fall."""
    known = {one.stored.id for one in found}
    shown: list[Candidate] = []
    for place, one in enumerate(found):
        pair = [one]
        if one.newer and one.newer.id not in known and place < max(limit // BEST, 1):
            known.add(one.newer.id)
            pair.insert(0 if one.gives_way else 1, Candidate(one.newer, one.score, {}))
        shown += pair
    shown = after_newer(shown, lambda one: one.stored.id, lambda one: one.newer_id)
    scores = sorted((one.score for one in shown), reverse=True)
    for one, score in zip(shown, scores, strict=True):
        one.score = score
    return shown[:limit]


def after_newer(
    shown: Sequence[_Shown], own: Callable[[_Shown], int], newer: Callable[[_Shown], int]
) -> list[_Shown]:
    """The same, each directly after or somewhere below the one that is newer on its subject."""
    waiting = {own(one): one for one in shown}

    def placed(one: _Shown) -> Iterator[_Shown]:
        if waiting.pop(own(one), None) is None:
            return
        if newer(one) in waiting:
            yield from placed(waiting[newer(one)])
        yield one

    return [each for one in shown for each in placed(one)]


def _newest_first(currency: Currency, question: str, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Candidates nearly as good as the best, newest first, what states nothing and what others said last.

    The others follow.
    """
    least = NEARLY * ranked[0].score if ranked else 0.0
    near = [one for one in ranked if one.score >= least]
    near.sort(key=lambda one: currency.said(one.stored), reverse=True)
    near.sort(key=lambda one: is_question(question, one.stored))
    near.sort(key=lambda one: is_foreign(one.stored))
    if asked := _numbers(question):
        near.sort(key=lambda one: -len(asked.intersection(words(one.stored.passage.text))))
    return near + [one for one in ranked if one.score < least]


def is_question(question: str, stored: StoredPassage) -> bool:
    """Whether a person's message only asks or requests, or asks and states nothing of what a question is about."""
    if stored.passage.speaker != "User":
        return False
    stated = statement_of(stored)
    return not stated or ("?" in stored.passage.text and not covered(question, stated))


def _mark(currency: Currency, found: Sequence[Candidate], asked: Asked, visible: Selection | None) -> None:
    """Mark what is overtaken; a statement with a number of the question does not give way to one without it.

    Nor to one that shares nothing but a name with it, and answers the question much less: that is about something else.
    """
    by_id = {one.stored.id: one.stored for one in found}
    rows = currency.of(by_id, visible)
    for one, other in currency.together(asked.text, by_id.values()):
        older, newer = (one, other) if currency.is_later(by_id[other], by_id[one]) else (other, one)
        believed = is_foreign(by_id[newer]) > is_foreign(by_id[older])  # and others say otherwise
        repeated = says_nothing_new(by_id[older], by_id[newer])
        states = currency.is_later(by_id[newer], by_id[older]) and states_of(by_id[newer], by_id[older])
        if states and not believed and not repeated:
            rows.append(Overtaken(older, newer, EARLIER, "what the question asks about", SURE))
    rows += likely_rows(currency, asked, found, rows)
    newest = currency.newest(rows, visible)
    scores = {one.stored.id: one.score for one in asked.pool}
    for candidate in found:
        if candidate.stored.id not in newest:
            continue
        row, newer_one = newest[candidate.stored.id]
        numbers = _numbers(asked.text).intersection(words(candidate.stored.passage.text))
        as_good = scores.get(newer_one.id, 0.0) >= AS_GOOD * candidate.score
        if numbers.issubset(words(newer_one.passage.text)) and (row.sure >= NAMED or as_good):
            candidate.mark, candidate.newer = row.kind, newer_one
            candidate.gives_way = row.sure >= SURE or as_good


def _numbers(text: str) -> set[str]:
    return {word for word in words(text) if any(character.isdigit() for character in word)}
