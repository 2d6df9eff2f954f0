"""The MCP server: each tool a thin call of Memory, its text fenced as data, its errors with the next step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, ParamSpec

import anyio
import msgspec
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, JSONRPCNotification, JSONRPCRequest, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from nanoclaw_memory import __version__
from nanoclaw_memory.errors import NanoClawError, PathRefused
from nanoclaw_memory.interfaces.mcp.texts import INSTRUCTIONS, OFF, RECALL, REMEMBER, SWEEP, for_model
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import (
    fenced,
    inert_line,
    inert_lines,
    is_own_page,
    safe_line,
    visible,
    visible_line,
)
from nanoclaw_memory.types import GraphAnswer

P = ParamSpec("P")
Result = Annotated[CallToolResult, dict[str, Any]]
Query = Annotated[str, Field(description="A question or key words", max_length=10_000)]
Type = Literal[
    "preference", "instruction", "correction", "fact", "context", "project", "person", "decision", "insight"
]
Share = Annotated[float, Field(ge=0, le=1)]

CORE = (
    "memory_search",
    "memory_get",
    "graph_search",
    "memory_write",
    "fact_upsert",
    "memory_store",
    "memory_recall",
)
MORE = (
    "memory_brief",
    "memory_index_status",
    "memory_audit",
    "memory_shared_recall",
    "memory_turn",
    "memory_delete",
    "memory_reinforce",
    "memory_graph_query",
    "memory_graph_ingest",
    "graph_history",
)
# Reinforcing, noting that an entry was used and recording a turn are writes.
READ_ONLY = frozenset(
    {
        "memory_search",
        "memory_get",
        "memory_brief",
        "memory_index_status",
        "memory_audit",
        "memory_shared_recall",
        "memory_graph_query",
        "graph_history",
    }
)
ANSWERED_WITHIN = 60  # seconds that the calls of a client that has closed may take


def build_server(memory: Memory, tools: str = "core") -> MCPServer:
    """A server over one memory; `tools` is core, all, or none where memory is switched off."""
    if tools == "none":
        return MCPServer("nanoclaw-memory", version=__version__, instructions=OFF, log_level="WARNING")
    offered = Tools(memory)
    names = CORE if tools == "core" else (*CORE, *MORE)
    server = MCPServer(
        "nanoclaw-memory",
        version=__version__,
        instructions=INSTRUCTIONS,
        tools=[_tool(getattr(offered, name)) for name in names],
        log_level="WARNING",
    )
    _resources(server, memory)
    _prompts(server)
    return server


class _Tool(Tool):
    """A tool whose wrong arguments are reported in one line, not as its validator does."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            taken = ", ".join(self.fn_metadata.arg_model.model_fields) or "no arguments"
            raise ToolError(f"{self.name}: {_problems(error)}. It takes: {taken}.") from None
        return await super().run(arguments, context, convert_result)


def _problems(error: ValidationError) -> str:
    """Each argument that is wrong, and what was expected; never what was given, which may be long."""
    problems: dict[str, str] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        name = str(one["loc"][0]) if one["loc"] else "the call"
        known = {"missing": "is missing", "extra_forbidden": "is no argument of this tool"}.get(one["type"])
        expected = one["msg"][:1].lower() + one["msg"][1:]
        problems.setdefault(name, known or expected.removeprefix("input ").removeprefix("string "))
    return "; ".join(f"{name} {problem}" for name, problem in problems.items())


def _tool(work: Callable[..., CallToolResult]) -> Tool:
    """A tool that refuses unknown arguments, with a schema that costs few tokens."""
    read_only = work.__name__ in READ_ONLY
    hints = ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=work.__name__ == "memory_delete",
        idempotent_hint=read_only or work.__name__ == "fact_upsert",
        open_world_hint=False,
    )
    tool = _Tool.from_function(as_tool_error(work), annotations=hints, structured_output=True)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = _untitled(arguments.model_json_schema(by_alias=True))
    return tool


def _untitled(schema: Any) -> Any:
    """A JSON schema without the titles that repeat its keys."""
    if isinstance(schema, dict):
        named = schema.get("properties")
        kept = {key: _untitled(value) for key, value in schema.items() if key not in ("title", "properties")}
        return (
            kept if named is None else {**kept, "properties": {key: _untitled(v) for key, v in named.items()}}
        )
    return [_untitled(part) for part in schema] if isinstance(schema, list) else schema


def as_tool_error(work: Callable[P, CallToolResult]) -> Callable[P, CallToolResult]:
    """Our errors become text that the model can act on; the server goes on."""

    @functools.wraps(work)
    def call(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            return work(*args, **kwargs)
        except NanoClawError as error:
            told = f"{error.message}. {for_model(error.hint)}".rstrip(" .") + "."
            raise ToolError(inert_line(told)) from error

    return call


def _answer(text: str, result: Any) -> CallToolResult:
    structured = _seen(result if isinstance(result, dict) else msgspec.to_builtins(result))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


def _seen(value: Any) -> Any:
    """A result whose texts hide nothing: clients show it to models too."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _seen(one) for key, one in value.items()}
    return [_seen(one) for one in value] if isinstance(value, list | tuple) else value


def _noted(text: str, degraded: Iterable[str]) -> str:
    return "\n".join([text, *(inert_line(f"degraded: {for_model(note)}") for note in degraded)])


class Tools:
    """The tools; a method's name, arguments and docstring are what a model reads."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def memory_search(
        self,
        query: Annotated[str, Field(description="Empty: the most recent entries", max_length=10_000)] = "",
        limit: Annotated[int, Field(ge=1, le=100)] = 5,
        type: Annotated[str | None, Field(description="Only entries of this type")] = None,
        tags: Annotated[list[str] | None, Field(description="Only entries with all of these")] = None,
        include_superseded: bool = False,
    ) -> Result:
        """Search memory files, past conversations and entries. Gives path and lines for memory_get."""
        found = self._memory.search(
            query,
            limit,
            types=[type] if type else None,
            tags=tags or (),
            include_superseded=include_superseded,
        )
        return _answer(
            _noted(self._memory.fenced(found.hits) or "Nothing was found.", found.degraded),
            {"hits": [msgspec.to_builtins(hit) for hit in found.hits], "degraded": found.degraded},
        )

    def memory_get(
        self,
        file: Annotated[str, Field(description="MEMORY.md, memory/2026-02-23.md, …")],
        startLine: Annotated[int | None, Field(ge=1)] = None,
        endLine: Annotated[int | None, Field(ge=1)] = None,
    ) -> Result:
        """Read a memory file or a range of its lines; a missing file is empty."""
        lines = self._memory.get(file, startLine, endLine)
        page = inert_lines(lines.text.rstrip("\n"))
        return _answer(fenced([page]) if lines.text else inert_line(lines.note), lines)

    def graph_search(self, query: Query, topK: Annotated[int, Field(ge=1, le=50)] = 6) -> Result:
        """Look up facts and relations of named people, projects and things ("What is Keystone's port?")."""
        answer = self._memory.graph.search(query, topK)
        self._memory.graph.reinforce(answer.hits)
        return _answer(
            _facts(answer),
            {
                "hits": [_graph_hit(hit) for hit in answer.hits],
                "ambiguous": answer.ambiguous,
                "degraded": answer.degraded,
            },
        )

    def memory_recall(
        self,
        query: Query,
        categories: Annotated[list[str] | None, Field(description="Only these types")] = None,
        priority_min: Literal["critical", "high", "medium", "low"] = "low",
        token_budget: Annotated[int, Field(ge=1, le=100_000)] = 3000,
        include_context: Annotated[bool, Field(description="Also why each was stored")] = False,
        format: Literal["brief", "detailed"] = "brief",
    ) -> Result:
        """Recall stored entries that answer a question, packed into a token budget."""
        found = self._memory.recall(
            query,
            types=categories,
            priority_min=priority_min,
            token_budget=token_budget,
            include_context=include_context,
            format=format,
        )
        return _answer(found.text or "No entry matches.", found)

    def memory_brief(self, include_provenance: bool = False) -> Result:
        """The brief of a session's start, made anew."""
        brief = self._memory.brief(include_provenance)
        return _answer(brief.text or "Nothing is stored yet.", brief)

    def memory_index_status(self) -> Result:
        """Sizes, counts and token costs of all memory."""
        status = self._memory.index_status()
        return _answer(_plain_lines(msgspec.to_builtins(status)), status)

    def memory_audit(
        self, scope: Literal["all", "memory_md", "domains", "system_prompt"] = "all", recommend: bool = True
    ) -> Result:
        """What memory costs in tokens, duplicates, and what would help."""
        audit = self._memory.audit(scope, recommend)
        lines = [
            f"{share.source}: {share.tokens:,} tokens ({share.percentage:.0f} %)"
            for share in audit.analysis.breakdown
        ]
        lines += [f"{advice.risk} risk: {advice.description}" for advice in audit.recommendations]
        return _answer("\n".join(map(safe_line, lines)) or "Nothing is stored yet.", audit)

    def memory_shared_recall(
        self, query: Query, token_budget: Annotated[int, Field(ge=1, le=100_000)] = 3000
    ) -> Result:
        """Recall what other groups have published to this one."""
        found = self._memory.entries.shared_recall(query, token_budget=token_budget)
        return _answer(found.text or "Nothing that is shared with this group matches.", found)

    def memory_turn(
        self, message: Annotated[str, Field(description="The user's message, as it came")]
    ) -> Result:
        """For hosts without hooks: what memory has to say to a message, before you answer it."""
        turn = self._memory.before_turn(message, repeat=True)  # one server may serve several conversations
        return _answer(turn.text or "Memory has nothing to add.", turn)

    def memory_write(
        self,
        content: str,
        importance: Annotated[Share | None, Field(description="0.8 and more is kept for ever")] = None,
        tag: Annotated[str, Field(description="decision, milestone, lesson, context")] = "",
    ) -> Result:
        """Append an observation to today's log."""
        written = self._memory.write(content, tag, importance)
        return _answer(f"Written to {written.path}:{written.line}.", written)

    def fact_upsert(
        self,
        entity: str,
        key: str,
        value: str,
        category: Annotated[str, Field(description="person, project, tool, decision, …")] = "",
        importance: Share = 0.5,
    ) -> Result:
        """Add a fact to the knowledge graph, or change its value; the old value becomes history."""
        done = self._memory.graph.upsert(entity, key, value, category, importance)
        masked = " (a credential was masked and is not kept)" if done.redacted else ""
        changed = " (changed)" if done.retired else ""
        return _answer(inert_line(f"{entity}.{key} = {done.value}") + masked + changed, done)

    def memory_store(
        self,
        content: Annotated[str, Field(description="One insight in plain words", max_length=2000)],
        type: Type | None = None,
        category: Annotated[str | None, Field(description="Another name of type")] = None,
        tags: list[str] | None = None,
        priority: Literal["critical", "high", "medium", "low"] = "medium",
        supersedes: Annotated[str | None, Field(description="Id of the entry this replaces")] = None,
        related_to: list[str] | None = None,
        expires: Annotated[str | None, Field(description="ISO date")] = None,
        context: Annotated[str, Field(description="Why it is worth keeping")] = "",
    ) -> Result:
        """Store a typed entry that later sessions start with."""
        stored = self._memory.store(
            content,
            type or "",
            category=category or "",
            tags=tags or (),
            priority=priority,
            supersedes=supersedes or "",
            related_to=related_to or (),
            expires=expires or "",
            context=context,
        )
        why = ", ".join(stored.suspicions)
        held = f" It is held until a person approves it: {why}." if why else ""
        how = "Merged with" if stored.deduplicated else "Stored as"
        return _answer(f"{how} {stored.id} ({stored.type}).{held}", stored)

    def memory_delete(self, id: Annotated[str, Field(description="mem-…")]) -> Result:
        """Delete an entry for good; the one it replaced becomes current again."""
        deleted = self._memory.delete(id)
        return _answer(f"Deleted {deleted.id}.", deleted)

    def memory_graph_query(
        self,
        query: Annotated[
            str,
            Field(
                description="MATCH (a:Person)-[r:OWNS]->(b {name: 'Keystone'}) WHERE a.city = 'Lisbon' "
                "RETURN a.name, b.port ORDER BY a.name LIMIT 10",
                max_length=10_000,
            ),
        ],
        as_of: Annotated[str | None, Field(description="A past date, or YYYY-MM")] = None,
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    ) -> Result:
        """Query the knowledge graph in openCypher: MATCH of up to three hops, WHERE, RETURN, count. It only reads.

        Entities are nodes, found by name or alias; facts are their properties, a fact's category their label.
        `MATCH ()-[r]->() RETURN type(r), count(*)` lists the relations that there are.
        """
        table = self._memory.graph.query(query, as_of, limit)
        text = fenced(map(safe_line, table.lines)) or "Nothing matches."
        more = ["there are more rows than these"] * table.truncated
        return _answer(
            "\n".join([_noted(text, table.degraded), *map(inert_line, (*table.notes, *more))]), table
        )

    def memory_graph_ingest(
        self,
        facts: Annotated[
            list[dict[str, Any]] | None, Field(description="{entity, key, value, category?, valid_from?}")
        ] = None,
        relations: Annotated[
            list[dict[str, Any]] | None, Field(description="{subject, predicate, object, valid_from?}")
        ] = None,
        aliases: Annotated[list[dict[str, Any]] | None, Field(description="{alias, entity}")] = None,
    ) -> Result:
        """Add facts, relations and other names to the knowledge graph, up to 200 at once; old values become history."""
        done = self._memory.graph.ingest_rows(facts or (), relations or (), aliases or ())
        counts = f"{done.facts} facts, {done.relations} relations, {done.aliases} aliases stored"
        masked = f"{done.redacted} credentials were masked" if done.redacted else ""
        known = f"{done.known} were known, {done.retired} old values became history"
        lines = [f"{counts}; {known}.", masked, *(f"skipped: {problem}" for problem in done.problems)]
        return _answer("\n".join(map(inert_line, filter(None, lines))), done)

    def graph_history(self, entity: str, key: str = "") -> Result:
        """Every value that an entity's keys, or one of them, ever had, with dates and source."""
        facts = self._memory.graph.history(entity, key)
        lines = [
            f"{fact.valid_from[:10] or 'always'} – {fact.valid_to[:10] or 'now'}: {fact.text} [{fact.source}]"
            for fact in facts
        ]
        return _answer(
            fenced(map(safe_line, lines)) or "Nothing is known about that.",
            {"facts": msgspec.to_builtins(facts)},
        )

    def memory_reinforce(self, id: Annotated[str, Field(description="mem-…")]) -> Result:
        """Mark an entry as still relevant, so that it fades more slowly."""
        entry = self._memory.entries.reinforce(id)
        return _answer(f"Reinforced {entry.id}.", entry)


def _facts(answer: GraphAnswer) -> str:
    lines = [hit.dated + (" [linked]" if hit.linked else "") for hit in answer.hits]
    notes = [f"{name} may mean several: {', '.join(answer.entities)}" for name in answer.ambiguous]
    return _noted(fenced(map(safe_line, lines + notes)) or "Nothing is known about that.", answer.degraded)


def _graph_hit(hit: Any) -> dict[str, Any]:
    own = {key: value for key, value in msgspec.to_builtins(hit.item).items() if value not in ("", None)}
    more = {
        "kind": hit.kind,
        "score": hit.score,
        "combined": hit.combined,
        "tier": hit.tier,
        "linked": hit.linked,
        "shared": hit.shared,
    }
    if hit.newer:
        more |= {"mark": hit.mark, "newer": msgspec.to_builtins(hit.newer)}
    return {**own, **more, "phase": hit.phase, "why": hit.why}


def _plain_lines(tree: dict[str, Any]) -> str:
    return "\n".join(
        inert_line(f"{part}.{key}: {value}") for part, values in tree.items() for key, value in values.items()
    )


def _resources(server: MCPServer, memory: Memory) -> None:
    """Files as resources; what a shared scope may not see is not found."""
    files = {
        "soul": "SOUL.md",
        "user": "USER.md",
        "identity": "IDENTITY.md",
        "active-context": "memory/active-context.md",
        "long-term": "MEMORY.md",
    }

    def read(file: str) -> str:
        try:
            lines = memory.get(file)
        except NanoClawError as error:
            raise ResourceNotFoundError(inert_line(error.message)) from error
        if not lines.exists:
            raise ResourceNotFoundError(inert_line(lines.note))
        page = inert_lines(lines.text.rstrip("\n"))
        return page if is_own_page(lines.path) else fenced([page])

    for name, file in files.items():
        server.resource(
            f"memory://{name}", name=file, description=f"The page {file}", mime_type="text/markdown"
        )(functools.partial(read, file))

    @server.resource("memory://brief", name="brief", mime_type="text/markdown")
    def brief() -> str:
        return memory.brief().text

    @server.resource("memory://project/{slug}", name="project", mime_type="text/markdown")
    def project(slug: str) -> str:
        own = f"memory/project-{slug}.md"
        return read(own if memory.get(own).exists else f"shared/project-{slug}.md")

    @server.resource("memory://log/{date}", name="log", mime_type="text/markdown")
    def log(date: str) -> str:
        try:
            memory.get(f"memory/{date}.md")
        except PathRefused:  # a shared chat has a log of its own
            return read(f"memory/shared/{date}.md")
        return read(f"memory/{date}.md")


def _prompts(server: MCPServer) -> None:
    @server.prompt(description="Store something for later sessions")
    def remember(what: str) -> str:
        return REMEMBER.replace("{what}", visible(what))

    @server.prompt(description="Answer from memory")
    def recall(topic: str) -> str:
        return RECALL.replace("{topic}", visible_line(topic))

    @server.prompt(description="Before a session ends: keep what would be lost")
    def sweep() -> str:
        return SWEEP


def serve_stdio(memory: Memory, tools: str = "core") -> None:
    """Serve one client over standard input and output until it closes and its calls are answered."""
    anyio.run(_serve, build_server(memory, tools)._lowlevel_server)


async def _serve(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        calls = _Calls(incoming)
        await server.run(calls, _Answers(outgoing, calls), server.create_initialization_options())


class _Stream:
    """A stream of the SDK with something added."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    async def __aenter__(self) -> Any:
        await self.stream.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> Any:
        return await self.stream.__aexit__(*problem)


class _Calls(_Stream):
    """What a client sends. Its end is reported when its calls are answered: a file ends before that."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.unanswered: set[Any] = set()
        self.answered = anyio.Event()

    def __aiter__(self) -> _Calls:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Any:
        try:
            item = await self.stream.receive()
        except anyio.EndOfStream:
            with anyio.move_on_after(ANSWERED_WITHIN):
                while self.unanswered:
                    self.answered = anyio.Event()
                    await self.answered.wait()
            raise
        message = getattr(item, "message", None)
        if isinstance(message, JSONRPCRequest):
            self.unanswered.add(message.id)
        return item


class _Answers(_Stream):
    """What is sent to a client."""

    def __init__(self, stream: Any, calls: _Calls) -> None:
        super().__init__(stream)
        self._calls = calls

    async def send(self, item: Any) -> None:
        await self.stream.send(item)
        if not isinstance(item.message, JSONRPCRequest | JSONRPCNotification):
            self._calls.unanswered.discard(item.message.id)
            self._calls.answered.set()
