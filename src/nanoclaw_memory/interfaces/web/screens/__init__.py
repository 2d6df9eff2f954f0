"""The screens of the page: each reads the query or the form, asks Memory, and names its template."""

from __future__ import annotations

from nanoclaw_memory.interfaces.web.screen import Screen
from nanoclaw_memory.interfaces.web.screens import (
    administration,
    conversations,
    entries,
    graph,
    home,
    lessons,
    pages,
    review,
    search,
    timeline,
)

_MODULES = (home, review, search, conversations, graph, timeline, pages, entries, lessons, administration)
SCREENS: tuple[Screen, ...] = tuple(screen for module in _MODULES for screen in module.SCREENS)
