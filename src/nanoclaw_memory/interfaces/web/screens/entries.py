"""Entries and lessons: list, show with their history, add, decide, retire, archive, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from nanoclaw_memory.interfaces.web.screen import Moved, Screen, Shown, WebRequest

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

LESSON_STATES = ("", "candidate", "active", "metabolized", "retired")
STATUSES = ("active", "held", "superseded", "archived", "expired", "all")
PRIORITIES = ("critical", "high", "medium", "low")
MOST = 2000


def listed(memory: Memory, asked: WebRequest) -> Shown:
    """List entries of a status and a type, newest first."""
    status, kind = asked.text("status") or "active", asked.text("type")
    found = memory.entries.all([kind] if kind else None, status=status, limit=MOST)
    choices = {"statuses": STATUSES, "types": memory.entries.types, "priorities": PRIORITIES}
    return Shown("entries.html", {**asked.slice(found), **choices, "status": status, "type": kind})


def show(memory: Memory, asked: WebRequest) -> Shown:
    """Show one entry, those it replaced, and its records in the audit log."""
    chain = memory.entries.history(asked.text("id"))
    life = memory.entries.trace(asked.text("id"))
    return Shown("entry.html", {"one": chain[0], "replaced": chain[1:], "life": life})


def store(memory: Memory, asked: WebRequest) -> Moved:
    """Store a new entry, or another wording in place of one."""
    stored = memory.store(
        asked.text("content"),
        asked.text("type"),
        tags=asked.text("tags").split(),
        priority=asked.text("priority"),
        reason=asked.text("reason"),
        supersedes=asked.text("supersedes"),
    )
    return Moved(f"/entries/{quote(stored.id)}", "saved")


def change(memory: Memory, asked: WebRequest) -> Moved:
    """Approve, reject, archive, reinforce or delete one."""
    entry_id, act = asked.text("id"), asked.text("act")
    acts = {
        "approve": memory.entries.approve,
        "reject": memory.entries.reject,
        "archive": memory.entries.archive,
        "reinforce": memory.entries.reinforce,
        "delete": memory.delete,
    }
    asked.act(acts)(entry_id)
    return Moved("/entries" if act == "delete" else f"/entries/{quote(entry_id)}", "changed")


def lessons(memory: Memory, asked: WebRequest) -> Shown:
    """List the lessons of one state or of all, newest first."""
    found = memory.lessons.lessons(asked.text("state"))[::-1]
    return Shown(
        "lessons.html", {**asked.slice(found), "states": LESSON_STATES, "state": asked.text("state")}
    )


def lesson(memory: Memory, asked: WebRequest) -> Shown:
    """Show one lesson with the outcomes of its injections."""
    return Shown("lesson.html", {"detail": memory.lessons.detail(asked.number("id"))})


def add_lesson(memory: Memory, asked: WebRequest) -> Moved:
    """Add a person's own lesson."""
    made = memory.lessons.add(
        asked.text("lesson"), asked.text("trigger"), general=asked.text("general") == "1"
    )
    return Moved(f"/lessons/{made.id}", "saved")


def change_lesson(memory: Memory, asked: WebRequest) -> Moved:
    """Retire a lesson, or record whether it helped the last time."""
    number, act = asked.number("id"), asked.text("act")
    if act == "retire":
        memory.lessons.retire(number, asked.text("reason"))
    else:
        memory.lessons.feedback(number, act == "good")
    return Moved(f"/lessons/{number}", "changed")


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
