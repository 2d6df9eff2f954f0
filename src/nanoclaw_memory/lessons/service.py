"""The lessons that one scope may see: list, add, retire, rate; whether one is effective, ripe or useless."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, moment_of, stamp
from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.lessons.corrections import MAX_LESSON, MAX_TRIGGER, principle_of
from nanoclaw_memory.lessons.places import place_of
from nanoclaw_memory.store.lessons import HELD, LessonTable, NewLesson
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Lesson, LessonDetail, Outcome, Scope

STATES = ("candidate", "active", "metabolized", "retired")


class LessonService:
    """The lessons that one scope may see and change."""

    def __init__(self, table: LessonTable, intake: Intake, scope: Scope, clock: Clock) -> None:
        self._table = table
        self._intake = intake
        self._scope = scope
        self._clock = clock

    def lessons(self, state: str = "") -> list[Lesson]:
        """Return the lessons, oldest first, optionally of one state."""
        if state and state not in STATES:
            raise InvalidValue(f"there is no state {state!r}", f"use {', '.join(STATES)}")
        found = self._table.all((state,) if state else (), self._scope.private)
        return [self._aged(lesson) for lesson in found]

    def detail(self, lesson_id: int) -> LessonDetail:
        """Return a lesson and the outcomes of its injections, newest first."""
        return LessonDetail(self._get(lesson_id), tuple(self._table.outcomes(lesson_id)))

    def outcomes(self, limit: int = 50) -> list[Outcome]:
        """Return the last outcomes of all lessons that this scope may see."""
        seen = {lesson.id for lesson in self.lessons()}
        return [outcome for outcome in self._table.outcomes(None, limit) if outcome.lesson_id in seen]

    def add(
        self,
        lesson: Annotated[str, Meta(max_length=2000)],
        trigger: str = "",
        principle: str = "",
        general: bool = False,
    ) -> Lesson:
        """Add a person's own lesson, active at once; one of anybody else awaits review."""
        text, when = one_line(lesson), one_line(trigger)
        if not text:
            raise InvalidValue("the lesson is empty", 'say what to do: ncm lessons add "Ask before deleting"')
        if len(text) > MAX_LESSON or len(when) > MAX_TRIGGER:
            raise InvalidValue(
                f"a lesson has at most {MAX_LESSON} characters, a trigger {MAX_TRIGGER}", "say it shorter"
            )
        found = self._intake.admit_all(text, when, one_line(principle)[:40])
        text, when, principle = (admitted.text for admitted in found)
        place = place_of(text, self._scope.project, True, ())
        new = NewLesson(
            trigger=when or text[:MAX_TRIGGER],
            lesson=text,
            principle=principle or principle_of(text),
            state="active" if self._scope.author == "owner" else "candidate",
            general=general,
            private=self._scope.private,
            origin=self._scope.author,
            session_id=self._scope.session_id,
            why="" if self._scope.author == "owner" else f"{HELD}added by {self._scope.author}",
            project=place.project,
            only_there=place.only,
        )
        return self._get(self._table.add(new, stamp(self._clock.now())))

    def retire(self, lesson_id: int, reason: str = "") -> Lesson:
        """Stop injecting a lesson; it is kept, and becomes active again if the correction is repeated."""
        self._get(lesson_id)
        kept = self._intake.admit(one_line(reason)[:200]).text
        self._table.update(lesson_id, state="retired", retired_because=kept or "by the user")
        return self._get(lesson_id)

    def feedback(self, lesson_id: int, good: bool) -> Lesson:
        """Record a person's judgement whether the last injection helped."""
        self._get(lesson_id)
        last = self._table.outcomes(lesson_id, 1)
        if not last:
            raise InvalidValue(f"lesson {lesson_id} was never injected", "there is nothing to judge yet")
        self._table.settle(last[0].id, "good" if good else "bad", None, good)
        update_effectiveness(self._table, lesson_id, stamp(self._clock.now()))
        return self._get(lesson_id)

    def _get(self, lesson_id: int) -> Lesson:
        lesson = (
            self._table.get(lesson_id) if abs(lesson_id) < 2**63 else None
        )  # as large as an id in a database can be
        if lesson is None or not (lesson.private <= self._scope.private):
            raise NotFound(f"there is no lesson {lesson_id}", "see: ncm lessons list")
        return self._aged(lesson)

    def _aged(self, lesson: Lesson) -> Lesson:
        return replace(lesson, maturity_days=days(lesson, self._clock.now()))


def update_effectiveness(table: LessonTable, lesson_id: int, at: str) -> None:
    """Compute a lesson's effectiveness from its outcomes; retire it if it never helps."""
    lesson = table.get(lesson_id)
    if lesson is None:
        return
    known, helped = table.tally(lesson_id)
    values: dict[str, object] = {
        "effectiveness_score": effectiveness(known, helped),
        "maturity_days": days(lesson, moment_of(at)),
    }
    if lesson.state == "active" and without_effect(known, helped):
        values |= {"state": "retired", "retired_because": f"helped {helped} of {known} times"}
    table.update(lesson_id, **values)


RIPE_DAYS = 30
RIPE_EFFECTIVENESS = 0.8
RIPE_INJECTIONS = 5
RIPE_HELPED = 3  # answers that followed the lesson: no correction is no proof
RETIRE_AFTER = 20
RETIRE_BELOW = 0.5


def effectiveness(known: int, helped: int) -> float:
    """Return the share of injections that helped; a new lesson starts as if one had helped."""
    return (helped + 1) / (known + 1)


def days(lesson: Lesson, now: datetime) -> int:
    """Return how many days a lesson has been known."""
    return max((now - moment_of(lesson.created_at)).days, 0) if lesson.created_at else 0


def is_ripe(lesson: Lesson, now: datetime) -> bool:
    """Return whether a lesson has proved itself enough to be proposed for SOUL.md."""
    return (
        lesson.state == "active"
        and days(lesson, now) >= RIPE_DAYS
        and lesson.effectiveness > RIPE_EFFECTIVENESS
        and lesson.injections >= RIPE_INJECTIONS
        and lesson.helped >= RIPE_HELPED
        and not lesson.only_there  # SOUL.md is read in every project
    )


def ripe(lessons: Iterable[Lesson], now: datetime) -> list[Lesson]:
    """Return the lessons that are ripe."""
    return [lesson for lesson in lessons if is_ripe(lesson, now)]


def without_effect(known: int, helped: int) -> bool:
    """Return whether a lesson was injected often and did not help."""
    return known >= RETIRE_AFTER and helped / known < RETIRE_BELOW
