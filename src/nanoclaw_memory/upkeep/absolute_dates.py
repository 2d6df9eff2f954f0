"""Replace relative dates by absolute ones: "next week" means nothing a year later."""

from __future__ import annotations

import re
from datetime import date, timedelta

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.calendar_days import LENGTHS
from nanoclaw_memory.retrieval.date_words import LEXICON, lexeme
from nanoclaw_memory.text import language

_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "day after tomorrow": 2,
    "vorgestern": -2,
    "gestern": -1,
    "heute": 0,
    "morgen": 1,
    "übermorgen": 2,
}
_UNITS = "week|weekend|month|quarter|year|woche|wochenende|monat|quartal|jahr"
_WEEKDAYS = "|".join(name for name, word in LEXICON.items() if word.kind == "weekday")
_COUNTS = "day|week|month|year|tag|woche|monat|jahr"
# "In two weeks" is skipped: work may be done in two weeks.
_PHRASE = regex(
    r"(?P<before>\b(?i:on|by|until|till|since|from|before|after|for|of|in|during|over|bis|ab|seit|vor|nach|am|im|zum|für|"
    r"von|vom|zur)\s+)?(?P<article>\b(?i:the|der|die|das|dem|den)\s+)?"
    r"(?:(?P<day>day before yesterday|day after tomorrow)"
    r"|(?P<word>(?i:yesterday|today|tonight|tomorrow|gestern|vorgestern|heute|übermorgen)"
    r"|(?<!am )(?<!jeden )(?<![Gg]uten )morgen)"
    r"|(?P<which>(?i:next|coming|this|last|previous|nächste|kommende|diese|letzte|vorige|vergangene))[nmrs]?\s+"
    rf"(?P<unit>(?i:{_UNITS}|{_WEEKDAYS}))(?:\s+(?:on|am)\s+(?P<weekday>(?i:{_WEEKDAYS})))?"
    rf"|(?P<many>\d{{1,3}}|(?i:an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve))\s+(?P<ago>(?i:{_COUNTS})s?)\s+ago"
    rf"|(?P<wieviel>(?<=[Vv]or )(?:\d{{1,3}}|(?i:eine[mnr]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf)))\s+"
    rf"(?P<her>(?i:{_COUNTS})(?:en|e|n)?)"
    r")(?![\w-])"
)


def with_dates(text: str, day: date) -> str:
    """Return the text with dates in place of days relative to `day`; ambiguous ones stay."""
    german = language(text) == "german"
    return _PHRASE.sub(lambda match: _dated(match, day, german), text)


def _dated(match: re.Match[str], day: date, german: bool) -> str:
    found = None if _is_span(match) else _period_of(match, day)
    if found is None:
        return match[0]
    kind, value = found
    if kind == "week":
        value = f"der Woche ab {value}" if german else f"the week of {value}"
    if match.string[match.end() :].startswith(("'s", "’s")):
        return f"{match['before'] or ''}{value}"
    link = ("am" if german else "on") if kind == "day" else "in"
    before = "" if match["wieviel"] else (match["before"] or "").strip()
    written = f"{link if before.casefold() in ('', 'am', 'im') else before} {value}"
    return written.capitalize() if match[0][0].isupper() and link == written.split()[0] else written


def _is_span(match: re.Match[str]) -> bool:
    """Return whether it is a length of time: "in the last year"."""
    return bool(match["which"]) and (match["article"] or "").strip().casefold() == "the"


def _period_of(match: re.Match[str], day: date) -> tuple[str, str] | None:
    """Return a day, or the week, month, quarter or year; None if ambiguous."""
    if word := match["day"] or match["word"]:
        return "day", (day + timedelta(days=_DAYS[word.casefold()])).isoformat()
    if match["which"]:
        return _adjacent_period(match, day)
    many, unit = match["many"] or match["wieviel"], lexeme(match["ago"] or match["her"]).name
    count = int(many) if many.isdigit() else max(lexeme(many).value, 1)
    if unit in ("day", "week"):
        return "day", (day - timedelta(days=count * LENGTHS[unit])).isoformat()
    return "period", str(day.year - count) if unit == "year" else _month(day, -count)


def _adjacent_period(match: re.Match[str], day: date) -> tuple[str, str] | None:
    """Return a period next to the day of writing: the next week, this month, last Friday."""
    step = {"n": 1, "c": 1, "k": 1, "t": 0, "d": 0}.get(match["which"][0].casefold(), -1)
    unit = lexeme(match["unit"])
    if unit.kind == "weekday":
        return _weekday(unit.value, step, day)
    monday = day + timedelta(days=7 * step - day.weekday())
    if match["weekday"] or unit.kind == "weekend":
        number = lexeme(match["weekday"]).value if match["weekday"] else 5
        return (
            ("day", (monday + timedelta(days=number)).isoformat()) if LENGTHS.get(unit.name, 7) == 7 else None
        )
    if unit.name == "week":
        return "week", monday.isoformat()
    if unit.name == "quarter":
        year, month = _month(day, 3 * step).split("-")
        return "period", f"{year} Q{(int(month) + 2) // 3}"
    return "period", str(day.year + step) if unit.name == "year" else _month(day, step)


def _weekday(number: int, step: int, day: date) -> tuple[str, str] | None:
    ahead = (number - day.weekday()) % 7
    if step < 0:
        return "day", (day - timedelta(days=7 - ahead)).isoformat()
    if step > 0 and number > day.weekday():
        return None  # this week's, or the next one's
    return "day", (day + timedelta(days=ahead or 7 * step)).isoformat()


def _month(day: date, step: int) -> str:
    index = day.year * 12 + day.month - 1 + step
    return f"{index // 12}-{index % 12 + 1:02}"
