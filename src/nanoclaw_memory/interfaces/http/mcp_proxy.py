"""MCP for many scopes at once: every call is done in the room of whoever asks."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from nanoclaw_memory.interfaces.mcp.server import build_server
from nanoclaw_memory.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.interfaces.http.pool import Resident
    from nanoclaw_memory.types import Scope

# Who asks now; set for each connection and request, and inherited by the threads that serve it.
ASKER: ContextVar[tuple[Scope, Path | None]] = ContextVar("asker")


class Borrowed:
    """Looks like a Memory to the tools; each call runs on the asker's memory, in that room's thread."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident

    def __getattr__(self, name: str) -> Any:
        scope, directory = ASKER.get()

        @functools.wraps(getattr(Memory, name))
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._resident.submit(
                scope, lambda memory: getattr(memory, name)(*args, **kwargs), directory
            ).result()

        return call


def servers(resident: Resident) -> dict[str, MCPServer]:
    """The MCP server of each set of tools."""
    borrowed = cast(Memory, Borrowed(resident))
    return {tools: build_server(borrowed, tools) for tools in ("core", "all")}
