"""Rows of the days that statements are about, as opposed to the days on which they were made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import msgspec

from nanoclaw_memory.store.currency import STATEMENT
from nanoclaw_memory.store.passage_search import Selection
from nanoclaw_memory.store.table import Table, insertion

WITHIN = 7  # days of a period about which a question for a single day gets statements


class AboutRow(msgspec.Struct, frozen=True):
    """A passage and a period that it is about."""

    passage: int
    first_day: str
    last_day: str
    yearly: bool = False


class AboutDays(Table[AboutRow]):
    """The days that the statements of one search index are about."""

    table = "about_days"
    columns = ", ".join(AboutRow.__struct_fields__)
    value = AboutRow

    def put(self, rows: Iterable[AboutRow]) -> None:
        """Store rows; inside a transaction."""
        sql = insertion("about_days", AboutRow.__struct_fields__, ["passage", "first_day", "last_day"])
        self.db.execute_many(sql, map(msgspec.structs.asdict, rows))

    def statements_after(self, last: int, most: int) -> list[int]:
        """Return the next passages above an id in which a person states something."""
        sql = (
            f"SELECT id FROM passages p WHERE id > :last AND {STATEMENT} AND kind NOT IN ('fact', 'lesson')"  # noqa: S608
            " AND day || seen <> '' ORDER BY id LIMIT :most"
        )
        return [int(number) for (number,) in self.db.query(sql, {"last": last, "most": most})]

    def about(self, first: date, last: date, chosen: Selection, most: int) -> list[int]:
        """Return passages about days of a period, those of the first days first; yearly ones in every year."""
        visible = f" AND {chosen.here}" if chosen.here else ""
        rows = self.db.query(
            "SELECT a.passage, a.first_day, a.last_day, a.yearly FROM about_days a JOIN passages ON id = a.passage"  # noqa: S608
            f" WHERE ((a.first_day <= :last AND a.last_day >= :first) OR a.yearly = 1){visible}",
            {"first": first.isoformat(), "last": last.isoformat(), **chosen.params},
        )
        longest = max(WITHIN, 2 * ((last - first).days + 1))
        found: dict[int, date] = {}
        for number, begins, ends, yearly in rows:
            day, end = date.fromisoformat(begins), date.fromisoformat(ends)
            if yearly:
                day = end = _in_period(day, first)
            if day <= last and end >= first and (end - day).days < longest:
                found[int(number)] = min(day, found.get(int(number), day))
        return sorted(found, key=lambda number: (found[number], -number))[:most]


def _in_period(day: date, first: date) -> date:
    """Return the next such day of a year from the first day of a period on."""
    for year in range(first.year, first.year + 9):
        if (day.month, day.day) == (2, 29) and (year % 4 or (year % 100 == 0 and year % 400)):
            continue
        if (found := day.replace(year=year)) >= first:
            return found
    return day
