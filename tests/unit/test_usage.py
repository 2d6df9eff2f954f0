"""The ledger: every call of every process is counted, by model and day."""

from __future__ import annotations

import json
import multiprocessing
from datetime import timedelta
from pathlib import Path

import pytest

from nanoclaw_memory.clock import SystemClock
from nanoclaw_memory.providers.usage import Usage, UsageRow


@pytest.fixture
def usage(tmp_path, clock) -> Usage:
    return Usage(tmp_path / "data" / "usage.json", clock)


def test_calls_tokens_and_cost_add_up_by_model(usage):
    usage.record("azure-openai", "large", 1000, 0.00013)
    usage.record("azure-openai", "large", 500, 0.000065)
    usage.record("azure-openai", "large", failed=True)
    usage.record("openai", "org/model", 10)
    large, other = usage.total()
    assert (large.calls, large.failures, large.tokens) == (3, 1, 1500)
    assert large.cost == pytest.approx(0.000195)
    assert other == UsageRow("openai", "org/model", calls=1, tokens=10)


def test_the_use_of_several_days_is_summed(usage, clock):
    usage.record("a", "m", 5)
    clock.moment += timedelta(days=1)
    usage.record("a", "m", 7)
    assert usage.total()[0].tokens == 12


def test_old_days_are_folded_and_nothing_is_lost(usage, clock):
    for _ in range(100):
        usage.record("a", "m", 1, 0.5)
        clock.moment += timedelta(days=1)
    assert usage.total() == (UsageRow("a", "m", calls=100, tokens=100, cost=50.0),)
    assert len(json.loads(usage.path.read_text())) == 32


@pytest.mark.parametrize(
    "content", ["", "[]", '{"2026-02-23": 3}', '{"2026-02-23": {"a/m": {"calls": "x"}}}']
)
def test_a_broken_ledger_starts_anew(usage, content):
    usage.path.parent.mkdir()
    usage.path.write_text(content)
    assert usage.total() == ()
    usage.record("a", "m", 1)
    assert usage.total()[0].calls == 1


def test_a_ledger_that_cannot_be_written_costs_no_answer(tmp_path, clock):
    (tmp_path / "file").write_text("")
    usage = Usage(tmp_path / "file" / "usage.json", clock)
    usage.record("a", "m", 1)
    assert usage.total() == () and (tmp_path / "file").read_text() == ""


def _many(path: str) -> None:
    usage = Usage(Path(path), SystemClock())
    for _ in range(50):
        usage.record("a", "m", 2)


def test_processes_that_count_at_once_lose_nothing(usage):
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_many, args=(str(usage.path),)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert (usage.total()[0].calls, usage.total()[0].tokens) == (150, 300)
