"""Growth (order 20): learn lessons from corrections, inject them when needed, and measure their effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo

from msgspec.structs import replace

from nanoclaw_memory.clock import local_day, stamp
from nanoclaw_memory.intake.authorship import asking_words
from nanoclaw_memory.lessons import corrections, matching
from nanoclaw_memory.lessons.learning import Learner, Teaching
from nanoclaw_memory.lessons.matching import Reach
from nanoclaw_memory.lessons.places import names
from nanoclaw_memory.lessons.service import update_effectiveness
from nanoclaw_memory.providers.calibration import Calibration
from nanoclaw_memory.store.currency import SUPERSEDED
from nanoclaw_memory.text import language, plural
from nanoclaw_memory.turn import blocks, entropy
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.types import Exchange, Lesson, Newer, Outcome, ToolCall

FENCE = "(learnt from earlier corrections; what the user says now comes first)"


class Growth(Plugin):
    """Turn a person's corrections into reminders."""

    name = "growth-vectors"

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.own = context.settings.plugins.entries.growth_vectors
        self.order = self.own.order
        # Growth is asked first, so that continuity need not quote what a lesson contains.
        self.asked_at = min(self.order, context.settings.plugins.entries.continuity.order - 0.5)
        self.timeout_ms = self.own.timeout_ms

    # ---- before the answer ----

    def session_start(self, moment: Moment) -> Answer:
        """Inject the lessons about answering in general: once per session, not with every message."""
        general = [lesson for lesson in self._active(moment) if lesson.general]
        if not general:
            return Silence("no lesson is about answers in general")
        marks = self._marks(general)
        own = self.context.own_project
        chosen = sorted(
            _current(general, marks),
            key=lambda one: (
                one.id in marks,
                own is not None and one.project not in ("", own),
                -one.seen,
                one.id,
            ),
        )
        chosen = chosen[: self.own.max_lessons]
        if not chosen:
            return Silence("every lesson about answers in general was superseded")
        reasons = tuple(
            f"about answers in general, corrected {plural(lesson.seen, 'time')}" for lesson in chosen
        )
        lines = self._lines(chosen, marks, moment.now.tzinfo)
        return Draft(blocks.GROWTH, lines, fence=FENCE, hits=len(chosen), reasons=reasons)

    def before_turn(self, message: str, moment: Moment) -> Answer:
        judge, asked = self.context.judge, message
        message = asking_words(message) or message
        if judge is None and matching.calls_for_nothing(self.context.need(message)):
            return Silence("the message needs nothing of memory")
        active = self._active(moment, message)
        if not active:
            return Silence("no lesson is active")
        cosines, reach, note = self._cosines(message, moment)
        most = self.own.max_lessons
        if judge is not None:
            found = matching.judged_match(message, active, cosines, reach, most, judge)
        else:
            found = matching.match(message, active, cosines, reach, most)
        notes = (note,) if note else ()
        marks = self._marks([match.lesson for match in found], self.context.recaller.asked)
        kept = _current([match.lesson for match in found], marks)
        found = sorted(
            (match for match in found if match.lesson in kept), key=lambda match: match.lesson.id in marks
        )
        if not found:
            return Silence("no lesson applies", notes)
        return Draft(
            blocks.GROWTH,
            self._lines([match.lesson for match in found], marks, moment.now.tzinfo),
            fence=FENCE,
            hits=len(found),
            notes=notes,
            then=lambda: self._injected(found, asked, moment),
            reasons=tuple(f"score {match.score:.2f}: {match.why}" for match in found),
        )

    def _active(self, moment: Moment, message: str = "") -> list[Lesson]:
        """Return the active lessons that hold in the scope's project, or in one that the message names."""
        own = self.context.own_project
        return [
            lesson
            for lesson in self.context.lessons.all(("active",), moment.scope.private)
            if own in (None, lesson.project) or not lesson.only_there or names(message, lesson.project)
        ]

    def _lines(
        self, lessons: Sequence[Lesson], marks: Mapping[int, tuple[str, Newer]], zone: tzinfo | None
    ) -> tuple[str, ...]:
        """Render each lesson with its day, the other project of which it is, and the later statement on its subject."""
        own = self.context.own_project
        lines = []
        for lesson in lessons:
            mark, newer = marks.get(lesson.id, ("", None))
            elsewhere = lesson.project if own is not None and lesson.project != own else ""
            about = (
                local_day(lesson.created_at, zone),
                newer.told(mark) if newer else "",
                f"learnt in project {elsewhere}" if elsewhere else "",
            )
            lines.append(f"• {lesson.lesson} [{lesson.principle}] ({'; '.join(filter(None, about))})")
        return tuple(lines)

    def _marks(self, lessons: Sequence[Lesson], fresh: bool = False) -> dict[int, tuple[str, Newer]]:
        """Return the lessons that a later statement supersedes, with the mark and that statement."""
        ids = [lesson.id for lesson in lessons]
        return self.context.retrieval.overtaken("lessons", ids, fresh) if ids else {}

    def _injected(self, found: Sequence[matching.Match], message: str, moment: Moment) -> None:
        measures = self.context.turns.measures(moment.scope.session_id, 1)
        level = measures[-1].entropy if measures else 0.0
        ids = [match.lesson.id for match in found]
        kept = self.context.intake.talk(message, "lessons").text  # a prompt may contain a credential
        self.context.lessons.injected(ids, moment.scope.session_id, kept, level, stamp(moment.now))

    def _cosines(self, message: str, moment: Moment) -> tuple[Mapping[int, float], Reach, str]:
        """Return each lesson's similarity, the thresholds, and why vectors take no part, if they do not."""
        if self.context.embedder is None:
            return {}, matching.reach(None, Calibration()), self.context.without_embedder
        cosines, pool = self.context.retrieval.cosines(
            message, "lessons", moment.deadline, fresh=self.context.recaller.asked
        )
        reach = matching.reach(pool.unrelated, pool.calibration)
        least = self.own.min_similarity
        likenesses = self.context.retrieval.searcher.candidates.likenesses("lessons", pool)
        reach = replace(reach, near=least or reach.near, likenesses=likenesses)
        return cosines, reach, "; ".join(pool.degraded)

    # ---- after the answer ----

    def after_turn(self, exchange: Exchange, tool_calls: tuple[ToolCall, ...], moment: Moment) -> None:
        learner = Learner(self.context.lessons, self.context.exchanges, self.context.judge)
        taught = learner.read(exchange)
        self._record_outcomes(exchange, taught)
        learner.learn(exchange, taught)

    def _record_outcomes(self, exchange: Exchange, taught: Teaching | None) -> None:
        """Record the outcome of earlier injections: this message corrects again, or praises what the answer shows."""
        waiting = self.context.lessons.awaiting(exchange.session_id)
        due = [one for one in waiting if not self._is_for(one, exchange, waiting)]
        answered = self.context.exchanges.before(exchange) if due else None
        after = entropy.total(entropy.measure(exchange.user_message)) if due else 0.0
        praised = taught is None and corrections.is_praise(exchange.user_message)
        for outcome in due:
            lesson = self.context.lessons.get(outcome.lesson_id)
            helped = None
            if lesson is not None and taught is not None and not taught.states and _about(lesson, taught):
                helped = False
            elif praised and lesson is not None and answered is not None:
                helped = _follows(lesson, outcome, answered) or None
            feedback = {True: "good", False: "bad", None: "neutral"}[helped]
            self.context.lessons.settle(outcome.id, feedback, after, helped)
            update_effectiveness(self.context.lessons, outcome.lesson_id, exchange.timestamp)

    @staticmethod
    def _is_for(outcome: Outcome, exchange: Exchange, waiting: Sequence[Outcome]) -> bool:
        """Return whether an injection was made for this message and has no outcome yet."""
        latest = max(one.injected_at for one in waiting)
        return outcome.injected_at == latest and _same_question(outcome, exchange)


def _current(lessons: Sequence[Lesson], marks: Mapping[int, tuple[str, Newer]]) -> list[Lesson]:
    """Return the lessons that nothing supersedes."""
    return [lesson for lesson in lessons if lesson.id not in marks or marks[lesson.id][0] != SUPERSEDED]


def _about(lesson: Lesson, taught: Teaching) -> bool:
    """Return whether a correction is about the subject of which a lesson had reminded."""
    one, other = (set(matching.content_stems(text)) for text in (lesson.lesson, taught.words))
    return len(one & other) * 2 >= min(len(one), len(other)) > 0


def _same_question(outcome: Outcome, exchange: Exchange) -> bool:
    asked, said = (" ".join(text.split())[:100] for text in (outcome.query, exchange.user_message))
    return asked == said


def _follows(lesson: Lesson, outcome: Outcome, answered: Exchange) -> bool:
    """Return whether an answer contains the content of a lesson and the question did not."""
    if not _same_question(outcome, answered):
        return False
    spoken = language(answered.agent_response, lesson.lesson)
    asked, answer = (
        set(matching.content_stems(text, spoken)) for text in (answered.user_message, answered.agent_response)
    )
    return bool(answer.intersection(matching.content_stems(lesson.lesson, spoken)) - asked)
