"""Helpers for other SDKs, against the SDKs themselves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory.workspace.notes import NotesError


@pytest.fixture
def tool(memory):
    pytest.importorskip("anthropic")
    from nanoclaw_memory.interfaces.sdk.anthropic import MemoryTool

    return MemoryTool(memory)


def call(tool, command, **fields):
    return tool.call({"command": command, **fields})


def refused(tool, command, **fields):
    from anthropic.lib.tools import ToolError

    with pytest.raises(ToolError) as error:
        call(tool, command, **fields)
    return str(error.value)


def test_the_memory_tool_declares_itself_as_the_api_wants(tool):
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_the_six_commands_answer_in_the_documented_words(tool, memory):
    path = "/memories/plan.md"
    assert (
        call(tool, "create", path=path, file_text="one\ntwo\nthree\n")
        == f"File created successfully at: {path}"
    )
    assert refused(tool, "create", path=path, file_text="x") == f"Error: File {path} already exists"
    viewed = call(tool, "view", path=path)
    assert viewed.startswith(f"Here's the content of {path} with line numbers:\n     1\tone\n     2\ttwo\n")
    assert call(tool, "view", path=path, view_range=[2, 2]).endswith("     2\ttwo")
    edited = call(tool, "str_replace", path=path, old_str="two", new_str="2")
    assert edited.startswith("The memory file has been edited.\n")
    assert "     2\t2" in edited
    assert "did not appear verbatim" in refused(tool, "str_replace", path=path, old_str="nope", new_str="x")
    assert (
        call(tool, "insert", path=path, insert_line=0, insert_text="zero\n")
        == f"The file {path} has been edited."
    )
    assert "[0, 4]" in refused(tool, "insert", path=path, insert_line=99, insert_text="x")
    listed = call(tool, "view", path="/memories")
    assert listed.startswith("Here're the files and directories up to 2 levels deep in /memories")
    assert f"\t{path}" in listed
    moved = "/memories/old/plan.md"
    assert call(tool, "rename", old_path=path, new_path=moved) == f"Successfully renamed {path} to {moved}"
    assert memory.get("memory/notes/old/plan.md").text == "zero\none\n2\nthree\n"
    assert call(tool, "delete", path="/memories/old") == "Successfully deleted /memories/old"
    assert (
        refused(tool, "view", path=moved) == f"The path {moved} does not exist. Please provide a valid path."
    )


def test_an_ambiguous_replacement_names_the_lines(tool):
    call(tool, "create", path="/memories/a.md", file_text="x\ny\nx\n")
    message = refused(tool, "str_replace", path="/memories/a.md", old_str="x", new_str="z")
    assert "Multiple occurrences of old_str `x` in lines: 1, 3" in message


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "memories/x", "/memories/../../MEMORY.md", "/memories/%2e%2e/x.md", "/memories/..\\x",
     "/memoriesx/a", "/memories/a\x00b", "/memories/" + "a" * 300],
)  # fmt: skip
def test_no_path_leaves_the_notes(tool, path):
    for command, fields in (("view", {}), ("create", {"file_text": "x"}), ("delete", {})):
        assert "memories" in refused(tool, command, path=path, **fields)


def test_a_link_out_of_the_notes_is_refused(tool, memory, tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    folder = memory.home.workspace("main") / "memory" / "notes"
    folder.mkdir(parents=True)
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    assert "symlink" in refused(tool, "view", path="/memories/link.md")


def test_the_root_itself_stays(tool):
    assert "itself" in refused(tool, "delete", path="/memories")
    assert "itself" in refused(tool, "rename", old_path="/memories", new_path="/memories/x")


def test_notes_are_found_by_search_and_hold_no_credentials(tool, memory):
    token = "ghp_" + "".join(chr(ord("a") + number * 7 % 26) + str(number * 3 % 10) for number in range(18))
    call(
        tool, "create", path="/memories/deploy.md", file_text=f"The rollout uses blue-green. token {token}\n"
    )
    assert token not in memory.get("memory/notes/deploy.md").text
    memory.index()
    assert any(
        hit.path == "memory/notes/deploy.md" for hit in memory.search("blue-green rollout", fast=True).hits
    )


@given(
    st.dictionaries(
        st.sampled_from(["path", "file_text", "old_str", "new_str", "insert_line", "view_range"]),
        st.text() | st.integers() | st.none(),
    ),
    st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename", "x"]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_command_is_done_or_refused_in_words(memory, fields, command):
    try:
        assert memory.workspace.notes.run({**fields, "command": command})
    except NotesError as error:
        assert error.message
    outside = [path for path in memory.home.root.rglob("*") if path.is_file() and "notes" not in path.parts]
    assert (memory.home.root / "workspace" / "MEMORY.md") in outside


def test_what_a_person_asked_to_forget_comes_back_neither_as_a_note_nor_as_a_policy(tool, memory):
    from nanoclaw_memory.errors import Refused

    memory.write("The code word is plumblossom")
    memory.forget(text="plumblossom", agreed=lambda pages: True)
    assert "asked to forget" in refused(
        tool, "create", path="/memories/a.md", file_text="plumblossom again\n"
    )
    with pytest.raises(Refused, match="asked to forget"):
        memory.workspace.add_policy("Never say plumblossom", "talk", "ask first")


def test_an_agents_session_survives_a_restart_and_is_recalled_later(open_memory):
    pytest.importorskip("agents")
    from agents.memory import Session

    from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession

    memory = open_memory(session="chat-1")
    memory.init()
    session = MemorySession(memory)
    assert isinstance(session, Session)

    async def talk():
        await session.add_items([{"role": "user", "content": "We chose PostgreSQL for the ledger."}])
        await session.add_items(
            [{"role": "assistant", "content": [{"type": "output_text", "text": "Noted: PostgreSQL."}]}]
        )

    asyncio.run(talk())
    again = MemorySession(open_memory(session="chat-1"))
    items = asyncio.run(again.get_items())
    assert [item["role"] for item in items] == ["user", "assistant"]
    assert asyncio.run(again.get_items(limit=1))[0]["role"] == "assistant"
    assert asyncio.run(again.pop_item())["role"] == "assistant"
    asyncio.run(again.clear_session())
    assert asyncio.run(again.get_items()) == []
    later = open_memory(session="chat-2").before_turn("Which database did we choose for the ledger?")
    assert "PostgreSQL" in later.text


def test_an_agent_of_the_sdk_runs_with_our_session(open_memory):
    pytest.importorskip("agents")
    from agents import Agent, RunConfig, Runner, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model, ModelProvider
    from agents.usage import Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession

    set_tracing_disabled(True)
    seen: list[object] = []

    class Echo(Model):
        async def get_response(self, system_instructions, input, *args, **kwargs):
            seen.append(input)
            text = ResponseOutputText(type="output_text", text=f"answer {len(seen)}", annotations=[])
            message = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kwargs):
            raise AssertionError("nothing is streamed here")

    class Provider(ModelProvider):
        def get_model(self, model_name):
            return Echo()

    memory = open_memory(session="run-1")
    memory.init()
    config = RunConfig(model_provider=Provider())
    for question in ("first question", "second question"):
        asyncio.run(
            Runner.run(Agent(name="a", model="m"), question, session=MemorySession(memory), run_config=config)
        )
    assert "first question" in json.dumps(seen[1], default=str)
    assert "answer 1" in json.dumps(seen[1], default=str)


def test_the_langgraph_store_keeps_finds_filters_and_lists(open_memory):
    pytest.importorskip("langgraph.store.base")
    from langgraph.store.base import InvalidNamespaceError

    from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

    memory = open_memory()
    memory.init()
    store = MemoryStore(memory)
    store.put(("users", "mara"), "food", {"text": "likes green tea", "rank": 2})
    store.put(("users", "mara"), "work", {"text": "runs the payment API", "rank": 5})
    store.put(("users", "jonas"), "food", {"text": "likes coffee", "rank": 1})
    again = MemoryStore(open_memory())
    assert again.get(("users", "mara"), "food").value == {"text": "likes green tea", "rank": 2}
    found = again.search(("users", "mara"), query="which tea is liked?")
    assert [(item.key, item.score is None) for item in found] == [("food", False), ("work", True)]
    assert [item.key for item in again.search(("users",), filter={"rank": {"$gte": 2}})] == ["food", "work"]
    assert again.list_namespaces(prefix=("users",)) == [("users", "jonas"), ("users", "mara")]
    assert again.list_namespaces(suffix=("mara",)) == [("users", "mara")]
    assert again.list_namespaces(max_depth=1) == [("users",)]
    again.put(("users", "mara"), "food", {"text": "likes cocoa"})
    assert [item.score for item in again.search(("users", "mara"), query="tea")] == [None, None]
    again.delete(("users", "mara"), "food")
    assert again.get(("users", "mara"), "food") is None
    assert asyncio.run(again.aget(("users", "jonas"), "food")).value["rank"] == 1
    with pytest.raises(InvalidNamespaceError):
        again.put((), "x", {})


VALUES = {
    "plain": {"n": {"p": 1, "q": "x"}, "tags": ["a", "b"], "text": "likes green tea", "rank": 2, "on": True},
    "other": {"n": {"p": 5}, "tags": ["a"], "text": "runs the payment API", "rank": 5, "none": None},
    "list": {"n": [1, {"p": 1}], "tags": [], "text": "", "rank": 2.5, "on": False},
}
FILTERS = [
    {}, {"rank": 2}, {"rank": {"$gt": 2}}, {"rank": {"$gte": 2, "$lt": 5}}, {"rank": {"$ne": 2}}, {"n": {"p": 1}},
    {"n": {"p": {"$gt": 0}}}, {"n": {"p": 1, "q": "x"}}, {"n": {}}, {"tags": ["a"]}, {"tags": ["a", "b"]}, {"tags": []},
    {"n": [1, {"p": 1}]}, {"on": True}, {"none": None}, {"missing": None}, {"missing": {"$eq": None}},
    {"missing": {"$gt": 1}}, {"rank": {"$in": [2]}}, {"text": {"$gt": 1}}, {"n": {"p": {"$eq": 1}, "q": "x"}},
    {"tags": [{"$eq": "a"}]}, {"rank": {"$lte": "2"}}, {"n": 1},
]  # fmt: skip


@pytest.fixture
def stores(memory):
    """LangGraph's own store, and ours."""
    pytest.importorskip("langgraph.store.memory")
    from langgraph.store.memory import InMemoryStore

    from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

    return InMemoryStore(), MemoryStore(memory)


def outcome(act):
    """What an act returns, or the kind and words of its error."""
    try:
        return act()
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        return type(error).__name__, str(error).partition(":")[0]  # the item that it names may be another


@pytest.mark.parametrize("filter_", FILTERS, ids=str)
def test_a_filter_finds_what_langgraphs_own_store_finds(stores, filter_):
    found = []
    for store in stores:
        for key, value in VALUES.items():
            store.put(("docs",), key, value)
        got = outcome(lambda store=store: store.search(("docs",), filter=filter_))
        found.append(got if isinstance(got, tuple) else sorted(item.key for item in got))
    assert found[0] == found[1]


def test_a_batch_reads_what_was_there_before_it_and_the_last_put_counts(stores):
    from langgraph.store.base import GetOp, PutOp, SearchOp

    found = []
    for store in stores:
        store.put(("docs",), "old", {"n": 1})
        read = [GetOp(("docs",), "old"), GetOp(("docs",), "new"), SearchOp(("docs",))]
        puts = [
            PutOp(("docs",), "old", {"n": 2}),
            PutOp(("docs",), "new", {"n": 3}),
            PutOp(("docs",), "old", None),
        ]
        old, new, listed, *none = store.batch([*puts[:1], *read, *puts[1:]])[1:]
        found.append((old.value, new, [item.key for item in listed], none, store.get(("docs",), "old"),
                      store.get(("docs",), "new").value, outcome(lambda store=store: store.batch(["x"]))))  # fmt: skip
    assert found[0] == found[1]


def test_a_listing_has_the_order_of_langgraphs_own_store(stores):
    found = []
    for store in stores:
        for namespace, key in [("b", "2"), ("a", "1"), ("b", "0"), ("a", "0"), ("c", "9")]:
            store.put(("docs", namespace), key, {"n": 1})
        store.put(("docs", "b"), "2", {"n": 2})  # a change keeps its place
        store.delete(("docs", "a"), "1")
        store.put(("docs", "a"), "1", {"n": 3})  # put anew it comes last of its namespace
        pages = [store.search(("docs",), limit=2, offset=offset) for offset in (0, 2, 4)]
        found.append([(item.namespace, item.key) for page in pages for item in page])
    assert found[0] == found[1]


def similar_words(texts, question=False):
    """A model whose meanings are words that a person would call alike."""
    import numpy as np

    alike = ("food tea drink like", "payment money api", "weather rain sun")
    rows = [
        [0.1 + sum(word in text.casefold() for word in group.split()) for group in alike] for text in texts
    ]
    table = np.array(rows, np.float32)
    return table / np.linalg.norm(table, axis=1, keepdims=True), "test@3"


def test_items_are_found_by_meaning_and_those_that_are_not_indexed_come_last(memory, monkeypatch):
    pytest.importorskip("langgraph.store.memory")
    from langgraph.store.memory import InMemoryStore

    from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

    made = []
    monkeypatch.setattr(
        memory.group, "_vectors_of", lambda *given: made.append(given) or similar_words(*given)
    )
    theirs = InMemoryStore(index={"dims": 3, "embed": lambda texts: similar_words(texts)[0].tolist()})
    found = []
    for store in (theirs, MemoryStore(memory)):
        store.put(("m",), "tea", {"text": "green tea in the morning"})
        store.put(("m",), "pay", {"text": "runs the payment api", "note": "tea"}, index=["text"])
        store.put(("m",), "hidden", {"text": "food, food, food"}, index=False)
        store.put(("m",), "both", {"a": "rain", "b": ["sun", "drink"]}, index=["a", "b[*]"])
        first = store.search(("m",), query="what food do I like")
        second = store.search(("m",), query="what food do I like", limit=1, offset=1)
        found.append(([(item.key, item.score and round(item.score, 5)) for item in first], second[0].key))
    assert found[0] == found[1]
    assert [key for key, _ in found[1][0]] == ["tea", "both", "pay", "hidden"]
    before = len(made)
    again = MemoryStore(memory)
    again.search(("m",), query="rain")
    assert len(made) == before + 1  # the question alone: vectors of items are kept
    again.put(("m",), "tea", {"text": "rain and sun"})
    assert {item.key for item in again.search(("m",), query="weather", limit=2)} == {"tea", "both"}
    again.delete(("m",), "tea")
    assert memory.group.database("sdk").query("SELECT count(*) FROM item_vectors")[0][0] == 2


def test_the_local_model_finds_what_shares_no_word(open_memory, models_dir):
    pytest.importorskip("langgraph.store.base")
    from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

    memory = open_memory(embeddings__modelPath=str(models_dir / "e5-small-v2"))
    memory.init()
    store = MemoryStore(memory)
    store.put(("mara",), "meal", {"text": "Her favourite dish is lasagne"})
    store.put(("mara",), "work", {"text": "She maintains the billing service"})
    store.put(("mara",), "town", {"text": "Lives in Lisbon near the river"})
    assert store.search(("mara",), query="what does she like to eat")[0].key == "meal"


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 99, -1])
@pytest.mark.parametrize("own", [None, 2, 0])
def test_a_session_gives_as_many_items_as_the_sdks_own(open_memory, limit, own):
    pytest.importorskip("agents")
    from agents import SQLiteSession
    from agents.memory import SessionSettings

    from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession

    memory = open_memory(session="chat")
    memory.init()
    settings = None if own is None else SessionSettings(limit=own)
    found = []
    for session in (SQLiteSession("chat", session_settings=settings), MemorySession(memory, settings)):
        asyncio.run(session.add_items([{"role": "user", "content": f"message {n}"} for n in range(5)]))
        found.append(asyncio.run(session.get_items(limit)))
        session.session_settings = SessionSettings(limit=4)
        found[-1] = (found[-1], asyncio.run(session.get_items()))
    assert found[0] == found[1]


def test_the_agent_sdks_callbacks_inject_capture_and_never_block(memory, monkeypatch):
    from nanoclaw_memory.errors import StoreError
    from nanoclaw_memory.interfaces.sdk.claude_agent import hook_callbacks

    memory.graph.upsert("Keystone", "port", "3000", "project")
    callbacks = hook_callbacks(memory)
    asked = {"prompt": "What port does Keystone run on?", "session_id": "s1"}
    first = asyncio.run(callbacks["UserPromptSubmit"](asked, None, {}))["hookSpecificOutput"]
    assert "# Soul" in first["additionalContext"]
    assert "Keystone.port = 3000" in first["additionalContext"]
    second = asyncio.run(callbacks["UserPromptSubmit"](asked, None, {}))
    assert second == {}  # this session has it all
    other = asyncio.run(callbacks["UserPromptSubmit"]({**asked, "session_id": "s2"}, None, {}))
    assert other["hookSpecificOutput"]["additionalContext"] == first["additionalContext"]
    asyncio.run(callbacks["PreCompact"]({"session_id": "s2"}, None, {}))
    again = asyncio.run(callbacks["UserPromptSubmit"]({**asked, "session_id": "s2"}, None, {}))
    assert "# Soul" in json.dumps(again)
    assert asyncio.run(callbacks["Stop"]({"last_assistant_message": "3000"}, None, {})) == {}
    (kept,) = memory.conversations.session("s1")
    assert (kept.user_message, kept.agent_response) == (asked["prompt"], "3000")
    assert memory.conversations.drain() == 0

    def broken(message, **options):
        raise StoreError("gone")

    monkeypatch.setattr(memory, "before_turn", broken)
    lost = {"prompt": "The ferry leaves at nine", "session_id": "s1"}
    assert asyncio.run(callbacks["UserPromptSubmit"](lost, None, {})) == {}
    asyncio.run(callbacks["Stop"]({"last_assistant_message": "Noted"}, None, {}))
    assert memory.conversations.session("s1")[-1].user_message == lost["prompt"]  # what was said is kept


def test_the_agent_sdk_takes_our_hooks(memory):
    sdk = pytest.importorskip("claude_agent_sdk", reason="the Claude Agent SDK is not installed")
    from nanoclaw_memory.interfaces.sdk.claude_agent import hooks

    assert set(sdk.ClaudeAgentOptions(hooks=hooks(memory)).hooks) == {
        "UserPromptSubmit",
        "PreCompact",
        "Stop",
    }


EXAMPLES = {
    "anthropic_memory_tool": "anthropic",
    "openai_agents_session": "agents",
    "langgraph_store": "langgraph",
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(example, tmp_path, ncm_process):
    import subprocess
    import sys

    pytest.importorskip(EXAMPLES[example], reason="its SDK is not installed")
    path = Path(__file__).parents[2] / "examples" / f"{example}.py"
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path / "home")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
