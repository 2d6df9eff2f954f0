"""Hooks for the Claude Agent SDK: blocks before every prompt, archive before compaction, capture after answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.text import as_typed

Hook = Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]
TIMEOUT = 10
DRAINED = 5  # exchanges archived at a time
MAX_START = 9_000  # characters: the client shows only a preview of more than 10,000


def hook_callbacks(memory: Memory) -> dict[str, Hook]:
    """The callbacks by event; a failing one does nothing, because the SDK would block the prompt."""
    started: set[str] = set()

    def of_session(given: Any) -> Memory:
        session = str(given.get("session_id") or "")
        return memory if session in ("", memory.scope.session_id) else memory.for_session(session)

    def blocks(given: Any) -> str:
        own, prompt = of_session(given), as_typed(str(given.get("prompt", "")))
        _drain(own)
        # The SDK has no session start: the first prompt of a window brings it.
        start = "" if own.scope.session_id in started else own.session_start(MAX_START).text
        started.add(own.scope.session_id)
        text = f"{start}\n{own.before_turn(prompt).text}".strip()
        own.conversations.note("prompt", prompt)
        return text

    def compact(given: Any) -> None:
        own = of_session(given)
        own.before_compaction(str(given.get("transcript_path", "")))
        started.discard(own.scope.session_id)

    def answered(given: Any) -> None:
        own, answer = of_session(given), str(given.get("last_assistant_message") or "")
        if answer:
            own.conversations.note("answer", answer)
        else:
            own.conversations.note_answer_from(str(given.get("transcript_path") or ""))
        _drain(own)

    async def prompted(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        text = await _in_thread(lambda: blocks(given))
        if not text:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}

    async def compacting(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        await _in_thread(lambda: compact(given))
        return {}

    async def stopped(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        await _in_thread(lambda: answered(given))
        return {}

    return {"UserPromptSubmit": prompted, "PreCompact": compacting, "Stop": stopped}


def hooks(memory: Memory) -> dict[str, Any]:
    """What `ClaudeAgentOptions(hooks=…)` takes."""
    from claude_agent_sdk import HookMatcher

    return {
        event: [HookMatcher(hooks=[callback], timeout=TIMEOUT)]
        for event, callback in hook_callbacks(memory).items()
    }


def _drain(memory: Memory) -> None:
    """Archive what was noted; what cannot be archived now stays in the spool, and recall goes on."""
    try:
        memory.conversations.drain(DRAINED)
    except (NanoClawError, OSError):
        return


async def _in_thread(work: Callable[[], object]) -> str:
    """Run in a thread; a failure of memory must not stop the agent."""
    import asyncio

    try:
        done = await asyncio.to_thread(work)
    except (NanoClawError, OSError):
        return ""
    return done if isinstance(done, str) else ""
