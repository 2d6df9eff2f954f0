"""The days that a question asks about."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.retrieval.dates import Days, asked

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
    ],
)
def test_days_are_read_from_a_question(question: str, first: str, last: str):
    assert asked(question, SUNDAY) == Days(date.fromisoformat(first), date.fromisoformat(last))


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
