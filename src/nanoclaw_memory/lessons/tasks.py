"""What kind of task a text is about, and where a lesson says that it applies: by words, where no model is loaded."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import LANGUAGES, Language, sentences, stems_of, words

_QUESTION = regex(
    r"(?:what|which|who|whose|when|where|why|how|is|are|does|do|did|was|were|can|could|has|have|"
    r"welche[rsnm]?|wer|wem|wen|wann|wo|woher|wohin|warum|wieso|wie|gibt|ist|sind|kann|darf|hat|lohnt)\b",
    re.IGNORECASE,
)
# "For the newsletter …", "beim Chor …", "wenn Nan kommt …": the words after it say where a lesson applies.
_APPLIES_TO = regex(
    r"\b(?:for|in|on|at|to|with|when(?:ever)?|if|before|after|about|during|inside|from|für|fürs|im|in|ins|bei|beim|am|"
    r"an|ans|zum|zur|wenn|bevor|nach|vor|vom|von|mit|auf)\s+(?P<what>(?:[\w'’-]+\s*){1,4})",
    re.IGNORECASE,
)
# So does the subject of its sentence: "band sheets need …", "Lina verträgt …".
_SUBJECT = regex(
    r"(?P<what>(?:[\w'’-]+\s+){1,5}?)(?:is|are|was|were|goe?s?|gets?|needs?|must|should|has|have|can|reads?|ends?|"
    r"comes?|takes?|keeps?|uses?|only|always|never|please|ist|sind|geht|gehen|kommt|kommen|bekommt|bekommen|braucht|"
    r"brauchen|muss|müssen|soll|sollen|hat|haben|läuft|laufen|heißt|heißen|wird|werden|bleibt|bleiben|macht|darf|"
    r"dürfen|nur|immer|nie|bitte)\b",
    re.IGNORECASE,
)
MOST_WORDS = 200  # of a longer text the beginning counts


class _Tasks(msgspec.Struct, frozen=True):
    kinds: dict[str, str]


def asks(message: str) -> bool:
    """Return whether a message asks a question and is no task."""
    said = sentences(message)
    return bool(said) and (message.rstrip().endswith("?") or bool(_QUESTION.match(said[-1])))


@bounded(512 * 1024)  # computed for every lesson at every message
def kinds(text: str, spoken: Language) -> Mapping[str, int]:
    """Return the kinds of task that a text is about, each with the number of its words."""
    known = _kinds_by_stem()
    stems = dict.fromkeys(stems_of(words(text)[:MOST_WORDS], spoken))
    return Counter(kind for one in stems for kind in known.get(one, ()))


@bounded(512 * 1024)
def applies_to(lesson: str) -> str:
    """Return the words with which a lesson says where it applies."""
    found = [match["what"] for said in sentences(lesson) for match in _APPLIES_TO.finditer(said)]
    found += [match["what"] for said in sentences(lesson) if (match := _SUBJECT.match(said))]
    return " ".join(found)


@functools.cache
def _kinds_by_stem() -> Mapping[str, tuple[str, ...]]:
    text = Path(__file__).with_name("tasks.json").read_bytes()
    found: dict[str, tuple[str, ...]] = {}
    for kind, known in msgspec.json.decode(text, type=_Tasks).kinds.items():
        for spoken in LANGUAGES:
            for one in set(stems_of(known.split(), spoken)):
                found[one] = tuple(dict.fromkeys((*found.get(one, ()), kind)))
    return found
