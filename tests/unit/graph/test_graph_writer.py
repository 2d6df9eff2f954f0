"""Facts over time: what is current, what was, what may not come back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import InvalidValue, NotFound, Refused
from nanoclaw_memory.graph.writer import position
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Fact


def values(memory: Memory, question: str, as_of: str | None = None) -> list[str]:
    return [h.item.value for h in memory.graph.search(question, as_of=as_of).hits if isinstance(h.item, Fact)]


def test_a_new_value_retires_the_old_one_and_history_keeps_both(memory: Memory, clock: FixedClock) -> None:
    old = memory.graph.upsert("Alice", "employer", "Acme")
    clock.moment += timedelta(days=10)
    new = memory.graph.upsert("Alice", "employer", "Globex")
    assert new.retired == (old.id,)
    assert values(memory, "Where does Alice work?") == ["Globex"]
    assert [
        (f.value, bool(f.valid_to), f.superseded_by) for f in memory.graph.history("Alice", "employer")
    ] == [
        ("Acme", True, new.id),
        ("Globex", False, None),
    ]


def test_the_past_can_be_asked(memory: Memory, clock: FixedClock) -> None:
    memory.graph.upsert("Alice", "employer", "Acme")
    clock.moment += timedelta(days=40)
    memory.graph.upsert("Alice", "employer", "Globex")
    assert values(memory, "Alice's employer", "2026-03-01") == ["Acme"]
    assert values(memory, "Alice's employer", "2026-02") == ["Acme"]
    assert values(memory, "Alice's employer", "2026-04-04") == ["Globex"]
    assert values(memory, "Alice's employer", "2026-01-01") == []


def test_the_same_value_again_is_no_change(memory: Memory) -> None:
    one = memory.graph.upsert("Alice", "employer", "Acme")
    two = memory.graph.upsert("alice", "Employer", " ACME ", importance=0.9)
    assert (two.id, two.created, two.retired) == (one.id, False, ())
    (fact,) = memory.graph.history("Alice")
    assert fact.importance == 0.9


def test_an_earlier_value_learnt_late_goes_into_the_past(memory: Memory) -> None:
    memory.graph.upsert("Alice", "employer", "Globex", valid_from="2026-01-01")
    late = memory.graph.upsert("Alice", "employer", "Acme", valid_from="2024-01-01")
    assert late.retired == ()
    assert values(memory, "Alice's employer") == ["Globex"]
    assert values(memory, "Alice's employer", "2025-06-01") == ["Acme"]


def test_a_value_that_will_hold_later_is_not_yet_current(memory: Memory, clock: FixedClock) -> None:
    memory.graph.upsert("Alice", "city", "Berlin")
    memory.graph.upsert("Alice", "city", "Lisbon", valid_from="2026-06-01")
    assert values(memory, "Alice's city") == ["Berlin"]
    clock.moment += timedelta(days=120)
    assert values(memory, "Alice's city") == ["Lisbon"]


def test_keys_with_several_values_keep_them(memory: Memory) -> None:
    memory.graph.upsert("Alice", "hobby", "chess")
    memory.graph.upsert("Alice", "hobby", "cello")
    memory.graph.upsert("Alice", "phone", "1")
    memory.graph.upsert("Alice", "phone", "2", add=True)
    assert set(values(memory, "Alice's hobbies")[:2]) == {"chess", "cello"}
    assert set(values(memory, "Alice's phone")[:2]) == {"1", "2"}


def test_a_single_valued_predicate_retires_and_others_add(memory: Memory) -> None:
    memory.graph.relate("Alice", "lives_in", "Berlin")
    assert memory.graph.relate("Alice", "lives_in", "Lisbon").retired
    memory.graph.relate("Alice", "owns", "Keystone")
    assert memory.graph.relate("Alice", "owns", "Gridlock").retired == ()
    assert memory.graph.relate("Alice", "owns", "Only", replace=True).retired
    texts = [hit.text for hit in memory.graph.search("Tell me about Alice", 20).hits]
    assert sorted(texts) == ["Alice → lives_in → Lisbon", "Alice → owns → Only"]


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ("JÜRGEN GROSS", "car", "DARK-BLUE ESTATE CARS!"),
        ("Juergen Gross", "cars", "dark blue estate car"),
        ("Jurgen Groß", "Car", "  dark blue, estate cars. "),
        ("Jürgen Groß", "car", "“Dark blue estate's cars”"),
    ],
)
def test_a_rejected_statement_stays_away_in_another_spelling(memory, entity, key, value) -> None:
    memory.graph.upsert("Jürgen Groß", "car", "dark blue estate cars")
    memory.graph.reject("Jürgen Groß", "car", "Dark blue estate car")
    assert values(memory, "What is Jürgen Groß's car?") == []
    with pytest.raises(Refused, match="rejected before"):
        memory.graph.upsert(entity, key, value)
    assert memory.graph.unreject(entity, key, value)
    assert memory.graph.upsert("Jürgen Groß", "car", "dark blue estate cars").id


@pytest.mark.parametrize(
    ("rejected", "other"),
    [("1.5", "15"), ("-5", "5"), ("C++", "C"), ("C#", "C"), ("Hamburger", "Hamburg"), ("3000", "3001"),
     ("12:30", "1230"), ("1 23", "12 3"), ("20 %", "20"), ("Anna Berg", "Anna Burg"), ("port 3000", "port 300")],
)  # fmt: skip
def test_another_value_than_the_rejected_one_is_taken(memory, rejected, other) -> None:
    memory.graph.reject("Keystone", "value", rejected)
    assert memory.graph.upsert("Keystone", "value", other).id


def test_a_rejected_value_is_gone_restores_the_one_before_and_stays_away(memory: Memory) -> None:
    memory.graph.upsert("Keystone", "port", "3000")
    memory.graph.upsert("Keystone", "port", "3001")
    memory.graph.reject("Keystone", "port", "3001", "typo")
    assert values(memory, "Keystone port") == ["3000"]
    with pytest.raises(Refused, match="rejected before"):
        memory.graph.upsert("Keystone", "port", "3001")
    done = memory.graph.ingest("memory/project-keystone.md", "# Keystone\n\n- port: 3001\n- host: maren\n")
    assert (done.added, done.skipped) == (1, 1)
    assert values(memory, "Keystone port")[0] == "3000"
    assert memory.graph.unreject("Keystone", "port", "3001")
    assert memory.graph.upsert("Keystone", "port", "3001").created


def test_removed_facts_are_history_and_purged_ones_are_gone(memory: Memory) -> None:
    memory.graph.upsert("Keystone", "port", "3000")
    memory.graph.remove("Keystone", "port")
    assert values(memory, "Keystone port") == []
    assert len(memory.graph.history("Keystone")) == 1
    memory.graph.remove("Keystone", purge=True)
    assert memory.graph.history("Keystone") == []
    with pytest.raises(NotFound):
        memory.graph.remove("Keystone")


def test_a_changed_fact_is_as_warm_and_as_linked_as_before(memory: Memory) -> None:
    memory.graph.upsert("Alice", "phone", "1")
    memory.graph.upsert("Bob", "phone", "2")
    both = memory.graph.search("phone").hits
    for _ in range(4):
        memory.graph.reinforce(both)
    memory.graph.upsert("Alice", "phone", "3")
    hits = memory.graph.search("Alice's phone").hits
    assert hits[0].tier == "Hot"
    assert [hit.text for hit in hits if hit.linked] == ["Bob.phone = 2"]


@pytest.mark.parametrize(
    "given",
    [
        {"entity": "", "key": "k", "value": "v"},
        {"entity": "e", "key": " \u200b ", "value": "v"},
        {"entity": "e", "key": "k", "value": "\n"},
        {"entity": "e", "key": "k", "value": "x" * 10_001},
        {"entity": "e" * 201, "key": "k", "value": "v"},
        {"entity": "e", "key": "k", "value": "v", "category": "nonsense"},
        {"entity": "e", "key": "k", "value": "v", "importance": 1.5},
        {"entity": "e", "key": "k", "value": "v", "valid_from": "yesterday"},
    ],
)
def test_bad_facts_are_refused_and_change_nothing(memory: Memory, given: dict[str, str]) -> None:
    with pytest.raises(InvalidValue) as refused:
        memory.graph.upsert(**given)  # type: ignore[arg-type]
    assert refused.value.hint
    assert list(memory.graph.export()) == []


def test_categories_can_be_opened_by_a_setting(open_memory) -> None:  # type: ignore[no-untyped-def]
    memory = open_memory(graph__categories='["fact", "spaceship"]')
    assert memory.graph.upsert("Nostromo", "crew", "7", "spaceship").created
    with pytest.raises(InvalidValue, match="person"):
        memory.graph.upsert("Ripley", "rank", "warrant officer", "person")


def test_a_credential_in_a_value_is_masked(memory: Memory) -> None:
    done = memory.graph.upsert("CI", "token", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    assert done.redacted == 1
    assert "ghp_a1B2" not in memory.graph.history("CI")[0].value


def test_an_alias_of_itself_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidValue):
        memory.graph.alias("Heidi", "heidi")


spells = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(0, 20))
def test_at_every_moment_at_most_one_value_of_a_key_holds(starts: list[int], asked: int) -> None:
    line: list[Fact] = []
    for number, start in enumerate(starts):
        text = f"{start:02d}"
        where = position(line, text)
        line = [
            Fact(
                f.id,
                "e",
                "k",
                f.value,
                valid_from=f.valid_from,
                valid_to=text if f.id in where.retires else f.valid_to,
            )
            for f in line
        ]
        line.append(Fact(number, "e", "k", str(number), valid_from=text, valid_to=where.until or ""))
    moment = f"{asked:02d}"
    holds = [f for f in line if f.valid_from <= moment and (not f.valid_to or f.valid_to > moment)]
    assert len(holds) <= 1
    if min(starts) <= asked:
        assert len(holds) == 1


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["red", "green", "blue", "grey"]), min_size=1, max_size=8))
def test_only_the_last_value_is_ever_current(memory: Memory, said: list[str]) -> None:
    for value in said:
        memory.graph.upsert("Door", "colour", value)
    assert values(memory, "What colour is the Door?") == [said[-1]]
