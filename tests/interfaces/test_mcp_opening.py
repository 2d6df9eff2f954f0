"""How an MCP conversation over standard input begins: answered before anything is imported, and as the server would."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nanoclaw_memory.interfaces.mcp.opening import LISTING
from nanoclaw_memory.interfaces.mcp.texts import CORE

ROOT = Path(__file__).parents[2]
LISTED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
VERSIONS = json.loads(LISTING.read_text())["versions"]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


def initialize(version="2025-06-18"):
    return {"method": "initialize", "params": {"protocolVersion": version, **CLIENT}}


class Process:
    """`ncm mcp` as a client starts it."""

    def __init__(self, home: Path, *words: str) -> None:
        command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "mcp", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, call, id=None):
        self.send({"id": id or call["method"], **call})
        return json.loads(self.process.stdout.readline())

    def send(self, *messages):
        self.process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages))
        self.process.stdin.flush()

    def has_loaded(self, library: str) -> bool:
        return library in Path(f"/proc/{self.process.pid}/maps").read_text()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(60) == 0 or problem[0]


@pytest.fixture
def client(home, ncm):
    ncm("init")
    with Process(home) as process:
        yield process


def answers_of(calls):
    """What the server itself answers."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = asyncio.run(module.mcp_answers(calls))
    tools = found["tools/list"]["tools"]
    found["tools/list"]["tools"] = [tool for tool in tools if tool["name"] in CORE]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_answers_are_those_of_the_server_in_every_version_with_sessions(client, version):
    calls = [initialize(version), *({"method": name} for name in LISTED)]
    expected = answers_of(calls)
    for call in calls:
        answer = client.ask(call)
        assert answer == {"jsonrpc": "2.0", "id": call["method"], "result": expected[call["method"]]}
        client.send({"method": "notifications/initialized"}) if call is calls[0] else None


def test_the_first_answers_are_those_of_the_server_without_sessions(client):
    calls = [{"method": name, "params": {"_meta": META}} for name in ("server/discover", *LISTED)]
    expected = answers_of(calls)
    for call in calls:
        assert client.ask(call)["result"] == expected[call["method"]]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("opened", ["session", "stateless"])
def test_nothing_is_imported_before_the_first_answers(client, opened):
    more = {} if opened == "session" else {"params": {"_meta": META}}
    client.ask(initialize() if opened == "session" else {"method": "server/discover", **more})
    for name in LISTED:
        client.ask({"method": name, **more})
    assert not client.has_loaded("pydantic_core")
    meta = more.get("params", {})
    called = client.ask(
        {"method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": "x"}, **meta}}
    )
    assert called["result"]["content"][0]["text"].startswith("Nothing was found.")
    assert client.has_loaded("pydantic_core")
    assert [tool["name"] for tool in client.ask({"method": "tools/list", **more}, id=9)["result"]["tools"]]


def test_calls_that_do_not_wait_are_answered_once_each(home, ncm):
    ncm("init")
    calls = [
        {"id": 1, **initialize()},
        {"method": "notifications/initialized"},
        {
            "id": 2,
            "method": "tools/call",
            "params": {"name": "memory_write", "arguments": {"content": "Tea"}},
        },
        {"id": 3, "method": "tools/list"},
        {"id": 4, "method": "ping"},
        {
            "id": "five",
            "method": "tools/call",
            "params": {"name": "memory_search", "arguments": {"query": "Tea"}},
        },
    ]
    text = "\n".join(json.dumps({"jsonrpc": "2.0", **call}) for call in calls)  # the last line has no end
    done = subprocess.run(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "mcp"],
        input=text, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(str(answer["id"]) for answer in found) == ["1", "2", "3", "4", "five"]
    assert all("result" in answer for answer in found)


def test_a_clients_mistake_leaves_no_trace_in_the_log(home, ncm):
    ncm("init")
    calls = [
        {"id": 1, **initialize()},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "prompts/get", "params": {"name": "remember", "arguments": {}}},
        {"id": 3, "method": "prompts/get", "params": {"name": "nope"}},
        {"id": 4, "method": "resources/read", "params": {"uri": "memory://log/nope"}},
        {"id": 5, "method": "tools/call", "params": {"name": "memory_get", "arguments": {"x": 1}}},
        {"id": 6, "method": "tools/call", "params": {"arguments": []}},
        {"id": 7, "method": "nope"},
    ]
    text = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls)
    done = subprocess.run(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "mcp"],
        input=text, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and ".py" not in done.stderr
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert answers[2]["error"] == {"code": -32602, "message": "Missing required arguments: {'what'}"}
    assert answers[3]["error"]["code"] == -32602


AWKWARD = [
    {"id": None, "method": "tools/list"},
    {"id": 1, "method": "tools/list", "params": {"cursor": "x"}},
    {"id": 1, "method": "tools/list", "params": [1]},
    {
        "id": 1,
        "method": "tools/list",
        "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}},
    },
    {"id": 1, "method": ["tools/list"]},
    {"id": 1, **initialize("1999-01-01")},
    {"id": 1, "method": "tools/list"},  # before initialize
]


@pytest.mark.parametrize("message", AWKWARD, ids=lambda value: json.dumps(value)[:60])
def test_what_is_not_a_plain_question_is_left_to_the_server(message):
    from nanoclaw_memory.interfaces.mcp.opening import Opening

    opening = object.__new__(Opening)
    opening._listing, opening._tools, opening._in_session = json.loads(LISTING.read_text()), CORE, False
    opening.answered = set()
    assert opening._answer(message) is None


def test_an_unknown_version_is_answered_by_the_server_with_one_that_it_knows(client):
    assert client.ask(initialize("1999-01-01"))["result"]["protocolVersion"] in VERSIONS
    client.send({"method": "notifications/initialized"})
    assert len(client.ask({"method": "tools/list"})["result"]["tools"]) == len(CORE)


def test_where_memory_is_switched_off_no_tool_is_listed(home, ncm):
    ncm("init")
    assert ncm("off", "--everywhere").code == 0
    with Process(home) as process:
        assert "switched off" in process.ask(initialize())["result"]["instructions"]


def test_a_project_that_the_environment_names_is_called_as_hooks_call_it(home, ncm, monkeypatch):
    ncm("init")
    monkeypatch.setenv("NANOCLAW_PROJECT", "Payment API")
    call = {"method": "tools/call", "params": {"name": "memory_write", "arguments": {"content": "It ships"}}}
    with Process(home) as process:
        process.ask(initialize())
        assert not process.ask(call)["result"]["isError"]
    (log,) = (home / "workspace/memory").glob("????-??-??.md")
    assert "@payment-api" in log.read_text()


def test_fewer_tools_are_listed_by_name(home, ncm):
    ncm("init")
    with Process(home, "--tools", "memory_store,memory_search") as process:
        process.ask(initialize())
        tools = process.ask({"method": "tools/list"})["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["memory_search", "memory_store"]


def test_the_listing_is_what_the_server_says():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert LISTING.read_text(encoding="utf-8") == module.mcp_listing(), "run: make docs"
