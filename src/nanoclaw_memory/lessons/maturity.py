"""Rate lessons: effectiveness, maturity for SOUL.md, retirement."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.types import Lesson

RIPE_DAYS = 30
RIPE_EFFECTIVENESS = 0.8
RIPE_INJECTIONS = 5
RETIRE_AFTER = 20
RETIRE_BELOW = 0.5


def effectiveness(known: int, helped: int) -> float:
    """The share of injections that helped; a new lesson starts with one that did."""
    return (helped + 1) / (known + 1)


def days(lesson: Lesson, now: datetime) -> int:
    """How many days a lesson has been known."""
    return max((now - moment_of(lesson.created_at)).days, 0) if lesson.created_at else 0


def is_ripe(lesson: Lesson, now: datetime) -> bool:
    """Whether a lesson has proved itself enough to be proposed for SOUL.md."""
    return (
        lesson.state == "active"
        and days(lesson, now) >= RIPE_DAYS
        and lesson.effectiveness > RIPE_EFFECTIVENESS
        and lesson.injections >= RIPE_INJECTIONS
    )


def ripe(lessons: Iterable[Lesson], now: datetime) -> list[Lesson]:
    """The lessons that are ripe."""
    return [lesson for lesson in lessons if is_ripe(lesson, now)]


def without_effect(known: int, helped: int) -> bool:
    """Whether a lesson was injected often and did not help."""
    return known >= RETIRE_AFTER and helped / known < RETIRE_BELOW
