"""MCP tools for many scopes at once: each call runs on the memory of the scope that asks."""

from __future__ import annotations

from contextvars import ContextVar
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from nanoclaw_memory.interfaces.mcp.server import build_server

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.interfaces.http.pool import MemoryPool
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

# Set for each connection and request, and inherited by the threads that serve it.
CURRENT_SCOPE: ContextVar[tuple[Scope, Path | None]] = ContextVar("current_scope")


class ScopedMemory:
    """Looks like a Memory to the tools; each call, of a part's method too, runs in the current scope's worker."""

    def __init__(self, pool: MemoryPool, method: str = "") -> None:
        self._pool = pool
        self._method = method

    def __getattr__(self, name: str) -> ScopedMemory:
        return ScopedMemory(self._pool, f"{self._method}.{name}" if self._method else name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        scope, directory = CURRENT_SCOPE.get()

        def work(memory: Memory) -> Any:
            return attrgetter(self._method)(memory)(*args, **kwargs)

        return self._pool.submit(scope, work, directory).result()


def servers(pool: MemoryPool) -> dict[str, MCPServer]:
    """The MCP server of each set of tools."""
    memory = cast("Memory", ScopedMemory(pool))
    return {tools: build_server(memory, tools) for tools in ("core", "all")}
