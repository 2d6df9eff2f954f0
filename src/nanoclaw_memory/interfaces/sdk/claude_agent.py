"""Hooks for the Claude Agent SDK: blocks before every prompt, archive before compaction, capture after answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Any

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.hooks import answer
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

Hook = Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]
TIMEOUT = 10
DRAINED = 5  # exchanges archived at a time


def hook_callbacks(memory: Memory) -> dict[str, Hook]:
    """Return the callbacks by event; a failing one does nothing, because the SDK would block the prompt."""
    started: set[str] = set()

    def of_session(session: str) -> Memory:
        return memory if session in ("", memory.scope.session_id) else memory.for_session(session)

    def opened(scope: Scope) -> nullcontext[Memory]:
        return nullcontext(of_session(scope.session_id))

    def told(event: str, given: Any) -> str:
        """Return the answer of a client's hook."""
        raw = answer(event, json.dumps(given, default=str).encode(), opened, memory.scope)
        return str(json.loads(raw or b"{}").get("hookSpecificOutput", {}).get("additionalContext", ""))

    def prompted(given: Any) -> str:
        session = str(given.get("session_id") or "")
        # The SDK has no session start: the first prompt of a window brings it.
        start = "" if session in started else told("SessionStart", {"session_id": session})
        started.add(session)
        return "\n".join(filter(None, (start, told("UserPromptSubmit", given))))

    def compacting(given: Any) -> str:
        started.discard(str(given.get("session_id") or ""))
        return told("PreCompact", given)

    def stopped(given: Any) -> str:
        text = told("Stop", given)
        with suppress(NanoClawError, OSError):  # what cannot be archived now stays in the spool
            of_session(str(given.get("session_id") or "")).conversations.drain(DRAINED)
        return text

    def callback(event: str, work: Callable[[Any], str]) -> Hook:
        async def call(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
            text = await asyncio.to_thread(work, given)
            own = {"hookEventName": event, "additionalContext": text}
            return {"hookSpecificOutput": own} if text else {}

        return call

    work = {"UserPromptSubmit": prompted, "PreCompact": compacting, "Stop": stopped}
    return {event: callback(event, own) for event, own in work.items()}


def hooks(memory: Memory) -> dict[str, Any]:
    """Return the value for `ClaudeAgentOptions(hooks=…)`."""
    from claude_agent_sdk import HookMatcher

    return {
        event: [HookMatcher(hooks=[callback], timeout=TIMEOUT)]
        for event, callback in hook_callbacks(memory).items()
    }
