"""Memory, the facade: every face calls these methods and nothing below them.

Core (home, scope, databases) -> Files (Markdown) -> Finding (graph, entries, search) -> Turns (what is said, the
host) -> Care (upkeep, import, forget, health): each part knows those before it, and Memory is the last.
"""

from __future__ import annotations

from nanoclaw_memory.memory.care import Care

__all__ = ["Memory"]


class Memory(Care):
    """The memory of one group, as one scope sees it. Everything is opened on first use."""
