"""One call of memory_search finds whatever memory knows, each thing once, and nothing where it knows nothing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanoclaw_memory import Memory

ASKED = "We moved the Quillfeather archive to the cellar because of the damp roof"
ANSWERED = "Noted, the Quillfeather archive is in the cellar now."
PAGE = "The Quillfeather insurance is handled by Tamsin"
ENTRY = "Quillfeather is closed on public holidays"
LOG = "Quillfeather inspection went well"


@pytest.fixture
def told(memory: Memory, home: Path, ncm: Callable[..., Any]) -> Memory:
    """A home that heard of one thing in five ways."""
    hook = {"session_id": "earlier", "prompt": ASKED}
    assert ncm("hook", "user-prompt-submit", stdin=json.dumps(hook)).code == 0
    hook = {"session_id": "earlier", "last_assistant_message": ANSWERED}
    assert ncm("hook", "stop", stdin=json.dumps(hook)).code == 0
    page = home / "workspace" / "MEMORY.md"
    page.write_text(f"{page.read_text()}\n- {PAGE}\n")
    memory.store(ENTRY, "decision")
    memory.graph.upsert("Quillfeather", "opening time", "9:30")
    memory.write(LOG, "milestone")
    for number in range(20):
        memory.write(f"Pear delivery {number} came in crate {number * 7} from the orchard")
    return memory


def ask(memory: Memory, query: str, limit: int = 20) -> list[str]:
    """The lines of the MCP tool `memory_search`."""
    from mcp import Client

    from nanoclaw_memory.interfaces.mcp.server import build_server

    async def call() -> Any:
        async with Client(build_server(memory, "core")) as client:
            return await client.call_tool("memory_search", {"query": query, "limit": limit})

    answer = asyncio.run(call())
    assert not answer.is_error, answer
    return [line for line in answer.content[0].text.split("\n") if line.startswith("- [")]


def test_one_call_finds_what_was_said_written_stored_and_known(told: Memory) -> None:
    lines = ask(told, "Quillfeather")
    for text in TEXTS:
        assert any(text in line for line in lines), text
    assert any("[fact " in line and "9:30" in line for line in lines)


TEXTS = (ASKED, ANSWERED, PAGE, ENTRY, LOG)


def test_every_hit_has_its_kind_date_and_place_and_none_comes_twice(told: Memory) -> None:
    lines = ask(told, "Quillfeather")
    texts = [line.partition("] ")[2] for line in lines]
    assert len(texts) == len(set(texts))
    for line in lines:
        assert re.match(
            r"- \[(MEMORY.md:\d+|memory/\d{4}-\d\d-\d\d.md:\d+|.*(today|\d{4}-\d\d-\d\d))", line
        ), line


@pytest.mark.parametrize(
    "question", ["the capital of Mongolia", "zxqv blorp fnord", "photosynthesis of ferns"]
)
def test_a_question_that_nothing_answers_gets_nothing(told: Memory, question: str) -> None:
    assert ask(told, question) == []
    assert told.recall(question).entries == ()


def test_a_page_with_empty_headings_shows_the_line_that_answers(told: Memory) -> None:
    (line,) = [line for line in ask(told, "Who handles the insurance?") if PAGE in line]
    assert line.count("#") <= 2 and "Long-Term Memory" not in line


def test_recall_answers_from_a_page_when_no_entry_knows(told: Memory) -> None:
    assert any(PAGE in one.content for one in told.recall("Who handles the insurance?").entries)


@pytest.mark.parametrize(
    "question", ["the capital of Mongolia", "zxqv blorp fnord", "photosynthesis of ferns"]
)
def test_the_local_model_invents_no_answer_either(
    told: Memory, open_memory: Callable[..., Memory], models_dir: Path, question: str
) -> None:
    memory = open_memory(embeddings__modelPath=str(models_dir / "e5-small-v2"))
    memory.index()
    assert ask(memory, question) == []
    assert any(", exchange " in line for line in ask(memory, "Where is the Quillfeather archive?"))
