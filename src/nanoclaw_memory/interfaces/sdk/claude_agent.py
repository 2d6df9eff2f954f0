"""Hooks for the Claude Agent SDK: blocks before every prompt, archive before compaction, capture after answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory

Hook = Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]
TIMEOUT = 10


def hook_callbacks(memory: Memory) -> dict[str, Hook]:
    """The callbacks by event; a failing one does nothing, because the SDK would block the prompt."""
    started: set[str] = set()

    def blocks(prompt: str, session: str) -> str:
        # The SDK has no session start: the first prompt of a session brings the boot context.
        boot = "" if session in started else memory.boot().text
        started.add(session)
        text = f"{boot}\n{memory.before_turn(prompt).text}".strip()
        memory.conversations.note("prompt", prompt)
        return text

    async def prompted(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        text = await _in_thread(
            lambda: blocks(str(given.get("prompt", "")), str(given.get("session_id", "")))
        )
        if not text:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}

    async def compacting(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        await _in_thread(lambda: memory.before_compaction(str(given.get("transcript_path", ""))))
        return {}

    async def stopped(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        answer = str(given.get("last_assistant_message") or "")
        if answer:
            await _in_thread(lambda: memory.conversations.note("answer", answer))
        else:
            transcript = str(given.get("transcript_path") or "")
            await _in_thread(lambda: memory.conversations.note_answer_from(transcript))
        return {}

    return {"UserPromptSubmit": prompted, "PreCompact": compacting, "Stop": stopped}


def hooks(memory: Memory) -> dict[str, Any]:
    """What `ClaudeAgentOptions(hooks=…)` takes."""
    from claude_agent_sdk import HookMatcher

    return {
        event: [HookMatcher(hooks=[callback], timeout=TIMEOUT)]
        for event, callback in hook_callbacks(memory).items()
    }


async def _in_thread(work: Callable[[], object]) -> str:
    """Run in a thread; a failure of memory must not stop the agent."""
    import asyncio

    try:
        done = await asyncio.to_thread(work)
    except (NanoClawError, OSError):
        return ""
    return done if isinstance(done, str) else ""
