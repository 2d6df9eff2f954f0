"""Find corrections in a person's own words by weighted patterns; used where the judge is not available."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory.intake.authorship import own_words
from nanoclaw_memory.intake.signs import before_sign, is_own_rule, stated
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import (
    GERMAN_STOP_WORDS,
    STOP_WORDS,
    one_line,
    sentences,
    stems_in_any_language,
    words,
)

THRESHOLD = 0.6
MOST_SENTENCES = 60
_INLINE = regex(r"`[^`\n]*`")
_QUOTE = regex(
    r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\"\n]*[“”\"]|«[^»\n]*»|»[^«\n]*«|‘[^’\n]{3,}’|(?<![\w])'[^'\n]{3,}'(?!\w)"
)
_PUNCTUATION = regex(r"[,.!?]")
# "In tests, never …", "Wenn ich dich bitte, …": where or when a rule applies, before what it says.
_LEADING = regex(
    r"^(?:in|for|on|at|with|when|whenever|if|before|after|during|für|im|bei|beim|am|an|auf|wenn|bevor|nach|vor|mit)\b"
    r"[^,.;:?!]{1,60}, (?:(?:please|bitte|then|dann)\b,? )?"
)
# "No, don't …", "Nein, nimm …": what an instruction may begin with.
_DENYING = regex(r"^(?:no+|nope|nah|nein|nee|nö)\b[,.!:;]+ (?:(?:please|bitte)\b,? )?")
# "dont use npm", "nicht OAuth": what a clause denies.
_CLAUSE = regex(r"[,;.!:]+\s+|\s[–—-]\s|\s+(?=(?:and|but|und|aber|sondern)\s)")
_DENIED = regex(
    r"\s*(?:(?:and|but|und|aber|please|bitte|so|then|also|\w+ wanted|\w+ said)\s+)*"
    r"(?:do not|don['’]?t|never|not|no|stop|avoid|nicht|kein\w*|nie|niemals|"
    r"(?:nimm|nutz\w*|benutz\w*|verwend\w*|schreib\w*|mach\w*)\s+(?:bitte\s+)?(?:nicht|kein\w*|nie))\s+(?P<what>\S.*)",
    re.IGNORECASE,
)
# Words of such a clause that do not say what is denied.
_LIGHT = (
    STOP_WORDS
    | GERMAN_STOP_WORDS
    | frozenset(
        "use using write do take call run put make want again anymore ever please here there"
        " nutze nutzen nimm nehmen verwende verwenden schreib schreiben mach machen wieder mehr bitte hier da".split()
    )
)
REJECTED = 0.66  # minimal share of the words of a denying clause that the answer contains
_ONLY_NO = regex(r"(?:no+|nope|nah|nein|actually,? no)[.!]*\Z", re.IGNORECASE)


INSTRUCTING = ("stop", "dont", "use", "always")  # kinds of rule that tell what to do


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
    """Return the correcting sentences of a message, highest weight first; most messages have none."""
    found = [
        correction
        for said in _sentences(message)
        for correction in _matches(*said)
        if correction.weight >= THRESHOLD
    ]
    return sorted(found, key=lambda correction: -correction.weight)


def asks_of(own: str, labels: bool = True) -> bool:
    """Return whether a message asks something about the text behind a sign, as in "proofread this — …".

    With `labels=False` a label of the person's own ("good news: …") is no request.
    """
    if stated(own) != own:
        return True
    if is_own_rule(own):
        return False
    asked = before_sign(own, labels)
    plain = _plain(f"{asked}, ")
    return bool(plain) and not (_ONLY_NO.match(plain) or find(asked) or is_praise(asked))


def rejects(message: str, answer: str) -> bool:
    """Return whether a message denies in a clause of its own what an answer contains: "dont use npm", "not OAuth"."""
    if message.rstrip().endswith("?"):
        return False
    known = stems_in_any_language(words(answer))
    for clause in _CLAUSE.split(message):
        denied = _DENIED.match(clause)
        telling = [word for word in words(denied["what"]) if word not in _LIGHT] if denied else []
        said = sum(not known.isdisjoint(stems_in_any_language([word])) for word in telling)
        if telling and said >= REJECTED * len(telling):
            return True
    return False


def is_ruled_out(message: str) -> bool:
    """Return whether a sentence is a joke, a quotation, an error message, or a slip of the person's own."""
    return any(
        _compiled(unless).search(plain)
        for _, plain in _sentences(message)
        for language in _patterns().languages.values()
        if _is_in(language, plain)
        for unless in language.unless
    )


def is_praise(message: str) -> bool:
    """Return whether a message praises the last answer."""
    if find(message):
        return False
    plain = " ".join(plain for _, plain in _sentences(message))
    return any(_compiled(own.praise).search(plain) for own in _patterns().languages.values())


def _matches(sentence: str, plain: str) -> list[Correction]:
    asked = plain.rstrip("\"' ").endswith("?")
    rest = _LEADING.sub("", _DENYING.sub("", plain))
    found: list[Correction] = []
    for name, language in _patterns().languages.items():
        if not _is_in(language, plain) or any(_compiled(unless).search(plain) for unless in language.unless):
            continue
        found += [
            Correction(sentence, rule.kind, rule.weight, name)
            for rule in language.rules
            if (rule.question or not asked)
            and (
                _compiled(rule.regex).search(plain)
                or (rest != plain and rule.kind in INSTRUCTING and _compiled(rule.regex).search(rest))
            )
        ]
    return found


def _is_in(language: _LanguageRules, plain: str) -> bool:
    """Return whether a sentence has a word of a language; patterns of other languages are not even compiled."""
    return not _tokens(language.known_by).isdisjoint(_PUNCTUATION.sub(" ", plain).split())


def _sentences(message: str) -> list[tuple[str, str]]:
    """Return each sentence as written, and in the form that rules match: lower-case, no quotes, no polite openings."""
    pairs: list[tuple[str, str]] = []
    pending = ""
    for part in sentences(own_words(message))[:MOST_SENTENCES]:
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
    return regex(rf"^(?:(?:{longest_first})\b[,.!:;]*\s+)+")


@functools.cache
def _tokens(text: str) -> frozenset[str]:
    return frozenset(text.split())


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return regex(pattern)


MAX_LESSON = 300
MAX_TRIGGER = 200
_OPENING = regex(
    r"^(?:(?:(?:great|nice|good(?: start| catch)?|fine|schön|gut|passt)\b[,.!:;]+|"
    r"(?:ok(?:ay)?|thanks|thank you|hmm+|well|but|and|so|also|sure|danke|aber|und|one thing(?: though)?)\b[,.!:;]*"
    r")\s+)+",
    re.IGNORECASE,
)


def lesson_of(found: Sequence[Correction], own: str) -> str:
    """Return what a message's corrections teach: all of a short message, of a long one each with the sentence after
    it.

    The sentence that complains is seldom the one that says what to do.
    """
    said = sentences(own)
    if sum(map(len, said)) + len(said) > MAX_LESSON:
        corrects = [any(sentence in correction.sentence for correction in found) for sentence in said]
        said = [
            one for one, own, last in zip(said, corrects, [False, *corrects], strict=False) if own or last
        ]
    return worded(said)


def worded(taught: Iterable[str]) -> str:
    """Render sentences as a lesson: one line of bounded length without a polite opening."""
    lesson = _OPENING.sub("", one_line(" ".join(taught)))[:MAX_LESSON].strip()
    return lesson[:1].upper() + lesson[1:]


def principle_of(lesson: str) -> str:
    """Return the principle that shares most words with a lesson; `reliability` if none does."""
    found = set(words(lesson))
    scores = {name: len(found & known) for name, known in _indicators().items() if name != "answering"}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else "reliability"


def is_general(lesson: str, found: Sequence[Correction]) -> bool:
    """Return whether a lesson is about answering in general rather than about one topic."""
    about_answers = principle_of(lesson) in ("brevity", "style") and bool(
        set(words(lesson)) & _indicators()["answering"]
    )
    return about_answers or any(correction.kind == "length" for correction in found)


@functools.cache
def _indicators() -> dict[str, frozenset[str]]:
    """Return the words that indicate each principle, and under `answering` those about answers in general."""
    text = Path(__file__).with_name("principles.json").read_bytes()
    return {name: frozenset(known.split()) for name, known in msgspec.json.decode(text).items()}
