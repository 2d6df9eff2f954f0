"""Calendar periods relative to today: weeks, months, weekends, seasons, holidays, and parts of these."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec

DAY = timedelta(days=1)
SATURDAY = 5  # numbered as Python numbers weekdays
AROUND = 14  # days that "before", "after" and "recently" cover
LENGTHS = {"hour": 0, "day": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}
HOURS = {"morning": (4, 12), "noon": (11, 15), "afternoon": (12, 18), "evening": (17, 28), "night": (18, 30)}
_FIXED = {
    "christmas": ((12, 24), (12, 26)),
    "silvester": ((12, 31), (1, 1)),
    "halloween": ((10, 31), (10, 31)),
}
_FROM_EASTER = {"easter": (-2, 1), "whitsun": (49, 50)}  # first and last day, counted from Easter Sunday


class Days(msgspec.Struct, frozen=True):
    """From one day to another, both included; `hours` of the first and last day, beyond 24 the next night."""

    first: date
    last: date
    hours: tuple[int, int] = (0, 24)

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1


def one(day: date) -> Days:
    """Return a single day as a period."""
    return Days(day, day)


def recent(today: date) -> Days:
    """Return the days that "recently" means."""
    return Days(today - AROUND * DAY, today)


def past_day(day: int, month: int, year: int | None, today: date) -> date:
    """Return the day in the given year, or the last such day that is not in the future."""
    if year is not None:
        return date(year, month, day)
    for back in range(9):  # 29 February
        if day <= _length(today.year - back, month):
            found = date(today.year - back, month, day)
            if found <= today:
                return found
    raise ValueError(f"there is no day {day} in month {month}")


def _length(year: int, month: int) -> int:
    """Return how many days a month has."""
    return 31 if month == 12 else (date(year, month + 1, 1) - DAY).day


def past_number(number: int, today: date) -> date:
    """Return the last day with this number in its month."""
    first = today.replace(day=1)
    while _length(first.year, first.month) < number or first.replace(day=number) > today:
        first = (first - DAY).replace(day=1)
    return first.replace(day=number)


def coming_day(day: int, month: int, year: int | None, today: date) -> date:
    """Return the day in the given year, or the first such day from today on."""
    if year is not None:
        return date(year, month, day)
    for ahead in range(9):  # 29 February
        if day <= _length(today.year + ahead, month):
            found = date(today.year + ahead, month, day)
            if found >= today:
                return found
    raise ValueError(f"there is no day {day} in month {month}")


def coming_number(number: int, today: date) -> date:
    """Return the first day with this number in its month from today on."""
    first = today.replace(day=1)
    while _length(first.year, first.month) < number or first.replace(day=number) < today:
        first = months_from(first, 1).last + DAY
    return first.replace(day=number)


def coming_unit(name: str, ahead: int, today: date) -> Days:
    """Return the rest of this week, next month, the year after."""
    if name in ("hour", "day"):
        return one(today + ahead * DAY)
    if name in ("week", "fortnight"):
        monday = today - today.weekday() * DAY + ahead * LENGTHS[name] * DAY
        return Days(max(monday, today), monday + (LENGTHS[name] - 1) * DAY)
    months = {"month": 1, "quarter": 3, "year": 12}[name]
    index = (today.year * 12 + today.month - 1) // months * months + ahead * months
    found = months_from(date(index // 12, index % 12 + 1, 1), months)
    return Days(max(found.first, today), found.last)


def coming_holiday(name: str, year: int | None, today: date) -> Days:
    """Return a holiday of a year, or the next one."""
    found = _holiday(name, year or today.year)
    return _holiday(name, today.year + 1) if year is None and found.last < today else found


def months_from(first: date, count: int) -> Days:
    """Return whole months from the first day of one."""
    index = first.year * 12 + first.month - 2 + count
    year, month = index // 12, index % 12 + 1
    return Days(first, date(year, month, _length(year, month)))


def unit(name: str, back: int, today: date, whole: bool = False) -> Days:
    """Return this week, last month, the year before last; a current one ends today unless `whole` is set."""
    if name in ("hour", "day"):
        return one(today - back * DAY)
    if name in ("week", "fortnight"):
        monday = today - timedelta(days=today.weekday() + back * LENGTHS[name])
        # On a weekend "last week" includes the days just past.
        over = back > 1 or (back == 1 and today.weekday() < SATURDAY)
        return Days(monday, monday + timedelta(days=LENGTHS[name] - 1) if whole or over else today)
    months = {"month": 1, "quarter": 3, "year": 12}[name]
    index = (today.year * 12 + today.month - 1) // months * months - back * months
    found = months_from(date(index // 12, index % 12 + 1, 1), months)
    return found if whole or back else Days(found.first, today)


def weekend(back: int, today: date) -> Days:
    """Return the current or last weekend; `back` 1 is the one before the current, 2 another one before."""
    saturday = today - timedelta(days=(today.weekday() - SATURDAY) % 7)
    if back and today.weekday() >= SATURDAY:
        saturday -= 7 * DAY
    saturday -= 7 * DAY * max(back - 1, 0)
    return Days(saturday, saturday + DAY)


def holiday(name: str, year: int | None, today: date) -> Days:
    """Return a holiday of a year, or the last one."""
    found = _holiday(name, year or today.year)
    return _holiday(name, today.year - 1) if year is None and found.first > today else found


def part(days: Days, name: str, length: int) -> Days:
    """Return the start, middle or end of a period: a third of it, or a number of days."""
    size = timedelta(days=(length or -(-days.length // 3)) - 1)
    if name in ("start", "anfang"):
        return Days(days.first, min(days.first + size, days.last))
    if name != "middle":
        return Days(max(days.last - size, days.first), days.last)
    third = timedelta(days=days.length // 3)
    return Days(days.first + third, days.last - third)


def over(days: Days, today: date) -> Days:
    """Return a period that is over: "last March" said in March is last year's."""
    return days if days.last < today else Days(_year_before(days.first), _year_before(days.last))


def between(first: date, last: date) -> Days:
    """Return the period from one day to another; the first is moved back by years until it is not after the last."""
    if first > last:
        first = past_day(first.day, first.month, None, last)
    return Days(first, last)


def _year_before(day: date) -> date:
    return day.replace(year=day.year - 1, day=min(day.day, 28) if day.month == 2 else day.day)


def _holiday(name: str, year: int) -> Days:
    if name in _FROM_EASTER:
        first, last = _FROM_EASTER[name]
        return Days(_easter(year) + first * DAY, _easter(year) + last * DAY)
    (month, day), (last_month, last_day) = _FIXED[name]
    return Days(date(year, month, day), date(year + (last_month < month), last_month, last_day))


def _easter(year: int) -> date:
    """Return Easter Sunday, by the algorithm of Meeus, Jones and Butcher."""
    century, rest = divmod(year, 100)
    moon = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    shift = (year % 19 + 11 * moon + 22 * sunday) // 451
    month, day = divmod(moon + sunday - 7 * shift + 114, 31)
    return date(year, month, day + 1)
