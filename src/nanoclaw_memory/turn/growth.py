"""Growth (order 20): learns lessons from corrections, injects them when needed, and measures what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.lessons import corrections, matching
from nanoclaw_memory.lessons.corrections import Correction
from nanoclaw_memory.lessons.matching import Reach
from nanoclaw_memory.lessons.service import update_effectiveness
from nanoclaw_memory.providers.calibration import Calibration
from nanoclaw_memory.statements import features, overlap, same_statement
from nanoclaw_memory.store.lessons import NewLesson
from nanoclaw_memory.text import plural
from nanoclaw_memory.turn import blocks, entropy
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.types import Exchange, Lesson, Outcome, ToolCall

FENCE = "(learnt from earlier corrections; what the user says now comes first)"
ACTIVE_FROM = 0.7  # weight of a correction that makes a lesson at once


class Growth(Plugin):
    """Turns what a person had to correct into reminders."""

    name = "growth-vectors"

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.own = context.settings.plugins.entries.growth_vectors
        self.order = self.own.order
        self.timeout_ms = self.own.timeout_ms

    # ---- before the answer ----

    def session_start(self, moment: Moment) -> Answer:
        """The lessons about answering in general: once a session, not with every message."""
        active = self.context.lessons.all(("active",), moment.scope.private)
        general = [one for one in active if one.general]
        if not general:
            return Silence("no lesson is about answers in general")
        chosen = sorted(general, key=lambda one: (-one.seen, one.id))[: self.own.max_lessons]
        reasons = tuple(f"about answers in general, corrected {plural(one.seen, 'time')}" for one in chosen)
        return Draft(blocks.GROWTH, _lines(chosen), fence=FENCE, hits=len(chosen), reasons=reasons)

    def before_turn(self, message: str, moment: Moment) -> Answer:
        active = self.context.lessons.all(("active",), moment.scope.private)
        if not active:
            return Silence("no lesson is active")
        cosines, reach, note = self._cosines(message, moment)
        found = matching.match(message, active, cosines, reach, self.own.max_lessons)
        notes = (note,) if note else ()
        if not found:
            return Silence("no lesson applies", notes)
        return Draft(
            blocks.GROWTH,
            _lines([one.lesson for one in found]),
            fence=FENCE,
            hits=len(found),
            notes=notes,
            then=lambda: self._injected(found, message, moment),
            reasons=tuple(f"score {one.score:.2f}: {one.why}" for one in found),
        )

    def _injected(self, found: Sequence[matching.Match], message: str, moment: Moment) -> None:
        measures = self.context.turns.measures(moment.scope.session_id, 1)
        level = measures[-1].entropy if measures else 0.0
        ids = [one.lesson.id for one in found]
        self.context.lessons.injected(ids, moment.scope.session_id, message, level, stamp(moment.now))

    def _cosines(self, message: str, moment: Moment) -> tuple[Mapping[int, float], Reach, str]:
        """How near each lesson is, what counts as near, and why vectors take no part where they do not."""
        if self.context.embedder is None:
            return {}, matching.reach(None, Calibration()), self.context.without_embedder
        cosines, pool = self.context.retrieval.cosines(message, "lessons", moment.deadline)
        reach = matching.reach(pool.unrelated, pool.calibration)
        least = self.own.min_similarity
        return cosines, replace(reach, near=least) if least else reach, "; ".join(pool.degraded)

    # ---- after the answer ----

    def after_turn(self, exchange: Exchange, tool_calls: tuple[ToolCall, ...], moment: Moment) -> None:
        found = corrections.find(exchange.user_message)
        self._settle(exchange, found)
        if found:
            self._learn(exchange, found)

    def _settle(self, exchange: Exchange, found: Sequence[Correction]) -> None:
        """This message is what came of the injections before it."""
        waiting = self.context.lessons.awaiting(exchange.session_id)
        due = [one for one in waiting if not self._is_for(one, exchange, waiting)]
        praised = not found and corrections.is_praise(exchange.user_message)
        after = entropy.total(entropy.measure(exchange.user_message))
        for outcome in due:
            lesson = self.context.lessons.get(outcome.lesson_id)
            repeated = lesson is not None and any(_about(lesson, one) for one in found)
            feedback = "bad" if repeated else "good" if praised else "neutral"
            helped = feedback == "good" or (feedback == "neutral" and after <= max(outcome.pre_entropy, 0.3))
            self.context.lessons.settle(outcome.id, feedback, after, helped)
            update_effectiveness(self.context.lessons, outcome.lesson_id, exchange.timestamp)

    @staticmethod
    def _is_for(outcome: Outcome, exchange: Exchange, waiting: Sequence[Outcome]) -> bool:
        """Whether an injection was made for this very message, whose effect is not known yet."""
        latest = max(one.injected_at for one in waiting)
        said = " ".join(exchange.user_message.split())[:100]
        return outcome.injected_at == latest and " ".join(outcome.query.split())[:100] == said

    def _learn(self, exchange: Exchange, found: Sequence[Correction]) -> None:
        from nanoclaw_memory.lessons.corrections import extract

        before = [
            one
            for one in self.context.exchanges.of_session(exchange.session_id, exchange.private, 2)
            if one.id != exchange.id
        ]
        asked = before[-1].user_message if before else ""
        taught = extract(found, exchange.user_message, asked)
        sure = max(one.weight for one in found) >= ACTIVE_FROM
        known = self._known(taught.lesson, exchange.private)
        if known is not None:
            state = "active" if known.state in ("candidate", "retired") else known.state
            self.context.lessons.update(
                known.id,
                seen=known.seen + 1,
                state=state,
                exchange_id=exchange.id,
                last_seen=exchange.timestamp,
                retired_because="",
            )
            return
        self.context.lessons.add(
            NewLesson(
                trigger=taught.trigger,
                lesson=taught.lesson,
                principle=taught.principle,
                state="active" if sure else "candidate",
                general=taught.general,
                private=exchange.private,
                session_id=exchange.session_id,
                exchange_id=exchange.id,
            ),
            exchange.timestamp,
        )

    def _known(self, lesson: str, private: bool) -> Lesson | None:
        """A lesson that says the same, of this kind of scope."""
        known = [one for one in self.context.lessons.all((), private) if one.private == private]
        new = features(lesson)
        same = [one for one in known if same_statement(features(one.lesson), new)]
        return max(same, key=lambda one: overlap(features(one.lesson).stems, new.stems), default=None)


def _lines(lessons: Sequence[Lesson]) -> tuple[str, ...]:
    return tuple(f"• {lesson.lesson} [{lesson.principle}]" for lesson in lessons)


def _about(lesson: Lesson, correction: Correction) -> bool:
    """Whether a correction is about the thing that a lesson had reminded of."""
    return not set(matching.telling(lesson.lesson)).isdisjoint(matching.telling(correction.sentence))
