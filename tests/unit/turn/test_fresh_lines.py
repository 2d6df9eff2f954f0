"""Which lines are new to a session: compared without mark and age, looked for in its start as whole words."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from nanoclaw_memory.turn.plugin import Draft
from nanoclaw_memory.turn.received_lines import ReceivedLines, fresh_lines

START = """## MEMORY.md

- **Rent is 900.**
- [decision|i=0.9] Chose SQLite (see the log)
- Keystone.port = 3000
- the ratio is 3.5
"""


def fresh(*lines: str, given: ReceivedLines, **more: tuple[str, ...]) -> list[str]:
    kept, repeated = fresh_lines(Draft("X", lines, **more), given)
    given.add(kept, repeated)
    return [line.text for line in kept]


@pytest.mark.parametrize(
    "line", ["• Rent is 900", "Chose SQLite", "chose  sqlite", "• Keystone.port = 3000 [linked]"]
)
def test_what_stands_in_the_start_is_not_new(line):
    assert fresh(line, given=ReceivedLines([START])) == []


@pytest.mark.parametrize(
    "line", ["Rent is 90", "Keystone.port = 300", "the ratio is 3", "rent", "hose SQLite", "Rent is 950"]
)
def test_what_only_begins_like_a_line_of_the_start_is_new(line):
    assert fresh(line, given=ReceivedLines([START])) == [line]


def test_a_statement_is_found_in_the_start_whatever_stands_around_it_in_the_line():
    line = "• [MEMORY.md · 2026-02-03] Rent is 900"
    assert fresh(line, given=ReceivedLines([START])) == [line]
    assert fresh(line, given=ReceivedLines([START]), statements=("Rent is 900",)) == []


@pytest.mark.parametrize(
    "later",
    [
        "Rent is 900 (yesterday)",
        "Rent is 900 (3d ago) [earlier]",
        "Rent is 900 (two weeks ago) [superseded by 950]",
        'Rent is 900 (today; earlier, see fact 2 (direct) of 2026-11-15: "Rent (cold) is 950")',
        "Rent is 900 (today; superseded, by MEMORY.md:3 of 2026-11-15)",
    ],
)
def test_an_older_line_and_a_marked_one_are_the_same(later):
    given = ReceivedLines()
    assert fresh("Rent is 900 (today)", given=given)
    assert fresh(later, given=given) == []


def test_another_date_is_another_statement():
    given = ReceivedLines()
    fresh("Deadline (2026-04-02)", given=given)
    assert fresh("Deadline (2026-05-02)", given=given) == ["Deadline (2026-05-02)"]


def test_a_value_that_came_back_is_told_again_even_when_the_start_had_it():
    given = ReceivedLines([START])
    for value, new in (("3000", False), ("8443", True), ("3000", True), ("3000", False)):
        assert bool(fresh(f"Keystone.port = {value}", given=given)) == new


def test_two_values_that_hold_at_once_are_told_once_each():
    given = ReceivedLines()
    both = ("Keystone.owner = Ann", "Keystone.owner = Bo")
    assert fresh(*both, given=given) == list(both)
    assert fresh(*both, given=given) == []
    assert fresh(*both, "Keystone.owner = Cy", given=given) == ["Keystone.owner = Cy"]
    kept = ReceivedLines(lines=given.new)  # as the next process reads it
    assert fresh(*both, "Keystone.owner = Cy", given=kept) == []


@examples(
    st.lists(st.text(max_size=30) | st.sampled_from(["a = 1", "a = 2", "a = 3"]), max_size=8),
    st.lists(st.sampled_from(["", "why"]), max_size=8),
)
def test_a_draft_that_was_given_has_nothing_new(lines, reasons):
    given = ReceivedLines()
    more = {"reasons": tuple(reasons)}
    fresh(*lines, given=given, **more)
    again, _ = fresh_lines(Draft("X", tuple(lines), **more), given)
    stated = [line for line in again if line.reason or not reasons]
    assert stated == []


def test_what_overtakes_a_line_of_the_turn_is_given_beside_it_though_it_stands_in_the_start():
    older, newer = "Rent was 850 (earlier)", "Rent is 900"
    assert fresh(newer, given=ReceivedLines([START])) == []
    given = ReceivedLines([START])
    assert fresh(older, newer, given=given, newer=("Rent is 900.",)) == [older, newer]
    again = ReceivedLines([START], given.new)
    assert fresh(older, newer, given=again, newer=("Rent is 900.",)) == []


def test_one_statement_of_two_sources_is_given_once_and_said_to_stand_in_this_turn():
    given = ReceivedLines()
    draft = Draft("X", ("[log] Rent is 900 (earlier)", "[page] Rent is 900"), statements=("Rent is 900",) * 2)
    kept, repeated = fresh_lines(draft, given)
    given.add(kept, repeated)
    assert [line.known for line in repeated] == ["another line of this turn says it"]
    assert fresh("[talk] Rent is 900", given=given, statements=("Rent is 900",)) == []


def test_what_overtakes_a_line_that_is_told_is_told_with_it_though_the_start_has_what_is_newer_still():
    lines = ("Rent is 700 (earlier)", "Rent went up to 800 (earlier)")
    newer = ("Rent went up to 800", "Rent is 900.")
    assert fresh(*lines, given=ReceivedLines([START]), statements=("Rent is 700", newer[0]), newer=newer) == [
        *lines
    ]
