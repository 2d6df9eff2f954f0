"""Search while typing: hits of every kind with date, speaker, reason, and the statement that supersedes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from nanoclaw_memory.interfaces.web.screen import RenderedScreen, Screen, WebRequest, lines_around

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Hit

KINDS = ("files", "exchanges", "entries", "facts", "relations", "lessons")
LIMIT = 30
AROUND = 4
_PLACE = re.compile(r"(.+\.md)(?::(\d+)(?:-\d+)?)?")


def show(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show what answers the question."""
    query = request.text("q") or request.text("query")  # as the API calls it
    found = None
    if query:
        found = memory.search(
            query,
            LIMIT,
            explain=True,
            kinds=[kind for kind in request.every("kind") if kind in KINDS],
            since=request.text("since"),
            until=request.text("until"),
            in_project=request.text("project"),
            person=request.text("person"),
        )
    return RenderedScreen(
        "search.html",
        {
            "query": query,
            "found": found,
            "kinds": KINDS,
            "projects": [
                ("", "*"),
                *((one, one) for one in sorted({it.slug for it in memory.workspace.projects()})),
            ],
            "place": place_of,
            "place_named": place_named,
        },
    )


def place_of(hit: Hit) -> str:
    """Return the screen that shows a hit as a whole."""
    if hit.kind == "entry":
        return f"/entries/{quote(hit.id)}"
    if hit.kind == "exchange":
        return f"/conversations/{quote(hit.session, safe='')}"
    if hit.kind == "lesson":
        return f"/lessons/{quote(hit.id)}"
    if hit.kind in ("fact", "relation"):
        return f"/graph?entity={quote(hit.text.partition('.')[0].partition(' →')[0])}"
    return "" if hit.corpus else _page(hit.path, str(hit.start_line))


def place_named(place: str) -> str:
    """Return the screen for a place named by another statement: a page and its line, an entry, a session."""
    if match := _PLACE.fullmatch(place):
        return _page(match[1], match[2] or "1")
    kind, _, name = place.partition(",")[0].partition(" ")
    known = {"session": "/conversations/", "entry": "/entries/", "lesson": "/lessons/"}
    return known[kind] + quote(name, safe="") if kind in known and name else ""


def _page(path: str, line: str) -> str:
    return f"/pages/{quote(path)}?view=lines#L{line}"


def context(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the lines around one, to open a hit in its place."""
    return RenderedScreen(
        "context.html", lines_around(memory, request.text("path"), request.number("line", 1), AROUND)
    )


SCREENS = (Screen("GET", "/search", show), Screen("GET", "/context", context))
