"""Activation: use warms and wires, time cools, and the answer never waits for either."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Fact, GraphHit


@pytest.fixture
def known(memory: Memory) -> Memory:
    memory.graph.upsert("Alice", "birthday", "May 1")
    memory.graph.upsert("Alice", "phone", "1")
    memory.graph.upsert("Bob", "birthday", "June 2")
    memory.graph.upsert("Bob", "city", "Oslo")
    return memory


NOON = datetime(2026, 2, 23, 12, tzinfo=UTC)


def activation(memory: Memory, entity: str, key: str) -> float:
    return memory.graph.history(entity, key)[0].activation


def test_searching_changes_nothing_and_the_caller_reinforces(known: Memory) -> None:
    before = list(known.graph.export())
    hits = known.graph.search("Alice's birthday").hits
    assert list(known.graph.export()) == before
    assert activation(known, "Alice", "birthday") == 1.0
    assert known.graph.reinforce(hits) == ""
    fact = known.graph.history("Alice", "birthday")[0]
    assert (fact.activation, fact.access_count, bool(fact.last_accessed)) == (1.5, 1, True)


def test_what_merely_came_along_is_warmed_less(known: Memory) -> None:
    known.graph.reinforce(known.graph.search("Alice's birthday").hits)
    assert activation(known, "Alice", "phone") == pytest.approx(1.15)


def test_used_facts_become_hot_and_top_shows_them(known: Memory) -> None:
    for _ in range(3):
        known.graph.reinforce(known.graph.search("Alice's birthday").hits)
    assert [fact.text for fact in known.graph.top("hot")] == ["Alice.birthday = May 1"]
    assert "Bob.city = Oslo" in [fact.text for fact in known.graph.top("warm")]


def test_facts_retrieved_together_twice_are_linked(known: Memory) -> None:
    for _ in range(2):
        known.graph.reinforce(known.graph.search("birthday of Alice and Bob").hits)
    linked = [hit for hit in known.graph.search("Alice's birthday").hits if hit.linked]
    assert [hit.text for hit in linked] == ["Bob.birthday = June 2"]
    assert "Alice.birthday 2 times" in linked[0].why
    known.graph.reinforce(linked)
    assert activation(known, "Bob", "birthday") == pytest.approx(2.15)


def test_at_most_four_linked_facts_come_along_strongest_first(memory: Memory) -> None:
    for number in range(8):
        memory.graph.upsert(f"Node{number}", "state", "up")
    everything = memory.graph.search("state up", 8).hits
    for _ in range(2):
        memory.graph.reinforce(everything)
    strong = [
        hit for hit in everything if isinstance(hit.item, Fact) and hit.item.entity in ("Node0", "Node5")
    ]
    memory.graph.reinforce(strong)
    linked = [hit for hit in memory.graph.search("Node0 state").hits if hit.linked]
    assert len(linked) == 4
    assert linked[0].text == "Node5.state = up"


def test_a_retired_fact_is_never_pulled_in_as_linked(known: Memory) -> None:
    for _ in range(2):
        known.graph.reinforce(known.graph.search("birthday of Alice and Bob").hits)
    known.graph.remove("Bob", "birthday")
    assert not any(hit.linked for hit in known.graph.search("Alice's birthday").hits)


def test_cooling_is_once_a_day_and_catches_up(known: Memory, clock: FixedClock) -> None:
    assert known.graph.cool() == (4, 1)
    assert activation(known, "Alice", "phone") == pytest.approx(0.95)
    assert known.graph.cool() == (0, 0)
    clock.moment += timedelta(days=3)
    known.graph.upsert("Carol", "city", "Rome")
    assert known.graph.cool()[1] == 3
    assert activation(known, "Alice", "phone") == pytest.approx(0.95**4)
    assert activation(known, "Carol", "city") == pytest.approx(0.95)


def test_permanent_facts_never_cool_and_nothing_cools_below_the_floor(
    memory: Memory, clock: FixedClock
) -> None:
    memory.graph.upsert("Alice", "birthday", "May 1", permanent=True)
    memory.graph.upsert("Alice", "lunch", "soup")
    memory.graph.cool()
    clock.moment += timedelta(days=4000)
    memory.graph.cool()
    assert activation(memory, "Alice", "birthday") == 1.0
    assert activation(memory, "Alice", "lunch") == pytest.approx(0.01)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_cooling_in_steps_is_cooling_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    results = []
    for days in (steps, [sum(steps)]):
        clock = FixedClock(NOON)
        memory = Memory.open(tmp_path_factory.mktemp("cooling"), clock=clock)
        memory.graph.upsert("Alice", "phone", "1")
        memory.graph.cool()
        for step in days:
            clock.moment += timedelta(days=step)
            memory.graph.cool()
        results.append(activation(memory, "Alice", "phone"))
        memory.close()
    assert results[0] == pytest.approx(results[1])
    assert results[0] < 1.0


def test_two_identical_searches_give_the_same_hits_apart_from_order_by_warmth(known: Memory) -> None:
    for question in ("birthday", "Alice's birthday", "Tell me about Bob", "Oslo"):
        one = known.graph.search(question).hits
        assert known.graph.search(question).hits == one
        known.graph.reinforce(one)
        two = known.graph.search(question).hits
        assert {hit.item.id for hit in one} == {hit.item.id for hit in two if not hit.linked}
        assert [hit.score for hit in one] == sorted(
            (hit.score for hit in two if not hit.linked), reverse=True
        )


WHO = ("Alice", "Bob Stone", "Keystone", "Ümit")
WHAT = ("birthday", "port", "phone", "likes")
TOLD = st.tuples(
    st.sampled_from(WHO), st.sampled_from(WHAT), st.sampled_from(("Oslo", "3000", "Alice", "tea"))
)


@settings(max_examples=25, deadline=None)
@given(
    told=st.lists(TOLD, max_size=10),
    related=st.lists(st.tuples(st.sampled_from(WHO), st.just("knows"), st.sampled_from(WHO)), max_size=4),
    asked=st.lists(st.sampled_from((*WHO, *WHAT, "Oslo", "who", "'s")), min_size=1, max_size=4).map(" ".join),
)
def test_using_an_answer_changes_only_warmth_and_the_order_within_a_tier(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], related: list[Any], asked: str
) -> None:
    with Memory.open(tmp_path_factory.mktemp("twice")) as memory:
        for fact in told:
            memory.graph.upsert(*fact, add=True)
        for subject, predicate, other in related:
            if subject != other:
                memory.graph.relate(subject, predicate, other)
        one = memory.graph.search(asked, 100).hits
        assert memory.graph.search(asked, 100).hits == one
        memory.graph.reinforce(one)
        two = [hit for hit in memory.graph.search(asked, 100).hits if not hit.linked]

    def answers(hits: Iterable[GraphHit]) -> set[tuple[str, int, int, int, str]]:
        return {(hit.kind, hit.item.id, hit.score, hit.phase, hit.why) for hit in hits}

    assert answers(one) == answers(two)
    assert [hit.score for hit in one] == [hit.score for hit in two]


def test_a_database_that_cannot_be_written_loses_no_answer(known: Memory) -> None:
    hits = known.graph.search("Alice's birthday").hits
    known.group.database("facts").query("PRAGMA query_only = ON")
    assert known.graph.reinforce(hits).startswith("activation not raised")
    assert known.graph.search("Alice's birthday").hits == hits


def test_while_another_process_writes_the_bump_is_left_out_and_said(
    known: Memory, open_memory: Callable[..., Memory]
) -> None:
    hits = known.graph.search("Alice's birthday").hits
    with open_memory().group.database("facts").transaction():
        assert "being written" in known.graph.reinforce(hits)
    assert known.graph.reinforce(hits) == ""


def _bump(home: str, times: int) -> None:
    with Memory.open(home) as memory:
        hits = memory.graph.search("Alice's birthday").hits
        for _ in range(times):
            while memory.graph.reinforce(hits):
                pass  # a busy machine: left out and said, so say it again


def test_two_processes_bumping_the_same_facts_lose_no_count(known: Memory, home: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_bump, args=(str(home), 5_000)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    fact = known.graph.history("Alice", "birthday")[0]
    assert fact.access_count == 10_000
    assert fact.activation == pytest.approx(1 + 10_000 * 0.5)


def test_cool_facts_of_logs_and_talk_are_proposed_for_pruning_and_stay_history(
    memory: Memory, clock: FixedClock, home: Path
) -> None:
    lines = [f"- Relay{number}'s port is {7000 + number}" for number in range(8)]
    log = home / "workspace" / "memory" / "2026-02-22.md"
    log.write_text("# 2026-02-22\n\n" + "\n".join([*lines, "- Lena's birthday is 3 June"]) + "\n")
    (home / "workspace" / "MEMORY.md").write_text("Keystone's port is 3000.\n")
    memory.graph.upsert("Gate", "port", "1", permanent=True)
    memory.upkeep.run("ingest")
    for _ in range(100):
        clock.moment += timedelta(days=1)
        memory.upkeep.run("cool")
        memory.graph.reinforce(memory.graph.search("What is Relay0's port?", named_only=True).hits)
    kept = memory.graph.history("Relay1")[0]
    assert memory.upkeep.run("prune")[0].changed == 1
    (proposal,) = [one for one in memory.upkeep.review() if one.kind == "prune"]
    assert "Relay1.port" in proposal.diff and "Relay7.port" in proposal.diff
    assert not any(name in proposal.diff for name in ("Relay0", "Lena", "Keystone", "Gate"))
    memory.upkeep.decide(proposal.id, True)
    memory.upkeep.run("ingest")
    assert "7001" not in str(memory.graph.search("What is Relay1's port?").hits)
    assert memory.graph.history("Relay1")[0].valid_to
    memory.upkeep.undo(proposal.id)
    assert memory.graph.history("Relay1")[0] == kept
    ((left,),) = memory.graph.db.query("SELECT decay_score FROM facts WHERE entity = 'Relay0'")
    assert left == pytest.approx(1.0) or left > 0.9
