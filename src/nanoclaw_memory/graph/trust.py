"""Estimate the probability that a line was read correctly; `training/facts.py` trains the weights on checked
readings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import sentences
from nanoclaw_memory.graph.keys import is_known_key
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import is_name, is_name_token, typed, unmarked

SURE = {"page": 0.5, "log": 0.5, "talk": 0.65}  # less probable readings are not stored
_MARK = re.compile(
    r"^\s*(?:[-*+•]\s+|\d+[.)]\s+|\[(?!\[)[^\]]{1,60}\]\s+|\d{1,2}:\d{2}\s+)+"
)  # bullet, tag, clock
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_SMALL = frozenset(
    "the a an of is are in on at to by for with and 's my our his her its der die das den dem des ein eine einen "
    "ist sind im am um von vom bei beim mit und für auf zu zum zur mein meine unser unsere".split()
)


def probability(triple: Triple, line: str, before: str = "", kind: str = "page") -> float:
    """Return the probability that a triple was read correctly; `before` are the lines above it."""
    weights = _weights()
    total = weights["bias"] + sum(weights.get(name, 0.0) for name in features(triple, line, before, kind))
    return 1 / (1 + math.exp(-total))


def features(triple: Triple, line: str, before: str = "", kind: str = "page") -> set[str]:
    """Return the features of a reading: its parts, the rest of the line, and the context."""
    text = unmarked(_MARK.sub("", line))
    subject, predicate, value = triple.subject, triple.predicate, triple.object
    own = _sentence_with(text, subject, value)
    found = {f"kind {triple.kind}", f"in {kind}"}
    found |= {f"subject {one}" for one in _shape(subject)}
    found |= {f"value {one}" for one in _shape(value)}
    found |= {f"predicate {one}" for one in _predicate(predicate, own)}
    found |= {f"{triple.kind} beside {one}" for one in _context_features(own, triple)}
    rule = triple.rule or "property"
    found |= {f"rule {rule}", f"rule {rule} in {kind}"}
    found |= {
        f"rule {rule} {one}"
        for one in (*_context_features(own, triple), *_shape(value))
        if not one.startswith("words")
    }
    found |= {f"rule {rule} of {one}" for one in _shape(subject) if not one.startswith("words")}
    found |= {f"line {one}" for one in _marks(own)} | {
        f"above {one}" for one in _marks(before) if one != "long"
    }
    return found


def _sentence_with(text: str, subject: str, value: str) -> str:
    """Return the sentence that has the value, with the subject if one has both."""
    parts = sentences(text)
    having = [part for part in parts if value.casefold() in part.casefold()]
    both = [part for part in having if subject.casefold() in part.casefold()]
    return (both or having or [text])[0]


def _shape(text: str) -> Iterator[str]:
    words = text.split()
    value = typed(text)
    yield f"words {min(len(words), 5)}"
    if value:
        yield f"{value.type}{' and more' if value.rest else ''}"
    elif is_name(text):
        yield "name"
    elif any(map(is_name_token, words)):
        yield "name within"
    else:
        yield "plain"
    low = {word.casefold().strip(".,") for word in words}
    if low & wording.NO_ENTITY or not text[:1].isalnum():
        yield "odd"
    if words and (words[-1].casefold().endswith(("ed", "ly")) or words[0].casefold() in wording.MODALS):
        yield "verbal"
    if wording.DENIAL.search(text) or wording.PAST.search(text):
        yield "denial"
    if wording.is_somebody(text) or low & wording.TRAITS:
        yield "somebody"
    if is_known_key(words[-1] if words else ""):
        yield "key"
    if re.search(r"[\"“„()=/]", text):
        yield "signs"


def _predicate(predicate: str, own: str) -> Iterator[str]:
    words = predicate.split()
    if predicate in ("is", "ist"):
        yield "is"
    elif not predicate:
        yield "none"
    elif not words or not words[0][:1].isalpha():
        yield "sign"
    elif is_known_key(predicate) or is_known_key(words[-1]):
        yield "key"
    elif predicate.casefold() in wording.VERBS:
        yield "verb"
    else:
        yield "other"
    yield f"words {min(len(words), 4)}"
    if predicate.casefold() not in own.casefold():
        yield "not said"
    if any(c.isdigit() for c in predicate):
        yield "number"


def _context_features(own: str, triple: Triple) -> Iterator[str]:
    """Yield how a sentence continues after the value, begins before the subject, and what else it contains."""
    low = own.casefold()
    start, place = low.find(triple.subject.casefold()), low.rfind(triple.object.casefold())
    end = place + len(triple.object)
    yield "start" if start <= 4 and start >= 0 else "no subject" if start < 0 else "within"
    after = own[end:].strip(" ") if place >= 0 else "?"
    sign = after[:1]
    yield "ends" if not after.strip(".! ") else f"then {sign}" if not sign.isalnum() else "then a word"
    if start >= 0 and place >= 0 and start > place:
        yield "value first"
    said = {
        word.casefold()
        for part in (triple.subject, triple.predicate, triple.object)
        for word in _WORD.findall(part)
    }
    rest = [word for word in _WORD.findall(own) if word.casefold() not in said | _SMALL]
    yield f"rest {min(len(rest), 8) // 2}"
    between = own[start + len(triple.subject) : place] if 0 <= start < place else ""
    extra = [word for word in _WORD.findall(between) if word.casefold() not in said | _SMALL]
    yield f"between {min(len(extra), 3)}"
    colon = re.match(r"[^:=–—]{1,50}\s*(:|=|–|—| - )", own)
    yield f"sign {colon[1].strip()}" if colon else "no sign"
    yield "row" if own.startswith("|") else "no row"


def _marks(text: str) -> Iterator[str]:
    for name, pattern in _MARKS.items():
        if pattern.search(text):
            yield name
    if len(text.split()) > 20:
        yield "long"


_MARKS = {
    "question": re.compile(r"\?"),
    "shout": re.compile(r"!"),
    "quote": re.compile(r"[\"“„»«]|(?<!\w)'|'(?!\w)"),
    "hearsay": wording.HEARSAY,
    "doubt": wording.DOUBT,
    "denial": wording.DENIAL,
    "past": wording.PAST,
    "you": re.compile(r"\b(?:you|your|du|dein\w*|dir|dich)\b", re.I),
    "sample": re.compile(
        r"e\.g\.|z\.b\.|bsp|\bmuster|example|beispiel|sample|dummy|mock|fake|template|test", re.I
    ),
    "dots": re.compile(r"\.\.\.|…|_{3,}"),
    "self": re.compile(r"\b(?:no|nein|nee|nope|sorry|er|erm|um|äh|ähm|also)\b", re.I),
    "play": re.compile(
        r"\b(?:lol|haha|joke|witz|dream|traum|story|song|movie|film|novel|roman|poem)\w*", re.I
    ),
}


@cache
def _weights() -> dict[str, float]:
    import msgspec

    text = Path(__file__).with_name("trust.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, float])
