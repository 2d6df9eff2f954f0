"""A `Session` for the OpenAI Agents SDK: history survives restarts, and exchanges can be recalled later."""

from __future__ import annotations

import asyncio
from typing import Any

from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.memory import Memory


class MemorySession:
    """Implements the SDK's Session protocol; pass it as `Runner.run(agent, text, session=…)`."""

    def __init__(self, memory: Memory, session_settings: Any = None) -> None:
        self.session_id = memory.scope.session_id
        self.session_settings = session_settings  # the SDK's SessionSettings, or a dict with `limit`
        self._memory = memory

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the history, oldest first; the latest `limit` items of it, or as many as the settings say."""
        own = self.session_settings
        most = (own.get("limit") if isinstance(own, dict) else own.limit) if own and limit is None else limit
        return await asyncio.to_thread(self._memory.workspace.sdk_items.history, self.session_id, most)

    async def add_items(self, items: list[Any]) -> None:
        """Append items; a question and its answer also become an exchange that later sessions recall."""
        await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Any | None:
        """Remove and return the latest item."""
        return await asyncio.to_thread(self._memory.workspace.sdk_items.pop, self.session_id)

    async def clear_session(self) -> None:
        """Delete this session's history; its exchanges stay in the archive."""
        await asyncio.to_thread(self._memory.workspace.sdk_items.clear, self.session_id)

    def _add(self, items: list[Any]) -> None:
        self._memory.workspace.sdk_items.extend(self.session_id, items)
        for item in items:
            role, text = item.get("role"), _text(item.get("content"))
            if text and role == "user":
                self._memory.conversations.note("prompt", text)
            elif text and role == "assistant":
                self._memory.conversations.note("answer", text)
        try:
            self._memory.conversations.drain(limit=20)
        except StoreError as error:  # the exchange waits in the spool; the agent's run continues
            self._memory.group.telemetry.record("drain failed", error=error.message)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
