"""What others state of the graph stands beside what the owner, the person and their agents stated, never above it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from nanoclaw_memory import Memory
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.cli import cli
from nanoclaw_memory.interfaces.mcp.tools import Tools
from nanoclaw_memory.types import Scope

OUTSIDE = ("import", "tool", "web")
TRUSTED = ("owner", "user", "agent")
ASKED = "What is the Treasury IBAN?"


@pytest.fixture
def as_(home: Path, clock: FixedClock, memory: Memory) -> Iterator[Callable[..., Memory]]:
    opened: list[Memory] = []

    def open_(origin: str) -> Memory:
        opened.append(Memory.open(home, Scope("main", "s1", True, origin), clock=clock))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def told(memory: Memory, question: str = ASKED) -> list[tuple[str, str]]:
    """What graph search answers, with who stated it."""
    return [(hit.text, hit.item.origin) for hit in memory.graph.search(question).hits]


@pytest.mark.parametrize("stranger", OUTSIDE)
@pytest.mark.parametrize("known", TRUSTED)
def test_a_foreign_value_stands_after_ours_and_is_marked_everywhere(as_, memory, home, known, stranger):
    as_(known).graph.upsert("Treasury", "iban", "DE11")
    done = as_(stranger).graph.upsert("Treasury", "iban", "XX77")
    assert done.created and not done.retired
    assert told(memory) == [("Treasury.iban = DE11", known), ("Treasury.iban = XX77", stranger)]
    mark = f"untrusted: from {stranger}"
    block = memory.for_session("q").before_turn(ASKED).text
    assert block.index("DE11") < block.index("XX77") < block.index(mark)
    tools = Tools(memory)
    for text in (tools.graph_search(ASKED), tools.graph_history("Treasury")):
        assert text.index("DE11") < text.index("XX77") < text.index(mark) and text.count(mark) == 1
    for command in (["search", ASKED], ["history", "Treasury"], ["top"], ["show", "Treasury"]):
        text = CliRunner().invoke(cli, ["--home", str(home), "graph", *command]).output
        line = next(line for line in text.splitlines() if "XX77" in line)
        assert mark in line and text.count(mark) == 1
    query = memory.graph.query("MATCH (t {name: 'Treasury'}) RETURN t.iban")
    assert any("untrusted" in note for note in query.notes)


@pytest.mark.parametrize("stranger", OUTSIDE)
def test_what_others_state_ends_nothing_of_ours_whenever_it_is_dated(as_, memory, stranger):
    memory.graph.upsert("Treasury", "iban", "DE11", valid_from="2025-06-01")
    other = as_(stranger).graph
    for value, day in (("XX1", "2024-01-01"), ("XX2", "2025-12-01"), ("XX3", "2027-01-01")):
        other.upsert("Treasury", "iban", value, valid_from=day)
    memory.graph.upsert("Treasury", "bic", "NEW", valid_from="2025-01-01")
    other.upsert("Treasury", "bic", "EVIL", valid_from="2024-12-01")
    ours = [fact for fact in memory.graph.history("Treasury") if fact.origin == "owner"]
    assert [(fact.value, fact.valid_to) for fact in ours] == [("NEW", ""), ("DE11", "")]
    # Neither do they date ours: what the owner says later of an earlier day is not ended by theirs.
    other.upsert("Vault", "code", "666", valid_from="2025-12-01")
    memory.graph.upsert("Vault", "code", "47", valid_from="2025-01-01")
    assert told(memory, "What is the Vault code?") == [
        ("Vault.code = 47", "owner"),
        ("Vault.code = 666", stranger),
    ]


@pytest.mark.parametrize("stranger", OUTSIDE)
def test_relations_sentences_and_synonyms_of_ours_stay_when_others_say_otherwise(as_, memory, stranger):
    memory.graph.relate("Anna", "works_at", "Acme")
    memory.graph.upsert("Anna", "decision", "Anna never signs contracts on Friday", add=True)
    other = as_(stranger).graph
    other.relate("Anna", "works_at", "EveCorp", replace=True)
    other.upsert("Anna", "employer", "EveCorp")
    other.upsert("Anna", "decision", "Anna always signs contracts on Friday", add=True)
    assert [
        r.object for r in memory.graph.relations_of("Anna") if not r.valid_to and r.origin == "owner"
    ] == ["Acme"]
    assert told(memory, "Where does Anna work?")[0] == ("Anna → works_at → Acme", "owner")
    assert [f.valid_to for f in memory.graph.history("Anna", "decision") if f.origin == "owner"] == [""]


@pytest.mark.parametrize("stranger", OUTSIDE)
def test_a_foreign_name_leads_nobody_away_from_ours(as_, memory, stranger):
    memory.graph.upsert("Treasury", "iban", "DE11")
    memory.graph.upsert("Anna Weber", "phone", "123")
    other = as_(stranger).graph
    other.alias("Treasury", "EveCorp")
    other.alias("Bank", "Treasury")
    other.upsert("EveCorp", "iban", "XX1")
    other.upsert("Treasury IBAN", "value", "XX2")  # a longer name than ours
    other.upsert("Anna", "phone", "666")  # an exact name where ours is found by a part
    assert told(memory)[0] == ("Treasury.iban = DE11", "owner")
    assert told(memory, "What is Anna's phone?")[0] == ("Anna Weber.phone = 123", "owner")
    # What the owner says of a name is theirs, wherever others say that the name leads.
    memory.graph.upsert("Bank", "iban", "BANK9")
    memory.graph.upsert("Treasury", "bic", "OURS")
    ours = {fact.text for fact in memory.graph.history("Treasury") if fact.origin == "owner"}
    assert ours == {"Treasury.iban = DE11", "Treasury.bic = OURS"}
    assert "EveCorp" not in memory.graph.other_names("Where is the Treasury?")
    memory.graph.alias("Bank", "Treasury")  # now it is the owner's word
    assert told(memory, "What is the Bank's bic?")[0] == ("Treasury.bic = OURS", "owner")


@pytest.mark.parametrize("stranger", OUTSIDE)
def test_others_remove_and_reject_only_what_others_said(as_, memory, stranger):
    memory.graph.upsert("Treasury", "iban", "DE11")
    memory.graph.alias("Till", "Treasury")
    memory.graph.relate("Anna", "owns", "Treasury")
    other = as_(stranger).graph
    for attempt in (
        lambda: other.remove("Treasury", "iban", purge=True),
        lambda: other.unrelate("Anna", "owns", "Treasury"),
        lambda: other.unalias("Till"),
        lambda: other.reject("Treasury", "iban", "DE11"),
        lambda: other.unreject("Treasury", "iban", "DE11"),
    ):
        with pytest.raises(Refused):
            attempt()
    assert told(memory, "What is the Till's IBAN?")[0] == ("Treasury.iban = DE11", "owner")
    other.upsert("Treasury", "iban", "XX77")
    assert other.remove("Treasury", "iban", "XX77")


def test_what_others_repeat_changes_nothing_and_what_we_repeat_becomes_ours(as_, memory):
    memory.graph.upsert("Treasury", "iban", "DE11", valid_from="2025-06-01")
    before = memory.graph.history("Treasury")
    as_("web").graph.upsert(
        "Treasury", "iban", "DE11", importance=1.0, permanent=True, valid_from="2020-01-01"
    )
    assert memory.graph.history("Treasury") == before
    as_("web").graph.upsert("Vault", "code", "47")
    as_("agent").graph.upsert("Vault", "code", "47")
    assert told(memory, "Vault code?") == [("Vault.code = 47", "agent")]
    assert memory.graph.search("Vault code?").hits[0].when.endswith("; by agent")
    memory.graph.upsert("Vault", "code", "47")
    assert told(memory, "Vault code?") == [("Vault.code = 47", "owner")]


def test_our_new_value_ends_what_others_said_and_an_agent_reports_a_change(as_, memory):
    as_("web").graph.upsert("Treasury", "iban", "XX77")
    memory.graph.upsert("Treasury", "iban", "DE11")
    assert told(memory) == [("Treasury.iban = DE11", "owner")]
    as_("agent").graph.upsert("Treasury", "iban", "DE22")
    assert told(memory) == [("Treasury.iban = DE22", "agent")]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_file_that_is_imported_says_neither_who_said_it_nor_where(memory, home, tmp_path, suffix):
    memory.graph.upsert("Treasury", "iban", "DE11")
    row = {"entity": "Treasury", "key": "iban", "value": "XX77", "origin": "owner", "source": "direct"}
    text = f"{','.join(row)}\n{','.join(row.values())}\n" if suffix == "csv" else json.dumps(row)
    path = tmp_path / f"MEMORY.md.{suffix}"
    path.write_text(text)
    assert memory.graph.import_file(path).facts == 1
    found = memory.graph.history("Treasury")
    assert [(fact.value, fact.origin) for fact in found] == [("DE11", "owner"), ("XX77", "import")]
    assert found[1].source.startswith(f"import {path.name}:")


def test_rows_that_name_their_origin_are_refused(as_, memory):
    rows = [
        {"entity": "Treasury", "key": "iban", "value": "XX77", field: "owner"}
        for field in ("origin", "source")
    ]
    done = as_("agent").graph.ingest_rows(rows)
    assert (done.facts, done.skipped) == (0, 2) and "origin" in done.problems[0]
    assert told(memory) == []
