"""The endpoints, by what they are about; importing this fills the table."""

from nanoclaw_memory.interfaces.http.routes import (
    care,
    entries,
    graph,
    host,
    lessons,
    reading,
    turns,
    workspace,
)

__all__ = ["care", "entries", "graph", "host", "lessons", "reading", "turns", "workspace"]
