"""Read the coming days that a statement names, and the questions that ask what is planned for a day."""

from __future__ import annotations

from datetime import date

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval import calendar_days, dates
from nanoclaw_memory.retrieval.calendar_days import DAY, SATURDAY, Days
from nanoclaw_memory.retrieval.date_words import asks_for_plans, tells_of_the_past
from nanoclaw_memory.retrieval.dates import DateReader, Reading, When, read_all, tokens_of
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.store.about_days import AboutDays, AboutRow
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.text import sentences
from nanoclaw_memory.types import Passage

LONGEST = 35  # days of a period that a statement is about; one about a whole summer is about no day
LONGEST_TEXT = 2_000  # characters; a page in one passage is about too many days
AT_ONCE = 500  # passages read on the way to a search
_READ = "cursor:about"  # named like the cursors that a full rebuild removes
_YEARLY = regex(
    r"\b(?:\w*geburtstag\w*|birthdays?|anniversar\w+|hochzeitstag|jahrestag|namenstag|every year|yearly|annually"
    r"|jedes jahr|jährlich)\b",
)
# A weekday in a clause of the past: "on Friday I went", "am Freitag haben wir gestrichen".
_WEEKDAY_BEFORE = regex(
    r"\b(?:went|was|were|did|had|came|saw|war|waren|hatten?|wurden?|ging|kam)\b"
    r"|\b(?:haben?|hat|have|has|sind|bin)\b[^,;]*\b(?:\w*ge\w{2,}(?:t|en)|\w{3,}(?:iert|ed))\b"
)
_NO_TOMORROW = frozenset(
    "guten am jeden diesen der den einen heute gestern schönen".split()
)  # before "Morgen"
_PRESENT = frozenset(
    "is are do does will can should may must has have s ist sind steht wird werden kann muss soll hat haben habe hab"
    " kommt kommen gibt geht fährt beginnt startet".split()
)


class _ComingReader(DateReader):
    """Read days as those that are still to come."""

    def _in_year(self, day: int, month: int, year: int | None) -> date:
        return calendar_days.coming_day(day, month, year, self.today)

    def _first_of(self, month: int, year: int | None) -> date:
        this = self.today.replace(day=1)
        return this if year is None and month == this.month else self._in_year_from(this, month, year)

    @staticmethod
    def _in_year_from(first: date, month: int, year: int | None) -> date:
        return calendar_days.coming_day(1, month, year, first)

    def _of_holiday(self, name: str, year: int | None) -> Days:
        return calendar_days.coming_holiday(name, year, self.today)

    def _numbered(self, number: int) -> date:
        return calendar_days.coming_number(number, self.today)

    def _since(self, at: int) -> Reading | None:
        """Read since Monday as a time that is over."""
        read = super()._since(at)
        return Reading(calendar_days.one(self.today - DAY), read.end) if read else None

    def _between(self, at: int) -> Reading | None:
        """Read from 27 to 29 November too."""
        first = self._ordinal(at + 1) if self._name(at) in ("between", "from") else None
        if first is not None and self._name(first[1]) in ("and", "until"):
            last = self._day_of_month(first[1] + 1)
            if last is not None and first[0] <= last.days.last.day:
                return Reading(Days(last.days.last.replace(day=first[0]), last.days.last), last.end, True)
        return super()._between(at)

    def _period(self, at: int, marked: bool = False) -> Reading | None:
        marked = marked or self._text(at - 1) in ("for", "für")
        return self._in_time(at) or self._next(at) or super()._period(at, marked)

    def _in_time(self, at: int) -> Reading | None:
        """Read in two weeks, in 3 Tagen."""
        counted = self._count(at + 1) if self._text(at) == "in" else None
        if counted is None or not self._kind(counted[1], "unit") or self._name(counted[1] + 1) == "ago":
            return None
        count, place = counted
        length = self._value(place)
        day = self.today + round(count * length) * DAY
        reach = length // 2 * DAY if length > 14 else 0 * DAY
        return Reading(Days(day - reach, day + reach), place + 1) if length else None

    def _next(self, at: int) -> Reading | None:
        """Read next week, next Tuesday, nächste Woche Montag, the next two weeks, next weekend, next March."""
        if not self._kind(at, "next"):
            return None
        if (counted := self._count(at + 1)) and self._kind(counted[1], "unit"):
            reach = round(counted[0] * self._value(counted[1])) * DAY
            return Reading(Days(self.today, self.today + reach), counted[1] + 1)
        if self._kind(at + 1, "unit"):
            days = calendar_days.coming_unit(self._name(at + 1), 1, self.today)
            if days.length == 7 and self._kind(at + 2, "weekday"):
                return self._with_part(days.first + self._value(at + 2) * DAY, at + 3)
            return Reading(days, at + 2)
        if self._kind(at + 1, "weekday"):
            day = self._coming(self._value(at + 1))
            # Whoever means tomorrow does not say "next Wednesday".
            far = day - self.today > 2 * DAY or not self._text(at).startswith(("next", "näch", "naech"))
            return self._with_part(day if far else day + 7 * DAY, at + 2)
        if self._kind(at + 1, "weekend"):
            later = 7 * DAY if self.today.weekday() >= SATURDAY else 0 * DAY
            saturday = self.today + (SATURDAY - self.today.weekday()) * DAY + later
            return Reading(Days(saturday, saturday + DAY), at + 2)
        return self._month(at + 1, True) or self._season(at + 1, True)

    def _of_last(self, at: int) -> Reading | None:
        """Read this week, this Friday, this weekend as what is left of it."""
        if not self._kind(at, "this"):
            return super()._of_last(at)
        if self._kind(at + 1, "unit"):
            return Reading(calendar_days.coming_unit(self._name(at + 1), 0, self.today), at + 2)
        if self._kind(at + 1, "weekend"):
            return Reading(self._weekend(), at + 2)
        if self._kind(at + 1, "weekday"):
            return self._with_part(self._coming(self._value(at + 1), today=True), at + 2)
        return super()._of_last(at)

    def _dayword(self, at: int) -> Reading | None:
        if self._kind(at, "coming"):
            return self._with_part(self.today + self._value(at) * DAY, at + 1)
        if self._text(at) == "morgen" and not (
            self._text(at - 1) in _NO_TOMORROW or self._kind(at - 1, "weekday")
        ):
            return self._with_part(self.today + DAY, at + 1)
        if self._kind(at, "weekend"):
            return Reading(self._weekend(), at + 1)
        if self._name(at) == "recently":
            return None
        return super()._dayword(at)

    def _weekday(self, at: int) -> Reading | None:
        """Read Friday, Friday evening, Friday next week, Freitag in einer Woche."""
        if not self._kind(at, "weekday"):
            return None
        day = self._coming(self._value(at))
        if (later := self._in_time(at + 1)) and later.days.first - self.today >= 7 * DAY:
            return Reading(calendar_days.one(day + (later.days.first - self.today)), later.end)
        if self._kind(at + 1, "next") and self._kind(at + 2, "unit") and self._value(at + 2) == 7:
            week = calendar_days.coming_unit("week", 1, self.today)
            return Reading(calendar_days.one(week.first + self._value(at) * DAY), at + 3)
        return self._with_part(day, at + 1)

    def _coming(self, weekday: int, today: bool = False) -> date:
        ahead = (weekday - self.today.weekday()) % 7
        return self.today + (ahead or (0 if today else 7)) * DAY

    def _weekend(self) -> Days:
        saturday = self.today + (SATURDAY - self.today.weekday()) * DAY
        return Days(max(saturday, self.today), saturday + DAY)

    def _text(self, at: int) -> str:
        return self.tokens[at].text.casefold() if 0 <= at < len(self.tokens) else ""


# ---- questions ----


@bounded(256 * 1024)  # several parts of a search call it
def when(question: str, today: date) -> When:
    """Return the days that a question names: coming ones if it asks what will be, else those that are over."""
    before = dates.when(question, today)
    found, rest = read_all(_ComingReader(tokens_of(question), today))
    coming = [one for one in found if one.days.last >= today]
    if not coming or len(coming) < len(found):
        return before
    words = " ".join(rest)
    only_today = coming[0].days.last == today
    asking = question.rstrip().endswith("?")
    agenda = asks_for_plans(words, asking)
    if tells_of_the_past(words) or not (agenda or (asking and not only_today and _is_present(rest))):
        return before
    return When(coming[0].days, words, today, ahead=True, agenda=agenda)


def _is_present(rest: list[str]) -> bool:
    return not _PRESENT.isdisjoint(word.casefold() for word in rest)


# ---- statements ----


def days_in(text: str, said: date) -> list[Days]:
    """Return the coming days that a statement names, as seen from the day on which it was made."""
    found = []
    for sentence in sentences(text[:LONGEST_TEXT]):
        before = bool(_WEEKDAY_BEFORE.search(sentence.casefold()))
        for read in read_all(_ComingReader(tokens_of(sentence), said))[0]:
            if read.days.last >= said and read.days.length <= LONGEST and (read.absolute or not before):
                found.append(read.days)
    return list(dict.fromkeys(Days(one.first, one.last) for one in found))


def rows_of(number: int, passage: Passage) -> list[AboutRow]:
    """Return the days that a passage is about."""
    said = date.fromisoformat(passage.said)
    text = body_of(passage)
    yearly = bool(_YEARLY.search(text.casefold()))
    return [
        AboutRow(number, one.first.isoformat(), one.last.isoformat(), yearly and one.length == 1)
        for one in days_in(text, said)
    ]


def refresh(passages: Passages, most: int = AT_ONCE) -> int:
    """Read the days of at most so many passages that were not read yet; return how many."""
    last, total = int(passages.meta(_READ) or 0), passages.last_id()
    if last >= total:
        return 0
    table = AboutDays(passages.database)
    waiting = table.statements_after(last, most)
    with passages.database.transaction():
        for number, stored in passages.search.load(waiting).items():
            table.put(rows_of(number, stored.passage))
        passages.set_meta(_READ, str(waiting[-1] if len(waiting) == most else total))
    return len(waiting)
