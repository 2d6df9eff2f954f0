"""A clock that was wrong for a while: what was said then is older than what is said now, and somebody is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

AHEAD = datetime(2027, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2027, 4, 1, 12, tzinfo=UTC)


@pytest.fixture
def now(clock) -> datetime:
    return clock.moment


def phones(memory) -> list[str]:
    hits = memory.graph.search("What is Heidi's phone?").hits
    return [hit.item.value for hit in hits if hit.item.key not in ("colour", "likes")]


def test_a_value_said_with_a_clock_ahead_is_current_at_once_and_a_correction_ends_it_for_good(
    memory, clock, now
):
    memory.graph.upsert("Heidi", "phone", "0000")
    clock.moment = AHEAD
    memory.graph.upsert("Heidi", "phone", "1111")
    clock.moment = now + timedelta(minutes=1)
    assert phones(memory) == ["1111"]
    memory.graph.upsert("Heidi", "phone", "2222")
    for moment in (clock.moment, LATER):
        clock.moment = moment
        assert phones(memory) == ["2222"]
    clock.moment = now + timedelta(minutes=2)
    memory.graph.upsert("Heidi", "phone", "3333")
    clock.moment = LATER
    assert phones(memory) == ["3333"]
    assert {fact.value for fact in memory.graph.history("Heidi", "phone")} == {"0000", "1111", "2222", "3333"}


def test_nothing_becomes_current_later_that_was_said_with_a_clock_ahead(memory, clock, now):
    memory.graph.upsert("Heidi", "phone", "0000")
    clock.moment = AHEAD
    memory.graph.upsert("Heidi", "phone", "1111")
    for moment in (now + timedelta(days=1), LATER):
        clock.moment = moment
        assert phones(memory) == ["1111"]


def test_another_value_of_the_same_entity_does_not_bring_the_one_before_back(memory, clock, now):
    memory.graph.upsert("Heidi", "phone", "0000")
    clock.moment = AHEAD
    memory.graph.upsert("Heidi", "phone", "1111")
    clock.moment = now + timedelta(days=1)
    memory.graph.upsert("Heidi", "colour", "green")
    assert phones(memory) == ["1111"]


def test_a_planned_value_is_still_not_current_before_its_day(memory, clock, now):
    memory.graph.upsert("Heidi", "phone", "0000")
    memory.graph.upsert("Heidi", "phone", "4444", valid_from="2027-03-20")
    memory.graph.upsert("Heidi", "phone", "1111")
    assert phones(memory) == ["1111"]
    clock.moment = LATER
    assert phones(memory) == ["4444"]


def test_a_question_about_the_past_is_not_answered_with_what_a_clock_ahead_dated(memory, clock, now):
    memory.graph.upsert("Heidi", "phone", "0000", valid_from="2026-01-01")
    clock.moment = AHEAD
    memory.graph.upsert("Heidi", "phone", "1111")
    clock.moment = now
    hits = memory.graph.search("What is Heidi's phone?", as_of="2026-02-01").hits
    assert [hit.item.value for hit in hits] == ["0000"]


def test_a_relation_said_with_a_clock_ahead_is_ended_by_the_next_one(memory, clock, now):
    memory.graph.relate("Heidi", "works at", "Acme")
    clock.moment = AHEAD
    memory.graph.relate("Heidi", "works at", "Globex", replace=True)
    clock.moment = now + timedelta(days=1)
    current = lambda: {hit.item.object for hit in memory.graph.search("Where does Heidi work?").hits}  # noqa: E731
    assert current() == {"Globex"}
    memory.graph.relate("Heidi", "works at", "Initech", replace=True)
    for moment in (clock.moment, LATER):
        clock.moment = moment
        assert current() == {"Initech"}


def test_with_a_clock_far_behind_facts_are_still_known(memory, clock):
    memory.graph.upsert("Heidi", "phone", "0000")
    memory.graph.upsert("Heidi", "phone", "1111")
    clock.moment = datetime(1970, 1, 2, tzinfo=UTC)
    assert phones(memory) == ["1111"]


def test_a_line_of_a_log_from_the_future_does_not_overtake_a_correct_one(memory, clock, now):
    clock.moment = AHEAD
    memory.write("Heidi's phone number is 1111", tag="fact", importance=0.9)
    assert phones(memory) == ["1111"]
    memory.search("Heidi's phone number")
    clock.moment = now
    memory.write("Heidi's phone number is 2222", tag="fact", importance=0.9)
    assert phones(memory) == ["2222"]
    right = next(hit for hit in memory.search("Heidi's phone number").hits if "2222" in hit.text)
    assert right.newer is None
    clock.moment = LATER
    assert phones(memory) == ["2222"]


def test_a_log_from_the_future_that_is_read_anew_does_not_beat_a_correct_one(memory, clock, now, home):
    (home / "workspace" / "memory" / "2027-03-01.md").write_text(
        "# 2027-03-01\n\n- Heidi's phone number is 1111\n"
    )
    memory.write("Heidi's phone number is 2222")
    for moment in (now, LATER):
        clock.moment = moment
        assert phones(memory) == ["2222"]


def test_what_was_said_in_a_conversation_with_a_clock_ahead_is_older_than_a_correction(memory, clock, now):
    clock.moment = AHEAD
    memory.after_turn("The Zorvane gateway listens on port 3100", "Noted")
    memory.search("Zorvane gateway port")
    clock.moment = now
    memory.after_turn("The Zorvane gateway listens on port 3107", "Noted")
    hits = memory.search("Zorvane gateway port").hits
    assert all(hit.newer is None for hit in hits if "3107" in hit.text)
    assert [hit.mark for hit in hits if "3100" in hit.text] == ["earlier"]


def test_cooling_goes_on_after_a_clock_that_was_ahead(memory, clock, now):
    memory.graph.upsert("Heidi", "phone", "0000")
    clock.moment = AHEAD
    memory.graph.cool()
    clock.moment = now + timedelta(days=1)
    memory.graph.cool()
    clock.moment = now + timedelta(days=2)
    assert memory.graph.cool()[1] == 1  # day


def of_the_clock(memory, fix: bool = False) -> list[str]:
    return [one.message for one in memory.doctor(fix) if "clock was wrong" in one.message]


def test_doctor_warns_of_what_is_dated_in_the_future_and_dates_it_anew_in_its_order(memory, clock, now):
    assert of_the_clock(memory) == []
    memory.graph.upsert("Heidi", "phone", "0000")
    clock.moment = AHEAD
    memory.graph.upsert("Heidi", "phone", "1111")
    memory.after_turn("Tell me of Heidi", "She has a new phone")
    memory.store("Heidi likes tea", type="fact")
    clock.moment = now + timedelta(hours=1)
    memory.after_turn("Tell me of Welt", "He has an old one")
    clock.moment = now + timedelta(hours=2)
    (warning,) = of_the_clock(memory)
    assert warning in memory.status().problems
    assert "3 rows" in warning and "2027-03-01" in warning and "2026-02-23" in warning
    of_the_clock(memory, fix=True)
    assert of_the_clock(memory) == []
    for moment in (clock.moment, LATER):
        clock.moment = moment
        assert phones(memory) == ["1111"]
    told = [one.timestamp for one in memory.conversations.session("s1")]
    assert sorted(told) == told and max(told) < "2026-02-24"


def test_a_single_row_from_the_future_is_named_in_the_singular(memory, clock, now):
    clock.moment = AHEAD
    memory.store("Heidi likes tea", type="fact")
    clock.moment = now
    (warning,) = of_the_clock(memory)
    assert "1 row of memory is dated in the future" in warning


def test_doctor_names_a_log_from_the_future(memory, clock, now):
    clock.moment = AHEAD
    memory.write("a line")
    clock.moment = now
    (warning,) = of_the_clock(memory)
    assert "memory/2027-03-01.md" in warning
