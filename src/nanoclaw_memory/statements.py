"""Compare statements: equal, more specific, contradictory, faithfully reworded."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import date

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import (
    Language,
    content_words,
    fingerprint,
    language,
    one_line,
    sentences,
    stem,
    stems_in_any_language,
    words,
)

MOST_WORDS = 0.8  # share of a statement's words in another one that says the same
SAME_SUBJECT = 0.6  # share of the words of two statements that both must contain
FROM_SOURCES = 0.6  # share of a rewording's words that must come from its sources
MOST_MOVED = 60  # words of a statement within which a part may be moved
_NUMBER = regex(r"\d+(?:[.,:/-]\d+)*")
_SOURCE_DATE = regex(r"\s*\((\d{4}-\d{2}-\d{2})\)\s*$")
_NEGATION = frozenset(
    "not no never without none cannot don't doesn't didn't won't can't isn't aren't wasn't shouldn't stop stopped "
    "avoid nicht kein keine keinen nie niemals ohne".split()
)
_RETRACTION = regex(
    r"\b(?:instead of|rather than|no longer|away from|from|replac(?:es?|ed|ing)|dropp?(?:ed|ing)?|not|statt|nicht mehr)"
    r"\s+(?:the |using |use )?(?P<what>[\w.+#-]+)",
    re.IGNORECASE,
)
_NAME = regex(r"(?<=[\w,;:)] )[A-ZÀ-Þ][\w.+#-]*\w|\b\w+[A-Z]\w*\b")
_REASON = regex(r"\s(?:because|since|so that|weil|damit)\s", re.IGNORECASE)
_VERBATIM = regex(r"`[^`]+`|\"[^\"]+\"|https?://\S+|[\w.-]*[/_][\w./-]+")
# Words that may be added or left out without changing the meaning of a sentence.
_LIGHT = frozenset(
    "user a an the please kindly really bitte wirklich der die das dem den des ein eine einen einem einer".split()
)
# Numbers that people write as words.
NUMBER_WORDS = {
    word: str(number)
    for names in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(names.split())
} | {
    word: str(10 * number)
    for names in (
        "twenty thirty forty fifty sixty seventy eighty ninety hundred",
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    )
    for number, word in enumerate(names.split(), 2)
}
NUMBER_WORDS |= {
    word: f"{number}."
    for names in (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th",
    )
    for number, word in enumerate(names.split(), 1)
}
# Units and signs, each in the forms that people write.
UNITS = {
    word: forms.split()[0]
    for forms in (
        "s sec secs second seconds sekunde sekunden sek",
        "min mins minute minutes minuten",
        "h hr hrs hour hours stunde stunden std",
        "€ eur euro euros",
        "$ usd dollar dollars",
        "% percent prozent",
        "km kilometre kilometres kilometer kilometers",
        "kg kilo kilos kilogram kilograms kilogramm",
        "/ per pro",
    )
    for word in forms.split()
}
# Words that begin a part that may be first, last or in between: "after every release", "im März".
_BEGIN_PARTS = frozenset(
    "in on at after before during since until within from to by for with at into vor nach während seit bis ab von zu "
    "zum zur für mit im am um beim bei ins aus".split()
)
# Words by which a report says whose wish it is, and how strong.
_FRAME = frozenset(
    "user users owner person prefer prefers preferred want wants like likes ask asks asked request requests always "
    "should must now ever every please thanks remember note ok nutzer benutzer möchte bevorzugt will mag immer bitte "
    "stets danke merke".split()
)
_SIGN = regex(r"([€$%]|/(?=(?:s|sec|min|h|hour|day|week|month|year|tag|woche|monat|jahr)\b))")
_EDGE = "\"'`“”‘’«».,;:!?()[]{}…"
_PLAIN_SIGNS = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2013: "-", 0x2014: "-"}


class Features(msgspec.Struct, frozen=True):
    """The features by which statements are compared."""

    stems: frozenset[str]
    core: frozenset[str]  # the stems before its reason
    names: frozenset[str]
    numbers: frozenset[str]
    negated: bool
    retracted: frozenset[str]  # what it says is no longer true


@bounded(8 * 1024 * 1024)
def features(text: str) -> Features:
    """Return the features of a line, without the date of its source."""
    plain = without_date(text)
    spoken = language(plain)
    return Features(
        stems=_stems(plain, spoken),
        core=_stems(_REASON.split(plain)[0], spoken),
        names=frozenset(stem(word, spoken) for name in _NAME.findall(plain) for word in content_words(name)),
        numbers=frozenset(match.rstrip(".,") for match in _NUMBER.findall(plain)),
        negated=bool(_NEGATION & set(words(plain))),
        retracted=frozenset(stem(match["what"].casefold(), spoken) for match in _RETRACTION.finditer(plain)),
    )


def gives_reason(text: str) -> bool:
    """Return whether a statement contains a reason."""
    return bool(_REASON.search(text))


def _stems(text: str, spoken: Language) -> frozenset[str]:
    return frozenset(stem(word, spoken) for word in content_words(text) if not word.isdigit())


def without_date(text: str) -> str:
    """Return a line of MEMORY.md without the date of its source."""
    return _SOURCE_DATE.sub("", text)


def source_date(text: str) -> date | None:
    """Return the date of its source at the end of a line, or None."""
    match = _SOURCE_DATE.search(text)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


# ---- comparisons by features ----


def overlap(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return the share of all words of two texts that both contain (Jaccard)."""
    return len(one & other) / len(one | other) if one and other else 0.0


def contained(one: Features, other: Features) -> float:
    """Return the share of one's stems that the other contains."""
    return len(one.stems & other.stems) / len(one.stems) if one.stems else 0.0


def restates(known: Features, new: Features) -> bool:
    """Return whether a known line says everything that a new one does."""
    return (
        contained(new, known) >= MOST_WORDS
        and new.names <= known.stems
        and new.numbers <= known.numbers
        and new.negated == known.negated
    )


def same_statement(one: Features, other: Features) -> bool:
    """Return whether two lines say the same in other words."""
    return overlap(one.stems, other.stems) >= SAME_SUBJECT and agree(one, other)


def agree(one: Features, other: Features) -> bool:
    """Return whether two lines have the same numbers, names and denials."""
    return not _different_names(one, other) and one.numbers == other.numbers and one.negated == other.negated


def extends(known: Features, new: Features) -> bool:
    """Return whether a new line says what a known one does, and more."""
    return (
        contained(known, new) >= MOST_WORDS
        and len(new.stems - known.stems) >= 2
        and known.names <= new.stems
        and known.numbers <= new.numbers
        and known.negated == new.negated
    )


def contradiction(known: Features, new: Features) -> str:
    """Return why a new line cannot be true beside a known one; empty when it can."""
    shorter = min(len(known.core), len(new.core))
    common = len(known.core & new.core)
    if shorter < 2 or common < 2:
        return ""
    if new.retracted & known.core and common / shorter >= 0.5 and known.names - new.retracted <= new.stems:
        return "it gives up what that line says"
    if common / shorter < SAME_SUBJECT or _different_names(known, new):
        return ""
    if known.negated != new.negated:
        return "one denies what the other says"
    if known.numbers and new.numbers and known.numbers != new.numbers and common / shorter >= MOST_WORDS:
        return "the numbers differ"
    return ""


def succeeds(known: str, new: str) -> bool:
    """Return whether a new line gives the same subject another value in the same words: one name replaced by
    another.
    """
    one, other = features(known), features(new)
    first, second = content_words(known), content_words(new)
    return (
        first[:2] == second[:2] != []
        and one.negated == other.negated
        and overlap(one.stems, other.stems) >= SAME_SUBJECT
        and len(one.names - other.stems) == len(other.names - one.stems) == 1
    )


def _different_names(one: Features, other: Features) -> bool:
    """Return whether each names somebody or something that the other does not."""
    return bool(one.names - other.stems and other.names - one.stems)


def rewording_fault(sources: Sequence[str], text: str) -> str:
    """Return what a rewording of lines lost or invented; empty when it is faithful."""
    if not text or "\n" in text:
        return "it is no single line"
    whole = " ".join(sources)
    before, after = features(whole), features(text)
    if missing := before.numbers - after.numbers:
        return f"it lost {min(missing)}"
    if added := after.numbers - before.numbers:
        return f"it made up {min(added)}"
    if before.negated != after.negated:
        return "it turned a denial round"
    folded = text.casefold()
    for pattern in (_VERBATIM, _NAME):
        for name in pattern.findall(whole):
            if name.strip('`"').casefold() not in folded:
                return f"it lost {name[:60]}"
    if contained(after, before) < FROM_SOURCES:
        return "it says something else"
    if len(text) > 1.2 * len(whole) + 20:
        return "it is longer than what it rewords"
    return ""


def reports(claim: str, said: str) -> bool:
    """Return whether a claim about somebody's wish uses their words: the same ones in the same order, and no others."""
    wanted, known = features(claim), features(said)
    return (
        not said.rstrip().endswith("?")
        and (own := _sequence(claim)) != []
        and own == _sequence(said)
        and wanted.names <= known.stems
        and wanted.numbers == known.numbers
        and (wanted.negated, wanted.retracted) == (known.negated, known.retracted)
        and all(exact in said for exact in _VERBATIM.findall(claim))
    )


def _sequence(text: str) -> list[str]:
    """Return the stems of the content words in order, without those that say whose wish it is."""
    spoken = language(text)
    stems = (stem(word, spoken) for word in content_words(text))
    return [found for found in stems if found not in _frame_stems()]


def echoes(claim: str, text: str) -> bool:
    """Return whether a claim may come from a text: one of its sentences contains most of a claim's words."""
    there = [features(part).stems for part in sentences(text)]
    for part in sentences(claim):
        own = _unframed(features(part))
        if any(len(own & stems) >= max(SAME_SUBJECT * len(own), 2) for stems in there):
            return True
    return False


def _unframed(read: Features) -> frozenset[str]:
    return read.stems - _frame_stems()


@functools.cache
def _frame_stems() -> frozenset[str]:
    return stems_in_any_language([*_FRAME, *_NEGATION]) | _FRAME | _NEGATION


# ---- comparisons word by word ----


def normal(text: str) -> str:
    """Normalise a text: case, spacing, shape of quotes and final punctuation are ignored."""
    plain = one_line(unicodedata.normalize("NFKC", text)).casefold().translate(_PLAIN_SIGNS)
    return plain.strip(" .!;,…") or plain


def text_key(text: str) -> str:
    """Return a short key that is equal for texts with the same normal form."""
    return fingerprint(normal(text))[:32]


def longest_words(text: str, most: int = 3) -> list[str]:
    """Return the longest words: those that a near duplicate surely contains."""
    found = {word for word in _forms(text) if word.isalpha() and len(word) > 3}
    return sorted(found, key=lambda word: (-len(word), word))[:most]


def near_duplicate(one: str, other: str) -> bool:
    """Return whether two texts have the same words in equivalent forms, with at most one part moved.

    A single small word, an ending or an additional word can change a statement: better two entries than a lost one.
    """
    first, second = _forms(one), _forms(other)
    if not first or not second or Counter(first) != Counter(second):
        return False
    return first == second or (
        len(first) <= MOST_MOVED and _moved(first, second, language(one) == language(other) == "german")
    )


def _moved(first: list[str], second: list[str], verb_second: bool) -> bool:
    """Return whether one part, which begins as parts do, was moved; in German the verb moves with it to stay second."""
    for start, word in enumerate(first):
        if word not in _BEGIN_PARTS:
            continue
        for end in range(start + 2, len(first) + 1):
            part, left = first[start:end], first[:start] + first[end:]
            for at in range(len(second) - len(part) + 1):
                if second[at : at + len(part)] != part:
                    continue
                rest = second[:at] + second[at + len(part) :]
                if rest == left or (verb_second and 0 in (start, at) and _turned(left, rest)):
                    return True
    return False


def _turned(one: list[str], other: list[str]) -> bool:
    """Return whether the first word of one, the verb, is second or third in the other, and everything else is equal."""
    return any(
        ahead[:1] == behind[place : place + 1] and ahead[1:] == behind[:place] + behind[place + 1 :]
        for ahead, behind in ((one, other), (other, one))
        for place in (1, 2)
    )


def _forms(text: str) -> list[str]:
    """Return the words in canonical forms: numbers as digits, units short, without courtesy and articles."""
    spaced = _SIGN.sub(r" \1 ", normal(text))
    found = (word for part in spaced.split() if (word := part.strip(_EDGE)))
    forms = (UNITS.get(word) or NUMBER_WORDS.get(word, word) for word in found if word not in _LIGHT)
    return [word for word in forms if word]
