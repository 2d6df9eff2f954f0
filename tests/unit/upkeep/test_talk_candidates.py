"""Promotion from talk: what a person plainly said and nobody took back for a week is proposed for MEMORY.md."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Proposal
from nanoclaw_memory.upkeep.talk_candidates import kind_of

Open = Callable[..., Memory]


def promoted(memory: Memory) -> list[Proposal]:
    (run,) = memory.upkeep.run("promote")
    assert not run.error
    return [one for one in memory.upkeep.review() if one.kind == "promotion"]


def says(open_memory: Open, text: str, session: str = "s1", answer: str = "Understood.") -> None:
    with open_memory(session=session) as memory:
        memory.after_turn(text, answer)


def test_what_was_said_a_week_ago_is_proposed_with_its_place_and_its_section(
    open_memory: Open, memory: Memory, clock: FixedClock
):
    says(
        open_memory,
        "Busy day. We decided to keep the sauna bookings in SQLite. My sister Ewa lives in Gdynia.",
    )
    clock.moment += timedelta(days=6)
    assert promoted(memory) == []
    clock.moment += timedelta(days=1)
    found = {str(one.payload["text"]): one for one in promoted(memory)}
    decision = found["We decided to keep the sauna bookings in SQLite. (2026-05-01)"]
    assert (decision.payload["section"], decision.origin) == ("Decisions and lessons", "user")
    assert decision.source == "exchanges/1:1" and decision.why.startswith("decision said in talk")
    assert found["My sister Ewa lives in Gdynia. (2026-05-01)"].payload["section"] == "About the user"
    assert len(found) == 2
    assert len(promoted(memory)) == 2  # the next night takes nothing back and proposes nothing twice
    memory.upkeep.decide(decision.id, True)
    assert "- We decided to keep the sauna bookings in SQLite. (2026-05-01)" in memory.get("MEMORY.md").text


def test_what_was_said_otherwise_since_is_not_proposed_and_is_taken_back(
    open_memory: Open, memory: Memory, clock: FixedClock
):
    says(open_memory, "We decided to keep the sauna bookings in SQLite.")
    clock.moment += timedelta(days=8)
    assert len(promoted(memory)) == 1
    says(open_memory, "We decided to move the sauna bookings from SQLite to Postgres.", "s2")
    clock.moment += timedelta(days=1)
    assert promoted(memory) == []
    clock.moment += timedelta(days=8)
    assert [one.payload["text"][:16] for one in promoted(memory)] == ["We decided to mo"]


def test_what_a_later_message_overtakes_is_not_proposed(open_memory: Open, memory: Memory, clock: FixedClock):
    says(open_memory, "We decided to use Kong as the gateway of Harbor.")
    clock.moment += timedelta(days=2)
    says(open_memory, "Harbor's gateway is no longer Kong, it is Traefik now.", "s2")
    clock.moment += timedelta(days=8)
    assert promoted(memory) == []


@pytest.mark.parametrize(
    ("later", "proposed"),
    [
        ("Actually Ewa moved, she's in Sopot now, 5 Harbour Street.", 0),
        ("Ewa made the soup with the mushrooms of her garden.", 1),
    ],
)
def test_a_later_report_of_a_change_that_shares_only_a_name_is_reason_to_propose_nothing(
    open_memory: Open, memory: Memory, clock: FixedClock, later: str, proposed: int
):
    says(open_memory, "My sister Ewa lives in Gdynia, 12 Mill Lane.")
    clock.moment += timedelta(days=2)
    says(open_memory, later, "s2")
    clock.moment += timedelta(days=8)
    found = [one for one in promoted(memory) if "Gdynia" in str(one.payload["text"])]
    assert len(found) == proposed


def test_a_proposal_is_taken_back_when_a_change_to_the_same_name_is_reported(
    open_memory: Open, memory: Memory, clock: FixedClock
):
    says(open_memory, "My sister Ewa lives in Gdynia, 12 Mill Lane.")
    clock.moment += timedelta(days=8)
    assert len(promoted(memory)) == 1
    says(open_memory, "Actually Ewa moved, she's in Sopot now, 5 Harbour Street.", "s2")
    clock.moment += timedelta(days=1)
    assert promoted(memory) == []


def test_what_was_forgotten_is_taken_back(open_memory: Open, memory: Memory, clock: FixedClock):
    says(open_memory, "My sister Ewa lives in Gdynia.")
    clock.moment += timedelta(days=8)
    assert len(promoted(memory)) == 1
    memory.forget(text="Gdynia", agreed=lambda _: True)
    assert promoted(memory) == []


def test_what_others_said_or_was_said_in_a_shared_chat_is_not_proposed(
    open_memory: Open, memory: Memory, clock: FixedClock
):
    says(open_memory, "Mail from Bo:\n> We decided to sell the boat.\n> My sister lives in Rome.\nanswer it")
    with open_memory(private=False, session="g") as shared:
        shared.after_turn("We decided to paint the boat red.", "Nice.")
    with open_memory(origin="import", session="a") as other:
        other.after_turn("We decided to rename the boat Otter.", "Done.")
    clock.moment += timedelta(days=8)
    assert promoted(memory) == []


@pytest.mark.parametrize(
    ("sentence", "tag"),
    [
        ("We've settled on Caddy for the proxy", "decision"),
        ("Wir haben uns auf Caddy geeinigt", "decision"),
        ("From now on all prices are in cents", "instruction"),
        ("Ab sofort proben wir donnerstags", "instruction"),
        ("I am a vegetarian, Mika too since summer", "user"),
        ("Lotte's birthday is 14 February 2018", "user"),
        ("ok decision: webhooks go into SQS first, then the worker", "decision"),
        ("we go w/ css modules instead", "decision"),
        ("pin the aws provider at 5.31, 5.32 breaks the nat gateway", "decision"),
        ("the kafka idea is dead btw", "decision"),
        ("we're dropping styled-components, too slow", "decision"),
        ("feature flags live in LaunchDarkly, not in env vars", "decision"),
        ("das mit GraphQL lassen wir, REST reicht", "decision"),
        ("wir bleiben bei Postgres 15 bis zum Herbst", "decision"),
        ("never deploy on fridays, team rule", "decision"),
        ("nie wieder force-push auf main", "instruction"),
        ("the build is dead again", ""),
        ("we keep getting the same error", ""),
        ("wir haben noch nichts entschieden", ""),
        ("i settled the bill yesterday", ""),
        ("this function goes into a loop instead of returning", ""),
        ("no more errors in the log", ""),
        ("lass uns kurz die Logs ansehen", ""),
        ("we stay at my parents this weekend", ""),
        ("We have not decided on the proxy yet", ""),
        ("Should we go with Caddy for the proxy?", ""),
        ("Maybe we go with Caddy for the proxy", ""),
        ("Jens says they settled on Caddy there", ""),
        ("Run the tests of the parser again", ""),
        ("The build of the parser is red again", ""),
    ],
)
def test_only_decisions_rules_and_what_is_lastingly_of_the_person_are_taken(sentence: str, tag: str):
    assert kind_of(sentence, "User") == tag
