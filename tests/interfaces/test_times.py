"""Moments are shown as the person's clock shows them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo


def test_a_task_a_session_and_a_fact_are_shown_in_the_persons_time_zone(ncm):
    ncm("init")
    ncm("config", "set", "user.timezone", "Asia/Tokyo")
    assert ncm("tasks", "add", "Water the plants", "--at", "2099-03-01T09:00").out.endswith(
        "runs first at 2099-03-01T09:00\n"
    )
    assert "2099-03-01T09:00 " in ncm("tasks", "list").out
    ncm("exchange", "add", "-u", "The kettle is broken", "--session", "s1", "--at", "2026-02-03T20:00:00Z")
    assert ncm("sessions", "list").out.startswith("2026-02-04T05:00 ")
    assert ncm("sessions", "show", "s1").out.startswith("2026-02-04T05:00\n")
    assert ncm("sessions", "search", "kettle").out.startswith("2026-02-04T05:00 ")
    ncm("graph", "add", "Keystone", "port", "3055", "--valid-from", "2026-02-03")
    assert "since 2026-02-03" in ncm("graph", "search", "Keystone port").out
    assert ncm("graph", "history", "Keystone").out.startswith("2026-02-03 – now ")


def test_upkeep_and_doctor_tell_the_persons_time_too(ncm):
    ncm("init")
    ncm("config", "set", "user.timezone", "Pacific/Kiritimati")  # 14 hours before UTC
    ncm("upkeep", "expire")
    there = datetime.now(ZoneInfo("Pacific/Kiritimati"))
    assert f"last {there:%Y-%m-%d %H}" in ncm("upkeep", "status").out
    assert f"upkeep last ran on {there:%Y-%m-%d %H}" in ncm("doctor").out


def test_an_exchange_of_the_future_is_warned_of(ncm):
    ncm("init")
    assert (
        "lies in the future" in ncm("exchange", "add", "-u", "Goose at Christmas", "--at", "2099-12-24").err
    )
    assert "future" not in ncm("exchange", "add", "-u", "Goose at Christmas", "--at", "2020-12-24").err
