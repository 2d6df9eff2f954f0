"""One MCP conversation as the SDK's standard input and output: it ends when every call is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

MOST_CALLS = 200  # maximum of unanswered calls before reading pauses, for a client that asks and never reads
ANSWERED_WITHIN = 60.0  # seconds for the calls of a client that has closed its input


class _Message(msgspec.Struct):
    """What a call and its answer share."""

    id: int | str | None = None
    method: str | None = None


class McpStream:
    """The client's lines, read by `read` until it returns none, and our messages, sent by `send`."""

    def __init__(
        self, read: Callable[[], Awaitable[bytes]], send: Callable[[bytes], Awaitable[object]]
    ) -> None:
        self.grace = ANSWERED_WITHIN
        self.answered: set[Any] = set()  # calls whose answers the client already has
        self._read = read
        self._send = send
        self._unanswered: set[int | str | None] = set()
        self._calls = 0  # unanswered calls, even with equal ids
        self._has_answered = asyncio.Event()
        self._all_answered = asyncio.Event()
        self._all_answered.set()
        self._unsent: list[bytes] = []

    async def serve(self, server: MCPServer) -> None:
        """Let a server answer until the conversation ends."""
        from mcp.server.stdio import stdio_server

        own = server._lowlevel_server
        async with stdio_server(cast(Any, self._lines()), cast(Any, self)) as (incoming, outgoing):
            await own.run(incoming, outgoing, own.create_initialization_options())

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield the client's lines, until there are no more and every call is answered: a file ends before its calls
        do.
        """
        while line := await self._next():
            message = _message(line)
            if message.id is not None and message.method is not None:
                self._calls += 1
                self._unanswered.add(message.id)
                self._all_answered.clear()
            yield line
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_answered.wait(), self.grace)

    async def _next(self) -> bytes:
        while self._calls >= MOST_CALLS:
            self._has_answered.clear()
            await self._has_answered.wait()
        return await self._read()

    async def write(self, text: str) -> None:
        """Accept one message of the server."""
        raw = text.encode("utf-8", "replace")
        message = _message(raw)
        if message.method is None:
            self._unanswered.discard(message.id)
            self._calls -= 1
            self._has_answered.set()
            if message.id in self.answered:
                self.answered.discard(message.id)
                return
        self._unsent.append(raw)

    async def flush(self) -> None:
        """Send what was written."""
        raw, self._unsent = b"".join(self._unsent), []
        if raw:
            await self._send(raw)
        if not self._unanswered:
            self._all_answered.set()


def _message(line: bytes) -> _Message:
    try:
        return msgspec.json.decode(line, type=_Message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Message()
