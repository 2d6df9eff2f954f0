"""What a person may ask of the lessons, and tell them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.lessons import maturity
from nanoclaw_memory.lessons.extraction import MAX_LESSON, MAX_TRIGGER, principle_of
from nanoclaw_memory.store.lessons import NewLesson
from nanoclaw_memory.text import one_line
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.growth import review
from nanoclaw_memory.types import Lesson, LessonDetail, Outcome

STATES = ("candidate", "active", "metabolized", "retired")


class Learning:
    """The lessons that one scope may see."""

    def __init__(self, context: PluginContext) -> None:
        self.context = context

    def lessons(self, state: str = "") -> list[Lesson]:
        """The lessons, oldest first; of one state or of all."""
        if state and state not in STATES:
            raise InvalidValue(f"there is no state {state!r}", f"use {', '.join(STATES)}")
        found = self.context.lessons.all((state,) if state else (), self.context.scope.private)
        return [self._aged(lesson) for lesson in found]

    def detail(self, lesson_id: int) -> LessonDetail:
        """A lesson and the outcomes of its injections, newest first."""
        return LessonDetail(self._get(lesson_id), tuple(self.context.lessons.outcomes(lesson_id)))

    def outcomes(self, limit: int = 50) -> list[Outcome]:
        """The last outcomes of all lessons that this scope may see."""
        seen = {lesson.id for lesson in self.lessons()}
        return [one for one in self.context.lessons.outcomes(None, limit) if one.lesson_id in seen]

    def add(
        self,
        lesson: Annotated[str, Meta(max_length=2000)],
        trigger: str = "",
        principle: str = "",
        general: bool = False,
    ) -> Lesson:
        """A lesson that a person gives; active at once."""
        text, when = one_line(lesson), one_line(trigger)
        if not text:
            raise InvalidValue("the lesson is empty", 'say what to do: ncm lessons add "Ask before deleting"')
        if len(text) > MAX_LESSON or len(when) > MAX_TRIGGER:
            raise InvalidValue(
                f"a lesson has at most {MAX_LESSON} characters, a trigger {MAX_TRIGGER}", "say it shorter"
            )
        found = self.context.intake.admit_all(text, when, one_line(principle)[:40])
        text, when, principle = (admitted.text for admitted in found)
        new = NewLesson(
            when or text[:MAX_TRIGGER],
            text,
            principle or principle_of(text),
            "active",
            general,
            self.context.scope.private,
            origin=self.context.scope.origin,
            session_id=self.context.scope.session_id,
        )
        return self._get(self.context.lessons.add(new, stamp(self.context.clock.now())))

    def retire(self, lesson_id: int, reason: str = "") -> Lesson:
        """No longer inject a lesson; it is kept, and comes back when the correction is made again."""
        self._get(lesson_id)
        kept = self.context.intake.admit(one_line(reason)[:200]).text
        self.context.lessons.update(lesson_id, state="retired", retired_because=kept or "by the user")
        return self._get(lesson_id)

    def feedback(self, lesson_id: int, good: bool) -> Lesson:
        """A person says of the last injection whether it helped."""
        self._get(lesson_id)
        last = self.context.lessons.outcomes(lesson_id, 1)
        if not last:
            raise InvalidValue(f"lesson {lesson_id} was never injected", "there is nothing to judge yet")
        self.context.lessons.settle(last[0].id, "good" if good else "bad", None, good)
        review(self.context, lesson_id, stamp(self.context.clock.now()))
        return self._get(lesson_id)

    def _get(self, lesson_id: int) -> Lesson:
        lesson = self.context.lessons.get(lesson_id)
        if lesson is None or not (lesson.private <= self.context.scope.private):
            raise NotFound(f"there is no lesson {lesson_id}", "see: ncm lessons list")
        return self._aged(lesson)

    def _aged(self, lesson: Lesson) -> Lesson:
        return replace(lesson, maturity_days=maturity.days(lesson, self.context.clock.now()))
