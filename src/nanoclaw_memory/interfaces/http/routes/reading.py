"""Endpoints that read: search, recall, lines, boot, brief, and the search index."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Boot, Brief, Found, Indexed, IndexStatus, Lines, Recall

Query = Annotated[str, Field(max_length=10_000)]
Budget = Annotated[int | None, Field(ge=1, le=100_000)]


@route("GET", "/search")
def search(
    memory: Memory,
    query: Query = "",
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
    types: list[str] | None = None,
    tags: list[str] | None = None,
    include_superseded: bool = False,
    corpus: str = "",
    fast: bool = False,
    rerank: bool | None = None,
    mmr: bool = False,
    explain: bool = False,
) -> Found:
    """Ranked hits over files and entries, best first; an empty query gives the recent entries."""
    return memory.search(
        query,
        limit,
        types=types,
        tags=tags or (),
        include_superseded=include_superseded,
        corpus=corpus,
        fast=fast,
        rerank=rerank,
        mmr=mmr,
        explain=explain,
    )


@route("GET", "/recall")
def recall(
    memory: Memory,
    query: Query,
    types: list[str] | None = None,
    priority_min: Literal["critical", "high", "medium", "low"] = "low",
    token_budget: Budget = None,
    include_context: bool = False,
    format: Literal["brief", "detailed"] = "brief",
    fast: bool = False,
) -> Recall:
    """Entries that answer a question, packed into a token budget."""
    return memory.recall(
        query,
        types=types,
        priority_min=priority_min,
        token_budget=token_budget,
        include_context=include_context,
        format=format,
        fast=fast,
    )


@route("GET", "/shared-recall")
def shared_recall(
    memory: Memory,
    query: Query,
    types: list[str] | None = None,
    token_budget: Budget = None,
    format: Literal["brief", "detailed"] = "brief",
) -> Recall:
    """The same over what other groups have published to this one."""
    return memory.entries.shared_recall(query, types=types, token_budget=token_budget, format=format)


@route("GET", "/lines")
def lines(memory: Memory, file: str, start_line: int | None = None, end_line: int | None = None) -> Lines:
    """Exact lines of a memory file; a missing file is empty, with a note."""
    return memory.get(file, start_line, end_line)


@route("GET", "/boot")
def boot(memory: Memory, project: str = "") -> Boot:
    """What an agent reads at session start."""
    return memory.boot(project)


@route("GET", "/brief")
def brief(memory: Memory, include_provenance: bool = False) -> Brief:
    """What matters from the entries."""
    return memory.brief(include_provenance)


@route("POST", "/index", lasting=True)
def index(memory: Memory, rebuild: bool = False) -> Indexed:
    """Bring the search index up to date with the files."""
    return memory.index(rebuild)


@route("GET", "/index/status", lasting=True)
def index_status(memory: Memory) -> IndexStatus:
    """Sizes, counts and token costs of all memory."""
    return memory.index_status()


@route("POST", "/index/bench", lasting=True)
def bench_embed(memory: Memory, texts: Annotated[int, Field(ge=1, le=5000)] = 200) -> dict[str, Any]:
    """Compare keyword search and embedders on this memory's own chunks."""
    return {"compared": memory.admin.compare_embedders(texts)}


@route("GET", "/corpora", listed=True, lasting=True)
def corpora(memory: Memory) -> list[Any]:
    """The group's domain documents."""
    return list(memory.admin.corpora.all())
