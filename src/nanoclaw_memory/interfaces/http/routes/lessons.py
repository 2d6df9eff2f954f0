"""Endpoints of what corrections taught."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Lesson, LessonDetail, Outcome


@route("GET", "/lessons", listed=True)
def lessons(memory: Memory, state: str = "") -> list[Lesson]:
    """The lessons, of one state or of all."""
    return memory.lessons.lessons(state)


@route("POST", "/lessons")
def add_lesson(
    memory: Memory,
    lesson: Annotated[str, Field(max_length=2000)],
    trigger: str = "",
    principle: str = "",
    general: bool = False,
) -> Lesson:
    """Teach a lesson by hand."""
    return memory.lessons.add(lesson, trigger, principle, general)


@route("GET", "/lessons/outcomes", listed=True)
def outcomes(memory: Memory) -> list[Outcome]:
    """What became of the lessons that were injected, newest first."""
    return memory.lessons.outcomes(1000)


@route("GET", "/lessons/{id}")
def lesson_detail(memory: Memory, id: int) -> LessonDetail:
    """One lesson with its outcomes."""
    return memory.lessons.detail(id)


@route("POST", "/lessons/{id}/retire")
def retire_lesson(memory: Memory, id: int, reason: str = "") -> Lesson:
    """Use a lesson no longer."""
    return memory.lessons.retire(id, reason)


@route("POST", "/lessons/{id}/feedback")
def lesson_feedback(memory: Memory, id: int, good: bool) -> Lesson:
    """Say whether a lesson helped."""
    return memory.lessons.feedback(id, good)
