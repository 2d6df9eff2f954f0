"""Endpoints of the knowledge graph."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Fact, GraphAnswer, Upserted

Share = Annotated[float, Field(ge=0, le=1)]


@route("GET", "/graph/search")
def graph_search(
    memory: Memory,
    query: Annotated[str, Field(max_length=10_000)],
    top_k: Annotated[int, Field(ge=1, le=50)] = 6,
    as_of: str | None = None,
    reinforce: bool = False,
) -> GraphAnswer:
    """Facts and relations that answer a question; with `reinforce` they are warmed as an agent's are."""
    answer = memory.graph.search(query, top_k, as_of)
    if reinforce:
        memory.graph.reinforce(answer.hits)
    return answer


@route("POST", "/graph/facts")
def fact_upsert(
    memory: Memory,
    entity: str,
    key: str,
    value: str,
    category: str = "",
    importance: Share = 0.5,
    permanent: bool = False,
    add: bool = False,
    valid_from: str = "",
) -> Upserted:
    """Say a fact; the old value of a single-valued key is retired and kept as history."""
    return memory.graph.upsert(
        entity, key, value, category, importance, permanent=permanent, add=add, valid_from=valid_from
    )


@route("POST", "/graph/facts/remove")
def remove_facts(
    memory: Memory, entity: str, key: str = "", value: str = "", purge: bool = False
) -> dict[str, Any]:
    """Retire facts, or with `purge` erase them."""
    return {"removed": memory.graph.remove(entity, key, value, purge)}


@route("POST", "/graph/facts/reject")
def reject_fact(memory: Memory, entity: str, key: str, value: str, reason: str = "") -> dict[str, Any]:
    """A value was wrong: erase it, restore the one before, and let no ingestion bring it back."""
    return {"removed": memory.graph.reject(entity, key, value, reason)}


@route("GET", "/graph/facts", listed=True)
def top_facts(memory: Memory, tier: Literal["", "hot", "warm", "cool"] = "") -> list[Fact]:
    """The hottest facts, of one tier or of all."""
    return memory.graph.top(tier, 10_000)


@route("GET", "/graph/history", listed=True)
def history(memory: Memory, entity: str, key: str = "") -> list[Fact]:
    """Every value an entity's key, or each of its keys, ever had, oldest first."""
    return memory.graph.history(entity, key)


@route("GET", "/graph/view")
def drawn(
    memory: Memory,
    entity: str,
    depth: Annotated[int, Field(ge=1, le=4)] = 1,
    form: Literal["tree", "mermaid", "dot", "json"] = "json",
) -> dict[str, Any]:
    """What surrounds an entity."""
    return memory.graph.drawn(entity, depth, form)


@route("POST", "/graph/relations")
def relate(
    memory: Memory, subject: str, predicate: str, object: str, replace: bool = False, valid_from: str = ""
) -> Upserted:
    """Say that a subject stands in a relation to an object."""
    return memory.graph.relate(subject, predicate, object, replace=replace, valid_from=valid_from)


@route("POST", "/graph/relations/remove")
def unrelate(
    memory: Memory, subject: str, predicate: str, object: str, purge: bool = False
) -> dict[str, Any]:
    """Retire a relation, or with `purge` erase it."""
    return {"removed": memory.graph.unrelate(subject, predicate, object, purge=purge)}


@route("POST", "/graph/aliases")
def alias(memory: Memory, alias: str, entity: str) -> dict[str, Any]:
    """Give an entity another name."""
    return {"created": memory.graph.alias(alias, entity)}
