"""Other names of whom a question names: aliases, and names that were given up, from the knowledge graph."""

from __future__ import annotations

from nanoclaw_memory.graph.entities import Resolver
from nanoclaw_memory.graph.graph import KnowledgeGraph

MOST = 8
_SURE = ("name", "alias")  # a guessed name must not bring in others


def other_names(graph: KnowledgeGraph, question: str) -> list[str]:
    """The names to look for besides those in the question."""
    user = graph.settings.user
    named = Resolver(graph.names, user.entity, user.agent_entity).read(question).named
    found: dict[str, None] = {}
    for name in named:
        if name.how not in _SURE or name.ambiguous:
            continue
        for entity in name.entities:
            found.setdefault(entity)
            for alias in graph.names.aliases(entity):
                found.setdefault(alias.alias)
            for fact in graph.history(entity, "name"):
                found.setdefault(fact.value)
    return list(found)[:MOST]
