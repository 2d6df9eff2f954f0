"""The days that a question asks about."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.retrieval.calendar_days import Days
from nanoclaw_memory.retrieval.coming_days import days_in
from nanoclaw_memory.retrieval.coming_days import when as asked_when
from nanoclaw_memory.retrieval.dates import DateReader, asked, when

SUNDAY = date(2026, 11, 15)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what happened yesterday?", "2026-11-14", "2026-11-14"),
        ("Was war vorgestern los?", "2026-11-13", "2026-11-13"),
        ("what did we decide last week", "2026-11-02", "2026-11-15"),
        ("this month's bills", "2026-11-01", "2026-11-15"),
        ("what did I do on Tuesday", "2026-11-10", "2026-11-10"),
        ("on Sunday", "2026-11-08", "2026-11-08"),
        ("three weeks ago", "2026-10-22", "2026-10-28"),
        ("vor zwei Tagen", "2026-11-13", "2026-11-13"),
        ("who came on May 3, 2023?", "2023-05-03", "2023-05-03"),
        ("who came on the 3rd of May 2023", "2023-05-03", "2023-05-03"),
        ("am 3. Dezember", "2025-12-03", "2025-12-03"),
        ("in March", "2026-03-01", "2026-03-31"),
        ("im Februar 2024", "2024-02-01", "2024-02-29"),
        ("the log of 2026-01-05", "2026-01-05", "2026-01-05"),
        ("six weeks ago", "2026-10-01", "2026-10-07"),
        ("a couple of weeks ago", "2026-10-29", "2026-11-04"),
        ("vor gut einem halben Jahr", "2026-02-15", "2026-08-16"),
        ("in den letzten paar Tagen", "2026-11-12", "2026-11-15"),
        ("the past 3 months", "2026-08-17", "2026-11-15"),
        ("last weekend", "2026-11-07", "2026-11-08"),
        ("am Wochenende", "2026-11-14", "2026-11-15"),
        ("the week before last", "2026-10-26", "2026-11-01"),
        ("Dienstag letzter Woche", "2026-11-03", "2026-11-03"),
        ("Anfang der Woche", "2026-11-09", "2026-11-11"),
        ("Ende Januar", "2026-01-21", "2026-01-31"),
        ("the last week of August 2023", "2023-08-25", "2023-08-31"),
        ("the first half of September 2022", "2022-09-01", "2022-09-15"),
        ("in summer 2022", "2022-06-01", "2022-08-31"),
        ("last fall", "2025-09-01", "2025-11-30"),
        ("between Christmas and New Year", "2025-12-24", "2026-01-01"),
        ("from 3 May to 5 June 2023", "2023-05-03", "2023-06-05"),
        ("seit Ostern 2025", "2025-04-18", "2026-11-15"),
        ("kurz vor Weihnachten", "2025-12-10", "2025-12-24"),
        ("two weeks before August 11, 2023", "2023-07-28", "2023-08-11"),
        ("am 24.4. um drei", "2026-04-24", "2026-04-24"),
        ("on the 11th", "2026-11-11", "2026-11-11"),
        ("in 2021", "2021-01-01", "2021-12-31"),
    ],
)
def test_days_are_read_from_a_question(question: str, first: str, last: str):
    assert asked(question, SUNDAY) == Days(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    "message",
    ["bump the version to 2.3.2", "v1.10.3 is out", "upgrade to version 2.3.22", "set it to 1.2.3.4"],
)
def test_a_version_is_no_day(message: str):
    assert asked(message, SUNDAY) is None


@pytest.mark.parametrize(
    ("question", "day", "hours"),
    [
        ("what did we discuss this morning", "2026-11-15", (4, 12)),
        ("was war vorgestern Abend", "2026-11-13", (17, 28)),
        ("am Freitagabend", "2026-11-13", (17, 28)),
        ("the evening of 7 July 2023", "2023-07-07", (17, 28)),
        ("last night", "2026-11-14", (18, 30)),
    ],
)
def test_a_part_of_a_day_is_read_with_its_hours(question: str, day: str, hours: tuple[int, int]):
    assert asked(question, SUNDAY) == Days(date.fromisoformat(day), date.fromisoformat(day), hours)


_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()
_DAYS = "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split()
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
_ZAHLEN = "einem zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()


def _written(day: date, today: date) -> list[str]:
    """A past day as people write it, on its own and as part of a period."""
    back = (today - day).days
    month, monat = f"{day:%B}", _MONTHS[day.month - 1]
    season = ("winter", "spring", "summer", "autumn")[day.month % 12 // 3]
    of_season = day.year - (day.month < 3)
    third = ("early", "mid", "late")[min((day.day - 1) // 10, 2)]
    forms = [
        f"on {day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"the {day.day}th of {month} {day.year}",
        f"am {day.day}. {monat} {day.year}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day.day}. {monat.lower().replace('ä', 'ae')} {day.year}",
        day.isoformat(),
        f"in {month} {day.year}",
        f"im {monat} {day.year}",
        f"in {day.year}",
        f"seit {monat} {day.year}",
        f"{season} {of_season}",
        f"between {month} {day.year} and {today:%B} {today.year}",
        f"{back} days ago",
        f"vor {back} Tagen",
    ]
    if day.day not in (10, 11, 20, 21):  # months differ in where their thirds end
        forms.append(f"{third} {month} {day.year}")
    if back < 365:
        forms.append(f"on {day.day} {month}")
    if 1 <= round(back / 7) <= 12:
        forms += [f"{_NUMBERS[round(back / 7) - 1]} weeks ago", f"vor {_ZAHLEN[round(back / 7) - 1]} Wochen"]
    if back <= 84:
        forms.append(f"in the last {_NUMBERS[-(-back // 7) - 1]} weeks")
    if back <= 7:
        forms += [f"last {day:%A}", f"am {_DAYS[day.weekday()]}", f"letzten {_DAYS[day.weekday()]}"]
    return forms


@pytest.mark.parametrize(
    ("question", "today", "first", "last"),
    [
        ("how did last week's deployment go", "2026-11-18", "2026-11-09", "2026-11-15"),
        ("Was haben wir letzte Woche besprochen?", "2026-11-20", "2026-11-09", "2026-11-15"),
        ("what did we decide last week", "2026-11-21", "2026-11-09", "2026-11-21"),
        ("what did we do this week", "2026-11-18", "2026-11-16", "2026-11-18"),
    ],
)
def test_last_week_ends_on_its_sunday_unless_it_is_said_at_a_weekend(
    question: str, today: str, first: str, last: str
):
    found = asked(question, date.fromisoformat(today))
    assert found and (str(found.first), str(found.last)) == (first, last)


@given(st.dates(date(2000, 3, 1), date(2026, 11, 14)), st.data())
def test_a_day_is_in_what_is_read_however_it_is_written(day: date, data: st.DataObject):
    today = data.draw(st.dates(day + timedelta(days=1), min(day + timedelta(days=500), date(2027, 1, 1))))
    form = data.draw(st.sampled_from(_written(day, today)))
    found = asked(f"what was {form} about the car", today)
    assert found is not None, form
    assert found.first <= day <= found.last, (form, found)


@pytest.mark.parametrize(
    "question",
    [
        "what did we discuss last week?",
        "Worüber haben wir gestern gesprochen?",
        "so what did Ada say on Monday",
        "How was yesterday?",
        "Was war gestern?",
        "what did I ask you yesterday?",
        "Was habe ich dich letzte Woche gefragt?",
    ],
)
def test_who_asks_only_for_a_time_asks_for_all_that_was_said(question: str):
    assert when(question, SUNDAY).only(frozenset({"ada"}))


@pytest.mark.parametrize(
    "question",
    [
        "what were we talking about?",
        "wo waren wir stehen geblieben?",
        "Where did we leave off?",
        "where had we stopped?",
        "what was the last thing we did?",
        "What did we work on last?",
        "Womit haben wir zuletzt aufgehört?",
        "Was haben wir zuletzt gemacht?",
    ],
)
def test_the_last_talk_is_asked_for_without_a_day(question: str):
    assert when(question, SUNDAY).latest


@pytest.mark.parametrize(
    "message",
    [
        "do it today",
        "go on",
        "how are you today?",
        "fix the test that broke yesterday",
        "what do we do today",
        "say it",
        "what was the last release we shipped?",
        "where did we leave the keys?",
        "what did we leave out of the last report?",
        "we stopped the last server",
        "what lasts longer?",
        "did we ask Kim?",
    ],
)
def test_a_message_about_something_else_asks_for_no_talk(message: str):
    asked_for = when(message, SUNDAY)
    assert not asked_for.only()
    assert not asked_for.latest


@pytest.mark.parametrize(
    "question",
    ["Who may come?", "May I ask", "when did she march", "on 31 February", "Jan's port", "a day off", ""],
)
def test_no_days_are_read_into_a_question(question: str):
    assert asked(question, SUNDAY) is None


_WORDS = st.sampled_from(
    "in on last may march 3 31 0 2023 9999 99999 week weeks ago monday yesterday vor 999 monaten 2026-13-45".split()
)


@given(st.lists(_WORDS, max_size=8).map(" ".join), st.dates(date(2, 1, 1), date(9998, 1, 1)))
def test_whatever_is_asked_days_are_in_order_or_none(question: str, today: date):
    found = asked(question, today)
    assert found is None or found.first <= found.last <= date(9999, 12, 31) + timedelta(0)


@pytest.mark.parametrize(
    "nested", ["end of the ", "the evening of the ", "between ", "two weeks before ", "Anfang vom "]
)
def test_nonsense_that_nests_without_end_names_no_day(nested: str):
    when(f"Keystone {nested * 400}", SUNDAY)
    assert when("the end of the first week of March", SUNDAY).days is not None


def test_the_work_grows_with_the_text_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch):
    looked = 0
    kind = DateReader._kind

    def counted(reader: DateReader, at: int, *kinds: str) -> bool:
        nonlocal looked
        looked += 1
        return kind(reader, at, *kinds)

    monkeypatch.setattr(DateReader, "_kind", counted)

    def work(repeats: int) -> int:
        nonlocal looked
        looked = 0
        when("a. " * repeats, SUNDAY)
        return looked

    assert work(1_000) < 3 * work(500)


@pytest.mark.parametrize(
    "question",
    ["what happened on 9999-12-31", "since 9999-12-31", "0001-01-01", "between 2026-01-01 and 9999-12-31"],
)
def test_a_day_that_means_never_is_no_day_that_is_asked_for(question: str):
    found = when(question, SUNDAY).days
    assert found is None or found.last.year == 2026


@pytest.mark.parametrize(
    ("statement", "first", "last"),
    [
        ("Reifentermin jetzt am 20.11. um 8:30", "2026-11-20", "2026-11-20"),
        ("jetzt am 26.11 um 16:15", "2026-11-26", "2026-11-26"),
        ("the plumber comes on Friday", "2026-11-20", "2026-11-20"),
        ("Zahnarzt Freitag in einer Woche", "2026-11-27", "2026-11-27"),
        ("nächste Woche Montag beginnt Elias", "2026-11-16", "2026-11-16"),
        ("übermorgen kommt der Schornsteinfeger", "2026-11-17", "2026-11-17"),
        ("morgen früh wird gestrichen", "2026-11-16", "2026-11-16"),
        ("in 3 Tagen sind die Fenster dran", "2026-11-18", "2026-11-18"),
        ("retreat from 27 to 29 November", "2026-11-27", "2026-11-29"),
        ("flight leaves 5 January", "2027-01-05", "2027-01-05"),
        ("Sperrmüll wird am 3. abgeholt", "2026-12-03", "2026-12-03"),
        ("board meeting 2026-12-03 at 14:00", "2026-12-03", "2026-12-03"),
        ("next weekend we are in Kiel", "2026-11-21", "2026-11-22"),
    ],
)
def test_a_statement_is_about_the_coming_days_that_it_names(statement: str, first: str, last: str):
    assert days_in(statement, SUNDAY) == [Days(date.fromisoformat(first), date.fromisoformat(last))]


@pytest.mark.parametrize(
    "statement",
    [
        "on Friday I went to the cinema",
        "am Freitag haben wir den Zaun gestrichen",
        "gestern war ich beim Friseur",
        "since Monday the alerts go to Opsgenie",
        "vor zwei Wochen ist der Kater weggelaufen",
        "version 2.11.4 fixes the crash",
        "I paid 26.11 euros for the cable",
        "guten Morgen zusammen",
        "the 3rd floor has a new printer",
        "we never deploy on fridays",
    ],
)
def test_a_statement_about_the_past_or_no_day_is_about_no_coming_day(statement: str):
    assert days_in(statement, SUNDAY) == []


@pytest.mark.parametrize(
    ("question", "ahead", "agenda"),
    [
        ("was ist morgen?", True, True),
        ("und am Dienstag?", True, True),
        ("am I free on Friday?", True, True),
        ("is there school on Friday?", True, False),
        ("what did we discuss on Friday?", False, False),
        ("what was on yesterday?", False, False),
        ("what happened on 3 May 2023?", False, False),
        ("see you tomorrow", False, False),
    ],
)
def test_a_question_asks_for_what_will_be_or_for_what_was(question: str, ahead: bool, agenda: bool):
    found = asked_when(question, SUNDAY)
    assert (found.ahead, found.agenda) == (ahead, agenda)
