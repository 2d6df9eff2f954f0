"""Who takes over from whom: the graph knows one person for a duty, and the predecessor's time has an end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory


def holders(memory: Memory, question: str) -> list[str]:
    """The relations that hold now and answer a question."""
    return [hit.text for hit in memory.graph.search(question).hits]


@pytest.mark.parametrize(
    ("before", "handover", "question", "now"),
    [
        (
            "Petra owns the ticket shop",
            "Petra handed the ticket shop over to Lasse",
            "Who owns the ticket shop?",
            "Lasse → owns → ticket shop",
        ),
        (
            "Petra leads the ticket shop",
            "Lasse takes over the ticket shop from Petra",
            "Who leads the ticket shop?",
            "Lasse → leads → ticket shop",
        ),
        (
            "Petra is the product owner of the ticket shop",
            "Lasse is now the new product owner of the ticket shop",
            "Who is the product owner of the ticket shop?",
            "Lasse → product owner of → ticket shop",
        ),
        (
            "the ticket shop belongs to Petra",
            "the ticket shop goes from Petra to Lasse",
            "Who does the ticket shop belong to?",
            "ticket shop → belongs to → Lasse",
        ),
        (
            "Petra betreut das Kartenbüro",
            "Petra übergibt das Kartenbüro an Lasse",
            "Wer betreut das Kartenbüro?",
            "Lasse → betreut → Kartenbüro",
        ),
        (
            "Petra ist für die Lohnabrechnung zuständig",
            "Lasse hat heute die Lohnabrechnung von Petra übernommen",
            "Wer ist für die Lohnabrechnung zuständig?",
            "Lasse → zuständig für → Lohnabrechnung",
        ),
    ],
)
def test_who_takes_over_has_the_duty_and_the_predecessor_has_it_no_more(
    memory: Memory, clock: FixedClock, before: str, handover: str, question: str, now: str
):
    memory.write(before)
    clock.moment += timedelta(days=3)
    memory.write(handover)
    found = holders(memory, question)
    assert found[0] == now
    assert not any("Petra" in one for one in found)


def test_a_duty_that_is_read_after_its_handover_has_ended(memory: Memory, clock: FixedClock):
    memory.after_turn("Petra is the product owner of the ticket shop", "I see.")
    clock.moment += timedelta(days=3)
    memory.write("Petra handed the ticket shop over to Lasse")
    memory.upkeep.run("ingest")  # reads files before conversations
    found = holders(memory, "Who is responsible for the ticket shop?")
    assert "Lasse → responsible for → ticket shop" in found
    assert not any("Petra" in one for one in found)


def test_a_new_holder_of_one_role_ends_no_other_role(memory: Memory, clock: FixedClock):
    memory.write("Petra is the product owner of the ticket shop")
    memory.write("Ilmari is the maintainer of the ticket shop")
    clock.moment += timedelta(days=3)
    memory.write("Lasse is the new product owner of the ticket shop")
    assert "Ilmari → maintainer of → ticket shop" in holders(
        memory, "Who is the maintainer of the ticket shop?"
    )
    found = holders(memory, "Who is the product owner of the ticket shop?")
    assert found[0] == "Lasse → product owner of → ticket shop"
    assert not any("Petra" in one for one in found)


def test_a_role_that_is_read_after_another_role_was_handed_over_still_holds(
    memory: Memory, clock: FixedClock
):
    memory.after_turn("Petra is the product owner of the ticket shop", "I see.")
    clock.moment += timedelta(days=1)
    memory.write("Petra is the maintainer of the ticket shop")
    clock.moment += timedelta(days=3)
    memory.write("Lasse is the new maintainer of the ticket shop")
    memory.upkeep.run("ingest")  # reads files before conversations
    assert "Petra → product owner of → ticket shop" in holders(
        memory, "Who is the product owner of the ticket shop?"
    )


def test_a_handover_in_one_project_ends_no_duty_in_another(
    open_memory: Callable[..., Memory], clock: FixedClock
):
    open_memory(project="keystone").after_turn("Petra owns the ticket shop", "I see.")
    clock.moment += timedelta(days=3)
    orchard = open_memory(session="s2", project="orchard")
    orchard.write("Petra handed the ticket shop over to Lasse")
    orchard.upkeep.run("ingest")  # reads files before conversations
    found = holders(open_memory(session="s3", project="keystone"), "Who owns the ticket shop?")
    assert any(one.startswith("Petra → owns → ticket shop") for one in found)


def test_who_takes_over_is_known_although_it_was_rejected_that_the_other_was_responsible(memory: Memory):
    memory.graph.reject("Petra", "responsible for", "ticket shop")
    memory.write("Petra handed the ticket shop over to Lasse")
    found = holders(memory, "Who is responsible for the ticket shop?")
    assert found == ["Lasse → responsible for → ticket shop"]


@pytest.mark.parametrize(
    "said",
    [
        "Petra hands the umbrella to Lasse",
        "Can Lasse take over the ticket shop from Petra?",
        "Lasse might take over the ticket shop",
        "Sam took the ferry over to Bergen",
        "Lasse took over the microphone",
        "The umbrella goes from Petra to Lasse",
    ],
)
def test_what_is_no_handover_of_a_duty_makes_nobody_responsible(memory: Memory, said: str):
    memory.write("Petra owns the ticket shop")
    memory.after_turn(said, "I see.")
    found = holders(memory, "Who is responsible for the ticket shop or the umbrella?")
    assert not any("Lasse" in one or "Sam" in one for one in found)
    assert holders(memory, "Who owns the ticket shop?") == ["Petra → owns → ticket shop"]
