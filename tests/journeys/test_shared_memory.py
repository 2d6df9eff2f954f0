"""What one group publishes, another reads by grant; nothing else crosses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory import Memory
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import InvalidValue, NotFound, PathRefused, Refused
from nanoclaw_memory.types import Scope


@pytest.fixture
def research(memory: Memory, open_memory: Callable[..., Memory]) -> Memory:
    other = open_memory("research")
    other.init()
    return other


@pytest.fixture
def published(memory: Memory) -> str:
    entry_id = memory.store("The staging gateway listens on port 8080", "fact", tags=["ops"]).id
    memory.store("The gateway key is under the mat", "fact")
    memory.entries.publish(entry_id)
    return entry_id


def test_without_a_grant_nothing_is_read(published: str, research: Memory) -> None:
    assert research.entries.shared_recall("gateway").entries == ()
    assert research.entries.shares() == []
    assert research.recall("gateway", fast=True, types=["fact"]).entries == ()


def test_with_a_grant_only_the_published_entry_is_read_and_its_group_is_named(
    memory: Memory, published: str, research: Memory
) -> None:
    memory.entries.grant("research")
    found = research.entries.shared_recall("gateway")
    assert [entry.id for entry in found.entries] == [published]
    assert found.entries[0].group == "main"
    assert "owner of group main" in found.text and "mat" not in found.text
    assert research.brief().text == ""  # published is not stored
    with pytest.raises(NotFound):
        research.delete(published)


def test_a_revoked_grant_ends_at_once(memory: Memory, published: str, research: Memory) -> None:
    memory.entries.grant("research")
    assert research.entries.shared_recall("gateway").entries
    memory.entries.revoke("research")
    assert research.entries.shared_recall("gateway").entries == ()
    with pytest.raises(NotFound, match="no grant"):
        memory.entries.revoke("research")


def test_a_third_group_stays_outside(
    memory: Memory, published: str, research: Memory, open_memory: Callable[..., Memory]
) -> None:
    memory.entries.grant("research")
    third = open_memory("third")
    third.init()
    assert third.entries.shared_recall("gateway").entries == ()


def test_a_published_copy_changes_and_goes_with_its_entry(
    memory: Memory, published: str, research: Memory
) -> None:
    memory.entries.grant("research")
    memory.store("The staging gateway listens on port 8080!", "fact", tags=["new"])
    assert "new" in research.entries.shared_recall("gateway").entries[0].tags
    memory.store("The staging gateway listens on port 9090", "fact", supersedes=published)
    assert (
        research.entries.shared_recall("gateway").entries == ()
    )  # the old is gone, the new was not published


def test_a_deleted_entry_is_gone_from_the_shared_file_too(
    memory: Memory, published: str, research: Memory
) -> None:
    memory.entries.grant("research")
    memory.delete(published)
    assert research.entries.shared_recall("gateway").entries == ()
    assert memory.entries.shares()[0].entries == ()


def test_taking_an_entry_back(memory: Memory, published: str, research: Memory) -> None:
    memory.entries.grant("research")
    memory.entries.unpublish(published)
    assert research.entries.shared_recall("gateway").entries == ()
    assert memory.entries.get(published).status == "active"
    with pytest.raises(NotFound, match="not published"):
        memory.entries.unpublish(published)


def test_only_a_person_publishes_and_grants(
    memory: Memory, published: str, research: Memory, home: Path, clock: FixedClock
) -> None:
    agent = Memory.open(home, Scope("main", "s1", origin="agent"), clock=clock)
    secret = agent.store("The vault is in the cellar", "fact").id
    for act in (
        lambda: agent.entries.publish(secret),
        lambda: agent.entries.unpublish(published),
        lambda: agent.entries.grant("research"),
        lambda: agent.entries.revoke("research"),
    ):
        with pytest.raises(Refused, match="only a person"):
            act()
    agent.close()


def test_what_makes_no_sense_is_refused(memory: Memory, published: str, research: Memory) -> None:
    with pytest.raises(PathRefused):
        memory.entries.grant("../research")
    with pytest.raises(NotFound, match="no group"):
        memory.entries.grant("nobody")
    with pytest.raises(InvalidValue):
        memory.entries.grant("main")
    with pytest.raises(NotFound):
        research.entries.publish(published)  # somebody else's entry
    old = memory.store("Port is 1", "fact").id
    memory.store("Port is 2", "fact", supersedes=old)
    with pytest.raises(InvalidValue, match="superseded"):
        memory.entries.publish(old)


def test_sharing_is_in_the_audit_log(memory: Memory, published: str, research: Memory) -> None:
    memory.entries.grant("research")
    memory.entries.revoke("research")
    events = [record["event"] for record in memory.group.entries.ledger.audit_log.records()]
    assert events == ["store", "store", "publish", "grant", "revoke"]
    assert memory.entries.verify().ok
