"""One question finds what was said, written, stored and known: each once, with its kind, date and place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Exchange

NONSENSE = ("flurble wexnor quib", "the capital of Mongolia", "What is the capital of Mongolia?")


@pytest.fixture
def lived(ncm: Callable[..., Any], home: Path) -> Memory:
    """A home with fifty ordinary notes, and the heron in every part of memory."""
    ncm("init")
    for number in range(50):
        with (home / "workspace" / "memory" / "notes.md").open("a") as notes:
            notes.write(f"- Ticket {number}: the capital letters on page {number} look odd\n")
    page = home / "workspace" / "MEMORY.md"
    page.write_text(page.read_text() + "\n## Animals\n\n- The heron statue was made by Orla\n")
    ncm("write", "Moved the heron statue to the north bank", "--tag", "decision")
    ncm("entries", "store", "The heron statue weighs 40 kilograms", "--type", "fact")
    ncm("graph", "add", "Heron", "colour", "blue")
    for event, more in (
        ("user-prompt-submit", {"prompt": "The heron statue arrives on Tuesday"}),
        ("stop", {"last_assistant_message": "Noted: Tuesday for the heron."}),
    ):
        ncm("hook", event, stdin=json.dumps({"session_id": "talk", **more}))
    ncm("hook", "user-prompt-submit", stdin=json.dumps({"session_id": "later", "prompt": "Good morning"}))
    return Memory.open(home, overrides={"embeddings.provider": "none"})


@pytest.mark.anyio
async def test_one_call_of_memory_search_finds_every_kind_once_with_date_and_place(lived: Memory) -> None:
    from mcp import Client

    from nanoclaw_memory.interfaces.mcp.server import build_server

    with lived:
        async with Client(build_server(lived)) as client:
            answer = await client.call_tool("memory_search", {"query": "heron statue", "limit": 10})
            lines = answer.content[0].text.split("\n")
            labels = [line[3:].partition("]")[0] for line in lines if line.startswith("- [")]
            assert {label.split()[0].partition(":")[0] for label in labels} >= {"fact", "User", "MEMORY.md"}
            assert any(" mem-" in label for label in labels)
            assert any(label.startswith("memory/2") for label in labels)
            dated = [label for label in labels if re.search(r"\d{4}-\d\d-\d\d|today", label)]
            assert len(dated) >= len(labels) - 1  # a page is not dated
            texts = [line.partition("] ")[2] for line in lines if line.startswith("- [")]
            assert len(texts) == len(set(texts))
            for question in NONSENSE:
                nothing = await client.call_tool("memory_search", {"query": question})
                assert nothing.content[0].text.startswith("Nothing was found.")


@pytest.mark.parametrize("question", NONSENSE)
def test_a_question_that_nothing_answers_gets_nothing_by_words_and_by_meaning(
    lived: Memory, home: Path, models_dir: Path, question: str
) -> None:
    lived.close()
    with Memory.open(home, overrides={"embeddings.modelPath": str(models_dir / "e5-small-v2")}) as memory:
        memory.index()
        assert memory.search(question).hits == ()
        assert memory.search(question, fast=True).hits == ()
        assert memory.search("heron").hits


def test_what_an_entry_a_page_and_an_exchange_say_in_the_same_words_comes_back_once(memory: Memory) -> None:
    memory.store("The spare key is under the fern", "fact")
    memory.write("The spare key is under the fern", "fact")
    memory.after_turn("The spare key is under the fern", "Noted.")
    hits = [hit for hit in memory.search("spare key", fast=True).hits if "fern" in hit.text]
    assert [hit.kind for hit in hits] == ["entry"]


def test_an_archived_answer_keeps_its_speakers_whatever_labels_it_contains(
    memory: Memory, home: Path
) -> None:
    folder = home / "workspace" / "conversations"
    folder.mkdir(exist_ok=True)
    (folder / "2026-02-20-flat.md").write_text(
        "# Flat\n\nDate: 2026-02-20\n\n**User** (10:00): How much is my flat?\n\n"
        "**Agent** (10:01): Here is the list.\n\n- **Rent**: 1,200\n- **Heating**: 90\n"
    )
    hits = memory.search("How much is the rent for my flat?", fast=True).hits
    assert {hit.speaker for hit in hits if hit.path.startswith("conversations/")} <= {"", "User", "Agent"}
    assert any("**Rent**: 1,200" in hit.text and hit.speaker == "Agent" for hit in hits)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("exchange", "entry", "fact", "change", "remove", "search", "restore")),
        st.integers(0, 5),
    ),
    max_size=14,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_the_index_contains_exactly_the_rows_that_are_there_whatever_happened(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory, clock: FixedClock
) -> None:
    with Memory.open(tmp_path_factory.mktemp("home"), clock=clock) as memory:
        memory.init()
        group = memory.group
        saved = tmp_path_factory.mktemp("saved")
        for place, (step, number) in enumerate(steps):
            if step == "exchange":
                said = f"asked {number} {place}"
                group.exchanges.add(Exchange(0, "s", said, "answered", "2026-02-23T12:00:00.000Z"))
            elif step == "entry":
                memory.store(f"entry {number} number {place} of many", "fact")
            elif step == "fact":
                memory.graph.upsert("Heron", "colour", f"shade {number}")
            elif step == "change" and group.has("continuity"):
                with group.database("continuity").transaction():
                    group.database("continuity").execute(
                        "UPDATE exchanges SET agent_response = :text WHERE id = :id",
                        {"text": f"changed {place}", "id": number},
                    )
            elif step == "remove":
                group.exchanges.remove([number])
            elif step == "search":
                memory.search("entry", fast=True)
            elif step == "restore" and group.has("continuity"):
                copy = saved / "continuity.db"
                if copy.exists():
                    group.database("continuity").load_from(copy)
                else:
                    group.database("continuity").copy_to(copy)
        memory.search("entry", fast=True)
        _assert_same(memory)


def _assert_same(memory: Memory) -> None:
    """Every row has its passages, every passage its row, with the same text."""
    index = memory.group.database("index")
    passages = (
        "SELECT p.number, p.text FROM passages p JOIN documents d ON d.id = p.document_id WHERE d.source = "
    )
    sides = {(number, text) for number, text in index.query(f"{passages} 'exchanges'")}
    if memory.group.has("continuity"):
        rows = memory.group.database("continuity").query(
            "SELECT id, user_message, agent_response FROM exchanges"
        )
        assert sides == {(number, text) for number, *texts in rows for text in texts}
    if memory.group.has("entries"):
        rows = memory.group.database("entries").query("SELECT number, content FROM entries")
        assert set(index.query(f"{passages} 'entries'")) == set(rows)
    if memory.group.has("facts"):
        rows = memory.group.database("facts").query("SELECT id FROM facts")
        assert {number for number, _ in index.query(f"{passages} 'facts'")} == {number for (number,) in rows}


def test_a_line_with_the_number_that_was_asked_for_does_not_give_way_to_another(memory: Memory) -> None:
    for number in (1041, 1042, 1043, 1044):
        memory.write(f"Invoice {number} was paid by Meyer", "fact", 0.6)
    first = memory.search("Was invoice 1042 paid?", fast=True).hits[0]
    assert "1042" in first.text and "newer" not in first.why


def test_what_was_said_word_for_word_in_several_sessions_comes_back_once(
    memory: Memory, open_memory: Callable[..., Memory]
) -> None:
    for session in ("a", "b", "c"):
        open_memory(session=session).after_turn(
            "My blood type is AB negative", "Your blood type is AB negative, noted."
        )
    memory.write("My blood type is AB negative", "fact")
    texts = [hit.text.removeprefix("- [fact] ") for hit in memory.search("blood type", fast=True).hits]
    assert sorted(texts) == ["My blood type is AB negative", "Your blood type is AB negative, noted."]


def test_a_file_whose_name_is_no_text_is_named_by_doctor_and_harms_nothing(
    memory: Memory, home: Path
) -> None:
    import os

    memory.write("Giraffes sleep standing")
    Path(os.fsdecode(os.fsencode(home / "workspace" / "memory") + b"/n\xff.md")).write_text(
        "giraffes eat leaves"
    )
    assert [hit.path for hit in memory.search("giraffes", fast=True).hits] == ["memory/2026-02-23.md"]
    assert any("n\\udcff.md" in finding.message for finding in memory.doctor())


@pytest.mark.parametrize(
    "name", ["Notes\u00a02026.md", "family \U0001f468\u200d\U0001f469\u200d\U0001f467.md", "größe.md"]
)
def test_a_file_is_found_whatever_letters_its_name_has(memory: Memory, home: Path, name: str) -> None:
    (home / "workspace" / "memory" / name).write_text("# Herd\n\nGiraffes eat acacia leaves\n")
    assert [hit.path for hit in memory.search("acacia", fast=True).hits] == [f"memory/{name}"]
    assert not any("not valid text" in finding.message for finding in memory.doctor())
