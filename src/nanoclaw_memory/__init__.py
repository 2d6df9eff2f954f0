"""Persistent, layered memory for AI agents. The public names; everything else may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanoclaw_memory.errors import NanoClawError
    from nanoclaw_memory.host.host import Host
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

__version__ = "0.1.0"
__all__ = ["Host", "Memory", "NanoClawError", "Scope", "__version__"]

_HOMES = {"Host": "host.host", "Memory": "memory", "NanoClawError": "errors", "Scope": "types"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: a hook pays only for what it needs."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'nanoclaw_memory' has no attribute {name!r}")
    return getattr(importlib.import_module(f"nanoclaw_memory.{_HOMES[name]}"), name)
