"""Endpoints around a model call: blocks before it, what is learnt after it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Exchange, Flush, Recorded, Session, SessionHit, ToolCall, Turn

Message = Annotated[str, Field(max_length=4_000_000)]


class Call(BaseModel):
    """One tool call of an agent."""

    tool: str
    target: str = ""
    output: str = ""


@route("POST", "/turns/before")
def before_turn(memory: Memory, message: Message) -> dict[str, Any]:
    """The blocks to put before a model call, who gave none, and why."""
    return _with_text(memory.before_turn(message))


@route("POST", "/turns/after")
def after_turn(
    memory: Memory,
    user_message: Message,
    agent_response: Message,
    tool_calls: list[Call] | None = None,
    at: str | None = None,
) -> Recorded:
    """Archive an exchange, measure it, and learn from it."""
    try:
        moment = moment_of(at) if at else None
    except ValueError:
        raise InvalidValue(f"{at!r} is no moment", "write it as 2026-02-23T12:00:00Z") from None
    return memory.after_turn(user_message, agent_response, _calls(tool_calls or []), moment)


@route("POST", "/turns/tools")
def report_tools(memory: Memory, calls: list[Call]) -> dict[str, Any]:
    """Note tool calls between two messages, so that a loop is seen."""
    memory.report_tools(_calls(calls))
    return {"noted": len(calls)}


@route("POST", "/sessions/start")
def session_start(memory: Memory) -> dict[str, Any]:
    """Blocks for the start of a session, or for its going on after a compaction."""
    return _with_text(memory.session_start())


@route("POST", "/sessions/end")
def session_end(memory: Memory) -> dict[str, Any]:
    """Tell the plugins that the session is over."""
    return {"failed": memory.session_end()}


@route("POST", "/sessions/compaction", lasting=True)
def before_compaction(memory: Memory, transcript: str = "") -> dict[str, Any]:
    """Archive a transcript before the host shortens the window."""
    return {"archived": memory.before_compaction(transcript)}


@route("POST", "/sessions/flush")
def flush_needed(
    memory: Memory,
    context_tokens: Annotated[int, Field(ge=0)],
    transcript_bytes: Annotated[int, Field(ge=0)] = 0,
) -> Flush:
    """Whether to ask the agent now to write down what should last."""
    return memory.conversations.flush_needed(context_tokens, transcript_bytes)


@route("GET", "/sessions", listed=True)
def sessions(memory: Memory) -> list[Session]:
    """The sessions that this scope may see, newest first."""
    return memory.conversations.sessions(10_000)


@route("GET", "/sessions/search", listed=True)
def session_search(memory: Memory, query: Annotated[str, Field(max_length=10_000)]) -> list[SessionHit]:
    """Where something was said: exchanges, and lines of archived conversations."""
    return memory.conversations.search(query, 50)


@route("GET", "/sessions/{id}", listed=True)
def session(memory: Memory, id: str) -> list[Exchange]:
    """What was said in a session, oldest first."""
    return memory.conversations.session(id)


@route("POST", "/sessions/embed", lasting=True)
def embed_exchanges(memory: Memory, limit: Annotated[int, Field(ge=1, le=10_000)] = 256) -> dict[str, Any]:
    """Give vectors to exchanges that have none."""
    return {"embedded": memory.conversations.embed(limit)}


@route("POST", "/spool")
def note(memory: Memory, kind: Literal["prompt", "answer"], text: Message) -> dict[str, Any]:
    """Spool what was asked or answered; it is archived later."""
    memory.conversations.note(kind, text)
    return {"noted": kind}


@route("POST", "/spool/drain", lasting=True)
def drain(memory: Memory, limit: Annotated[int, Field(ge=1, le=1000)] = 50) -> dict[str, Any]:
    """Archive what was spooled."""
    return {"exchanges": memory.conversations.drain(limit)}


def _calls(calls: list[Call]) -> list[ToolCall]:
    return [ToolCall(call.tool, call.target, call.output) for call in calls]


def _with_text(turn: Turn) -> dict[str, Any]:
    import msgspec

    return {**msgspec.to_builtins(turn), "text": turn.text}
