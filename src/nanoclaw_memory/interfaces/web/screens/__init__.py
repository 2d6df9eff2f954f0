"""The screens of the page: each reads the query or the form, asks Memory, and names its template."""

from __future__ import annotations

from nanoclaw_memory.interfaces.web.screen import Screen
from nanoclaw_memory.interfaces.web.screens import home, review, search

SCREENS: tuple[Screen, ...] = (*home.SCREENS, *review.SCREENS, *search.SCREENS)
