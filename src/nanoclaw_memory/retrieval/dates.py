"""Read the days that a question asks about, in English and German, and the rest of the question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval import calendar_days
from nanoclaw_memory.retrieval.calendar_days import AROUND, DAY, HOURS, Days
from nanoclaw_memory.retrieval.date_words import (
    MARKERS,
    Lexeme,
    asks_what_was_said,
    asks_where_we_were,
    lexeme,
    split_compound,
)

_NO_DIGIT = regex(r"\D+")
# Versions look like days: 2.3.2, v2.3.22, release 2.3.22.
_TOKEN = regex(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}:\d{2}"
    r"|(?<=\b[Aa]m )\d{1,2}\.\d{1,2}(?![\d.])"
    r"|(?<![\w.])(?<![Vv]ersion )(?<![Rr]elease )\d{1,2}\.\s?\d{1,2}\.(?:\s?\d{4}|\d{2})?(?!\.?\d)|\d+|[^\W\d_]+"
)
_ENDINGS = ("st", "nd", "rd", "th")


class When(msgspec.Struct, frozen=True):
    """The days that a question asks about, and its other words."""

    days: Days | None
    rest: str
    today: date
    ahead: bool = False  # it asks about what will be then, and not about what was said or done
    agenda: bool = False  # it only asks for that

    def only(self, names: frozenset[str] = frozenset()) -> bool:
        """Return whether it only asks what was said or done then; `names` are the speakers."""
        if self.ahead:
            return self.agenda
        return self.days is not None and asks_what_was_said(self.rest, self.days.last < self.today, names)

    @property
    def latest(self) -> bool:
        """Return whether it asks for the last talk, whenever that was."""
        return self.days is None and asks_where_we_were(self.rest)


class Token(msgspec.Struct, frozen=True):
    text: str
    word: Lexeme


class Reading(msgspec.Struct, frozen=True):
    """Days that were read, and the token after them; absolute days are independent of today."""

    days: Days
    end: int
    absolute: bool = False


def asked(question: str, today: date) -> Days | None:
    """Return the days that a question names, or None."""
    return when(question, today).days


@bounded(256 * 1024)  # several parts of a search call it
def when(question: str, today: date) -> When:
    """Return the days that a question names, and the rest of it."""
    found, rest = read_all(DateReader(tokens_of(question), today))
    best = next((read for read in found if read.absolute), found[0] if found else None)
    return When(best.days if best else None, " ".join(rest), today)


def read_all(reader: DateReader) -> tuple[list[Reading], list[str]]:
    """Return all days that a reader finds, and the other words."""
    found, rest, at = [], [], 0
    while at < len(reader.tokens):
        read = reader.read(at)
        if read is None:
            rest.append(reader.tokens[at].text)
            at += 1
        else:
            found.append(read)
            at = read.end
    return found, rest


def tokens_of(text: str) -> list[Token]:
    """Return the words, numbers and dates of a text."""
    return list(_tokens(text))


def _tokens(question: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(question):
        text = found.group()
        cut = split_compound(text)
        for part in (text[: cut[0]], text[cut[0] :]) if cut else (text,):
            yield Token(part, lexeme(part))


_LONGEST_COUNT = 4  # the words of "half a couple of"; pasted columns of numbers are no counts


class DateReader:
    """Read days from tokens; each method reads what begins at a token, or returns None."""

    def __init__(self, tokens: list[Token], today: date) -> None:
        self.tokens = tokens
        self.today = today

    def read(self, at: int) -> Reading | None:
        """Read days with a word before them: between, since, before, two weeks before, at the end of."""
        try:
            readers = (self._between, self._since, self._anchored, self._beside, self._period)
            found = self._first(at, readers)
        except (
            ValueError,
            OverflowError,
            RecursionError,
        ):  # 31 February; before the year 1; the end of the end of …
            return None
        # 9999-12-31 means never: there is no day after it.
        inside = found and date.min.year < found.days.first.year and found.days.last.year < date.max.year
        return found if inside else None

    def _first(self, at: int, readers: Iterable[Callable[[int], Reading | None]]) -> Reading | None:
        return next((read for reader in readers if (read := reader(at)) is not None), None)

    def _kind(self, at: int, *kinds: str) -> bool:
        return 0 <= at < len(self.tokens) and self.tokens[at].word.kind in kinds

    def _name(self, at: int) -> str:
        return self.tokens[at].word.name if 0 <= at < len(self.tokens) else ""

    def _value(self, at: int) -> int:
        return self.tokens[at].word.value

    def _skip(self, at: int, *names: str) -> int:
        """Return the place after words with these names."""
        while self._name(at) in names:
            at += 1
        return at

    # ---- two periods, or a period and a distance ----

    def _between(self, at: int) -> Reading | None:
        if self._name(at) not in ("between", "from"):
            return None
        first = self._period(self._skip(at + 1, "the"), marked=True)
        if first is None or self._name(first.end) not in ("and", "until"):
            return None
        last = self._period(self._skip(first.end + 1, "until", "the"), marked=True)
        if last is None:
            return None
        days = calendar_days.between(first.days.first, last.days.last)
        return Reading(days, last.end, first.absolute or last.absolute)

    def _since(self, at: int) -> Reading | None:
        if self._name(at) != "since":
            return None
        read = self._period(self._skip(at + 1, "the"), marked=True)
        return (
            Reading(Days(read.days.first, max(self.today, read.days.last)), read.end, read.absolute)
            if read
            else None
        )

    def _anchored(self, at: int) -> Reading | None:
        """Read two weeks before 11 August, or the Sunday before 25 October: from then to that day, when it was
        reported.
        """
        count, place = self._count(at) or (1.0, self._skip(at, "the", "last", "letzt"))
        known = self._kind(place, "unit", "weekday", "weekend")
        if not known or self._name(place + 1) not in ("before", "vor", "after"):
            return None
        read = self._period(self._skip(place + 2, "the"), marked=True)
        if read is None or not read.absolute:
            return None
        distance = timedelta(days=round(count * (7 if self._kind(place, "weekday") else self._value(place))))
        if self._name(place + 1) == "after":
            return Reading(Days(read.days.last, read.days.last + distance), read.end, absolute=True)
        return Reading(Days(read.days.first - distance, read.days.last), read.end, absolute=True)

    def _beside(self, at: int) -> Reading | None:
        """Read before Christmas, after Easter; "vor zwei Wochen" is a distance."""
        name = self._name(at)
        if name not in ("before", "vor", "after") or self._ago(at) is not None:
            return None
        read = self._period(self._skip(at + 1, "the"), marked=True)
        if read is None or self._kind(at + 1, "dayword"):
            return None
        if name == "after":
            return Reading(Days(read.days.last, read.days.last + AROUND * DAY), read.end, read.absolute)
        return Reading(Days(read.days.first - AROUND * DAY, read.days.first), read.end, read.absolute)

    # ---- one period ----

    def _period(self, at: int, marked: bool = False) -> Reading | None:
        """Read a period; `marked` means that the word before it makes "May" a month and "fall" a season."""
        marked = marked or self._name(at - 1) in MARKERS

        def named(place: int) -> Reading | None:
            return self._month(place, marked) or self._season(place, marked) or self._holiday(place)

        return self._first(
            at,
            (
                self._written,
                self._day_of_month,
                self._part_of,
                self._hours_of,
                self._ago,
                self._last_few,
                self._of_last,
                self._dayword,
                self._weekday,
                named,
                lambda place: self._year(place, marked),
                self._bare_day,
            ),
        )

    def _written(self, at: int) -> Reading | None:
        """Read 2026-01-05, 5.1.2026, 5.1., or 1/15/2026 where only one order is possible."""
        text = self.tokens[at].text if at < len(self.tokens) else ""
        parts = [int(part) for part in _NO_DIGIT.split(text) if part]
        if "-" in text:
            day = date(*parts)
        elif "." in text:
            year = parts[2] + (2000 if parts[2] < 100 else 0) if len(parts) == 3 else None
            day = self._in_year(parts[0], parts[1], year)
        elif "/" in text and max(parts[:2]) > 12:
            day = date(parts[2], min(parts[:2]), max(parts[:2]))
        else:
            return None
        return Reading(calendar_days.one(day), at + 1, absolute=True)

    def _day_of_month(self, at: int) -> Reading | None:
        """Read 3 May 2023, the 3rd of May, May 3rd, 2023."""
        if day := self._ordinal(at):
            number, place = day
            place = self._skip(place, "of")
            if not self._kind(place, "month"):
                return None
            month, end = self._value(place), place + 1
        elif self._kind(at, "month") and (day := self._ordinal(at + 1)):
            (number, end), month = day, self._value(at)
        else:
            return None
        year = self._number_of_year(end)
        found = self._in_year(number, month, year)
        return Reading(calendar_days.one(found), end + (year is not None), absolute=True)

    def _ordinal(self, at: int) -> tuple[int, int] | None:
        """Read a day's number with its ending; return it and the place after it."""
        text = self.tokens[at].text if at < len(self.tokens) else ""
        if not text.isdecimal() or not 1 <= int(text) <= 31:
            return None
        return int(text), at + 1 + (at + 1 < len(self.tokens) and self.tokens[at + 1].text in _ENDINGS)

    def _part_of(self, at: int) -> Reading | None:
        """Read the end of January, early last week, the first week of March, the first half of 2022."""
        start = self._skip(at, "the")
        place, length = start + 1, 0
        if self._kind(place, "unit"):
            place, length = place + 1, self._value(place)
        elif not self._kind(start, "edge"):
            return None
        if not self._kind(start, "edge", "last"):
            return None
        end = self._skip(place, "of", "the", "half")
        # "last week"; but "to start this week" is no part
        if end == place and (length or self._value(start)):
            return None
        whole = self._whole_unit(end) or self._period(end, marked=True)
        if whole is None or whole.days.length < 3:
            return None
        if self._name(place) == "half":
            length = -(-whole.days.length // 2)
        return Reading(calendar_days.part(whole.days, self._name(start), length), whole.end, whole.absolute)

    def _hours_of(self, at: int) -> Reading | None:
        """Read the evening of 7 July."""
        place = self._skip(at + 1, "of", "the")
        if not self._kind(at, "part") or place == at + 1:
            return None
        read = self._period(place, marked=True)
        if read is None or read.days.length > 1:
            return None
        hours = HOURS[self._name(at)]
        return Reading(Days(read.days.first, read.days.last, hours), read.end, read.absolute)

    def _whole_unit(self, at: int) -> Reading | None:
        """Return the whole week, month or year: "Anfang der Woche"."""
        return (
            Reading(calendar_days.unit(self._name(at), 0, self.today, whole=True), at + 1)
            if self._kind(at, "unit")
            else None
        )

    def _count(self, at: int) -> tuple[float, int] | None:
        """Read a count (three, a couple of, half a, einem halben); return it and the place after it."""
        numbers, place = list[int](), at
        while place - at < _LONGEST_COUNT and (
            self._kind(place, "number") or (numbers and self._name(place) == "of")
        ):
            numbers.append(self._value(place))
            place += 1
        if not numbers:
            return None
        halved = any(self._name(number) == "half" for number in range(at, place))
        most = max(numbers)
        return (most if not halved else most + 0.5 if most > 1 else 0.5), place

    def _ago(self, at: int) -> Reading | None:
        """Read two weeks ago, vor einem halben Jahr, a few days ago, 3 months back."""
        before = self._name(at) == "vor"
        counted = self._count(self._skip(at + before, "etwa") if before else at)
        if counted is None:
            return None
        count, place = counted
        if not self._kind(place, "unit", "weekend") or not (before or self._name(place + 1) == "ago"):
            return None
        length, end = self._value(place), place + 1 + (not before)
        day = self.today - timedelta(days=round(count * length))
        if self._kind(place, "weekend"):
            saturday = day - timedelta(days=(day.weekday() - 5) % 7)
            return Reading(Days(saturday, saturday + DAY), end)
        few = any(self._name(number) == "few" for number in range(at, place))
        reach = length // (4 if count % 1 else 2) + (round(count * length * 0.7) if few else 0)
        slack = timedelta(days=reach)
        return Reading(Days(day - slack, min(day + slack, self.today)), end)

    def _last_few(self, at: int) -> Reading | None:
        """Read the last two weeks, in den letzten paar Tagen, the past month."""
        counted = self._count(at + 1) if self._kind(at, "last") else None
        if self._name(at) == "past":
            counted = counted or (1.0, at + 1)
        if counted is None or not self._kind(counted[1], "unit"):
            return None
        count, place = counted
        back = timedelta(days=round(count * self._value(place)))
        return Reading(Days(self.today - back, self.today), place + 1)

    def _of_last(self, at: int) -> Reading | None:
        """Read last week, this morning, the week before last, last Friday, last weekend, last night, last summer."""
        if not self._kind(at, "last", "this") and not (
            self._kind(at, "unit", "weekend")
            and self._name(at + 1) == "before"
            and self._kind(at + 2, "last")
        ):
            return None
        if self._kind(at, "unit", "weekend"):
            back, thing, end = 2, at, at + 3
        else:
            back, thing, end = self._value(at), at + 1, at + 2
        name = self._name(thing)
        if self._kind(thing, "unit"):
            return Reading(calendar_days.unit(name, back, self.today), end)
        if self._kind(thing, "weekend"):
            return Reading(calendar_days.weekend(back, self.today), end)
        if self._kind(thing, "part"):
            day = self.today - back * DAY
            return Reading(Days(day, day, HOURS[name]), end)
        if self._kind(thing, "weekday"):
            passed = (self.today.weekday() - self._value(thing)) % 7
            day = self.today - timedelta(days=(passed or 7) + 7 * (back - 1) if back else passed)
            return self._with_part(day, end)
        if back and (read := self._month(thing, True) or self._season(thing, True) or self._holiday(thing)):
            return Reading(calendar_days.over(read.days, self.today), read.end)
        return None

    def _dayword(self, at: int) -> Reading | None:
        """Read today, yesterday evening, the day before yesterday, recently; the weekend just past."""
        name = self._name(at)
        if name == "day" and self._name(at + 1) == "before" and self._name(at + 2) == "yesterday":
            return self._with_part(self.today - 2 * DAY, at + 3)
        if name == "weekend" and self._name(self._back_over(at, "the")) in MARKERS:
            return Reading(calendar_days.weekend(0, self.today), at + 1)
        if name == "other" and self._name(at + 1) == "day":
            return Reading(calendar_days.recent(self.today), at + 2)
        if not self._kind(at, "dayword"):
            return None
        if name == "recently":
            return Reading(calendar_days.recent(self.today), at + 1)
        if name == "tonight":
            return Reading(Days(self.today, self.today, HOURS["evening"]), at + 1)
        return self._with_part(self.today - self._value(at) * DAY, at + 1)

    def _weekday(self, at: int) -> Reading | None:
        """Read on Friday, Friday evening, Tuesday last week, Freitag vor zwei Wochen."""
        if not self._kind(at, "weekday"):
            return None
        within = self._of_last(at + 1) or self._ago(at + 1)
        if within is not None and within.days.length >= 7:
            day = within.days.first + timedelta(days=(self._value(at) - within.days.first.weekday()) % 7)
            return Reading(calendar_days.one(day), within.end)
        alone = not self._kind(at + 1, "part") and self._name(at - 1) not in MARKERS
        if alone or self._kind(at - 1, "next"):
            return None
        passed = (self.today.weekday() - self._value(at)) % 7 or 7
        return self._with_part(self.today - timedelta(days=passed), at + 1)

    def _with_part(self, day: date, end: int) -> Reading:
        """Return a day, or the part of it that is named next."""
        if self._kind(end, "part"):
            return Reading(Days(day, day, HOURS[self._name(end)]), end + 1)
        return Reading(calendar_days.one(day), end)

    def _month(self, at: int, marked: bool) -> Reading | None:
        if not self._kind(at, "month"):
            return None
        year = self._number_of_year(at + 1)
        if year is None and not marked:
            return None
        first = self._first_of(self._value(at), year)
        return Reading(calendar_days.months_from(first, 1), at + 1 + (year is not None), absolute=True)

    def _season(self, at: int, marked: bool) -> Reading | None:
        if not self._kind(at, "season"):
            return None
        place = self._skip(at + 1, "of")
        year = self._number_of_year(place)
        if year is None and not marked and self._name(self._back_over(at, "the")) not in MARKERS:
            return None
        first = self._first_of(self._value(at), year)
        days = calendar_days.months_from(first, 3)
        return Reading(days, place + 1 if year is not None else at + 1, absolute=True)

    def _holiday(self, at: int) -> Reading | None:
        if not self._kind(at, "holiday"):
            return None
        name, end = self._name(at), at + 1
        if name == "new":
            if self._name(end) != "year":
                return None
            name, end = "silvester", end + 1
        year = self._number_of_year(end)
        return Reading(self._of_holiday(name, year), end + (year is not None), absolute=True)

    def _year(self, at: int, marked: bool) -> Reading | None:
        place = at + (self._name(at) == "year")
        year = self._number_of_year(place)
        if year is None or not (marked or place > at):
            return None
        return Reading(Days(date(year, 1, 1), date(year, 12, 31)), place + 1, absolute=True)

    def _bare_day(self, at: int) -> Reading | None:
        """Read on the 11th, am 26."""
        day = self._ordinal(at)
        if day is None or self._name(self._back_over(at, "the")) != "on":
            return None
        number, end = day
        if end == at + 1 and self.tokens[at - 1].text.casefold() != "am":
            return None
        return Reading(calendar_days.one(self._numbered(number)), end)

    # ---- which of all such days is meant: the last one ----

    def _in_year(self, day: int, month: int, year: int | None) -> date:
        return calendar_days.past_day(day, month, year, self.today)

    def _first_of(self, month: int, year: int | None) -> date:
        return calendar_days.past_day(1, month, year, self.today)

    def _of_holiday(self, name: str, year: int | None) -> Days:
        return calendar_days.holiday(name, year, self.today)

    def _numbered(self, number: int) -> date:
        return calendar_days.past_number(number, self.today)

    # ---- tokens ----

    def _back_over(self, at: int, name: str) -> int:
        return at - 2 if self._name(at - 1) == name else at - 1

    def _number_of_year(self, at: int) -> int | None:
        text = self.tokens[at].text if 0 <= at < len(self.tokens) else ""
        return int(text) if len(text) == 4 and text.isdecimal() and int(text) > 999 else None
