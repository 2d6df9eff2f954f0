"""Find corrections in a message by weighted patterns; quotes, code and reported speech are ignored."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nanoclaw_memory.text import sentences

THRESHOLD = 0.6
MOST_CHARS = 8_000
MOST_SENTENCES = 60
_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_INLINE = re.compile(r"`[^`\n]*`")
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$|^(?: {4}|\t).*$|^\$ .*$", re.MULTILINE)
_QUOTE = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\"\n]*[“”\"]|«[^»\n]*»|»[^«\n]*«|‘[^’\n]{3,}’|(?<![\w])'[^'\n]{3,}'(?!\w)"
)
_TRACE = re.compile(
    r"^Traceback \(.*?(?=\n\S|\Z)|^\w*(?:Error|Exception|Warning): .*$", re.MULTILINE | re.DOTALL
)
_ONLY_NO = re.compile(r"(?:no+|nope|nah|nein|actually,? no)[.!]*\Z", re.IGNORECASE)


class Correction(msgspec.Struct, frozen=True):
    """A sentence that corrects the agent, with the kind of rule and its weight."""

    sentence: str
    kind: str
    weight: float
    language: str


class _CorrectionRule(msgspec.Struct, frozen=True):
    kind: str
    weight: float
    regex: re.Pattern[str]
    question: bool


class _Language(msgspec.Struct, frozen=True):
    name: str
    rules: tuple[_CorrectionRule, ...]
    unless: tuple[re.Pattern[str], ...]
    praise: re.Pattern[str]


def find(message: str) -> list[Correction]:
    """The correcting sentences of a message, highest weight first; empty for most messages."""
    found = []
    for sentence, plain in _sentences(message):
        best = max(_matches(sentence, plain), key=lambda one: one.weight, default=None)
        if best is not None and best.weight >= THRESHOLD:
            found.append(best)
    return sorted(found, key=lambda one: -one.weight)


def is_praise(message: str) -> bool:
    """Whether a message praises the last answer."""
    if find(message):
        return False
    plain = " ".join(plain for _, plain in _sentences(message))
    return any(_language(name).praise.search(plain) for name in _languages())


def _matches(sentence: str, plain: str) -> list[Correction]:
    asked = plain.rstrip("\"' ").endswith("?")
    found = []
    for language in _spoken(plain):
        if any(unless.search(plain) for unless in language.unless):
            continue
        found += [
            Correction(sentence, rule.kind, rule.weight, language.name)
            for rule in language.rules
            if (rule.question or not asked) and rule.regex.search(plain)
        ]
    return found


def _sentences(message: str) -> list[tuple[str, str]]:
    """Each sentence as written, and as the rules match it: lower-case, without quotes and polite openings."""
    text = message[:MOST_CHARS]
    for pattern in (_FENCE, _TRACE, _QUOTED_LINE):
        text = pattern.sub("\n", text)
    pairs: list[tuple[str, str]] = []
    pending = ""
    for part in sentences(text)[:MOST_SENTENCES]:
        sentence, pending = f"{pending}{part}", ""
        if _ONLY_NO.match(sentence):
            pending = f"{sentence.rstrip('.!')}, "  # "No. It's Friday." is one thought
        elif plain := _plain(sentence):
            pairs.append((sentence, plain))
    return pairs


def _plain(sentence: str) -> str:
    unquoted = _QUOTE.sub("…", _INLINE.sub("…", sentence)).casefold().replace("’", "'")
    return _openings().sub("", " ".join(unquoted.split())).strip(" ,-")


@functools.lru_cache(maxsize=1)
def _data() -> dict[str, object]:
    loaded: dict[str, object] = json.loads(
        Path(__file__).with_name("patterns.json").read_text(encoding="utf-8")
    )
    return loaded


@functools.lru_cache(maxsize=1)
def _openings() -> re.Pattern[str]:
    openings = _data()["openings"]
    assert isinstance(openings, list)
    longest_first = "|".join(sorted(map(re.escape, openings), key=len, reverse=True))
    return re.compile(rf"^(?:(?:{longest_first})\b[,.!:;]*\s+)+")


def _spoken(plain: str) -> Iterator[_Language]:
    """The languages of which a sentence contains a common word; the others are not even compiled."""
    found = set(plain.replace(",", " ").replace(".", " ").replace("!", " ").replace("?", " ").split())
    for name, known_by in _languages().items():
        if not found.isdisjoint(known_by):
            yield _language(name)


@functools.lru_cache(maxsize=1)
def _languages() -> dict[str, frozenset[str]]:
    languages = _data()["languages"]
    assert isinstance(languages, dict)
    return {name: frozenset(own["known_by"].split()) for name, own in languages.items()}


@functools.cache
def _language(name: str) -> _Language:
    languages = _data()["languages"]
    assert isinstance(languages, dict)
    own = languages[name]
    rules = (
        _CorrectionRule(rule["kind"], rule["weight"], re.compile(rule["regex"]), rule.get("question", False))
        for rule in own["rules"]
    )
    unless = (re.compile(pattern) for pattern in own["unless"])
    return _Language(name, tuple(rules), tuple(unless), re.compile(own["praise"]))
