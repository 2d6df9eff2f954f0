"""Lessons: what corrections taught, whether it helped, and what to do with each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoclaw_memory.interfaces.web.screen import Moved, Screen, Shown, WebRequest

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

STATES = ("", "candidate", "active", "metabolized", "retired")


def listed(memory: Memory, asked: WebRequest) -> Shown:
    """The lessons of one state or of all, newest first."""
    found = memory.lessons.lessons(asked.text("state"))[::-1]
    return Shown("lessons.html", {**asked.slice(found), "states": STATES, "state": asked.text("state")})


def show(memory: Memory, asked: WebRequest) -> Shown:
    """One lesson with the outcomes of its injections."""
    return Shown("lesson.html", {"detail": memory.lessons.detail(asked.number("id"))})


def add(memory: Memory, asked: WebRequest) -> Moved:
    """Add a lesson of one's own."""
    made = memory.lessons.add(
        asked.text("lesson"), asked.text("trigger"), general=asked.text("general") == "1"
    )
    return Moved(f"/lessons/{made.id}", "saved")


def change(memory: Memory, asked: WebRequest) -> Moved:
    """Retire a lesson, or say whether it helped the last time."""
    number, act = asked.number("id"), asked.text("act")
    if act == "retire":
        memory.lessons.retire(number, asked.text("reason"))
    else:
        memory.lessons.feedback(number, act == "good")
    return Moved(f"/lessons/{number}", "changed")


SCREENS = (
    Screen("GET", "/lessons", listed),
    Screen("POST", "/lessons", add),
    Screen("GET", "/lessons/{id}", show),
    Screen("POST", "/lessons/{id}", change),
)
