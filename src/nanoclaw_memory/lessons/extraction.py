"""Make a lesson from a correction: when it applies, what to do, and its principle."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory.lessons.corrections import Correction
from nanoclaw_memory.text import one_line, sentences, words

MAX_LESSON = 300
MAX_TRIGGER = 200
BARE = 4  # words of a contradiction that says only that: "No, that's wrong"
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|great|nice|good(?: start)?|thanks|thank you|hmm+|well|but|and|so|also|sure|fine|danke|schön|"
    r"gut|passt|aber|und|one thing(?: though)?)\b[,.!:;]*\s+)+",
    re.IGNORECASE,
)


class Extracted(msgspec.Struct, frozen=True):
    """The parts of a new lesson."""

    trigger: str
    lesson: str
    principle: str
    general: bool


def extract(found: Sequence[Correction], message: str, asked_before: str) -> Extracted:
    """The lesson of a message's corrections; `asked_before` is the message that the corrected answer was for."""
    lesson = one_line(" ".join(dict.fromkeys(_said(one, message, found) for one in found)))
    lesson = _OPENING.sub("", lesson)[:MAX_LESSON].strip()
    lesson = lesson[:1].upper() + lesson[1:]
    principle = principle_of(lesson)
    trigger = one_line(asked_before)[:MAX_TRIGGER] or lesson[:MAX_TRIGGER]
    return Extracted(trigger, lesson, principle, is_general(lesson, found))


def principle_of(lesson: str) -> str:
    """The principle with most words in a lesson; `reliability` if there is none."""
    found = set(words(lesson))
    scores = {name: len(found & known) for name, known in _indicators().items() if name != "answering"}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else "reliability"


def is_general(lesson: str, found: Sequence[Correction]) -> bool:
    """Whether a lesson is about answering in general rather than about one topic."""
    about_answers = principle_of(lesson) in ("brevity", "style") and bool(
        set(words(lesson)) & _indicators()["answering"]
    )
    return about_answers or any(one.kind == "length" for one in found)


def _said(one: Correction, message: str, found: Sequence[Correction]) -> str:
    """The sentence; a bare contradiction is joined with or replaced by the next one, which states what is right."""
    if one.kind != "wrong":
        return one.sentence
    after = message.partition(one.sentence)[2]
    following = next(iter(sentences(after)), "")
    if any(following == other.sentence for other in found):
        return "" if len(words(one.sentence)) <= BARE else one.sentence
    return f"{one.sentence} {following}".strip() if len(following) < 200 else one.sentence


@functools.cache
def _indicators() -> dict[str, frozenset[str]]:
    """The words that indicate each principle, and under `answering` those about answers in general."""
    text = Path(__file__).with_name("principles.json").read_bytes()
    return {name: frozenset(known.split()) for name, known in msgspec.json.decode(text).items()}
