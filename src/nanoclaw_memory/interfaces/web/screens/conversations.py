"""Conversations and archives, the blocks for a message, a day's events, and changes since a day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.clock import end_of, start_of
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.web.screen import RenderedScreen, Screen, WebRequest
from nanoclaw_memory.interfaces.web.screens.pages import difference
from nanoclaw_memory.interfaces.web.templates import marked

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Entry

MOST_ENTRIES = 500
MOST_SESSIONS = 1000
MOST_PAGES = 20
SHOWN = 100  # of entries and of facts


def sessions(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the sessions, newest first, or the hits of a search."""
    query = request.text("q")
    said = memory.conversations.search(query, 20) if query else []
    found = request.slice(memory.conversations.sessions(MOST_SESSIONS))
    return RenderedScreen("conversations.html", {**found, "query": query, "said": said})


def session(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the exchanges of one session."""
    name = request.text("session")
    return RenderedScreen(
        "conversation.html", {**request.slice(memory.conversations.session(name)), "session": name}
    )


def files(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show archived conversations, and the raw transcripts of this group's agent."""
    archives = memory.conversations.archives()[::-1]
    return RenderedScreen(
        "transcripts.html",
        {**request.slice(archives), "transcripts": memory.conversations.transcripts()[:100]},
    )


def inspect(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the blocks for a message, and what was nearly chosen; nothing is recorded."""
    message, name, project = (request.text(name) for name in ("message", "session", "project"))
    values: dict[str, Any] = {"message": message, "session": name, "project": project, "turn": None}
    if message:
        with memory.for_session(name, project) as own:
            values["turn"] = own.before_turn(message, explain=True)
    return RenderedScreen("turn.html", values)


def timeline(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show log lines, conversations, entries and changed facts of one day."""
    day = _day(request.text("day")) if request.text("day") else memory.clock.now().date()
    first, last = _bounds(memory, day)
    talked = [
        session
        for session in memory.conversations.sessions(MOST_SESSIONS)
        if session.first <= last and session.last >= first
    ]
    files = [file.path for file in memory.workspace.files()]
    days = [path[7:17] for path in files if path.startswith("memory/2") and len(path) == 20]
    return RenderedScreen(
        "timeline.html",
        {
            "day": day.isoformat(),
            "before": (day - timedelta(days=1)).isoformat(),
            "after": (day + timedelta(days=1)).isoformat(),
            "log": memory.log(day)[1],
            "sessions": talked,
            "entries": _entries(memory, first, last),
            "facts": memory.graph.changes(day.isoformat(), day.isoformat())[-SHOWN:],
            "days": sorted(days, reverse=True)[:60],
            "checkpoints": memory.workspace.checkpoints()[::-1],
            "yesterday": (memory.clock.now().date() - timedelta(days=1)).isoformat(),
        },
    )


def changes(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show what is different since a day or a checkpoint: pages, entries, facts."""
    if name := request.text("checkpoint"):
        found = memory.workspace.compare_checkpoint(name)
        rows = [(one.path, one.kind, marked(one.diff)) for one in found]
        return RenderedScreen("changes.html", {"since": name, "pages": rows, "entries": [], "facts": []})
    day = _day(request.text("since"))
    first, _ = _bounds(memory, day)
    return RenderedScreen(
        "changes.html",
        {
            "since": day.isoformat(),
            "pages": list(_pages(memory, first)),
            "entries": _entries(memory, first, "9999"),
            "facts": memory.graph.changes(day.isoformat())[-SHOWN:],
        },
    )


def _pages(memory: Memory, first: str) -> Any:
    """Return pages that were written since, each with the difference to its oldest stored text of that time."""
    changed = [one for one in memory.workspace.files() if one.changed_at >= first]
    for one in sorted(changed, key=lambda file: file.changed_at, reverse=True)[:MOST_PAGES]:
        kept = [version for version in memory.workspace.versions(one.path) if version.until >= first]
        before = memory.workspace.version(one.path, kept[-1].name).text if kept else ""
        text = memory.workspace.page(one.path).text
        yield one.path, "changed" if kept else "written", difference(before, text) if kept else []


def _entries(memory: Memory, first: str, last: str) -> list[Entry]:
    found = memory.entries.all(status="all", limit=MOST_ENTRIES)
    return [one for one in found if first <= max(one.provenance.timestamp, one.updated_at) <= last][:SHOWN]


def _bounds(memory: Memory, day: date) -> tuple[str, str]:
    """Return the first and the last moment of a day in the person's time zone, as stored."""
    return start_of(day.isoformat(), memory.clock.now()), end_of(day.isoformat(), memory.clock.now())


def _day(text: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"{text[:40]!r} is no date", "write it as YYYY-MM-DD") from None
    if not 1 < found.year < 9999:
        raise InvalidValue(f"{text[:40]!r} is out of range", "write it as YYYY-MM-DD")
    return found


SCREENS = (
    Screen("GET", "/turn", inspect),
    Screen("POST", "/turn", inspect),
    Screen("GET", "/conversations", sessions),
    Screen("GET", "/transcripts", files),
    Screen("GET", "/conversations/{session:path}", session),
    Screen("GET", "/timeline", timeline),
    Screen("GET", "/changes", changes, lasting=True),
)
