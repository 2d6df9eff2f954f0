"""The days a question asks about: "yesterday", "last week", "in March", "on 8 May 2023", in English and German."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta

import msgspec

from nanoclaw_memory.text import words

_MONTHS = (
    "january|januar|jan february|februar|feb march|märz|mar april|apr may|mai june|juni|jun july|juli|jul"
    " august|aug september|sept|sep october|oktober|oct|okt november|nov december|dezember|dec|dez"
).split()
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split("|")}
_DAYS = (
    "monday|montag tuesday|dienstag wednesday|mittwoch thursday|donnerstag friday|freitag saturday|samstag"
    " sunday|sonntag"
).split()
_WEEKDAY_OF = {name: number for number, names in enumerate(_DAYS) for name in names.split("|")}
_NUMBER_OF = {"a": 1, "one": 1, "two": 2, "three": 3, "einem": 1, "einer": 1, "zwei": 2, "drei": 3}
_LENGTH_OF = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30}
# A question with none of these names no day: most do not, and patterns take a new process milliseconds to make.
_TELLING = frozenset(
    "yesterday gestern vorgestern today heute morning week woche wochen weeks month months monat monaten ago tagen"
    " tag".split()
).union(_MONTH_OF, _WEEKDAY_OF)


class Days(msgspec.Struct, frozen=True):
    """From a day to a day, both counted."""

    first: date
    last: date


def asked(question: str, today: date) -> Days | None:
    """The days that a question names; None when it names none."""
    text = question.casefold()
    named = {word.partition("'")[0] for word in words(text)}
    if not _TELLING & named and "-" not in text:
        return None
    try:
        return _absolute(text, today) or _relative(text, today)
    except (ValueError, OverflowError):  # the 31st of February
        return None


def _absolute(text: str, today: date) -> Days | None:
    month = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
    if found := re.search(r"\b(\d{4})-(\d{2})-(\d{2})\b", text):
        return _one(date(int(found[1]), int(found[2]), int(found[3])))
    if found := re.search(
        rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?({month})\b\.?,?(?:\s+(\d{{4}}))?", text
    ):
        return _one(_past(int(found[1]), _MONTH_OF[found[2]], found[3], today))
    if found := re.search(rf"\b({month})\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*:)(?:,?\s+(\d{{4}}))?", text):
        return _one(_past(int(found[2]), _MONTH_OF[found[1]], found[3], today))
    if found := re.search(rf"\b(?:in|during|of|im|since|last|this)\s+({month})\b(?:,?\s+(\d{{4}}))?", text):
        first = _past(1, _MONTH_OF[found[1]], found[2], today)
        return Days(first, first.replace(day=monthrange(first.year, first.month)[1]))
    return None


def _relative(text: str, today: date) -> Days | None:
    monday = today - timedelta(days=today.weekday())
    if re.search(r"\b(?:day before yesterday|vorgestern)\b", text):
        return _one(today - timedelta(days=2))
    if re.search(r"\b(?:yesterday|gestern)\b", text):
        return _one(today - timedelta(days=1))
    if re.search(r"\b(?:today|heute|this morning)\b", text):
        return _one(today)
    # People say "last week" on a Sunday and mean the days that are just over.
    if re.search(r"\b(?:last|past|previous|letzten?|vergangenen?) (?:week|woche)\b", text):
        return Days(monday - timedelta(days=7), today)
    if re.search(r"\b(?:this week|diese[rn]? woche)\b", text):
        return Days(monday, today)
    if re.search(r"\b(?:last|past|previous|letzten|vergangenen) (?:month|monat)\b", text):
        return Days((today.replace(day=1) - timedelta(days=1)).replace(day=1), today.replace(day=1))
    if re.search(r"\b(?:this month|diesen monat|diesem monat)\b", text):
        return Days(today.replace(day=1), today)
    number, unit = (
        r"(\d{1,3}|a|one|two|three|einem|einer|zwei|drei)",
        r"(day|week|month|tag|woche|monat)(?:s|en|e|n)?",
    )
    if found := re.search(rf"\b{number}\s+{unit}\s+ago\b|\bvor\s+{number}\s+{unit}\b", text):
        count, name = (found[1], found[2]) if found[1] else (found[3], found[4])
        length = _LENGTH_OF[name]
        day = today - timedelta(days=(_NUMBER_OF.get(count) or int(count)) * length)
        return Days(day - timedelta(days=length // 2), day + timedelta(days=length // 2))
    if found := re.search(rf"\b(?:on|last|am|letzten)\s+({'|'.join(_WEEKDAY_OF)})\b", text):
        back = (today.weekday() - _WEEKDAY_OF[found[1]]) % 7 or 7
        return _one(today - timedelta(days=back))
    return None


def _one(day: date) -> Days:
    return Days(day, day)


def _past(day: int, month: int, year: str | None, today: date) -> date:
    """The day in the year given, or the last such day that is not in the future."""
    if year:
        return date(int(year), month, day)
    this = date(today.year, month, day)
    return this if this <= today else date(today.year - 1, month, day)
