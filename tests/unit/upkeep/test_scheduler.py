"""When jobs run: in the person's zone, once, caught up after sleep, whatever the clock does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from nanoclaw_memory.clock import FixedClock, next_by_cron
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.memory import Memory

BERLIN = ZoneInfo("Europe/Berlin")


def ran(memory: Memory, job: str = "retain") -> bool:
    (run,) = memory.upkeep.run(job, due=True)
    assert not run.error
    return not run.skipped


def test_zero_is_sunday():
    assert next_by_cron("30 3 * * 0", datetime(2026, 5, 1, tzinfo=UTC), "") == datetime(
        2026, 5, 3, 3, 30, tzinfo=UTC
    )


def test_a_job_runs_once_and_is_not_due_again_before_its_next_time(memory: Memory, clock: FixedClock):
    assert ran(memory) and not ran(memory)
    clock.moment = datetime(2026, 5, 2, 2, 59, tzinfo=UTC)
    assert not ran(memory)
    clock.moment = datetime(2026, 5, 2, 3, 0, tzinfo=UTC)
    assert ran(memory)


def test_a_machine_that_slept_for_days_catches_up_once(memory: Memory, clock: FixedClock):
    assert ran(memory)
    clock.moment += timedelta(days=10)
    assert ran(memory) and not ran(memory)


@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24"])
def test_when_the_hour_changes_a_nightly_job_runs_once_a_night(
    open_memory: Callable[..., Memory], clock: FixedClock, day: str
):
    memory = open_memory(embeddings__provider="none", cron__nightly="30 2 * * *")
    memory.init()
    moment = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=BERLIN).astimezone(UTC)
    clock.moment = moment.astimezone(BERLIN)
    assert ran(memory)
    nights = []
    for quarter in range(1, 4 * 24 * 3):
        clock.moment = (moment + timedelta(minutes=15 * quarter)).astimezone(BERLIN)
        if ran(memory):
            nights.append(clock.moment.date())
    assert len(nights) == len(set(nights)) == 3


def test_a_clock_that_was_ahead_does_not_stop_upkeep_for_ever(memory: Memory, clock: FixedClock):
    clock.moment = datetime(2036, 1, 1, tzinfo=UTC)
    assert ran(memory)
    clock.moment = datetime(2026, 5, 1, tzinfo=UTC)
    assert ran(memory)
    assert not ran(memory)


def test_a_clock_that_jumps_back_and_forth_cools_no_day_twice(memory: Memory, clock: FixedClock):
    memory.graph.upsert("Keystone", "port", "3055")
    clock.moment += timedelta(days=3)
    memory.upkeep.run("cool")
    (warm,) = memory.graph.top()
    for days in (-2, 2):
        clock.moment += timedelta(days=days)
        memory.upkeep.run("cool")
    assert memory.graph.top() == [warm]


def test_an_empty_expression_means_never_by_itself(open_memory: Callable[..., Memory]):
    memory = open_memory(embeddings__provider="none", cron__nightly="")
    memory.init()
    assert not ran(memory)
    assert [run.skipped for run in memory.upkeep.run("retain")] == [""]


def test_an_expression_that_never_comes_due_is_refused_with_the_setting(open_memory: Callable[..., Memory]):
    memory = open_memory(embeddings__provider="none", cron__nightly="0 3 31 2 *")
    memory.init()
    with pytest.raises(InvalidValue, match="never comes due") as refused:
        memory.upkeep.status()
    assert "config set" in refused.value.hint


def test_a_damaged_journal_lets_every_job_run_again(memory: Memory, home: Path):
    assert ran(memory)
    (home / "data" / "upkeep.json").write_text('{"jobs": {"retain": 7')
    assert ran(memory)
    assert {state.name: state.last_run != "" for state in memory.upkeep.status()}["retain"]


def test_a_job_that_fails_says_why_and_does_not_stop_the_others(
    memory: Memory, home: Path, log: Callable[..., Path]
):
    log("2026-03-01", "- [context|i=0.1] old and small")
    (home / "workspace" / "memory" / "archive").write_text("a file where a folder should be")
    (home / "data" / "facts.db").mkdir()
    runs = {run.name: run for run in memory.upkeep.run()}
    assert "facts.db" in runs["ingest"].error and runs["ingest"].hint
    assert "stays as it is" in runs["retain"].notes[0]
    assert runs["corpus-reindex"].error == ""
    state = {one.name: one for one in memory.upkeep.status()}["ingest"]
    assert state.error == runs["ingest"].error


def test_a_dry_run_changes_nothing_and_says_what_it_would(
    memory: Memory, home: Path, log: Callable[..., Path]
):
    log(
        "2026-03-01",
        "- [context|i=0.1] old and small",
        "- [decision|i=0.9] Keystone chose SQLite for the store",
    )
    log("2026-04-30", "- [decision|i=0.9] Keystone chose Caddy for the proxy")
    before = {path: path.read_bytes() for path in (home / "workspace").rglob("*.md")}
    runs = {run.name: run for run in memory.upkeep.run(dry_run=True)}
    assert runs["retain"].changed == 1 and runs["ingest"].changed == 3  # with today's
    assert "Caddy" in " ".join(runs["promote"].notes)
    assert {path: path.read_bytes() for path in (home / "workspace").rglob("*.md")} == before
    assert memory.upkeep.review() == [] and all(not state.last_run for state in memory.upkeep.status())


def test_doctor_names_a_loop_that_never_fired_and_upkeep_that_is_overdue(memory: Memory, clock: FixedClock):
    said = " ".join(finding.message for finding in memory.doctor())
    assert "upkeep never ran" in said and "no lesson was learnt yet" in said
    memory.upkeep.run()
    memory.graph.upsert("Keystone", "port", "3055")
    said = " ".join(finding.message for finding in memory.doctor())
    assert "activation never fired" in said and "overdue" not in said
    memory.graph.reinforce(memory.graph.search("Keystone port").hits)
    clock.moment += timedelta(days=4)
    said = " ".join(finding.message for finding in memory.doctor())
    assert "activation last fired on 2026-05-01" in said and "overdue: drain, ingest, cool" in said
