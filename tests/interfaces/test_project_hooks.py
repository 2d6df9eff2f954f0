"""Hooks in two repositories: the payload's `cwd` tells them apart, and `ncm off` silences one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from serving import start

from nanoclaw_memory.interfaces import shim


@pytest.fixture
def repositories(tmp_path: Path) -> tuple[str, str]:
    for name in ("keystone", "orchard"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "src").mkdir()
    return str(tmp_path / "keystone"), str(tmp_path / "orchard")


@pytest.fixture
def hook(ncm):
    ncm("init")

    def call(name, cwd, session, **fields):
        payload = {"session_id": session, "cwd": cwd, "hook_event_name": name, **fields}
        ran = ncm("hook", name, stdin=json.dumps(payload))
        assert (ran.code, ran.err) == (0, "")
        answer = json.loads(ran.out) if ran.out else {}
        return answer.get("hookSpecificOutput", {}).get("additionalContext", "")

    return call


def talk(hook, cwd, session, question, answer):
    hook("UserPromptSubmit", cwd, session, prompt=question)
    hook("Stop", cwd, session, last_assistant_message=answer)
    hook("SessionEnd", cwd, session, reason="other")


def test_each_repository_gets_its_own_last_session_focus_and_page(hook, home, repositories):
    keystone, orchard = repositories
    (home / "workspace" / "memory" / "project-orchard.md").write_text(
        "# Orchard\n\nPears are sorted by weight.\n"
    )
    talk(hook, f"{keystone}/src", "k1", "The ledger import fails", "I reproduce the ledger import first.")
    talk(hook, orchard, "o1", "We decided to rename the pear catalogue", "Noted.")
    started = hook("SessionStart", keystone, "k2", source="startup")
    assert "ledger import" in started and "pear" not in started.lower()
    started = hook("SessionStart", f"{orchard}/src", "o2", source="startup")
    assert "pear catalogue" in started and "sorted by weight" in started and "ledger" not in started
    prompt = hook("UserPromptSubmit", keystone, "k3", prompt="Do you remember how the pear catalogue went?")
    assert "in project orchard" in prompt


def test_off_silences_a_repository_and_captures_nothing_there(hook, ncm, home, repositories):
    keystone, orchard = repositories
    talk(hook, keystone, "k1", "The ledger import fails", "I reproduce the ledger import first.")
    before = sorted(path.name for path in Path(keystone).rglob("*"))
    switched = ncm("off", keystone, "--json").json
    assert (switched["project"], switched["off"]) == ("keystone", True)
    for name in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"):
        assert (
            hook(name, f"{keystone}/src", "k2", prompt="The zebra plan", last_assistant_message="Zebra.")
            == ""
        )
    assert "# Soul" in hook("SessionStart", orchard, "o1", source="startup")
    status = ncm("status")
    assert f"off       {keystone}" in status.out
    assert sorted(path.name for path in Path(keystone).rglob("*")) == before
    assert ncm("on", keystone, "--json").json["off"] is False
    assert "ledger import" in hook("SessionStart", keystone, "k3", source="startup")
    assert "zebra" not in ncm("search", "zebra plan", "--fast").out.lower()
    assert (
        "zebra" not in "".join(path.read_text() for path in (home / "data" / "spool").glob("*.jsonl")).lower()
    )


def test_an_agent_in_a_repository_that_is_off_is_offered_no_tools(ncm, home, repositories):
    keystone, orchard = repositories
    ncm("init")
    ncm("off", keystone)
    assert tools_of(home, keystone) == []
    assert "memory_search" in tools_of(home, orchard)


def tools_of(home, folder):
    """The tools that an MCP client started in a folder is offered."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "mcp"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(number, method, **params):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())["result"]

        ask(1, "initialize", **hello)
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        tools = ask(2, "tools/list")["tools"]
        process.stdin.close()
        process.wait(30)
    return [tool["name"] for tool in tools]


@pytest.mark.parametrize("command", ["off", "on"])
def test_what_is_no_project_cannot_be_switched(ncm, command):
    ncm("init")
    ran = ncm(command, str(Path.home()))
    assert ran.code == 2 and "is no project" in ran.err


@pytest.mark.parametrize(
    "cwd",
    ["/no/such/place", "/a\0b", "\ud800", "x" * 100_000, "/" + "y" * 100_000, 7, None, ["/x"], "\x07\n"],
)
def test_no_working_directory_harms_a_hook(hook, cwd):
    assert "# Soul" in hook("SessionStart", cwd, "s1", source="startup")
    hook("UserPromptSubmit", cwd, "s1", prompt="Which port does Keystone use?")
    hook("Stop", cwd, "s1", last_assistant_message="3055.")
    hook("UserPromptSubmit", cwd, "s2", prompt="And the host?")


def test_cursor_names_its_window_by_its_roots(hook, ncm, repositories):
    keystone, _ = repositories
    for name, text in (("beforeSubmitPrompt", "prompt"), ("afterAgentResponse", "text")):
        hook(
            name,
            None,
            "c1",
            workspace_roots=[keystone],
            cursor_version="2",
            **{text: "ledger import of 40 rows"},
        )
    assert ncm("search", "ledger import", "--fast", "--json").json["hits"][0]["project"] == "keystone"


def test_commands_take_the_project_from_directory_option_and_environment(ncm, repositories, monkeypatch):
    keystone, _ = repositories
    ncm("init")
    monkeypatch.chdir(f"{keystone}/src")
    ncm("write", "Chose SQLite", "--tag", "decision")
    ncm("write", "Chose pears", "--project", "orchard")
    monkeypatch.setenv("NANOCLAW_PROJECT", "harbor")
    ncm("write", "Chose ropes")
    ncm("--set", "projects.enabled=false", "write", "Chose nothing")
    assert [line["project"] for line in ncm("log", "--json").json["lines"]] == [
        "keystone",
        "orchard",
        "harbor",
        "",
    ]
    refused = ncm("write", "x", "--project", "No Slug")
    assert refused.code == 2 and "slug" in refused.err
    shown = ncm("search", "chose SQLite", "--fast").out
    assert "[project keystone]" in shown


def test_a_server_tells_the_repositories_apart_too(home, repositories, monkeypatch):
    keystone, orchard = repositories
    served = start(home, "--no-upkeep")
    try:

        def ask(event, cwd, session, **fields):
            request = shim.Request()
            request.home, request.kind, request.argument = str(home), "hook", event
            connection = shim.connect(request)
            assert connection is not None
            payload = {"session_id": session, "cwd": cwd, **fields}
            answer = shim.ask(connection, request, json.dumps(payload).encode())
            assert answer is not None
            return answer.decode()

        monkeypatch.delenv("NANOCLAW_HOME")
        for cwd, session, said in ((keystone, "k1", "ledger import"), (orchard, "o1", "pear catalogue")):
            ask("UserPromptSubmit", cwd, session, prompt=f"We are still working on the {said}")
            ask("Stop", cwd, session, last_assistant_message=f"The {said} is done.")
            ask("SessionEnd", cwd, session)
        started = ask("SessionStart", keystone, "k2", source="startup")
        assert "ledger import" in started and "pear" not in started
    finally:
        assert served.stop() in (0, -15)


def test_a_group_chat_is_reminded_of_its_own_words_by_hooks_and_of_nothing_private(ncm, home):
    ncm("init")

    def ask(*options, **fields):
        ran = ncm(*options, "hook", fields.pop("event"), stdin=json.dumps({"cwd": "/", **fields}))
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    for options, session, said in (
        (("--shared",), "chat", "Bert feeds the parrot on weekdays."),
        ((), "own", "The parrot's spare key is under the walnut tree."),
    ):
        ask(*options, event="UserPromptSubmit", session_id=session, prompt="What about the parrot?")
        ask(*options, event="Stop", session_id=session, last_assistant_message=said)
    ncm("--shared", "write", "The parrot's vet is Dr. Holm")
    question = "Do you remember what we said about the parrot, who feeds it and where the spare key is?"
    shown = ask("--shared", event="UserPromptSubmit", session_id="chat-2", prompt=question)
    assert "Bert feeds the parrot" in shown and "walnut" not in shown
    started = ask("--shared", event="SessionStart", session_id="chat-3", source="startup")
    assert "Dr. Holm" in started and "Bert feeds the parrot" in started and "walnut" not in started
    assert "walnut" in ask(event="UserPromptSubmit", session_id="own-2", prompt=question)
