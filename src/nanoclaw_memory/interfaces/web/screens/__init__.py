"""The screens of the page: each reads the query or the form, asks Memory, and names its template."""

from __future__ import annotations

from nanoclaw_memory.interfaces.web.screen import Screen
from nanoclaw_memory.interfaces.web.screens import (
    administration,
    conversations,
    entries,
    graph,
    pages,
    review,
    search,
)

_MODULES = (administration, review, search, conversations, graph, pages, entries)
SCREENS: tuple[Screen, ...] = tuple(screen for module in _MODULES for screen in module.SCREENS)
