"""Conversations: sessions and what was said in them, archives and transcripts; and what a message would be given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nanoclaw_memory.interfaces.web.screen import Screen, Shown, WebRequest

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

MOST = 1000


def listed(memory: Memory, asked: WebRequest) -> Shown:
    """The sessions, newest first, or where something was said."""
    query = asked.text("q")
    said = memory.conversations.search(query, 20) if query else []
    found = asked.slice(memory.conversations.sessions(MOST))
    return Shown("conversations.html", {**found, "query": query, "said": said})


def show(memory: Memory, asked: WebRequest) -> Shown:
    """What was said in one session."""
    session = asked.text("session")
    return Shown(
        "conversation.html", {**asked.slice(memory.conversations.session(session)), "session": session}
    )


def files(memory: Memory, asked: WebRequest) -> Shown:
    """Archived conversations, and the raw transcripts of this group's agent."""
    archives = memory.conversations.archives()[::-1]
    return Shown(
        "transcripts.html", {**asked.slice(archives), "transcripts": memory.conversations.transcripts()[:100]}
    )


def inspect(memory: Memory, asked: WebRequest) -> Shown:
    """What would be put before a message, and what nearly was: nothing is recorded."""
    message, session, project = (asked.text(name) for name in ("message", "session", "project"))
    values: dict[str, Any] = {"message": message, "session": session, "project": project, "turn": None}
    if message:
        with memory.for_session(session, project) as own:
            values["turn"] = own.before_turn(message, explain=True)
    return Shown("turn.html", values)


SCREENS = (
    Screen("GET", "/turn", inspect),
    Screen("POST", "/turn", inspect),
    Screen("GET", "/conversations", listed),
    Screen("GET", "/transcripts", files),
    Screen("GET", "/conversations/{session:path}", show),
)
