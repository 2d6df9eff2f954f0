"""What somebody types in the first days, and what they are told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from nanoclaw_memory.clock import SystemClock


@pytest.mark.parametrize("named", ["yesterday", "gestern"])
def test_a_log_is_shown_by_a_day_in_words(ncm, named: str):
    ncm("init")
    yesterday = SystemClock().now().date() - timedelta(days=1)
    folder = Path(ncm("status", "--json").json["home"]) / "workspace" / "memory"
    (folder / f"{yesterday}.md").write_text("- The kettle broke\n")
    assert "The kettle broke" in ncm("log", named).out
    assert "'the kettle' is no date" in ncm("log", "the kettle").err
    assert "'last month' is more than a day" in ncm("log", "last month").err


def test_a_time_zone_is_set_by_its_city(ncm):
    ncm("init")
    assert ncm("config", "set", "user.timezone", "Berlin").out == 'user.timezone = "Europe/Berlin"\n'
    refused = ncm("config", "set", "user.timezone", "Leipzig")
    assert refused.code == 2 and "large city of your zone" in refused.err


def test_an_entry_without_a_type_is_told_that_it_is_missing(ncm):
    ncm("init")
    refused = ncm("entries", "store", "Prefers tea")
    assert refused.code == 2 and "type: it is missing" in refused.err and "preference" in refused.err
