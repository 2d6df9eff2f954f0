"""Whether a question for a time gets what was said then.

    python bench/dates.py [DATA] [--models DIR] [--keep DIR] [--fast]

DATA has the LoCoMo shape. Each conversation is archived; then every day of it is asked for in each form, with the clock
as far behind it as the form says. `of the time` is how many of the ten first hits were said in the period that the
question names, `none` the share of questions that get nothing of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from locomo import DATA, Conversation, _conversation, _write
from measure import table
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

FOUND = 10
GERMAN_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()
GERMAN_DAYS = "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split()
# Days until the question is asked, days before and after that belong to what it names, and how it is asked.
FORMS: tuple[tuple[int, int, int, Callable[[date], str]], ...] = (
    (1, 0, 0, lambda day: "What did we talk about yesterday?"),
    (2, 0, 0, lambda day: "Worüber haben wir vorgestern gesprochen?"),
    (3, 0, 0, lambda day: f"what did we discuss last {day:%A}"),
    (4, 0, 0, lambda day: f"Was haben wir am {GERMAN_DAYS[day.weekday()]} besprochen?"),
    (7, 3, 3, lambda day: "what happened a week ago?"),
    (14, 3, 3, lambda day: "Was war vor zwei Wochen los?"),
    (42, 3, 3, lambda day: "what were we talking about six weeks ago?"),
    (90, 15, 15, lambda day: "What did we speak about three months ago?"),
    (200, 0, 0, lambda day: f"What happened on {day.day} {day:%B}?"),
    (400, 0, 0, lambda day: f"What was the topic of discussion on {day.day} {day:%B}, {day.year}?"),
    (400, 0, 0, lambda day: f"Was wurde am {day.day}. {GERMAN_MONTHS[day.month - 1]} {day.year} gesagt?"),
    (400, 0, 0, lambda day: f"Was haben wir am {day.day}.{day.month}.{day.year} besprochen?"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, nargs="?", default=DATA)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument(
        "--keep", type=Path, help="keep the memories here, so that a second run embeds nothing"
    )
    parser.add_argument("--fast", action="store_true", help="by words only")
    options = parser.parse_args()
    talks = [_conversation(sample) for sample in json.loads(options.data.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or Path(scratch)
        for talk in talks:
            _write(root / talk.name, talk, options.models)
        rows = [measured(root, talks, form, options.fast) for form in FORMS]
    table(["asked, for instance", "questions", "of the time", "none"], rows)
    total = sum(int(str(row[1])) for row in rows)
    every = [sum(float(str(row[place])) * int(str(row[1])) for row in rows) / total for place in (2, 3)]
    table(["all", "questions", "of the time", "none"], [["", total, *every]])


def measured(
    root: Path, talks: list[Conversation], form: tuple[int, int, int, Callable[[date], str]], fast: bool
) -> list[object]:
    later, before, after, ask = form
    found: list[int] = []
    for talk in talks:
        days = sorted({date.fromisoformat(Path(path).name[:10]) for path in talk.files})
        clock = FixedClock(datetime.now(UTC))
        with Memory.open(root / talk.name, clock=clock) as memory:
            for day in days:
                clock.moment = datetime.combine(day + timedelta(days=later), time(12), UTC)
                hits = memory.search(ask(day), FOUND, fast=fast).hits
                period = (day - timedelta(days=before)).isoformat(), (day + timedelta(days=after)).isoformat()
                found.append(sum(period[0] <= hit.day <= period[1] for hit in hits))
    return [
        ask(date(2022, 1, 21)),
        len(found),
        sum(found) / len(found),
        sum(not one for one in found) / len(found),
    ]


if __name__ == "__main__":
    main()
