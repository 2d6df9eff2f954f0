"""The MCP server: each tool a thin call of Memory, its text fenced as data, its errors with the next step."""

from __future__ import annotations

import _thread
import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import INVALID_PARAMS, ToolAnnotations
from pydantic import ValidationError

from nanoclaw_memory import __version__
from nanoclaw_memory.errors import NanoClawError, PathRefused
from nanoclaw_memory.interfaces.mcp.stream import McpStream
from nanoclaw_memory.interfaces.mcp.texts import (
    CORE,
    INSTRUCTIONS,
    MORE,
    OFF,
    RECALL,
    REMEMBER,
    SWEEP,
    chosen_tools,
    for_model,
)
from nanoclaw_memory.interfaces.mcp.tools import Tools
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import fenced, inert_line, inert_lines, is_own_page, visible, visible_line

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.mcp.opening import Opening

P = ParamSpec("P")

# Reinforcing, counting the use of an entry and recording a turn are writes.
READ_ONLY = frozenset(
    {
        "memory_search",
        "memory_get",
        "graph_history",
        "memory_brief",
        "memory_index_status",
        "memory_audit",
        "memory_shared_recall",
        "memory_graph_query",
        "policy_check",
    }
)
# Claude Code hides tools of servers until its model looks for them; without these it would not know when to look.
ALWAYS_SHOWN = frozenset({"memory_search", "memory_store"})
_OTHER_NAMES = {"topk": "limit"}


def build_server(memory: Memory, tools: str = "core") -> MCPServer:
    """Return a server over one memory; `tools` is core, all, some names, or none where memory is switched off."""
    if tools == "none":
        return MCPServer("nanoclaw-memory", version=__version__, instructions=OFF, log_level="WARNING")
    offered = Tools(memory)
    server = _OfferingServer(
        "nanoclaw-memory",
        version=__version__,
        instructions=INSTRUCTIONS,
        tools=[_tool(getattr(offered, name)) for name in chosen_tools(tools)],
        middleware=[_wrong_prompts],
        log_level="WARNING",
    )
    _resources(server, memory)
    _prompts(server)
    return server


class _OfferingServer(MCPServer):
    """A server that reports how to enable a tool that a client calls without having been offered it."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        if name in (*CORE, *MORE) and self._tool_manager.get_tool(name) is None:
            how = "the user can offer it: ncm mcp --tools all, in the client's settings"
            raise ToolError(f"{name} is a tool of this memory, but not offered here; {how}.")
        return await super().call_tool(name, arguments, context)


async def _wrong_prompts(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Treat an unknown prompt or a missing argument as the client's mistake, not as a failure in the log."""
    try:
        return await call_next(ctx)
    except ValueError as error:
        if ctx.method != "prompts/get":
            raise
        raise MCPError(code=INVALID_PARAMS, message=inert_line(str(error))) from None


class _Tool(Tool):
    """A tool that accepts other spellings of its arguments, and reports wrong ones in one line."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        taken = list(self.fn_metadata.arg_model.model_fields)
        arguments = {name: self._as_list(name, value) for name, value in _named(arguments, taken).items()}
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            known = ", ".join(taken) or "no arguments"
            raise ToolError(f"{self.name}: {_problems(error)}. It takes: {known}.") from None
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            # our own error, which the SDK prefixes with its own words
            if isinstance(error.__cause__, ToolError):
                raise error.__cause__ from error.__cause__.__cause__
            raise

    def _as_list(self, name: str, value: Any) -> Any:
        """Return a list for a text where a list is expected: "ops, billing" are two tags."""
        wanted = self.parameters.get("properties", {}).get(name, {})
        listed = isinstance(value, str) and wanted.get("type") == "array"
        return [part.strip() for part in value.split(",")] if listed else value


def _named(arguments: dict[str, Any], taken: list[str]) -> dict[str, Any]:
    """Rename arguments to those of the tool: startLine becomes start_line, topK limit."""
    names = {name.replace("_", ""): name for name in taken}

    def name_of(given: str) -> str:
        plain = given.replace("_", "").replace("-", "").lower()
        own = names.get(_OTHER_NAMES.get(plain, plain), given)
        return given if given in taken or own in arguments else own

    return {name_of(given): value for given, value in arguments.items()}


def _problems(error: ValidationError) -> str:
    """Return each wrong argument and what was expected; never its value, which may be long."""
    problems: dict[str, str] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        name = str(one["loc"][0]) if one["loc"] else "the call"
        known = {"missing": "is missing", "extra_forbidden": "is no argument of this tool"}.get(one["type"])
        expected = one["msg"][:1].lower() + one["msg"][1:]
        problems.setdefault(name, known or expected.removeprefix("input ").removeprefix("string "))
    return "; ".join(f"{name} {problem}" for name, problem in problems.items())


def _tool(work: Callable[..., str]) -> Tool:
    """Return a tool that refuses unknown arguments and accepts a number for a text; its schema costs few tokens."""
    name = work.__name__
    hints = ToolAnnotations(read_only_hint=name in READ_ONLY, open_world_hint=False)
    if name not in READ_ONLY:
        hints.destructive_hint = name == "memory_delete"
    meta = {"anthropic/alwaysLoad": True} if name in ALWAYS_SHOWN else None
    # No structured output: clients would show a model that instead of the fenced text.
    tool = _Tool.from_function(as_tool_error(work), annotations=hints, meta=meta, structured_output=False)
    tool.description = " ".join(tool.description.split())
    arguments = tool.fn_metadata.arg_model
    arguments.model_config |= {"extra": "forbid", "coerce_numbers_to_str": True}
    arguments.model_rebuild(force=True)
    tool.parameters = _plain(arguments.model_json_schema(by_alias=True))
    return tool


def _plain(schema: Any) -> Any:
    """Return a JSON schema without titles that repeat its keys, and without null for optional arguments."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _plain(value) for key, value in schema.items() if key not in ("title", "properties")}
    if "properties" in schema:
        kept["properties"] = {name: _plain(one) for name, one in schema["properties"].items()}
    if kept.get("default", "") is None:
        (one,) = [one for one in kept.pop("anyOf") if one != {"type": "null"}]
        kept = {**one, **{key: value for key, value in kept.items() if key != "default"}}
    return kept


def as_tool_error(work: Callable[P, str]) -> Callable[P, str]:
    """Turn our errors into text that the model can act on; the server continues."""

    @functools.wraps(work)
    def call(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return work(*args, **kwargs)
        except NanoClawError as error:
            told = f"{error.message}. {for_model(error.hint)}".rstrip(" .") + "."
            raise ToolError(inert_line(told)) from error

    return call


def _resources(server: MCPServer, memory: Memory) -> None:
    """Register files as resources; what a shared scope may not see is not found."""
    files = {
        "soul": ("SOUL.md", "How the agent is to behave"),
        "user": ("USER.md", "Who the user is"),
        "identity": ("IDENTITY.md", "Who the agent is"),
        "active-context": ("memory/active-context.md", "What is being worked on, and what is open"),
        "long-term": ("MEMORY.md", "What is known for long"),
    }

    def read(file: str) -> str:
        try:
            lines = memory.get(file)
        except NanoClawError as error:
            raise ResourceNotFoundError(inert_line(error.message)) from error
        if not lines.exists:
            raise ResourceNotFoundError(inert_line(lines.note))
        text = inert_lines(lines.text.rstrip("\n"))
        return text if is_own_page(lines.path) else fenced([text])

    def page(uri: str, name: str, description: str) -> Callable[..., Any]:
        return server.resource(uri, name=name, description=description, mime_type="text/markdown")

    for name, (file, about) in files.items():
        page(f"memory://{name}", file, about)(functools.partial(read, file))

    @page("memory://brief", "brief", "The most important entries, as a session starts with them")
    def brief() -> str:
        return memory.brief().text

    @page("memory://project/{slug}", "project", "The page of a project")
    def project(slug: str) -> str:
        own = f"memory/project-{slug}.md"
        return read(own if memory.get(own).exists else f"shared/project-{slug}.md")

    @page("memory://log/{date}", "log", "The log of a day, such as 2026-02-23")
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


def serve_rest(memory: Memory, tools: str, opening: Opening, first: bytes) -> None:
    """Serve the rest of a conversation after its opening, beginning with `first`, until it ends."""
    with memory:
        server = build_server(memory, "none" if memory.group.is_off(str(Path.cwd())) else tools)
        anyio.run(_serve, server, opening, first)


async def _serve(server: MCPServer, opening: Opening, first: bytes) -> None:
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def hand_over() -> None:
        line = first
        while line:
            loop.call_soon_threadsafe(lines.put_nowait, line)
            line = opening.lines.get()
        loop.call_soon_threadsafe(lines.put_nowait, line)

    _thread.start_new_thread(hand_over, ())
    stream = McpStream(lines.get, lambda raw: asyncio.to_thread(opening.send, raw))
    stream.answered = opening.answered
    await stream.serve(server)
