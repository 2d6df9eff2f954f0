"""Entries and lessons: list, show with their history, add, decide, retire, archive, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from nanoclaw_memory.interfaces.web.screen import Redirection, RenderedScreen, Screen, WebRequest

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

LESSON_STATES = ("", "candidate", "active", "metabolized", "retired")
STATUSES = ("active", "held", "superseded", "archived", "expired", "all")
PRIORITIES = ("critical", "high", "medium", "low")
MOST = 2000


def listed(memory: Memory, request: WebRequest) -> RenderedScreen:
    """List entries of a status and a type, newest first."""
    status, kind = request.text("status") or "active", request.text("type")
    found = memory.entries.all([kind] if kind else None, status=status, limit=MOST)
    choices = {"statuses": STATUSES, "types": memory.entries.types, "priorities": PRIORITIES}
    return RenderedScreen("entries.html", {**request.slice(found), **choices, "status": status, "type": kind})


def show(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show one entry, those it replaced, and its records in the audit log."""
    chain = memory.entries.history(request.text("id"))
    life = memory.entries.trace(request.text("id"))
    return RenderedScreen("entry.html", {"one": chain[0], "replaced": chain[1:], "life": life})


def store(memory: Memory, request: WebRequest) -> Redirection:
    """Store a new entry, or another wording in place of one."""
    stored = memory.store(
        request.text("content"),
        request.text("type"),
        tags=request.text("tags").split(),
        priority=request.text("priority"),
        reason=request.text("reason"),
        supersedes=request.text("supersedes"),
    )
    return Redirection(f"/entries/{quote(stored.id)}", "saved")


def change(memory: Memory, request: WebRequest) -> Redirection:
    """Approve, reject, archive, reinforce or delete one."""
    entry_id, act = request.text("id"), request.text("act")
    acts = {
        "approve": memory.entries.approve,
        "reject": memory.entries.reject,
        "archive": memory.entries.archive,
        "reinforce": memory.entries.reinforce,
        "delete": memory.delete,
    }
    request.act(acts)(entry_id)
    return Redirection("/entries" if act == "delete" else f"/entries/{quote(entry_id)}", "changed")


def lessons(memory: Memory, request: WebRequest) -> RenderedScreen:
    """List the lessons of one state or of all, newest first."""
    found = memory.lessons.lessons(request.text("state"))[::-1]
    return RenderedScreen(
        "lessons.html", {**request.slice(found), "states": LESSON_STATES, "state": request.text("state")}
    )


def lesson(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show one lesson with the outcomes of its injections."""
    return RenderedScreen("lesson.html", {"detail": memory.lessons.detail(request.number("id"))})


def add_lesson(memory: Memory, request: WebRequest) -> Redirection:
    """Add a person's own lesson."""
    made = memory.lessons.add(
        request.text("lesson"), request.text("trigger"), general=request.text("general") == "1"
    )
    return Redirection(f"/lessons/{made.id}", "saved")


def change_lesson(memory: Memory, request: WebRequest) -> Redirection:
    """Retire a lesson, or record whether it helped the last time."""
    number, act = request.number("id"), request.text("act")
    if act == "retire":
        memory.lessons.retire(number, request.text("reason"))
    else:
        memory.lessons.feedback(number, act == "good")
    return Redirection(f"/lessons/{number}", "changed")


SCREENS = (
    Screen("GET", "/entries", listed),
    Screen("POST", "/entries", store),
    Screen("GET", "/entries/{id}", show),
    Screen("POST", "/entries/{id}", change),
    Screen("GET", "/lessons", lessons),
    Screen("POST", "/lessons", add_lesson),
    Screen("GET", "/lessons/{id}", lesson),
    Screen("POST", "/lessons/{id}", change_lesson),
)
