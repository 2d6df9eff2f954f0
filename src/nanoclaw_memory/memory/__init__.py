"""The public API (api.py) over one group's services (group.py)."""

from nanoclaw_memory.memory.api import Memory

__all__ = ["Memory"]
