"""Find corrections in a message by weighted patterns; quotes, code and reported speech are ignored."""

from __future__ import annotations

import functools
import re
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
_PUNCTUATION = re.compile(r"[,.!?]")
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
    regex: str
    question: bool = False  # whether it applies to questions too


class _LanguageRules(msgspec.Struct, frozen=True):
    known_by: str
    rules: tuple[_CorrectionRule, ...]
    unless: tuple[str, ...]
    praise: str


class _Patterns(msgspec.Struct, frozen=True):
    openings: tuple[str, ...]
    languages: dict[str, _LanguageRules]


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
    return any(_compiled(own.praise).search(plain) for own in _patterns().languages.values())


def _matches(sentence: str, plain: str) -> list[Correction]:
    asked = plain.rstrip("\"' ").endswith("?")
    found: list[Correction] = []
    for name, language in _patterns().languages.items():
        # Patterns of other languages are not even compiled.
        if not _tokens(language.known_by).intersection(_PUNCTUATION.sub(" ", plain).split()):
            continue
        if any(_compiled(unless).search(plain) for unless in language.unless):
            continue
        found += [
            Correction(sentence, rule.kind, rule.weight, name)
            for rule in language.rules
            if (rule.question or not asked) and _compiled(rule.regex).search(plain)
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


@functools.cache
def _patterns() -> _Patterns:
    return msgspec.json.decode(Path(__file__).with_name("patterns.json").read_bytes(), type=_Patterns)


@functools.cache
def _openings() -> re.Pattern[str]:
    longest_first = "|".join(sorted(map(re.escape, _patterns().openings), key=len, reverse=True))
    return re.compile(rf"^(?:(?:{longest_first})\b[,.!:;]*\s+)+")


@functools.cache
def _tokens(text: str) -> frozenset[str]:
    return frozenset(text.split())


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
