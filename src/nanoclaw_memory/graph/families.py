"""Keys and predicates that say one thing: who works at Globex is no longer employed by Acme."""

from __future__ import annotations

from collections.abc import Sequence

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.store.facts import FactTable, View, digest
from nanoclaw_memory.store.relations import RelationTable

_FAMILIES = (
    frozenset({"works at", "works for", "employer", "workplace", "arbeitgeber"}),
    frozenset({"reports to", "manager", "boss", "supervisor"}),
    frozenset({"married to", "spouse", "wife", "husband"}),
)


class Families:
    """Retires what the other names of a key still say. Writing needs an open transaction."""

    def __init__(self, facts: FactTable, relations: RelationTable, clock: Clock) -> None:
        self.facts = facts
        self.relations = relations
        self.clock = clock

    def retire(
        self, names: Sequence[str], slot: str, value: str, start: str, by: int | None, sees_all: bool
    ) -> None:
        """A new value under one name ends what held before under another, unless it is the same."""
        others = next((family - {slot} for family in _FAMILIES if slot in family), frozenset())
        if not others:
            return
        wanted = digest(value)
        for fact in self.facts.at(names, sorted(others), View(stamp(self.clock.now()), sees_all)):
            if fact.fact.valid_from <= start and digest(fact.fact.value) != wanted:
                self.facts.retire(fact.fact.id, start, by)
        for row in self.relations.line(names, everything=sees_all):
            held = row.slot in others and not row.relation.valid_to and row.relation.valid_from <= start
            if held and digest(row.relation.object) != wanted:
                self.relations.retire(row.relation.id, start, None)
