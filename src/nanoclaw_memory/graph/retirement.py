"""End the validity of older statements that a new value replaces, contradicts or makes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.graph.clauses import names as names_in
from nanoclaw_memory.graph.intents import GENERIC, concepts, phrases_like, stemmed
from nanoclaw_memory.statements import contradiction, features
from nanoclaw_memory.store.facts import FactRow, FactTable, RelationRow, View, digest
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.names import fold
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.text import stem
from nanoclaw_memory.types import Fact, Relation, trust

LEAST_WORDS = 3  # minimal words of a value that is a sentence
MAX_TERMS = 8
MAX_OTHERS = 40
_PORTRAIT = "about"  # covers many aspects at once, and is not outdated by a single detail
# Under these keys a newer sentence may end an older one; events and lessons stay.
_REPLACEABLE = frozenset("decision fact preference correction convention rule".split())
# Keys and predicates that share one current value: who works at Globex is no longer employed by Acme.
_SYNONYMS = (
    frozenset({"works at", "works for", "employer", "workplace", "arbeitgeber"}),
    frozenset({"reports to", "manager", "boss", "supervisor"}),
    frozenset({"married to", "spouse", "wife", "husband"}),
)


class Retirement:
    """Retire statements with the rights of one speaker: not private ones they do not see, nor those of the more
    trusted.

    Writing needs an open transaction.
    """

    def __init__(
        self,
        facts: FactTable,
        relations: RelationTable,
        clock: Clock,
        sees_all: bool = True,
        by: str = "owner",
        project: str = "",
    ) -> None:
        self.facts = facts
        self.relations = relations
        self.clock = clock
        self.sees_all = sees_all
        self.by = by
        self.project = project

    def seen_by(self, sees_all: bool, by: str = "owner", project: str = "") -> Retirement:
        """Return the same for another speaker, in a project."""
        return Retirement(self.facts, self.relations, self.clock, sees_all, by, project)

    def may_end(self, item: Fact | Relation) -> bool:
        """Return whether another statement may end one of this speaker."""
        return trust(item.origin) <= trust(self.by) and same_place(item.project, self.project)

    def _end(self, item: Fact | Relation, moment: str, by: int | None) -> bool:
        """Retire a statement, unless somebody more trusted made it, or it belongs to another project."""
        if trust(item.origin) < trust(self.by) or not same_place(item.project, self.project):
            return False
        table = self.facts if isinstance(item, Fact) else self.relations
        table.retire(item.id, moment, by)
        return True

    def end_synonyms(self, names: Sequence[str], slot: str, value: str, start: str, by: int | None) -> None:
        """Retire other values under the key's synonyms."""
        others = next((group - {slot} for group in _SYNONYMS if slot in group), frozenset())
        if not others:
            return
        wanted = digest(value)
        for fact in self.facts.at(names, sorted(others), self._now()):
            if fact.item.valid_from <= start and digest(fact.item.value) != wanted:
                self._end(fact.item, start, by)
        for row in self.relations.line(names, everything=self.sees_all):
            current = row.slot in others and not row.item.valid_to and row.item.valid_from <= start
            if current and digest(row.item.value) != wanted:
                self._end(row.item, start, None)

    def end_restatements(
        self, names: Sequence[str], slot: str, old: Fact | Relation, new: str, start: str, by: int | None
    ) -> None:
        """Retire the sentences that state a value which was replaced."""
        own = self.facts.of(names, self._now())
        # A sentence that names several entities may be stored under another one.
        terms = terms_of(f"{old.value} {' '.join(names)}")[:MAX_TERMS]
        others = self.facts.stated_on(old.source) + self.facts.match(terms, self._now(), MAX_OTHERS)
        others = [
            row for row in others if (self.sees_all or row.shared) and _names_any(row.item.value, names)
        ]
        for row in {row.item.id: row for row in own + others}.values():
            older = row.slot != slot and row.item.valid_from <= start
            if older and _is_sentence(row) and _states(row.item.value, slot, old.value, new):
                self._end(row.item, start, by)

    def end_contradicted(self, names: Sequence[str], slot: str, text: str, start: str, by: int) -> None:
        """Retire the older sentences that a new one contradicts."""
        for row in self._replaceable(names, slot, text):
            if row.item.id != by and row.item.valid_from <= start and _contradicts(row.item.value, text):
                self._end(row.item, start, by)

    def end_duties(self, held: Iterable[FactRow | RelationRow], start: str, by: int) -> list[int]:
        """Retire what a predecessor was responsible for; return the ids of the relations that ended."""
        ended = [
            row for row in held if self._end(row.item, start, None if isinstance(row.item, Fact) else by)
        ]
        return [row.item.id for row in ended if isinstance(row.item, Relation)]

    def end_rejected(self, names: Sequence[str], slot: str, value: str) -> None:
        """Retire the sentences that state a rejected value."""
        now = self._now()
        for row in self.facts.of(names, now):
            if row.slot != slot and _is_sentence(row) and _states(row.item.value, slot, value):
                self._end(row.item, now.at, None)

    def known_end(
        self, names: Sequence[str], slot: str, text: str, start: str
    ) -> tuple[str | None, int | None]:
        """Return when a sentence that is stored late ceased to be valid, and the fact that ended it."""
        if len(text.split()) < LEAST_WORDS:
            return None, None
        ends: list[tuple[str, int | None]] = [
            (row.item.valid_from, row.item.id)
            for row in self._replaceable(names, slot, text)
            if row.item.valid_from > start and self.may_end(row.item) and _contradicts(text, row.item.value)
        ]
        relations = self.relations.line(names, everything=self.sees_all)
        for row in self._replaced(names, slot, start):
            key, item, value = row.slot, row.item, row.item.value
            if item.valid_to <= start or not self.may_end(item) or not _states(text, key, value):
                continue
            current = [row.item.value for row in self.facts.at(names, [key], self._now())]
            current += [r.item.value for r in relations if r.slot == key and not r.item.valid_to]
            if all(_states(text, key, value, other) for other in current):
                ends.append((item.valid_to, item.superseded_by if isinstance(item, Fact) else None))
        return min(ends, key=lambda end: end[0], default=(None, None))

    def was_retired(self, names: Sequence[str], text: str) -> bool:
        """Return whether a sentence was stored for an entity and is no longer valid."""
        same = [row for row in self.facts.line(names) if digest(row.item.value) == digest(text)]
        return bool(same) and all(row.item.valid_to for row in same)

    def _replaced(self, names: Sequence[str], slot: str, start: str) -> list[FactRow | RelationRow]:
        """Return values under other keys that another value replaced."""
        facts = (row for row in self.facts.replaced(names, start) if row.slot != slot)
        lines = self.relations.line(names, everything=self.sees_all)
        return [
            *(row for row in facts if self.sees_all or row.shared),
            *(row for row in lines if row.item.superseded_by),
        ]

    def _replaceable(self, names: Sequence[str], slot: str, text: str) -> list[FactRow]:
        if slot not in _REPLACEABLE or len(text.split()) < LEAST_WORDS:
            return []
        every = list(dict.fromkeys([*names, *map(fold, names_in(text))]))
        return [row for row in self.facts.at(every, [slot], self._now()) if _is_sentence(row)]

    def _now(self) -> View:
        return View(stamp(self.clock.now()), self.sees_all)


def same_place(one: str, other: str) -> bool:
    """Return whether two statements may affect each other: they belong to one project, or one of them to none."""
    return one == other or not (one and other)


def _is_sentence(row: FactRow) -> bool:
    """Return whether a fact is a sentence that was stored whole rather than a value of its key."""
    return row.slot != _PORTRAIT and len(row.item.value.split()) >= LEAST_WORDS


def _states(text: str, slot: str, value: str, now: str = "") -> bool:
    """Return whether a sentence states a key's value; one that also names the value of `now` reports the change."""
    folded = f" {_folded(text)} "
    return _contains(folded, value) and not (now and _contains(folded, now)) and _names_key(folded, slot)


def _contradicts(old: str, new: str) -> bool:
    return bool(contradiction(features(old), features(new)))


def _names_any(text: str, names: Iterable[str]) -> bool:
    """Return whether a text contains one of an entity's folded names."""
    folded = f" {_folded(text)} "
    return any(f" {name} " in folded or f" {name}'s " in folded for name in names)


def _contains(folded: str, value: str) -> bool:
    wanted = _folded(value)
    return bool(wanted) and f" {wanted} " in folded


@bounded(1024 * 1024)
def _folded(text: str) -> str:
    return fold(re.sub(r"[_/]", " ", text))


def _names_key(folded: str, slot: str) -> bool:
    """Return whether a text contains a word of the key, or a synonym."""
    stems = f" {' '.join(stem(word) for word in folded.split())} "
    own = [part for part in map(stem, slot.split()) if part not in GENERIC]
    if not own or any(f" {part} " in stems for part in own):
        return True
    numbers = concepts().get(stemmed(slot), frozenset())
    return any(f" {phrase} " in stems for phrase in phrases_like(numbers))
