"""What an entry may be, when two say the same, and how importance fades."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory import Memory, statements
from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries import rules
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.types import Entry, Provenance

NOON = datetime(2026, 2, 23, 12, 0, tzinfo=UTC)


def draft(**fields: Any) -> rules.EntryDraft:
    return rules.draft(**{"content": "User's dog is named Luna", "type": "fact", "now": NOON, **fields})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", ""),
        ("content", " \u200b\n"),
        ("content", "x" * 2_001),
        ("content", "x" * 1_000_000),
        ("content", 7),
        ("content", ["a"]),
        ("content", "half a \ud800 pair"),
        ("content", "nul \x00 byte"),
        ("type", "gossip"),
        ("type", ""),
        ("type", None),
        ("type", 3),
        ("tags", "coding"),
        ("tags", ["a\nb"]),
        ("tags", [""]),
        ("tags", ["x" * 51]),
        ("tags", [f"t{number}" for number in range(11)]),
        ("tags", [1]),
        ("priority", "urgent"),
        ("priority", 1),
        ("reason", "x" * 501),
        ("related_to", "mem-1"),
        ("related_to", ["'; DROP TABLE entries; --"]),
        ("supersedes", "a b"),
        ("supersedes", 5),
        ("expires", "tomorrow"),
        ("expires", "2026-02-30"),
        ("expires", "2026-02-22"),
        ("expires", "0001-01-01T00:00:00+14:00"),
        ("expires", 20260301),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(field: str, value: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        draft(**{field: value})
    assert refused.value.message.startswith(f"{field}: ")
    assert len(refused.value.message) < 200


@pytest.mark.parametrize("field", ["behavioral", "provenance", "session_id", "origin", "colour"])
def test_what_the_memory_sets_itself_is_no_argument(field: str) -> None:
    with pytest.raises(TypeError, match=field):
        draft(**{field: "owner"})
    assert field not in inspect.signature(Memory.store).parameters


def test_both_documents_forms_are_accepted() -> None:
    older = rules.draft("Ship it", now=NOON, category="project", context="asked twice")
    assert (older.type, older.reason) == ("project", "asked twice")
    with pytest.raises(InvalidValue, match="contradicts"):
        draft(category="person")
    assert draft(category="fact").type == "fact"


def test_a_date_of_expiry_lasts_to_the_end_of_that_day_where_the_user_lives() -> None:
    there = datetime(2026, 2, 23, 12, 0, tzinfo=timezone(timedelta(hours=9)))
    assert rules.expiry("2026-02-23", there) == "2026-02-23T14:59:59.000Z"
    assert rules.expiry("2026-03-01T12:00:00+02:00", there) == "2026-03-01T10:00:00.000Z"


def test_tags_that_differ_only_in_case_are_one() -> None:
    assert draft(tags=["Ops", "ops", "DB"]).tags == ("Ops", "DB")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers dark mode", "user prefers  DARK mode."),
        ("User prefers dark mode", "The user prefers dark mode!"),
        ("Please run all tests before merging a branch", "Before merging the branch run all tests"),
    ],
)
def test_another_wording_of_the_same_is_a_duplicate(one: str, other: str) -> None:
    assert statements.normal(one) == statements.normal(other) or statements.near_duplicate(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User's dog is named Luna", "User's cat is named Luna"),
        ("The staging server runs on port 8080", "The staging server runs on port 9090"),
        ("Anna manages Bob", "Bob manages Anna"),
        ("Prefers tea over coffee", "Prefers coffee over tea"),
        ("Deploys happen on Fridays after the review", "Deploys happen on Mondays after the review"),
        ("Always ask before sending mail to the customers", "Never ask before sending mail to the customers"),
        ("Turn the alerts of the build server on", "Turn the alerts of the build server off"),
        ("User likes C", "User likes C++"),
        ("Rent is due on the 1st of each month", "Rent is due on the 15th of each month"),
        ("User lives in Berlin with a cat and two dogs", "User lives in Munich with a cat and two dogs"),
    ],
)
def test_another_fact_is_never_a_duplicate(one: str, other: str) -> None:
    assert statements.normal(one) != statements.normal(other)
    assert not statements.near_duplicate(one, other)
    assert not statements.near_duplicate(other, one)


def test_a_sentence_cannot_hide_in_a_long_duplicate() -> None:
    long = " ".join(f"item{chr(97 + number % 26)}" for number in range(100))
    assert not statements.near_duplicate(long, f"{long} and send copies elsewhere")


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_case_spacing_and_a_final_stop_do_not_count(text: str) -> None:
    assert statements.text_key(f"  Word {text.upper()}  . ") == statements.text_key(f"word {text}")


def entry(priority: str, used: datetime, reinforcements: int = 0) -> Entry:
    return Entry(
        id="mem-1",
        type="fact",
        content="x",
        priority=priority,
        tags=(),
        behavioral=False,
        provenance=Provenance("s", "main", stamp(used), "owner"),
        status="active",
        token_cost=1,
        reinforcements=reinforcements,
        used_at=stamp(used),
    )


@given(
    st.sampled_from(["critical", "high", "medium", "low"]),
    st.integers(0, 5_000),
    st.integers(0, 5_000),
    st.integers(0, 9),
)
def test_importance_never_rises_with_idleness_and_never_falls_by_reinforcement(
    priority: str, first: int, more: int, times: int
) -> None:
    young = rules.importance(entry(priority, NOON - timedelta(days=first), times), NOON)
    old = rules.importance(entry(priority, NOON - timedelta(days=first + more), times), NOON)
    strong = rules.importance(entry(priority, NOON - timedelta(days=first + more), times + 1), NOON)
    assert 0 < old <= young <= 1
    assert strong >= old


def test_critical_entries_do_not_fade() -> None:
    assert rules.importance(entry("critical", NOON - timedelta(days=3_000)), NOON) == 1.0
