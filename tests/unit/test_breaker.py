"""The breaker: an outage is remembered between processes, probed once, and forgotten when it is over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from nanoclaw_memory.providers.endpoint import Breaker


@pytest.fixture
def again(tmp_path, clock):
    """A breaker of another process: a new object over the same file."""
    return lambda: Breaker(tmp_path / "breakers" / "x.json", clock)


def test_an_endpoint_that_never_failed_may_be_called(again):
    assert again().outage() is None


def test_a_failure_is_known_to_the_next_process(again):
    again().opened("no answer")
    rest = again().outage()
    assert rest is not None
    assert rest.reason == "no answer"
    assert again().seconds_left() == 30


def test_after_the_rest_one_caller_probes_and_the_others_still_wait(again, clock):
    again().opened("no answer")
    clock.moment += timedelta(seconds=31)
    assert again().outage() is None
    assert again().outage() is not None


def test_a_probe_that_dies_does_not_block_for_ever(again, clock):
    again().opened("no answer")
    for _ in range(2):
        clock.moment += timedelta(seconds=31)
        assert again().outage() is None


def test_each_failed_probe_doubles_the_rest_up_to_ten_minutes(again, clock):
    rests = []
    for _ in range(8):
        again().opened("down")
        rests.append(again().seconds_left())
        clock.moment += timedelta(seconds=rests[-1] + 1)
        assert again().outage() is None
    assert rests == [30, 60, 120, 240, 480, 600, 600, 600]


def test_an_answer_ends_it(again, clock):
    again().opened("down")
    again().closed()
    assert again().outage() is None
    again().opened("down again")
    assert again().seconds_left() == 30


def test_a_server_may_ask_for_a_longer_rest_but_not_for_hours(again):
    again().opened("429", retry_after=90)
    assert again().seconds_left() == 90
    again().opened("429", retry_after=86_400)
    assert again().seconds_left() == 600


def test_a_clock_set_back_does_not_freeze_the_endpoint(again, clock):
    again().opened("down")
    clock.moment -= timedelta(days=2)
    assert again().outage() is None


@pytest.mark.parametrize(
    "content", ["", "not json", "[]", '{"until": "soon"}', '{"until": null, "failures": 1}']
)
def test_a_broken_file_means_try(again, tmp_path, content):
    (tmp_path / "breakers").mkdir()
    (tmp_path / "breakers" / "x.json").write_text(content)
    assert again().outage() is None


def test_a_place_that_cannot_be_written_costs_no_answer(tmp_path, clock):
    (tmp_path / "file").write_text("")
    breaker = Breaker(tmp_path / "file" / "x.json", clock)
    breaker.opened("down")
    breaker.closed()
    assert breaker.outage() is None
