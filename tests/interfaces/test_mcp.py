"""The MCP server, spoken to by the official client: in process, in both generations, over stdio."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextResourceContents

from nanoclaw_memory import tokens
from nanoclaw_memory.interfaces.mcp.server import build_server
from nanoclaw_memory.interfaces.mcp.texts import CORE, INSTRUCTIONS
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
        assert said(stored).startswith("Stored as mem-")
        found = await call(client, "memory_search", query="what does she drink, tea?")
        assert "Prefers tea before noon" in said(found)
        assert stored.structured_content is None and found.structured_content is None


async def test_a_server_that_serves_several_conversations_answers_each_of_them(agent):
    agent.graph.upsert("Keystone", "port", "3000", "project")
    async with Client(build_server(agent, "all")) as client:
        for _ in range(2):
            turn = await call(client, "memory_turn", message="What port does Keystone run on?")
            assert "Keystone.port = 3000" in said(turn)


async def test_a_client_that_counts_its_tokens_is_asked_once_to_write_down_what_should_last(agent):
    async with Client(build_server(agent, "all")) as client:
        for used, asked in ((1000, False), (176_000, True), (177_000, False)):
            turn = await call(client, "memory_turn", message="go on", context_tokens=used)
            assert ("compacted soon" in said(turn)) == asked


async def test_the_core_set_is_what_the_documents_promise_and_small(agent):
    async with Client(build_server(agent)) as client:
        listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == set(CORE) >= {
        "memory_store", "memory_search", "memory_recall", "memory_brief", "memory_delete", "memory_get", "memory_write",
        "fact_upsert", "graph_search", "graph_history", "memory_graph_ingest",
    }  # fmt: skip
    schemas = json.dumps([tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed])
    assert tokens.count(schemas) <= 2200
    assert len(INSTRUCTIONS.encode()) <= 2048


async def test_the_set_of_tools_can_be_narrowed_by_name(agent, ncm_process):
    async with Client(build_server(agent, "memory_search, memory_store")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["memory_search", "memory_store"]
    wrong = ncm_process("mcp", "--tools", "memory_search,memory_fly")
    assert wrong.code == 2 and "memory_fly" in wrong.err and "memory_store" in wrong.err


async def test_a_tool_that_is_not_offered_says_how_it_is(agent):
    async with Client(build_server(agent)) as client:
        answer = await call(client, "memory_turn", message="hello")
        assert answer.is_error and "--tools all" in said(answer)
        assert "Unknown tool" in said(await call(client, "memory_fly"))


async def test_all_tools_are_the_documents_tools(agent):
    async with Client(build_server(agent, "all")) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names >= {
        *CORE, "memory_brief", "memory_delete", "memory_index_status", "memory_audit", "memory_reinforce",
        "memory_shared_recall", "memory_turn",
    }  # fmt: skip


async def test_an_agent_ingests_facts_and_relations_queries_them_and_reads_their_history(agent):
    facts = [{"entity": "Keystone", "key": "port", "value": port, "valid_from": day}
             for port, day in (("3000", "2025-01-01"), ("3055", "2026-01-01"))]  # fmt: skip
    facts.append({"entity": "Keystone", "key": "port", "value": "666", "source": "forged"})
    relations = [
        {"subject": "Ada", "predicate": "owns", "object": "Keystone"},
        {"subject": "", "predicate": "owns"},
    ]
    async with Client(build_server(agent, "all")) as client:
        done = await call(client, "memory_graph_ingest", facts=facts, relations=relations)
        assert said(done).startswith("2 facts, 1 relations, 0 aliases stored; 0 were known, 1 old values")
        assert "skipped: line 3 gives source" in said(done)
        assert "skipped: line 5: the subject is empty" in said(done)
        found = await call(client, "memory_graph_query", query="MATCH (a)-[:OWNS]->(b) RETURN a.name, b.port")
        assert said(found).startswith(OPENING) and "Ada | 3055" in said(found)
        then = await call(
            client, "memory_graph_query", query="MATCH (b {name: 'Keystone'}) RETURN b.port", as_of="2025-06"
        )
        assert "3000" in said(then) and "3055" not in said(then)
        history = await call(client, "graph_history", entity="keystone", key="port")
        values = [line.partition(" = ")[2].split()[0] for line in said(history).split("\n")[1:-1]]
        assert values == ["3000", "3055"]
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
        path, _, line = said(written).removeprefix("Written to ").rstrip(".").partition(":")
        got = await call(client, "memory_get", file=path, start_line=int(line), end_line=int(line))
    assert said(got).split("\n")[:2] == [OPENING, "- [decision|i=0.9] Chose SQLite"]


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
    assert said(found) == "Nothing was found."


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
        ("memory_get", {"file": "MEMORY.md", "start_line": 5, "end_line": 2}, "start_line"),
        ("memory_reinforce", {"id": "mem-none"}, "memory_search"),
    ],
)
async def test_hints_name_tools_and_not_commands(agent, tool, arguments, hint):
    async with Client(build_server(agent, "all")) as client:
        result = await call(client, tool, **arguments)
    assert result.is_error and hint in said(result)
    assert "ncm" not in said(result) and "nanoclaw-memory" not in said(result) and "--" not in said(result)


async def test_what_only_a_person_can_do_is_said_to_be_theirs(agent):
    agent.forget(text="the blue door", keep_out=True)
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
        entry = said(await call(client, "memory_search", type="fact"))
    assert " · agent · today] The kettle is blue" in entry


async def test_a_masked_credential_is_not_repeated_to_the_model(agent):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    async with Client(build_server(agent)) as client:
        for key, value in (("token", token), ("password", "blue-Falcon-9")):
            answer = await call(client, "fact_upsert", entity="Deploy", key=key, value=value)
            assert value not in str(answer)
            assert "masked" in said(answer) and "[redacted:" in said(answer)


# ---- what a model sees that sees nothing else ----


async def test_a_result_is_text_alone_and_no_tool_has_an_output_schema(agent):
    async with Client(build_server(agent, "all")) as client:
        assert all(tool.output_schema is None for tool in (await client.list_tools()).tools)
        for tool, arguments in (
            ("memory_write", {"content": "Chose SQLite"}),
            ("memory_search", {"query": "SQLite"}),
            ("memory_search", {"query": "zxqv"}),
            ("memory_recall", {"query": "SQLite"}),
            ("graph_search", {"query": "Keystone"}),
        ):
            result = await call(client, tool, **arguments)
            assert result.structured_content is None
            (block,) = result.content
            assert block.type == "text" and block.text


async def test_an_entry_is_replaced_and_deleted_by_the_id_that_search_and_recall_show(agent):
    async with Client(build_server(agent, "all")) as client:
        first = said(await call(client, "memory_store", type="preference", content="Prefers tea before noon"))
        shown = re.search(r"mem-[0-9a-f]+", first)[0]
        assert len(shown) == 12
        for tool in ("memory_search", "memory_recall"):
            assert f"[preference {shown} " in said(await call(client, tool, query="tea"))
        assert shown in said(await call(client, "memory_brief", include_provenance=True))
        second = said(
            await call(client, "memory_store", type="preference", content="Prefers coffee", supersedes=shown)
        )
        assert f"It replaces {shown}." in second
        newer = re.search(r"mem-[0-9a-f]+", second)[0]
        (entry,) = agent.entries.all(["preference"])
        assert entry.supersedes.startswith(shown) and len(entry.supersedes) == 40
        assert f"Current again: {shown}." in said(await call(client, "memory_delete", id=newer))
        assert not (await call(client, "memory_reinforce", id=shown)).is_error
    assert [one.content for one in agent.entries.all(["preference"])] == ["Prefers tea before noon"]


@pytest.mark.parametrize("part", ["mem-", "mem-1", "m", "mem-0000000", ""])
async def test_less_than_eight_characters_of_an_id_name_no_entry(agent, part):
    agent.store("Prefers tea", "preference")
    async with Client(build_server(agent)) as client:
        assert (await call(client, "memory_delete", id=part)).is_error
    assert len(agent.entries.all(["preference"])) == 1


async def test_what_is_alike_is_told_with_its_id_and_words(agent, monkeypatch):
    from nanoclaw_memory.retrieval.entry_search import EntrySearch

    old = agent.store("Prefers tea before noon", "preference").id
    monkeypatch.setattr(EntrySearch, "similar", lambda self, entry_id, wanted: (old,))
    monkeypatch.setattr(agent.group.entries, "_resident", lambda: True)
    async with Client(build_server(agent)) as client:
        told = said(await call(client, "memory_store", type="preference", content="Drinks green leaves"))
    assert "delete one or store again with supersedes" in told
    assert f"{old[:12]}: Prefers tea before noon" in told


async def test_a_masked_credential_is_told_wherever_something_is_written(agent):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    async with Client(build_server(agent)) as client:
        for tool, arguments in (
            ("memory_store", {"type": "fact", "content": f"the deploy token is {token}"}),
            ("memory_write", {"content": f"the deploy token is {token}"}),
            ("fact_upsert", {"entity": "Deploy", "key": "token", "value": token}),
        ):
            assert "A credential in it was masked" in said(await call(client, tool, **arguments))


async def test_a_budget_that_holds_no_line_is_called_too_small(agent):
    agent.store("Prefers tea before noon", "preference")
    async with Client(build_server(agent)) as client:
        small = said(await call(client, "memory_recall", query="tea", token_budget=5))
        needed = int(re.search(r"token_budget 5 is too small: the first line needs (\d+)", small)[1])
        enough = said(await call(client, "memory_recall", query="tea", token_budget=needed))
        assert "Prefers tea" in enough
        nothing = said(await call(client, "memory_recall", query="zxqv", token_budget=5))
    assert nothing.startswith("Nothing was found.")


@pytest.mark.parametrize(("value", "stored"), [(3001, "3001"), (2.5, "2.5"), ("3001", "3001"), (-4, "-4")])
async def test_a_number_is_a_value(agent, value, stored):
    async with Client(build_server(agent)) as client:
        told = said(await call(client, "fact_upsert", entity="Keystone", key="port", value=value))
    assert told == f"Keystone.port = {stored}"


async def test_arguments_have_one_style_and_the_documents_spelling_is_understood(agent):
    agent.write("one")
    agent.graph.upsert("Keystone", "port", "3000")
    today = f"memory/{agent.group.today}.md"
    async with Client(build_server(agent, "all")) as client:
        for tool in (await client.list_tools()).tools:
            assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in tool.input_schema["properties"])
        ours = await call(client, "memory_get", file=today, start_line=3, end_line=3)
        theirs = await call(client, "memory_get", file=today, startLine=3, endLine=3)
        assert said(ours) == said(theirs) and "one" in said(ours)
        assert "3000" in said(await call(client, "graph_search", query="Keystone port", topK=1))
        await call(client, "memory_store", content="Ann likes tea", type="fact", tags="drinks, ann")
        assert "Ann likes tea" in said(await call(client, "memory_search", query="", tags=["ann", "drinks"]))
        twice = await call(client, "graph_search", query="Keystone", topK=1, limit=2)
        assert twice.is_error and "topK is no argument" in said(twice)


async def test_an_argument_that_may_be_left_out_costs_no_null(agent):
    async with Client(build_server(agent, "all")) as client:
        listed = (await client.list_tools()).tools
        for tool in listed:
            assert "null" not in json.dumps(tool.input_schema) and tool.description
        empty = await call(client, "memory_store", content="Tea", type="fact", tags=None, category=None)
    assert not empty.is_error  # a model that sends null all the same is understood


async def test_the_history_of_a_thing_has_its_earlier_values_and_its_relations_both_ways(agent, clock):
    agent.graph.upsert("Keystone", "port", "3000")
    clock.moment += timedelta(days=3)
    agent.graph.upsert("Keystone", "port", "4000")
    agent.graph.relate("Mara", "manages", "Keystone")
    agent.graph.relate("Keystone", "depends on", "PostgreSQL")
    async with Client(build_server(agent)) as client:
        told = said(await call(client, "graph_history", entity="keystone"))
        port = said(await call(client, "graph_history", entity="Keystone", key="port"))
        nothing = said(await call(client, "graph_history", entity="Zorglub"))
    for line in (
        "2026-02-23 to 2026-02-26: Keystone.port = 3000",
        "2026-02-26 to now: Keystone.port = 4000",
        "2026-02-26 to now: Mara → manages → Keystone",
        "2026-02-26 to now: Keystone → depends on → PostgreSQL",
    ):
        assert f"{line} [" in told
    assert "4000" in port and "Mara" not in port
    assert told.startswith(OPENING) and nothing == "Nothing is known about that."


async def test_resources_say_what_they_are(agent):
    async with Client(build_server(agent)) as client:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
    for one in (*resources, *templates):
        assert one.description and "partial(" not in one.description
    assert len({one.description for one in (*resources, *templates)}) == len(resources) + len(templates)


async def test_a_tool_that_says_it_only_reads_changes_nothing_that_is_known(agent, home):
    agent.store("Prefers tea before noon", "preference")
    agent.write("Chose SQLite", "decision")
    agent.graph.upsert("Keystone", "port", "3000")
    agent.search("tea")
    asked = {
        "query": "tea Keystone",
        "file": "MEMORY.md",
        "entity": "Keystone",
        "message": "tea?",
        "action": "tea",
    }

    def known():
        pages = {path: path.read_bytes() for path in (home / "workspace").rglob("*.md")}
        rows = [list(agent.group.database(name).query(f"SELECT * FROM {table}")) for name, table in TABLES]
        return pages, rows

    before = known()
    async with Client(build_server(agent, "all")) as client:
        reading = [tool for tool in (await client.list_tools()).tools if tool.annotations.read_only_hint]
        for tool in reading:
            given = {name: asked[name] for name in tool.input_schema.get("required", ())}
            if tool.name == "memory_graph_query":
                given = {"query": "MATCH (a) RETURN a"}
            assert not (await call(client, tool.name, **given)).is_error
    assert {tool.name for tool in reading} >= {"memory_search", "memory_get", "memory_brief", "graph_history"}
    assert known() == before


TABLES = [("entries", "entries"), ("facts", "facts"), ("facts", "relations"), ("continuity", "exchanges")]


async def test_why_a_result_may_be_incomplete_is_not_repeated_in_every_result(agent):
    agent.write("The harbour crane is red.")
    async with Client(build_server(agent)) as client:
        results = [said(await call(client, "memory_search", query="harbour crane")) for _ in range(3)]
    assert ["degraded: " in text for text in results] == [True, False, False]
    assert all("crane is red" in text for text in results)


async def test_a_hit_of_an_archived_conversation_is_read_by_the_name_that_it_shows(agent):
    page = agent.group.home.workspace("main") / "conversations" / "2026-02-20-kiln.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(
        "# Kiln\n\n**User**: How hot was the celadon firing?\n\n**Agent**: It was fired at 1,240 degrees.\n"
    )
    async with Client(build_server(agent)) as client:
        found = said(await call(client, "memory_search", query="celadon firing degrees"))
        name, line = re.search(r"\[(2026-02-20-kiln\.md):(\d+)", found).groups()
        read = said(await call(client, "memory_get", file=name, start_line=int(line), end_line=int(line)))
    assert "celadon" in read or "1,240" in read


async def test_a_hit_costs_70_tokens_and_the_best_one_is_whole(agent):
    texts = [
        f"Harbour note {number}: the crane on pier {number} was repaired by Mara's team after the storm, and the "
        "invoice went to the insurance, which has not answered yet; the next inspection is due in spring, and the "
        "pier stays closed to trucks until then, whatever the harbour master says about it on the telephone."
        for number in range(20)
    ]
    for number, text in enumerate(texts):
        agent.write(text) if number % 2 else agent.store(text, "fact")
    agent.after_turn("The harbour crane is red. " * 7, "Noted. " + "The harbour crane is red. " * 7)
    async with Client(build_server(agent)) as client:
        for limit in (1, 2, 5, 20):
            lines = said(
                await call(client, "memory_search", query="harbour crane invoice", limit=limit)
            ).split("\n")
            hits = [line for line in lines if line.startswith("- [")]
            assert len(hits) == limit
            assert tokens.count("\n".join(hits)) <= 70 * limit
            assert all(tokens.count(line) <= 160 for line in hits)
            assert limit < 5 or "…" not in hits[0]


async def test_marks_leave_room_for_the_texts(agent):
    agent.store("The dev server of Kassenbuch runs on port 8085.", "fact")
    agent.after_turn(
        "The dev server of Kassenbuch clashes with the proxy, it runs on port 8190 from today.", "Noted."
    )
    agent.after_turn("The dev server of Kassenbuch is on port 8300 now, forget the port before.", "Noted.")
    async with Client(build_server(agent)) as client:
        found = said(await call(client, "memory_search", query="dev server Kassenbuch port"))
    assert all(port in found for port in ("8085", "8190", "8300"))


@pytest.mark.parametrize(
    "text", ["word " * 400, "x" * 1500, "日本語のとても長い文章です。" * 100, "a. " * 500]
)
async def test_no_text_is_too_long_to_be_cut(agent, text):
    agent.store(f"Banana: {text}"[:1900], "fact")
    async with Client(build_server(agent)) as client:
        told = said(await call(client, "memory_search", query="banana"))
    assert "mem-" in told and "…" in told
    assert tokens.count(told.split("\n")[1]) <= 160
