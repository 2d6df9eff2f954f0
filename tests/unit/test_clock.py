"""Time: the user's zone decides the date; stored moments sort as text."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.clock import FixedClock, SystemClock, local_day, moment_of, stamp, zone
from nanoclaw_memory.errors import SettingsError

MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)


@given(MOMENTS, MOMENTS)
def test_stored_moments_sort_like_the_moments(one, other):
    one, other = (m.replace(microsecond=m.microsecond // 1000 * 1000) for m in (one, other))
    assert (stamp(one) < stamp(other)) == (one < other)


@given(MOMENTS)
def test_a_stored_moment_comes_back(moment):
    assert abs(moment_of(stamp(moment)) - moment) < timedelta(milliseconds=1)


def test_sqlites_own_timestamps_are_utc():
    assert moment_of("2026-02-23 12:00:00") == datetime(2026, 2, 23, 12, tzinfo=UTC)


def test_an_unknown_zone_is_refused_with_an_example():
    with pytest.raises(SettingsError) as refused:
        zone("Mars/Olympus")
    assert "Europe/Berlin" in refused.value.hint


def test_the_system_clock_is_in_the_users_zone():
    assert SystemClock("Asia/Tokyo").now().utcoffset() == timedelta(hours=9)


def test_a_log_is_dated_in_the_users_zone(ncm, home, monkeypatch):
    late = datetime(2026, 2, 23, 23, 30, tzinfo=UTC)
    from nanoclaw_memory.memory import resources as module

    monkeypatch.setattr(module, "SystemClock", lambda name: FixedClock(late.astimezone(zone(name))))
    ncm("init")
    ncm("config", "set", "user.timezone", "Asia/Tokyo")
    assert ncm("write", "past midnight there", "--json").json["path"] == "memory/2026-02-24.md"


def test_a_day_of_the_other_half_year_has_that_half_years_offset(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        here = SystemClock().now().tzinfo
        assert local_day("2026-07-15T22:30:00.000Z", here) == "2026-07-16"
        assert local_day("2026-01-15T22:30:00.000Z", here) == "2026-01-15"
    finally:
        monkeypatch.undo()
        time.tzset()
