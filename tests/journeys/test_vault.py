"""Vaults of linked notes, domain documents, and memories of others by their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.memory import Memory

NOTES = {
    "People/Ada.md": (
        '---\naliases: [Ada L., Countess]\ntags: [person, math]\nbirthday: 1815-12-10\nemployer: "[[Analytical Co]]"\n'
        "---\n# Ada Lovelace\n\nWorks with [[Charles Babbage|Charles]] on the [[Engines/Analytical Engine#Parts]]. "
        "#computing\n\nfavourite colour:: green\n\n```\n[[not a link]] #notatag\n```\n"
    ),
    "Analytical Engine.md": "The mill has a thousand wheels of brass. #history/uk, issue #12, ![[picture.png]]\n",
    "People/Charles Babbage.md": "---\ntags:\n  - person\n  - inventor\n---\nphone:: 020 7946 0991\n",
    ".obsidian/workspace.md": "not a note\n",
    ".trash/Old.md": "not a note either\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        path = tmp_path / "My Vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "My Vault"


def told(memory: Memory, entity: str) -> set[tuple[str, str]]:
    facts = {(one.key, one.value) for one in memory.graph.history(entity) if not one.valid_to}
    relations = memory.graph.relations_of(entity)
    return facts | {(one.predicate, one.object) for one in relations if not one.valid_to}


def test_properties_links_tags_and_other_names_of_notes_reach_the_graph(memory: Memory, vault: Path):
    planned = memory.upkeep.import_export("obsidian", vault, dry_run=True)
    assert planned.pages == 3 and told(memory, "Ada Lovelace") == set()
    done = memory.upkeep.import_export("obsidian", vault)
    assert (done.pages, done.unplaced) == (3, ())
    ada = told(memory, "Countess")  # another name of hers
    assert ada >= {
        ("birthday", "1815-12-10"),
        ("employer", "Analytical Co"),
        ("favourite colour", "green"),
        ("links to", "Charles Babbage"),
        ("links to", "Analytical Engine"),
        ("tag", "person"),
        ("tag", "math"),
        ("tag", "computing"),
    }
    assert not any("not" in value for _, value in ada)
    assert told(memory, "Charles Babbage") >= {
        ("tag", "inventor"),
        ("tag", "person"),
        ("phone", "020 7946 0991"),
    }
    engine = told(memory, "Analytical Engine")
    assert ("tag", "history/uk") in engine and not any(value in ("12", "picture.png") for _, value in engine)
    assert "1815-12-10" in memory.graph.search("When is Countess's birthday?").hits[0].text


def test_a_vault_that_is_read_again_follows_its_notes(memory: Memory, vault: Path):
    memory.upkeep.import_export("obsidian", vault)
    before = told(memory, "Ada Lovelace")
    memory.upkeep.import_export("obsidian", vault)
    assert told(memory, "Ada Lovelace") == before
    page = vault / "People/Ada.md"
    page.write_text(page.read_text().replace("green", "violet"))
    (vault / "People/Charles Babbage.md").unlink()
    memory.upkeep.import_export("obsidian", vault)
    assert ("favourite colour", "violet") in told(memory, "Ada Lovelace")
    assert ("favourite colour", "green") not in told(memory, "Ada Lovelace")
    assert ("tag", "inventor") not in told(memory, "Charles Babbage")


def test_the_notes_stay_where_they_are_and_are_found_as_a_corpus(memory: Memory, vault: Path):
    memory.upkeep.import_export("obsidian", vault)
    assert not memory.search("thousand wheels of brass", fast=True).hits
    (hit,) = memory.search("thousand wheels of brass", fast=True, corpus="my-vault").hits
    assert hit.path.endswith("Analytical Engine.md") and hit.corpus == "my-vault"
    with pytest.raises(InvalidValue):
        memory.upkeep.import_export("obsidian", vault / "nowhere")


def test_domain_documents_come_in_a_turn_only_where_that_is_set(
    open_memory: Callable[..., Memory], memory: Memory, vault: Path
):
    memory.upkeep.import_export("obsidian", vault)
    question = "How many wheels of brass has the mill of the engine?"
    assert "thousand wheels" not in memory.before_turn(question).text
    set_ = open_memory(session="s2", plugins__entries__recall__corpora='["my-vault"]')
    text = set_.before_turn(question).text
    assert "my-vault/" in text and "thousand wheels" in text
    long = f"{question} {'The mill stands in the engine room. ' * 150}"
    turn = open_memory(session="s4", plugins__entries__recall__corpora='["my-vault"]').before_turn(long)
    assert len(long) > 4_000 and not [note for note in turn.skipped if "failed" in note.reason]
    for idle in ("thanks", "Write a poem about the sea", "What time is it in Tokyo now?"):
        assert "wheels" not in set_.before_turn(idle).text
    shared = open_memory(session="s3", private=False, plugins__entries__recall__corpora='["my-vault"]')
    assert "thousand wheels" not in shared.before_turn(question).text


def test_a_letta_agent_file_becomes_entries_and_a_conversation(memory: Memory, tmp_path: Path):
    agent = {
        "agents": [
            {
                "name": "Sam",
                "messages": [
                    {"role": "system", "content": [{"type": "text", "text": "You are Sam"}]},
                    {"role": "user", "content": [{"type": "text", "text": "Where is the ferry to Bergen?"}]},
                    {"role": "assistant", "content": [{"type": "text", "text": "At the north quay."}]},
                ],
                "passages": [{"text": "Ann's office is in Oslo"}],
            }
        ],
        "blocks": [
            {"label": "human", "value": "The user is called Ann.\nAnn prefers tea over coffee."},
            {"label": "persona", "value": "I am Sam."},
        ],
    }
    (tmp_path / "sam.af").write_text(json.dumps(agent))
    done = memory.upkeep.import_export("letta", tmp_path / "sam.af")
    assert done.conversations == 1 and "SOUL.md" in done.unplaced[0]
    assert done.types["preference"] == 1 == done.held  # nobody's preference steers before a person has agreed
    assert "Ann's office is in Oslo" in {one.content for one in memory.entries.all()}
    assert memory.search("ferry to Bergen", fast=True).hits


def test_the_graph_of_the_official_memory_server_is_imported_by_its_name(memory: Memory, tmp_path: Path):
    rows = [
        {"type": "entity", "name": "Keystone", "entityType": "project", "observations": ["port: 3055"]},
        {"type": "relation", "from": "Ada", "to": "Keystone", "relationType": "owns"},
    ]
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert memory.upkeep.import_export("memory-jsonl", path, dry_run=True).relations >= 2
    assert memory.upkeep.import_export("memory-jsonl", path).relations >= 2
    assert ("owns", "Keystone") in told(memory, "Ada")
