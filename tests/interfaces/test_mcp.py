"""The MCP server, spoken to by the official client: in process, in both generations, over stdio."""

from __future__ import annotations

import json
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextResourceContents

from nanoclaw_memory import tokens
from nanoclaw_memory.interfaces.mcp.server import CORE, build_server
from nanoclaw_memory.interfaces.mcp.texts import INSTRUCTIONS
from nanoclaw_memory.rendering import OPENING

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def agent(open_memory):
    memory = open_memory(session="mcp-1")
    memory.init()
    return memory


async def call(client, name, **arguments):
    return await client.call_tool(name, arguments)


def said(result):
    return result.content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_is_stored_is_found_in_both_protocol_generations(agent, mode):
    async with Client(build_server(agent), mode=mode) as client:
        stored = await call(client, "memory_store", type="preference", content="Prefers tea before noon")
        assert stored.structured_content["id"].startswith("mem-")
        found = await call(client, "memory_search", query="what does she drink, tea?")
        assert "Prefers tea before noon" in said(found)
        assert found.structured_content["hits"][0]["kind"] == "entry"


async def test_a_server_that_serves_several_conversations_answers_each_of_them(agent):
    agent.graph.upsert("Keystone", "port", "3000", "project")
    async with Client(build_server(agent, "all")) as client:
        for _ in range(2):
            turn = await call(client, "memory_turn", message="What port does Keystone run on?")
            assert "Keystone.port = 3000" in said(turn)


async def test_the_core_set_is_small(agent):
    async with Client(build_server(agent)) as client:
        listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == set(CORE)
    schemas = json.dumps([tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed])
    assert len(listed) <= 7
    assert tokens.count(schemas) <= 2000
    assert len(INSTRUCTIONS.encode()) <= 2048


async def test_all_tools_are_the_documents_tools(agent):
    async with Client(build_server(agent, "all")) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names >= {
        *CORE, "memory_brief", "memory_delete", "memory_index_status", "memory_audit", "memory_reinforce",
        "memory_shared_recall", "memory_turn",
    }  # fmt: skip


async def test_an_agent_ingests_facts_and_relations_queries_them_and_reads_their_history(agent):
    facts = [{"entity": "Keystone", "key": "port", "value": port, "valid_from": day, "source": "forged"}
             for port, day in (("3000", "2025-01-01"), ("3055", "2026-01-01"))]  # fmt: skip
    relations = [
        {"subject": "Ada", "predicate": "owns", "object": "Keystone"},
        {"subject": "", "predicate": "owns"},
    ]
    async with Client(build_server(agent, "all")) as client:
        done = await call(client, "memory_graph_ingest", facts=facts, relations=relations)
        assert said(done).startswith("2 facts, 1 relations, 0 aliases stored; 0 were known, 1 old values")
        assert "skipped: line 4: the subject is empty" in said(done)
        found = await call(client, "memory_graph_query", query="MATCH (a)-[:OWNS]->(b) RETURN a.name, b.port")
        assert found.structured_content["rows"] == [["Ada", "3055"]]
        assert said(found).startswith(OPENING) and "Ada | 3055" in said(found)
        then = await call(
            client, "memory_graph_query", query="MATCH (b {name: 'Keystone'}) RETURN b.port", as_of="2025-06"
        )
        assert then.structured_content["rows"] == [["3000"]]
        history = await call(client, "graph_history", entity="keystone", key="port")
        assert [fact["value"] for fact in history.structured_content["facts"]] == ["3000", "3055"]
        assert {fact["origin"] for fact in history.structured_content["facts"]} == {
            "owner"
        }  # as the scope says
        assert "forged" not in said(history)
        wrong = await call(client, "memory_graph_query", query="MATCH (a) DELETE a")
        assert wrong.is_error and "DELETE is not part of a query" in said(wrong)


async def test_reading_tools_say_so_and_delete_is_destructive(agent):
    async with Client(build_server(agent, "all")) as client:
        tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    assert tools["memory_search"].read_only_hint is True
    for name in ("memory_store", "graph_search", "memory_recall", "memory_turn"):  # they reinforce or record
        assert tools[name].read_only_hint is False
    assert tools["memory_delete"].destructive_hint is True


async def test_a_written_line_is_read_back_fenced_as_data(agent):
    async with Client(build_server(agent)) as client:
        written = await call(client, "memory_write", content="Chose SQLite", importance=0.9, tag="decision")
        place = written.structured_content
        got = await call(
            client, "memory_get", file=place["path"], startLine=place["line"], endLine=place["line"]
        )
    assert got.structured_content["text"] == "- [decision|i=0.9] Chose SQLite\n"
    assert "not instructions" in said(got)


async def test_a_changed_fact_is_answered_with_its_current_value(agent):
    async with Client(build_server(agent)) as client:
        await call(client, "fact_upsert", entity="Keystone", key="port", value="3000", category="project")
        await call(client, "fact_upsert", entity="Keystone", key="port", value="4000", category="project")
        answer = await call(client, "graph_search", query="What port does Keystone run on?")
    assert "Keystone.port = 4000" in said(answer)
    assert "3000" not in said(answer)


async def test_the_model_is_told_what_the_graph_has_not_read_yet(agent):
    (agent.home.workspace("main") / "MEMORY.md").write_text("- a line of a very long file\n" * 10_000)
    async with Client(build_server(agent)) as client:
        answer = await call(client, "graph_search", query="What port does Keystone run on?")
    assert "files changed and not yet read into the graph" in said(answer)


async def test_an_error_tells_the_model_what_to_do_and_the_server_lives_on(agent):
    async with Client(build_server(agent, "all")) as client:
        refused = await call(client, "memory_get", file="../../etc/passwd")
        assert refused.is_error
        assert "outside the memory" in said(refused)
        assert "MEMORY.md" in said(refused)
        unknown = await call(client, "memory_delete", id="mem-nosuch")
        assert unknown.is_error
        assert said(unknown)
        wrong = await call(client, "memory_store", type="nonsense", content="x")
        assert wrong.is_error
        again = await call(client, "memory_get", file="MEMORY.md")
        assert not again.is_error


async def test_unknown_arguments_are_refused_so_provenance_cannot_be_given(agent):
    async with Client(build_server(agent)) as client:
        forged = await call(client, "memory_store", type="fact", content="The sky is green", origin="owner")
        assert forged.is_error
        assert "origin" in said(forged)
        found = await call(client, "memory_search")
    assert found.structured_content["hits"] == []


WRONG = [
    ("memory_get", {"path": "MEMORY.md"}, "file is missing; path is no argument of this tool"),
    ("memory_store", {"content": "x" * 3000, "type": "fact"}, "content should have at most 2000 characters"),
    ("memory_store", {"content": ["a", "list"], "type": "fact"}, "content should be a valid string"),
    ("memory_store", {"content": "Tea", "type": "wish"}, "type should be 'preference', 'instruction'"),
    ("memory_search", {"query": "tea", "limit": 0}, "limit should be greater than or equal to 1"),
    ("memory_search", {"query": "tea", "limit": "many"}, "limit should be a valid integer"),
    ("fact_upsert", {"entity": "Ida", "key": "age"}, "value is missing"),
]


@pytest.mark.parametrize(("tool", "arguments", "told"), WRONG, ids=lambda value: str(value)[:20])
async def test_a_wrong_argument_is_one_short_line_with_the_names_that_are_taken(agent, tool, arguments, told):
    async with Client(build_server(agent)) as client:
        result = await call(client, tool, **arguments)
    assert result.is_error and told in said(result)
    assert "takes: " in said(result) and "\n" not in said(result)
    assert "pydantic" not in said(result) and "validation error" not in said(result)
    assert len(said(result)) < 400 and "xxxx" not in said(result)


async def test_two_names_of_one_argument_that_disagree_are_refused(agent):
    async with Client(build_server(agent)) as client:
        result = await call(client, "memory_store", content="Tea", type="fact", category="person")
    assert result.is_error and "category" in said(result)


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("memory_delete", {"id": "mem-none"}, "memory_search"),
        ("memory_write", {"content": " "}, "memory_write"),
        ("memory_get", {"file": "MEMORY.md", "startLine": 5, "endLine": 2}, "startLine"),
        ("memory_reinforce", {"id": "mem-none"}, "memory_search"),
    ],
)
async def test_hints_name_tools_and_not_commands(agent, tool, arguments, hint):
    async with Client(build_server(agent, "all")) as client:
        result = await call(client, tool, **arguments)
    assert result.is_error and hint in said(result)
    assert "ncm" not in said(result) and "nanoclaw-memory" not in said(result) and "--" not in said(result)


async def test_what_only_a_person_can_do_is_said_to_be_theirs(agent):
    agent.forget(text="the blue door")
    async with Client(build_server(agent, "all")) as client:
        result = await call(client, "memory_write", content="the blue door is open")
    assert result.is_error and "ncm forget" in said(result) and "the user" in said(result)


async def test_fifty_calls_at_once_all_answer(agent):
    async with Client(build_server(agent)) as client:
        results = []

        async def one(number):
            results.append(await call(client, "memory_write", content=f"line {number}"))

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, number)
    assert sum(not result.is_error for result in results) == 50
    assert len(agent.log()[1]) == 50


async def test_a_cancelled_call_leaves_the_server_answering(agent, monkeypatch):
    import threading

    waiting, released = threading.Event(), threading.Event()
    search = agent.search

    def slow(*args, **kwargs):
        waiting.set()
        released.wait(20)
        return search(*args, **kwargs)

    monkeypatch.setattr(agent, "search", slow)
    async with Client(build_server(agent)) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call(client, "memory_search", query="anything"))
            await anyio.to_thread.run_sync(waiting.wait)
            group.cancel_scope.cancel()
        released.set()
        written = await call(client, "memory_write", content="still here")
    assert not written.is_error


async def test_resources_read_files_and_withhold_private_ones_from_a_shared_scope(open_memory, agent):
    async with Client(build_server(agent)) as client:
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        names = ("soul", "user", "identity", "active-context", "long-term", "brief")
        assert listed == {f"memory://{name}" for name in names}
        contents = (await client.read_resource("memory://long-term")).contents[0]
        assert isinstance(contents, TextResourceContents)
        assert "Long-Term Memory" in contents.text
        today = agent.group.today.isoformat()
        log = (await client.read_resource(f"memory://log/{today}")).contents[0].text
        assert log.splitlines()[:2] == [OPENING, f"# {today}"]  # an agent writes there too
    shared = open_memory(private=False)
    async with Client(build_server(shared)) as client:
        assert (await client.read_resource("memory://soul")).contents
        for private in (
            "memory://long-term",
            "memory://user",
            f"memory://log/{today}",
            "memory://project/..%2fx",
        ):
            with pytest.raises(
                Exception, match=r"private|not found|Unknown|Invalid|there is no|outside|refused"
            ):
                await client.read_resource(private)


async def test_prompts_teach_remembering_recalling_and_the_sweep(agent):
    async with Client(build_server(agent)) as client:
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {
            "remember",
            "recall",
            "sweep",
        }
        shown = await client.get_prompt("remember", {"what": "I moved to Lisbon"})
    assert "I moved to Lisbon" in shown.messages[0].content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_command_serves_the_same_over_stdio(home, mode):
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "nanoclaw_memory", "--home", str(home), "mcp", "--tools", "all"]
    )
    async with Client(parameters, mode=mode) as client:
        written = await call(client, "memory_write", content="Over the wire")
        assert not written.is_error, said(written)
        stored = await call(client, "memory_store", type="fact", content="The kettle is blue")
        assert not stored.is_error, said(stored)
        entry = (await call(client, "memory_search", type="fact")).structured_content["hits"][0]
    assert entry["origin"] == "agent"


async def test_a_masked_credential_is_not_repeated_to_the_model(agent):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    async with Client(build_server(agent)) as client:
        for key, value in (("token", token), ("password", "blue-Falcon-9")):
            answer = await call(client, "fact_upsert", entity="Deploy", key=key, value=value)
            assert value not in str(answer)
            assert "masked" in said(answer) and "[redacted:" in said(answer)
