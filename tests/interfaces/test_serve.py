"""The server as a process: starts once, stops cleanly, and leaves nothing behind however it ends."""

from __future__ import annotations

import json
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving import context, prompt, serving, through_shim

from nanoclaw_memory.interfaces.http import background
from nanoclaw_memory.interfaces.mcp.texts import CORE, MORE
from nanoclaw_memory.interfaces.shim import socket_path
from nanoclaw_memory.types import Scope

API = "/api/v1"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("serve") / "home") as found:
        with found.client() as client:
            for group in ("work", "family"):
                client.post(f"{API}/init", params={"group": group}).raise_for_status()
        yield found


def eventually(true, seconds=30.0):
    """Wait for another process to do something."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_second_start_says_who_serves_and_leaves_the_first_alone(served):
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(served.home), "serve", "--port", "0"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert f"process {served.process.pid}" in second.stderr
    assert f"kill {served.process.pid}" in second.stderr
    with served.client() as client:
        assert client.get(f"{API}/status").status_code == 200
    answer = through_shim(served.home, "hook", "session-start", stdin='{"source": "startup"}')
    assert "# Soul" in context(answer)


def test_a_signal_ends_it_cleanly_and_nothing_is_left(home):
    with serving(home) as served:
        assert served.stop(signal.SIGINT) == 0
        assert not (home / "ncm.sock").exists()
        assert (home / "serve.lock").read_text() == ""
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(served.url + "/healthz")
    command = ["pgrep", "-f", "--", f"--home {home} "]
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""


def test_a_home_with_a_very_long_path_is_served_too_and_without_http_no_token_is_made(tmp_path):
    home = tmp_path / ("long-" * 20) / "home"
    home.parent.mkdir(parents=True)
    with serving(home, "--no-http") as served:
        path = Path(served.place["socket"])
        assert len(str(path)) < 100
        assert str(path) == socket_path(str(home))
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert served.place["url"] == ""
        assert not (home / "token").exists()
        answer = through_shim(home, "hook", "session-start", stdin="{}")
        assert "# Soul" in context(answer)
    assert not path.exists()


def test_a_request_that_is_being_answered_when_the_signal_comes_is_answered(home):
    with serving(home) as served:
        answers = []

        def ask(number):
            with served.client(**{"X-NanoClaw-Session": f"s{number}"}) as client:
                answers.append(client.post(f"{API}/turns/before", json={"message": f"Hello {number}"}))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        eventually(lambda: answers)  # some are answered, some are under way
        assert served.stop() == 0
        for thread in threads:
            thread.join()
    # Each that got in was answered whole; one that came too late was refused a connection, not cut off.
    assert answers
    assert all(answer.status_code == 200 for answer in answers)


def test_mcp_calls_that_the_server_has_received_are_answered_before_it_stops(home):
    def message(method, number=None, **fields):
        known = {} if number is None else {"id": number}
        return json.dumps({"jsonrpc": "2.0", "method": method, **known, **fields}) + "\n"

    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    sent = message("initialize", 0, params=about) + message("notifications/initialized")
    for number in range(1, 21):
        call = {"name": "memory_write", "arguments": {"content": f"line {number}"}}
        sent += message("tools/call", number, params=call)
    with serving(home, "--no-http", "--no-upkeep") as served, socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(served.place["socket"])
        client.sendall(b"mcp\0core\0main\0s1\0\0\n" + sent.encode())
        answers = client.makefile("rb")
        numbers = {json.loads(answers.readline())["id"], json.loads(answers.readline())["id"]}
        served.process.send_signal(signal.SIGTERM)
        numbers |= {json.loads(line)["id"] for line in answers}
        assert numbers == set(range(21))
        assert served.process.wait(30) == 0


def test_after_kill_9_hooks_work_without_it_and_it_starts_again(home):
    with serving(home) as served:
        with served.client() as client:
            fact = {"entity": "Keystone", "key": "port", "value": "3000", "category": "project"}
            client.post(f"{API}/graph/facts", json=fact).raise_for_status()
        asked = [prompt("What port does Keystone run on?", f"s{number}") for number in range(3)]
        warm = through_shim(home, "hook", "user-prompt-submit", stdin=asked[0])
        served.stop(signal.SIGKILL)
        assert (home / "ncm.sock").exists()  # what it could not clean up
        cold = through_shim(home, "hook", "user-prompt-submit", stdin=asked[1])
        assert "Keystone.port = 3000" in context(warm)
        assert "Keystone.port = 3000" in context(cold)
    with serving(home) as again:
        with again.client() as client:
            assert client.get(f"{API}/status").status_code == 200
        assert "3000" in context(through_shim(home, "hook", "user-prompt-submit", stdin=asked[2]))


def test_a_taken_port_is_named_and_nothing_stays_behind(home, ncm_process):
    ncm_process("init")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = ncm_process("serve", "--port", str(taken.getsockname()[1]))
    assert refused.code == 1
    assert str(taken) and "port" in refused.err
    assert not (home / "ncm.sock").exists()


def test_without_a_home_it_does_not_start(tmp_path, ncm_process):
    refused = ncm_process("--home", str(tmp_path / "nowhere"), "serve")
    assert refused.code == 2
    assert "init" in refused.err
    assert not (tmp_path / "nowhere").exists()


def test_a_token_that_others_may_read_is_refused(home, ncm_process):
    ncm_process("init")
    (home / "token").write_text("x" * 43)
    (home / "token").chmod(0o644)
    refused = ncm_process("serve", "--port", "0")
    assert refused.code == 1
    assert "token" in refused.err


def test_hooks_start_no_server_where_no_client_was_installed(home, ncm_process):
    ncm_process("init")
    through_shim(home, "hook", "session-start", stdin="{}")
    assert not (home / "serve.lock").exists()
    assert not (home / "ncm.sock").exists()


def test_what_is_said_is_archived_by_the_server_itself(served):
    through_shim(served.home, "hook", "user-prompt-submit", stdin=prompt("Shall we keep the REST routes?"))
    stop = {"session_id": "s1", "hook_event_name": "Stop", "last_assistant_message": "Six months more."}
    through_shim(served.home, "hook", "stop", stdin=json.dumps(stop))
    with served.client() as client:
        eventually(lambda: "Six months more" in client.get(f"{API}/sessions/s1").text)
        (exchange,) = client.get(f"{API}/sessions/s1").json()["items"]
    assert exchange["user_message"] == "Shall we keep the REST routes?"
    assert exchange["agent_response"] == "Six months more."


def test_a_correction_that_no_rule_knows_is_learnt_by_the_server_itself(served):
    said = (
        ("Add logging to the exporter", "I added print statements to exporter.py."),
        ("Not print, use structlog like everywhere else in this repo.", "Changed to structlog."),
    )
    for asked, answered in said:
        through_shim(served.home, "hook", "user-prompt-submit", stdin=prompt(asked))
        stop = {"session_id": "s1", "hook_event_name": "Stop", "last_assistant_message": answered}
        through_shim(served.home, "hook", "stop", stdin=json.dumps(stop))
    with served.client() as client:
        eventually(lambda: "judge: correction" in client.get(f"{API}/lessons").text)


def test_a_changed_file_is_found_without_anybody_indexing(home, ncm_process):
    ncm_process("init")
    watching = subprocess.Popen(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "--json", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout is not None
        place = json.loads(watching.stdout.readline())
        (home / "workspace" / "memory" / "project-quince.md").write_text("# Quince\n\nThe quince is ripe.\n")
        database = home / "data" / "index.db"
        token = (home / "token").read_text().strip()

        def found():
            answer = httpx2.get(
                f"{place['url']}{API}/search",
                params={"query": "ripe quince", "fast": "true"},
                headers={"Authorization": f"Bearer {token}"},
                timeout=30,
            )
            return "project-quince" in answer.text and not any(
                "stale" in note for note in answer.json()["degraded"]
            )

        eventually(lambda: database.exists() and found())
    finally:
        watching.terminate()
        assert watching.wait(30) == 0
        if watching.stdout:
            watching.stdout.close()


def test_changed_settings_reach_a_running_server(served):
    with served.client() as client:
        assert client.get(f"{API}/config/memory.chunkSize").json()["value"] != 321
        client.put(f"{API}/config/memory.chunkSize", json={"value": "321"}).raise_for_status()
        assert client.get(f"{API}/config/memory.chunkSize").json()["value"] == 321


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_over_http_in_both_generations(served, mode):
    headers = {"Authorization": f"Bearer {served.token}"}
    url = f"{served.url}/mcp?tools=all"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        stored = await client.call_tool(
            "memory_store", {"type": "fact", "content": f"The kettle is blue, {mode}"}
        )
        assert not stored.is_error
        found = await client.call_tool("memory_search", {"query": "kettle", "type": "fact"})
        assert " · agent · today]" in found.content[0].text
        assert len((await client.list_tools()).tools) == len({*CORE, *MORE})
        refused = await client.call_tool("memory_get", {"file": "../../etc/passwd"})
        assert refused.is_error
        assert (await client.read_resource("memory://soul")).contents[0].text.startswith("# Soul")


@pytest.mark.anyio
async def test_an_mcp_client_sees_the_group_it_names_and_no_other(served):
    async def ask(headers, tool, arguments, query=""):
        told = {"Authorization": f"Bearer {served.token}", **headers}
        async with (
            httpx2.AsyncClient(headers=told, timeout=60) as http,
            Client(streamable_http_client(f"{served.url}/mcp{query}", http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    work, family = {"X-NanoClaw-Group": "work"}, {"X-NanoClaw-Group": "family"}
    await ask(work, "memory_store", {"type": "fact", "content": "The vault opens with plum blossom"})
    seen = await ask(work, "memory_search", {"query": "vault"})
    assert "plum" in seen.content[0].text
    for hidden in (
        await ask(family, "memory_search", {"query": "vault plum"}),
        await ask({}, "memory_search", {"query": "vault plum"}),
        await ask(family, "memory_get", {"file": "../../work/workspace/MEMORY.md"}),
        await ask({}, "memory_search", {"query": "vault plum"}, "?group=family"),
        await ask({"X-NanoClaw-Group": "../groups/work"}, "memory_search", {"query": "vault"}),
    ):
        assert hidden.structured_content is None
        assert "blossom" not in hidden.content[0].text


def test_many_idle_connections_do_not_keep_others_out(served):
    host, port = "127.0.0.1", int(served.url.rpartition(":")[2])
    idle = [socket.create_connection((host, port)) for _ in range(1000)]
    half = []
    for _ in range(100):
        visitor = socket.socket(socket.AF_UNIX)
        visitor.connect(served.place["socket"])
        half.append(visitor)
    try:
        assert "# Soul" in context(through_shim(served.home, "hook", "session-start", stdin="{}"))
        with served.client() as client:
            assert client.get(f"{API}/status").status_code == 200
    finally:
        for visitor in (*idle, *half):
            visitor.close()


def test_a_bug_in_one_round_of_background_work_does_not_end_the_next(monkeypatch):
    rounds = queue.SimpleQueue()

    class BrokenPool:
        def warm(self):
            raise OverflowError("a bug")

        def open(self, scope):
            rounds.put(scope)
            raise OverflowError("a bug")

    monkeypatch.setattr(background, "INTERVAL_SECONDS", 0.01)
    work = background.BackgroundWork(BrokenPool(), watch=False, upkeep=True)
    work.start()
    assert [rounds.get(timeout=30) for _ in range(2)] == [Scope(), Scope()]
    work.stop()
    work.join(30)


MISTAKES = [
    '{"memory": {"boot": "both"},}',
    '{"memory": {"boots": "both"}}',
    '{"memory": {"chunkSize": "big"}}',
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_settings_is_named_while_the_server_goes_on_with_the_valid_ones(tmp_path, mistake):
    home = tmp_path / "home"
    with serving(home, "--no-http", "--no-upkeep"):
        through_shim(home, "graph", "add", "Keystone", "port", "3000", "--category", "project")
        through_shim(home, "hook", "session-start", stdin='{"source": "startup", "session_id": "s0"}')
        valid = (home / "nanoclaw.json").read_text()
        (home / "nanoclaw.json").write_text(mistake)
        for source in ("startup", "resume"):
            started = {"source": source, "session_id": f"s-{source}"}
            told = json.loads(through_shim(home, "hook", "session-start", stdin=json.dumps(started)))
            assert told["systemMessage"].startswith(
                "memory goes on with its settings from before this mistake: "
            )
            assert "nanoclaw.json" in told["systemMessage"] or "chunkSize" in told["systemMessage"]
        asked = through_shim(home, "hook", "user-prompt-submit", stdin=prompt("What port does Keystone use?"))
        assert "Keystone.port = 3000" in context(asked)
        (home / "nanoclaw.json").write_text(valid)
        repaired = '{"source": "startup", "session_id": "s2"}'
        assert "systemMessage" not in through_shim(home, "hook", "session-start", stdin=repaired)


def test_a_session_in_a_project_names_the_mistake_in_the_projects_settings(tmp_path, monkeypatch):
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    (project / "nanoclaw.json").write_text('{"memory": {"boots": "both"}}')
    with serving(home, "--no-http", "--no-upkeep"):
        monkeypatch.chdir(project)
        told = through_shim(home, "hook", "session-start", stdin='{"source": "startup"}')
        assert "memory does not work: " in json.loads(told)["systemMessage"]
