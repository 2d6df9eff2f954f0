"""A group chat remembers for itself: what it logs, stores and says it finds again, and nothing that is private."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nanoclaw_memory.memory import Memory


@pytest.fixture
def chat(memory: Memory, open_memory: Callable[..., Memory]) -> Memory:
    """A group chat of the main group, beside private memory."""
    memory.write("The private barbecue password is walnut", "fact", 0.9)
    memory.store("The private barbecue budget is 90 euros", "fact")
    memory.store("Always call the barbecue a garden party", "preference")
    return open_memory(session="chat", private=False)


def test_a_shared_scope_finds_what_it_logged_and_stored(chat: Memory, memory: Memory):
    written = chat.write("The barbecue is on Saturday at Heidi's", "decision", 0.9)
    chat.store("Heidi brings salad to the barbecue", "fact")
    assert written.path == "memory/shared/2026-02-23.md"
    found = {hit.text for hit in chat.search("barbecue", fast=True).hits}
    assert found == {
        "- [decision|i=0.9|by shared] The barbecue is on Saturday at Heidi's",
        "Heidi brings salad to the barbecue",
    }
    recalled = chat.recall("barbecue", fast=True).text
    assert "Saturday" in recalled and "salad" in recalled
    assert "walnut" not in recalled and "90 euros" not in recalled and "garden party" not in recalled
    assert "salad" in chat.brief().text and "90 euros" not in chat.brief().text
    assert [entry.content for entry in chat.entries.all()] == ["Heidi brings salad to the barbecue"]
    assert "Saturday" in chat.get(written.path).text
    private = memory.recall("barbecue", fast=True).text  # the owner sees both
    assert "Saturday" in private and "walnut" in private and "salad" in private and "90 euros" in private


def test_what_was_said_in_a_shared_chat_comes_up_in_a_later_one(
    chat: Memory, memory: Memory, open_memory: Callable[..., Memory]
):
    chat.after_turn("Who feeds the parrot while Heidi is away?", "Bert feeds the parrot on weekdays.")
    memory.after_turn("Where is the parrot's spare key?", "The parrot's spare key is under the walnut tree.")
    turn = open_memory(session="later", private=False).before_turn("Do you remember who feeds the parrot?")
    assert "Bert feeds the parrot" in turn.text
    assert "walnut" not in turn.text


def test_a_shared_scope_does_not_unite_its_entries_with_private_ones(chat: Memory, memory: Memory):
    private = memory.store("The alarm code of the garage is on the board", "fact")
    shared = chat.store("The alarm code of the garage is on the board", "fact")
    assert shared.id != private.id and not shared.deduplicated
    assert chat.store("The alarm code of the garage is on the board", "fact").deduplicated
    assert len(memory.entries.all(types=["fact"])) == 3


def test_the_owners_upkeep_takes_nothing_out_of_a_shared_log(chat: Memory, memory: Memory):
    chat.write("Bert's birthday is 3 May 1980", "fact", 0.9)
    chat.write("We chose Lisbon for the trip", "decision", 0.9)
    memory.upkeep.run("ingest")
    memory.upkeep.run("promote")
    assert memory.graph.search("Bert's birthday").hits == ()
    assert not any("Lisbon" in proposal.diff for proposal in memory.upkeep.review())
