"""Whether two lines say the same, whether one says more, whether they disagree, whether a rewording lost anything."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

import msgspec

from nanoclaw_memory.text import Language, content_words, language, stem, words
from nanoclaw_memory.workspace.log import archived_day

SAME = 0.8
SUBJECT = 0.6
SHARED = 0.6  # of a rewording's words must come from what it rewords
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DATE = re.compile(r"\s*\((\d{4}-\d{2}-\d{2})\)\s*$")
_NEGATION = frozenset(
    "not no never without none cannot don't doesn't didn't won't can't isn't aren't wasn't shouldn't stop stopped "
    "avoid nicht kein keine keinen nie niemals ohne".split()
)
_GIVEN_UP = re.compile(
    r"\b(?:instead of|rather than|no longer|away from|from|replac(?:es?|ed|ing)|dropp?(?:ed|ing)?|not|statt|nicht mehr)"
    r"\s+(?:the |using |use )?(?P<what>[\w.+#-]+)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,;:)] )[A-ZÀ-Þ][\w.+#-]*\w|\b\w+[A-Z]\w*\b")
_REASON = re.compile(r"\s(?:because|since|so that|weil|damit)\s", re.IGNORECASE)
_EXACT = re.compile(r"`[^`]+`|\"[^\"]+\"|https?://\S+|[\w.-]*[/_][\w./-]+")


class Sense(msgspec.Struct, frozen=True):
    """What of a line is compared: stems, those before the reason, names, numbers, denial, and what it gives up."""

    stems: frozenset[str]
    core: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    denies: bool
    given_up: frozenset[str]


@lru_cache(maxsize=20_000)
def sense(text: str) -> Sense:
    """A line without its label and date, ready to be compared."""
    plain = without_date(text)
    numbers = frozenset(match.rstrip(".,") for match in _NUMBER.findall(plain))
    spoken = language(plain)
    names = frozenset(stem(word, spoken) for name in _NAME.findall(plain) for word in content_words(name))
    given_up = frozenset(stem(match["what"].casefold(), spoken) for match in _GIVEN_UP.finditer(plain))
    core = _stems(_REASON.split(plain)[0], spoken)
    return Sense(_stems(plain, spoken), core, names, numbers, bool(_NEGATION & set(words(plain))), given_up)


def _stems(text: str, spoken: Language) -> frozenset[str]:
    return frozenset(stem(word, spoken) for word in content_words(text) if not word.isdigit())


def without_date(text: str) -> str:
    """A line of MEMORY.md without the date of its source."""
    return _DATE.sub("", text)


def date_of(text: str) -> date | None:
    """The date of its source at the end of a line; None when there is none."""
    match = _DATE.search(text)
    return archived_day(match[1]) if match else None


def within(one: Sense, other: Sense) -> float:
    """The share of one's words that the other has."""
    return len(one.stems & other.stems) / len(one.stems) if one.stems else 0.0


def says_already(known: Sense, new: Sense) -> bool:
    """Whether a known line says all that a new one does."""
    return (
        within(new, known) >= SAME
        and new.names <= known.stems
        and new.numbers <= known.numbers
        and new.denies == known.denies
    )


def alike(one: Sense, other: Sense) -> bool:
    """Whether two lines say the same in other words."""
    common = len(one.stems & other.stems)
    every = len(one.stems | other.stems)
    return (
        bool(every)
        and common / every >= SUBJECT
        and not _of_others(one, other)
        and one.numbers == other.numbers
        and one.denies == other.denies
    )


def _of_others(one: Sense, other: Sense) -> bool:
    """Whether each names somebody or something that the other does not."""
    return bool(one.names - other.stems and other.names - one.stems)


def disagree(known: Sense, new: Sense) -> str:
    """Why a new line cannot hold beside a known one; empty when it can."""
    least = min(len(known.core), len(new.core))
    common = len(known.core & new.core)
    if least < 2 or common < 2:
        return ""
    if new.given_up & known.core and common / least >= 0.5 and known.names - new.given_up <= new.stems:
        return "it gives up what that line says"
    if common / least < SUBJECT or _of_others(known, new):
        return ""
    if known.denies != new.denies:
        return "one denies what the other says"
    if known.numbers and new.numbers and known.numbers != new.numbers and common / least >= SAME:
        return "the numbers differ"
    return ""


def extends(known: Sense, new: Sense) -> bool:
    """Whether a new line says what a known one does, and more."""
    more = len(new.stems - known.stems) >= 2
    same = known.names <= new.stems and known.numbers <= new.numbers and known.denies == new.denies
    return within(known, new) >= SAME and more and same


def lost(sources: list[str], text: str) -> str:
    """What a rewording of lines lost or made up; empty when it is faithful."""
    if not text or "\n" in text:
        return "it is no single line"
    whole = " ".join(sources)
    before, after = sense(whole), sense(text)
    if missing := before.numbers - after.numbers:
        return f"it lost {min(missing)}"
    if added := after.numbers - before.numbers:
        return f"it made up {min(added)}"
    if before.denies != after.denies:
        return "it turned a denial round"
    folded = text.casefold()
    for pattern in (_EXACT, _NAME):
        for name in pattern.findall(whole):
            if name.strip('`"').casefold() not in folded:
                return f"it lost {name[:60]}"
    if within(after, before) < SHARED:
        return "it says something else"
    if len(text) > 1.2 * len(whole) + 20:
        return "it is longer than what it rewords"
    return ""
