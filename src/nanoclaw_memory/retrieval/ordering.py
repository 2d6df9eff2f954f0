"""Order hits for display: newer statements before the older ones they supersede, which are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from nanoclaw_memory.retrieval.candidates import BINDS, Candidate
from nanoclaw_memory.retrieval.currency import DOUBTFUL, NAMED, SURE, Currency
from nanoclaw_memory.retrieval.pairing import Asked, likely_rows, linked_rows
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.ranking import covered
from nanoclaw_memory.retrieval.reports_only import outdates_nothing
from nanoclaw_memory.retrieval.statement_pairs import (
    is_foreign,
    says_nothing_new,
    statement_of,
    states_of,
    subject_words,
)
from nanoclaw_memory.store.currency import EARLIER, Overtaken
from nanoclaw_memory.store.passage_search import Selection, StoredPassage
from nanoclaw_memory.text import stems, words

NEARLY = 0.8  # minimal share of the best score for hits that are ordered by date
AS_GOOD = 0.8  # minimal share of an older statement's score for a newer one with the same name to precede it
BEST = 3  # one third of the hits may be preceded by newer statements that were not found themselves
LEAST = 10  # minimal number of hits that are ordered

_Shown = TypeVar("_Shown")


def in_order(
    currency: Currency,
    ranked: Sequence[Candidate],
    asked: Asked,
    limit: int,
    visible: Selection | None,
    of_then: bool = False,
) -> list[Candidate]:
    """Return at most `limit` candidates in display order, each older statement marked and after the newer one.

    Among those nearly as good as the best, the newest comes first. A newer statement that was not found is inserted
    directly before an older one among the best, or after it if both share only a name and the newer one answers less.
    With `of_then` the question asks about a day, and nothing is superseded.
    """
    ordered = max(limit, LEAST)
    found = list(ranked if of_then else _newest_first(currency, asked.text, ranked))[:ordered]
    _mark(currency, found, asked, visible)
    return (found if of_then else _newer_before_older(found, ordered))[:limit]


def _newer_before_older(found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Insert newer statements that were not found; return all in order, with descending scores."""
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
    """Reorder items so that each comes somewhere after the one that is newer on its subject."""
    waiting = {own(one): one for one in shown}

    def placed(one: _Shown) -> Iterator[_Shown]:
        if waiting.pop(own(one), None) is None:
            return
        if newer(one) in waiting:
            yield from placed(waiting[newer(one)])
        yield one

    return [each for one in shown for each in placed(one)]


def _newest_first(currency: Currency, question: str, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates nearly as good as the best: newest first, questions and statements of others last.

    The remaining candidates follow.
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
    """Return whether a person's message only asks, or states nothing about the subject of a question."""
    if stored.passage.speaker != "User":
        return False
    stated = statement_of(stored)
    return not stated or ("?" in stored.passage.text and not covered(question, stated))


def _mark(currency: Currency, found: Sequence[Candidate], asked: Asked, visible: Selection | None) -> None:
    """Mark superseded statements, except one with a number of the question if the newer one lacks it.

    A statement that shares only a name with a newer, much less relevant one is not marked either: their subjects
    differ.
    """
    by_id = {one.stored.id: one.stored for one in found}
    rows = currency.of(by_id, visible)
    for one, other in currency.together(asked.text, by_id.values()):
        older, newer = (one, other) if currency.is_later(by_id[other], by_id[one]) else (other, one)
        believed = is_foreign(by_id[newer]) > is_foreign(by_id[older])  # and others say otherwise
        repeated = says_nothing_new(by_id[older], by_id[newer])
        states = currency.is_later(by_id[newer], by_id[older]) and states_of(by_id[newer], by_id[older])
        if states and not (believed or repeated or outdates_nothing(by_id[newer], by_id[older])):
            rows.append(Overtaken(older, newer, EARLIER, "what the question asks about", SURE))
    # An allergy is not outdated by other news about the same person.
    rows = currency.judged(rows)
    rows += likely_rows(currency, asked, [one for one in found if not one.parts.get(BINDS)], rows)
    rows += linked_rows(currency, found, rows, visible)
    newest = currency.newest(currency.on_what_is_asked(rows, lambda _: (asked.text,)), visible)
    scores = {one.stored.id: one.score for one in asked.pool}
    for candidate in found:
        if candidate.stored.id not in newest:
            continue
        row, newer_one = newest[candidate.stored.id]
        binds = bool(candidate.parts.get(BINDS))
        if binds and not _outdates_constraint(currency, candidate.stored, newer_one, row.sure):
            continue
        numbers = _numbers(asked.text).intersection(words(candidate.stored.passage.text))
        as_good = scores.get(newer_one.id, 0.0) >= AS_GOOD * candidate.score
        telling = row.sure > SURE or numbers.issubset(words(newer_one.passage.text))
        if telling and (row.sure >= NAMED or as_good):
            # A constraint is never left out: whoever cooks decides with both statements before them.
            candidate.mark, candidate.newer = EARLIER if binds else row.kind, newer_one
            candidate.gives_way = row.sure >= SURE or as_good
    _mark_shared(found)


def _mark_shared(found: Sequence[Candidate]) -> None:
    """Mark what others said like the person's own statements beside it, if all of these are marked.

    Otherwise it would stand as today's value, which only the person decides.
    """
    own = [one for one in found if not is_foreign(one.stored)]
    for candidate in found:
        if candidate.mark or not is_foreign(candidate.stored):
            continue
        subject = set(subject_words(body_of(candidate.stored.passage)))
        beside = [one for one in own if not subject.isdisjoint(subject_words(body_of(one.stored.passage)))]
        if beside and all(one.mark for one in beside):
            candidate.mark, candidate.newer = EARLIER, beside[0].newer


def _outdates_constraint(currency: Currency, older: StoredPassage, newer: StoredPassage, sure: float) -> bool:
    """Return whether a later statement is about a constraint itself, not only about the person that both name."""
    likely = currency.attributes.probabilities([(older.id, newer.id)], {older.id: older, newer.id: newer})
    if likely:
        return min(likely.values()) >= DOUBTFUL
    shared = set(stems(older.passage.text)).intersection(stems(newer.passage.text))
    return sure >= SURE and len(shared) > 1


def _numbers(text: str) -> set[str]:
    return {word for word in words(text) if any(character.isdigit() for character in word)}
