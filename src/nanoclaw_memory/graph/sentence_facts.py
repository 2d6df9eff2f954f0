"""Sentences that are kept whole as facts: which of them state a value that holds no longer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.graph import sentences
from nanoclaw_memory.graph.intents import concepts, phrases_like, stemmed
from nanoclaw_memory.statements import contradiction, features
from nanoclaw_memory.store.facts import FactRow, FactTable, View, digest
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.names import fold
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.text import stem
from nanoclaw_memory.types import Fact, Relation

LEAST_WORDS = 3
MAX_TERMS = 8
MAX_BESIDE = 40
_PORTRAIT = "about"  # says much of somebody at once, and is not outdated by one of its details
# Of these a newer sentence may give an older one up; what happened, or was learnt, stays.
_STANDING = frozenset("decision fact preference correction convention rule".split())
_PLAIN = frozenset(
    "is are was of the a an in on at by to for with has have and number date name value".split()
)


class SentenceFacts:
    """Keeps sentences in step with the values that they state. Writing needs an open transaction."""

    def __init__(
        self,
        facts: FactTable,
        relations: RelationTable,
        clock: Clock,
        sees_all: bool = True,
    ) -> None:
        self.sees_all = sees_all
        self.facts = facts
        self.relations = relations
        self.clock = clock

    def seen_by(self, sees_all: bool) -> SentenceFacts:
        """The same for a speaker: one who does not see what is private does not end it either."""
        return SentenceFacts(self.facts, self.relations, self.clock, sees_all)

    def retire(
        self, names: Sequence[str], slot: str, old: Fact | Relation, new: str, start: str, by: int | None
    ) -> None:
        """Sentences that state an old value hold no longer than it did."""
        value = old.value if isinstance(old, Fact) else old.object
        own = self.facts.of(names, self._now())
        # A sentence that names several may be kept of another one.
        terms = terms_of(f"{value} {' '.join(names)}")[:MAX_TERMS]
        others = self.facts.said_on(old.source) + self.facts.match(terms, self._now(), MAX_BESIDE)
        beside = [r for r in others if (self.sees_all or r.shared) and holds_name(r.fact.value, names)]
        for row in {row.fact.id: row for row in own + beside}.values():
            older = row.slot != slot and row.fact.valid_from <= start
            if older and is_sentence(row) and states(row.fact.value, slot, value, new):
                self.facts.retire(row.fact.id, start, by)

    def give_way(self, names: Sequence[str], slot: str, text: str, start: str, by: int) -> None:
        """Older sentences that a new one gives up hold until it does."""
        for row in self._standing(names, slot, text):
            if row.fact.id != by and row.fact.valid_from <= start and _contradicts(row.fact.value, text):
                self.facts.retire(row.fact.id, start, by)

    def _standing(self, names: Sequence[str], slot: str, text: str) -> list[FactRow]:
        if slot not in _STANDING or len(text.split()) < LEAST_WORDS:
            return []
        every = list(dict.fromkeys([*names, *map(fold, sentences.names(text))]))
        return [row for row in self.facts.at(every, [slot], self._now()) if is_sentence(row)]

    def reject(self, names: Sequence[str], slot: str, value: str) -> None:
        """Sentences that state a wrong value hold no more."""
        now = self._now()
        for row in self.facts.of(names, now):
            if row.slot != slot and is_sentence(row) and states(row.fact.value, slot, value):
                self.facts.retire(row.fact.id, now.at, None)

    def end_of(self, names: Sequence[str], slot: str, text: str, start: str) -> tuple[str | None, int | None]:
        """Until when a sentence that is learnt late held, and what ended it: its value was replaced, or it given up."""
        if len(text.split()) < LEAST_WORDS:
            return None, None
        relations = self.relations.line(names, everything=self.sees_all)
        past: list[tuple[str, Fact | Relation, str]] = [
            (row.slot, row.fact, row.fact.value)
            for row in self.facts.replaced(names, start)
            if row.slot != slot and (self.sees_all or row.shared)
        ]
        past += [(r.slot, r.relation, r.relation.object) for r in relations if r.relation.superseded_by]
        ends: list[tuple[str, int | None]] = [
            (row.fact.valid_from, row.fact.id)
            for row in self._standing(names, slot, text)
            if row.fact.valid_from > start and _contradicts(text, row.fact.value)
        ]
        for key, item, value in past:
            if item.valid_to <= start or not states(text, key, value):
                continue
            now = [row.fact.value for row in self.facts.at(names, [key], self._now())]
            now += [r.relation.object for r in relations if r.slot == key and not r.relation.valid_to]
            if all(states(text, key, value, other) for other in now):
                ends.append((item.valid_to, item.superseded_by if isinstance(item, Fact) else None))
        return min(ends, key=lambda end: end[0], default=(None, None))

    def was(self, names: Sequence[str], text: str) -> bool:
        """Whether a sentence was kept of an entity and holds no more."""
        same = [row for row in self.facts.line(names) if digest(row.fact.value) == digest(text)]
        return bool(same) and all(row.fact.valid_to for row in same)

    def _now(self) -> View:
        return View(stamp(self.clock.now()), self.sees_all)


def is_sentence(row: FactRow) -> bool:
    """Whether a fact is a sentence that was kept whole rather than a value of its key."""
    return row.slot != _PORTRAIT and len(row.fact.value.split()) >= LEAST_WORDS


def states(text: str, slot: str, value: str, now: str = "") -> bool:
    """Whether a sentence says that a key has a value; one that also names the value of `now` tells of the change."""
    said = f" {_folded(text)} "
    return _holds(said, value) and not (now and _holds(said, now)) and _names_key(said, slot)


def _contradicts(old: str, new: str) -> bool:
    return bool(contradiction(features(old), features(new)))


def holds_name(text: str, names: Iterable[str]) -> bool:
    """Whether a text names an entity by one of its folded names."""
    said = f" {_folded(text)} "
    return any(f" {name} " in said or f" {name}'s " in said for name in names)


def _holds(said: str, value: str) -> bool:
    wanted = _folded(value)
    return bool(wanted) and f" {wanted} " in said


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return fold(re.sub(r"[_/]", " ", text))


def _names_key(said: str, slot: str) -> bool:
    """By one of the key's words, or by a phrase that means the same."""
    stems = f" {' '.join(stem(word) for word in said.split())} "
    own = [part for part in map(stem, slot.split()) if part not in _PLAIN]
    if not own or any(f" {part} " in stems for part in own):
        return True
    numbers = concepts().get(stemmed(slot), frozenset())
    return any(f" {phrase} " in stems for phrase in phrases_like(numbers))
