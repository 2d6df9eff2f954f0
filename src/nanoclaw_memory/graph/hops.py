"""Answer questions over two relations ("who manages the owner of Keystone?"), and find which end is asked for."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.graph.entities import EntityMention, ParsedQuestion
from nanoclaw_memory.graph.intents import Intent, Phrase, relatives
from nanoclaw_memory.store.facts import FactRow, RelationRow
from nanoclaw_memory.store.names import NameTable, fold
from nanoclaw_memory.text import stem
from nanoclaw_memory.types import Fact

if TYPE_CHECKING:
    from nanoclaw_memory.graph.lookup import EntityReader, GraphCandidate

MAX_BRIDGES = 20
MAX_NAME = 80
# Predicates whose subject is the patient of the action, as of every `…_by`.
_INVERSE = frozenset(
    {"reports to", "report to", "belongs to", "belong to", "works at", "works for", "child of"}
)
_AUXILIARY = frozenset({"does", "do", "did", "has", "have", "will", "can", "should"})


class Edge(msgspec.Struct, frozen=True):
    """A step from an entity to a neighbour, by a relation or by a fact whose value is a name."""

    row: FactRow | RelationRow
    slot: str
    neighbour: str


def over_relations(
    names: NameTable, reader: EntityReader, question: ParsedQuestion, intent: Intent
) -> list[GraphCandidate]:
    """Find answers one step beyond a neighbour of a named entity, when the question names both steps."""
    asks = intent.asks
    if len(asks) < 2:
        return []
    for name in question.named:
        edges = edges_of(names, reader, name.entities)
        for first in sorted(asks, key=lambda ask: _distance(ask, name)):
            step = intent.only(first)
            bridges = [edge for edge in edges if step.fit(edge.slot) == 1.0][:MAX_BRIDGES]
            rest = [ask for ask in asks if not _overlap(ask, first)]
            found = _beyond(names, reader, name, bridges, intent.only(*rest)) if bridges and rest else []
            if found:
                return found
    return []


def edges_of(names: NameTable, reader: EntityReader, entities: tuple[str, ...]) -> list[Edge]:
    """Return every step from the entities to others."""
    own = set(entities)
    found = [Edge(row, row.slot, _other_end(row, own)) for row in reader.relations(entities)]
    facts = [row for row in reader.facts(entities) if len(row.item.value) <= MAX_NAME]
    values = {row.item.id: fold(row.item.value) for row in facts}
    known = names.known(list(set(values.values())))
    found += [Edge(row, row.slot, values[row.item.id]) for row in facts if values[row.item.id] in known]
    return [edge for edge in found if edge.neighbour not in own]


def _beyond(
    names: NameTable, reader: EntityReader, name: EntityMention, bridges: list[Edge], asked: Intent
) -> list[GraphCandidate]:
    from nanoclaw_memory.graph.lookup import ENTITY_INTENT, RELATION_INTENT, GraphCandidate

    meanings = names.meanings([edge.neighbour for edge in bridges])
    found: list[GraphCandidate] = []
    for bridge in bridges:
        entities = meanings[bridge.neighbour].names
        way = f"two steps from {name.text} by {bridge.slot}"
        rows: list[tuple[FactRow | RelationRow, int]] = [
            (row, ENTITY_INTENT) for row in reader.facts(entities)
        ]
        rows += [
            (r, RELATION_INTENT)
            for r in reader.relations(entities)
            if _other_end(r, entities) not in name.entities
        ]
        answers = [
            GraphCandidate(row, score, 1, f"{way}, then {row.slot}", 0)
            for row, score in rows
            if asked.fit(row.slot) == 1.0
        ]
        if answers:
            score = ENTITY_INTENT if isinstance(bridge.row.item, Fact) else RELATION_INTENT
            found += [*answers, GraphCandidate(bridge.row, score, 1, f"the step from {name.text}", 1)]
    return found


def _other_end(row: RelationRow, entities: Collection[str]) -> str:
    subject, object_ = row.names
    return object_ if subject in entities else subject


def in_direction(
    rows: list[RelationRow], name: EntityMention, question: ParsedQuestion, asked: Intent
) -> list[RelationRow]:
    """Return the relations whose other end the question asks for; all if it does not say which end."""
    wants_doer = _wants_doer(name, question, asked)
    if wants_doer is None:
        return rows
    fitting = [row for row in rows if _other_is_doer(row, name) == wants_doer]
    return fitting or rows


def _other_is_doer(row: RelationRow, name: EntityMention) -> bool:
    inverse = row.slot.endswith(" by") or row.slot in _INVERSE or _is_role(row.slot)
    forward = row.names[0] in name.entities
    return forward if inverse else not forward


def _is_role(slot: str) -> bool:
    """Return whether `owner`, `son` as a predicate names the object, unlike `owner of`."""
    return " " not in slot and (slot.endswith(("er", "or")) or stem(slot) in relatives())


def _wants_doer(name: EntityMention, question: ParsedQuestion, asked: Intent) -> bool | None:
    """Return whether the question asks for the actor ("who owns X") or for the object; None if unclear."""
    words = [word.folded for word in question.words]
    for mention in asked.asks:
        word = words[mention.start]
        if _is_role(word):
            return True
        by = "by" in words[mention.start : mention.end + 1]
        if mention.start >= name.end:
            return by
        if any(auxiliary in words[: mention.start] for auxiliary in _AUXILIARY) or by:
            return False
        if words and words[0] in ("who", "what", "which", "wer", "was"):
            return True
    return None


def _distance(ask: Phrase, name: EntityMention) -> int:
    return ask.start - name.end if ask.start >= name.end else name.start - ask.end


def _overlap(one: Phrase, other: Phrase) -> bool:
    return one.start < other.end and other.start < one.end
