"""Match lessons to a message: candidates by stems and vectors, decided by the judge if it is available."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.lessons import tasks
from nanoclaw_memory.providers.calibration import Calibration
from nanoclaw_memory.store.lessons import ABOUT, TALK
from nanoclaw_memory.text import GERMAN_STOP_WORDS, LANGUAGES, Language, content_words, language, stem
from nanoclaw_memory.types import Lesson

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

# Log odds, tuned on the development half and on rules beside unrelated messages (bench/corrections.py,
# bench/lessons.py).
SURE = 1.45  # minimum of the judge's log odds, closeness and a match together
CLOSENESS = 2.4  # weight of a cosine of 1
LIKENESS = 4.5  # weight of a likeness of 1 in the learnt map, where the embedder has one
FAR = 0.3  # what is taken off that
MATCHED = 0.45  # weight of a match by words or by meaning alone
USUAL_CLOSENESS = 0.5  # closeness if there are no vectors
NEEDS_FROM = -2.6  # below this need of a message only a lesson of which the judge is certain applies
NEEDS_OF_FEW = (
    -0.8
)  # below this need a message of few words gets none: "hmm, let me think", "no, the second one"
CERTAIN = 2.3  # minimum of judge and closeness together for such a message
LEAST_TASK = 3  # content words
MAX_JUDGED = 2  # lessons that the judge reads at most per message, 3 ms each
_WEAK = frozenset(
    "use using write writing answer answers please always never next time check make want need like put give"
    " must shall ought told asked already prefer rather keep stop quit avoid future forward going straight"
    " say show tell thing way good wrong right first again now on don't dont doesn't shouldn't instead before"
    " benutze benutzen verwende verwenden nutze schreib schreibe schreiben antwort antworten bitte immer nie mal"
    " mach mache machen macht gib geben zeig zeige zeigen nimm nehmen sag sage sagen brauch brauche brauchst will"
    " würde kannst könntest vermeide lieber künftig zukunft gut richtig falsch erst zuerst vorher nächstes".split()
)
# Function words of informal messages.
_WEAK_GERMAN = GERMAN_STOP_WORDS | frozenset(
    "am ans also beim dazu davon damit denn dieser diese dieses diesem diesen eben einfach gerade gern gerne hab ins ja"
    " könnte könnten ne nen nix noch so sonst viel viele vom während wann was welche welcher welches wem wen wer was"
    " allerdings jedesmal".split()
)


class Match(msgspec.Struct, frozen=True):
    """A lesson that applies, its score, and the reason."""

    lesson: Lesson
    score: float
    why: str


class Reach(msgspec.Struct, frozen=True):
    """The cosine at which a lesson applies by meaning alone, and the one below which one word is not enough."""

    near: float
    far: float = -1.0
    unrelated: float | None = None  # the cosine of unrelated texts, if known
    likenesses: Mapping[int, float] = {}  # of lessons to the message, in the learnt map

    def closeness(self, lesson: int, cosine: float | None) -> float:
        """Return what the nearness of a lesson adds to the log odds that it applies."""
        if lesson in self.likenesses:
            return LIKENESS * self.likenesses[lesson] - FAR
        if cosine is None or self.unrelated is None:
            return USUAL_CLOSENESS
        return CLOSENESS * max(cosine - self.unrelated, 0.0) / (1 - self.unrelated)


def reach(unrelated: float | None, calibration: Calibration) -> Reach:
    """Return the thresholds for near and far, above the cosine that unrelated texts have."""
    near = calibration.cosine(calibration.lesson_near, unrelated)
    far = calibration.cosine(calibration.lesson_far, unrelated)
    if near is None or far is None:
        return Reach(calibration.lesson_near_unmeasured)
    return Reach(near, far, unrelated)


@bounded(512 * 1024)
def content_stems(text: str, spoken: Language | None = None) -> tuple[str, ...]:
    """Return the distinct content stems of a text, in order; stemmed by its own language unless another is named."""
    spoken = spoken or language(text)
    weak = _WEAK_GERMAN if spoken == "german" else frozenset()
    kept = (word for word in content_words(text) if word not in _WEAK and word not in weak and len(word) > 1)
    return tuple(dict.fromkeys(stem(word, spoken) for word in kept))


@bounded(1024 * 1024)  # computed for every lesson at every message
def _stems(text: str, spoken: Language) -> frozenset[str]:
    return frozenset(content_stems(text, spoken))


def match(
    message: str,
    lessons: Sequence[Lesson],
    cosines: Mapping[int, float],
    reach: Reach,
    most: int,
) -> list[Match]:
    """Return the lessons that apply to a message, best first."""
    found = [one for lesson in lessons if (one := _judge(lesson, message, cosines.get(lesson.id), reach))]
    if not cosines and not tasks.asks(message):
        known = {one.lesson.id for one in found}
        alike = [one for lesson in lessons if lesson.id not in known and (one := _same_kind(lesson, message))]
        # A kind that several lessons are about does not say which of them applies.
        found += alike if len(alike) == 1 else []
    return sorted(found, key=lambda one: (-one.score, -one.lesson.seen, one.lesson.id))[:most]


def _same_kind(lesson: Lesson, message: str) -> Match | None:
    """Return a match if a task is of the kind of the conversation that taught a lesson: two words of it say so, or one
    and a word with which the lesson says where it applies.
    """
    spoken = language(message, lesson.lesson)
    talk, task = tasks.kinds(lesson.trigger, spoken), tasks.kinds(message, spoken)
    alike = {kind: min(count, talk[kind]) for kind, count in task.items() if kind in talk}
    place = _stems(tasks.applies_to(lesson.lesson.partition(ABOUT)[0]), spoken)
    where = place & _stems(message, spoken)
    if not alike or (max(alike.values()) < 2 and not where):
        return None
    if not where and place & _stems(lesson.trigger, spoken):
        return None  # it is about Mr Dunmore's appointments, not about any
    why = f"kind of task: {', '.join(sorted(alike))}"
    return Match(lesson, 0.4, f"{why}; words: {', '.join(sorted(where))}" if where else why)


def calls_for_nothing(need: float) -> bool:
    """Return whether a message is so unlikely to need memory that no lesson applies."""
    return _log_odds(need) < NEEDS_FROM


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _log_odds(probability: float) -> float:
    kept = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))


def judged_match(
    message: str,
    lessons: Sequence[Lesson],
    cosines: Mapping[int, float],
    reach: Reach,
    most: int,
    judge: Judge,
) -> list[Match]:
    """Return those of the nearest lessons of which the judge is sure enough, given how near they are."""
    need = _log_odds(judge.probability("needs", message))
    if need < NEEDS_OF_FEW and len(content_stems(message)) < LEAST_TASK:
        return []
    least = (
        CERTAIN if need < NEEDS_FROM else SURE
    )  # a task that explains itself gets only what surely applies
    matched = {one.lesson.id for one in match(message, lessons, cosines, reach, len(lessons))}
    found = []
    for lesson in _nearest(message, lessons, reach.likenesses or cosines):
        applies = judge.probability("applies", message, _in_context(lesson))
        odds = (
            _log_odds(applies)
            + reach.closeness(lesson.id, cosines.get(lesson.id))
            + MATCHED * (lesson.id in matched)
        )
        if odds >= least:
            found.append(Match(lesson, _probability(odds), f"judge: applies {applies:.2f}"))
    return sorted(found, key=lambda one: (-one.score, -one.lesson.seen, one.lesson.id))[:most]


def _in_context(lesson: Lesson) -> str:
    """Return a lesson with the subject of its conversation: "the 21st" alone says little."""
    answered = lesson.trigger.rpartition(TALK)[2]
    known = ABOUT in lesson.lesson or answered[:60] in lesson.lesson
    return lesson.lesson if known else f"{lesson.lesson}{ABOUT}{answered})"


def _nearest(message: str, lessons: Sequence[Lesson], near: Mapping[int, float]) -> list[Lesson]:
    """Return the lessons for the judge to read: nearest by meaning, then by shared words."""
    said = {spoken: _stems(message, spoken) for spoken in LANGUAGES}

    def rank(lesson: Lesson) -> tuple[float, int]:
        spoken = language(message, lesson.lesson)
        shared = said[spoken] & _stems(f"{lesson.lesson}\n{lesson.trigger}", spoken)
        return near.get(lesson.id, 0.0) + 0.1 * len(shared), lesson.id

    return sorted(lessons, key=rank, reverse=True)[:MAX_JUDGED]


def _judge(lesson: Lesson, message: str, cosine: float | None, reach: Reach) -> Match | None:
    # A short message may not reveal its language; both sides must be stemmed alike.
    spoken = language(message, lesson.lesson)
    stems = set(content_stems(message, spoken))
    own = content_stems(lesson.lesson, spoken)
    shared = stems & set(own)
    asked = content_stems(lesson.trigger.partition(TALK)[0], spoken)
    repeated = stems & set(asked)
    again = len(repeated) / max(min(len(stems), len(asked)), 1)
    by_words = 0.0
    # A single shared word is as frequent in unrelated messages as in related ones.
    enough = len(shared | repeated) > 1 or len(shared) * 2 >= len(own) or shared == stems
    if cosine is None and tasks.asks(
        message
    ):  # a lesson is for a task; a question may have any two words of it
        enough = len(shared) > 1 and len(shared) * 2 >= len(own)
    if shared and enough:
        by_words = 0.5 + 0.5 * len(shared) / max(min(len(own), len(stems)), 1)
    elif again >= 0.6 and len(repeated) >= 2:
        by_words = 0.5 * again
    deceptive = cosine is not None and cosine < reach.far and len(shared | repeated) < 2
    if by_words and not deceptive:
        return Match(lesson, by_words, f"words: {', '.join(sorted(shared or repeated))}")
    if cosine is not None and cosine >= reach.near:
        return Match(lesson, 0.5 * cosine, f"meaning: {cosine:.2f}")
    return None
