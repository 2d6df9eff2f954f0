"""Tokens of agents at a real server: what they are bound to, what they are refused, and that they end at once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving import serving

from nanoclaw_memory.interfaces.http.operations import AGENT_OPERATIONS, OPERATIONS

API = "/api/v1"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("tokens") / "home", "--no-upkeep") as found:
        for group in ("work", "family"):
            ncm(found.home, "init", "--group", group)
        yield found


def ncm(home, *arguments, code=0):
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)


def new(served, *options):
    return ncm(served.home, "token", "new", *options)


def agent(served, token, **headers):
    return served.client(**{"Authorization": f"Bearer {token}", **headers})


@pytest.fixture(scope="module")
def family(served):
    """The token of a group chat's agent."""
    return new(served, "--group", "family", "--shared", "--name", "family-bot")["token"]


@pytest.fixture(scope="module")
def work(served):
    """The token of an agent at work, in private."""
    return new(served, "--group", "work")["token"]


def test_a_token_is_for_its_group_and_writes_as_an_agent(served, work):
    with agent(served, work) as api, served.client() as owner:
        stored = api.post(f"{API}/entries", json={"content": "The kettle is blue", "type": "fact"}).json()
        entry = api.get(f"{API}/entries/{stored['id']}").json()["entry"]
        assert entry["provenance"]["origin"] == "agent"
        assert owner.get(f"{API}/entries/{stored['id']}").status_code == 404
        assert owner.get(f"{API}/entries/{stored['id']}", params={"group": "work"}).status_code == 200
        assert api.get(f"{API}/log", params={"group": "work"}).status_code == 200


def test_a_token_does_not_reach_another_group(served, work):
    with agent(served, work) as api:
        for group in ("main", "family", "nosuch"):
            refused = api.get(f"{API}/log", params={"group": group})
            assert refused.status_code == 403
            assert "bound to another group" in refused.json()["error"]["message"]
    with agent(served, work, **{"X-NanoClaw-Group": "family"}) as api:
        assert api.get(f"{API}/search", params={"query": "x"}).status_code == 403


def test_a_shared_token_does_not_reach_what_is_private(served, family):
    with served.client(**{"X-NanoClaw-Group": "family"}) as owner:
        owner.post(f"{API}/log", json={"content": "a private thought about quinces"}).raise_for_status()
    with agent(served, family) as api:
        assert api.get(f"{API}/search", params={"query": "x", "shared": "false"}).status_code == 403
        assert "quinces" not in api.get(f"{API}/log").text  # a shared chat reads its own log
        assert "quinces" not in api.get(f"{API}/search", params={"query": "quinces"}).text
    with agent(served, family, **{"X-NanoClaw-Shared": "false"}) as api:
        assert api.get(f"{API}/search", params={"query": "quinces"}).status_code == 403


def test_a_private_token_may_ask_for_less(served, work):
    with agent(served, work) as api:
        api.post(f"{API}/log", json={"content": "a private thought about medlars"}).raise_for_status()
        assert "medlars" in api.get(f"{API}/log").text
        assert "medlars" not in api.get(f"{API}/log", params={"shared": "true"}).text


@pytest.mark.parametrize("endpoint", OPERATIONS, ids=lambda one: one.name)
def test_what_is_the_owners_is_refused(served, work, endpoint):
    path = API + endpoint.path.format(id="1", key="memory.chunkSize", name="x", slug="x")
    with agent(served, work) as api:
        answer = api.request(endpoint.method, path, json={"no": "such"})
    bought = endpoint.name in AGENT_OPERATIONS
    assert (answer.status_code != 403) == bought
    if not bought:
        assert f"{endpoint.method} {path}" in answer.json()["error"]["message"]


def test_settings_forgetting_review_and_approval_are_the_owners():
    owners = {
        "config_set",
        "config_get",
        "forget",
        "forget_allow",
        "review",
        "review_decide",
        "approve",
        "reject",
    }
    assert owners.isdisjoint(AGENT_OPERATIONS)
    assert {one.name for one in OPERATIONS} >= AGENT_OPERATIONS | owners


def test_a_token_works_at_once_and_ends_at_once(served):
    made = new(served, "--group", "work", "--origin", "web", "--name", "crawler")
    with agent(served, made["token"]) as api:
        stored = api.post(
            f"{API}/entries", json={"content": "Web pages say tea is good", "type": "fact"}
        ).json()
        entry = api.get(f"{API}/entries/{stored['id']}").json()["entry"]
        assert entry["provenance"]["origin"] == "web"
        assert ncm(served.home, "token", "revoke", made["id"]) == {
            "ok": True,
            "id": made["id"],
            "revoked": True,
        }
        assert api.get(f"{API}/log").status_code == 401
    assert ncm(served.home, "token", "revoke", made["id"], code=2)["error"]["type"] == "NotFound"


def test_tokens_are_listed_with_what_they_are_bound_to_and_kept_as_hashes(served, family):
    shown = next(one for one in ncm(served.home, "token", "list")["tokens"] if one["name"] == "family-bot")
    assert shown.items() >= {"group": "family", "shared": True, "origin": "agent"}.items()
    assert shown.keys() == {"id", "group", "shared", "origin", "name", "created_at"}
    kept = served.home / "tokens" / f"{shown['id']}.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert family not in kept.read_text()
    assert family.rpartition("_")[2] not in kept.read_text()


def test_no_forged_token_is_taken(served, work):
    for forged in (
        work[:-1] + ("a" if work[-1] != "a" else "b"),
        work.replace("ncm_", "NCM_"),
        work[:13],
        "ncm_../../to_" + work[13:],
        work.upper(),
        "ncm_00000000_" + "a" * 43,
    ):
        with agent(served, forged) as api:
            assert api.get(f"{API}/log").status_code == 401, forged


def test_a_token_needs_a_group_that_is_there_and_only_the_owner_sees_them_all(served):
    assert ncm(served.home, "token", "new", "--group", "famly", code=2)["error"]["type"] == "NotFound"
    assert ncm(served.home, "token", "new", "--name", "a\nb", code=2)["error"]["type"] == "InvalidValue"
    assert ncm(served.home, "token", "new", "--origin", "owner", code=2)["error"]["type"] == "Usage"
    assert ncm(served.home, "token", "list", "--shared", code=2)["error"]["type"] == "PathRefused"
    assert ncm(served.home, "token", "revoke", "00000000", "--group", "work", code=2)


@pytest.mark.anyio
async def test_an_mcp_client_is_what_its_token_says(served, family):
    async def ask(query, tool, arguments, **headers):
        told = {"Authorization": f"Bearer {family}", **headers}
        async with (
            httpx2.AsyncClient(headers=told, timeout=60) as http,
            Client(streamable_http_client(f"{served.url}/mcp{query}", http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    stored = await ask("", "memory_store", {"type": "fact", "content": "Ida brings the cake on Sunday"})
    identity = stored.content[0].text.split()[2]  # Stored as mem-1f3c0a2b (fact).
    with served.client() as owner:
        entry = owner.get(f"{API}/entries/{identity}", params={"group": "family", "shared": "true"})
        assert entry.json()["entry"]["provenance"]["origin"] == "shared"
    assert (await ask("", "memory_get", {"file": "MEMORY.md"})).is_error
    url = f"{served.url}/mcp"
    headers = {"Authorization": f"Bearer {family}", "Accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for query in ("?group=work", "?shared=false", "?group=main"):
        assert httpx2.post(url + query, headers=headers, json=call).status_code == 403
    assert httpx2.post(f"{url}?Shared=true", headers=headers, json=call).status_code == 400


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("shared=true&shared=false", [], 403),
        ("shared=false&shared=true", [], 403),
        ("", [("X-NanoClaw-Shared", "false"), ("X-NanoClaw-Shared", "true")], 403),
        ("shared=false", [("X-NanoClaw-Shared", "true")], 403),
        ("shared=true", [("X-NanoClaw-Shared", "0")], 403),
        ("", [("X-NanoClaw-Shared", "false, true")], 400),
        ("shared=", [], 400),
        ("shared=&shared=false", [], 400),
        ("", [("X-NanoClaw-Shared", "")], 400),
        ("shared=no", [], 400),
        ("group=", [], 400),
        ("", [("X-NanoClaw-Group", "")], 400),
        ("group=work&group=family", [], 400),
        ("", [("X-NanoClaw-Group", "work"), ("X-NanoClaw-Group", "family")], 400),
        ("group=work", [("X-NanoClaw-Group", "family")], 400),
        ("Shared=true", [], 400),
        ("shared=false&shared=0", [], 200),
        ("group=work&group=work", [("X-NanoClaw-Group", "work")], 200),
    ],
)
def test_of_two_privacies_the_stricter_counts_and_what_is_unclear_is_refused(served, query, headers, status):
    told = [("Authorization", f"Bearer {served.token}"), *headers]
    read = httpx2.get(
        f"{served.url}{API}/checkpoints?{query}", headers=told
    )  # private: 403 is asked as shared
    assert read.status_code == status, read.text
    if status == 400:
        written = httpx2.post(f"{served.url}{API}/log?{query}", headers=told, json={"content": "unclear"})
        assert written.status_code == 400, written.text


@pytest.mark.parametrize("owners", [False, True])
def test_a_new_session_id_does_not_reset_the_limits_of_a_client(served, owners):
    group = ("--group", "work") if owners else ("--group", "family")
    token = (served.home / "token").read_text().strip() if owners else new(served, *group)["token"]

    async def over_mcp(session, number):
        headers = {"Authorization": f"Bearer {token}", "X-NanoClaw-Session": session}
        headers["X-NanoClaw-Group"] = group[1]
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            given = {"content": f"Shelf {number} carries {number * 37} jars", "type": "fact"}
            return await client.call_tool("memory_store", given)

    answers = [asyncio.run(over_mcp(f"x{number}", number)) for number in range(22)]
    assert [bool(one.is_error) for one in answers] == [False] * 20 + [True] * 2
    assert "20 stores" in answers[-1].content[0].text
    with agent(served, new(served, *group)["token"]) as other:  # another token is another client
        stored = other.post(f"{API}/entries", json={"content": "Jam is in the cellar", "type": "fact"})
        assert stored.status_code == 200


def test_one_token_has_one_limit_over_http(served):
    token = new(served, "--group", "work")["token"]
    with agent(served, token) as api:

        def answered(path, session, **given):
            headers = {"X-NanoClaw-Session": session}
            return api.post(f"{API}{path}", json=given, headers=headers)

        found = [
            answered("/entries", f"y{number}", content=f"Crate {number} weighs {number * 41}", type="fact")
            for number in range(23)
        ]
        assert [one.status_code for one in found] == [200] * 20 + [400] * 3
        ids = [one.json()["id"] for one in found[:20]]
        gone = [
            api.delete(f"{API}/entries/{one}", headers={"X-NanoClaw-Session": f"z{one}"}) for one in ids[:6]
        ]
        assert [one.status_code for one in gone] == [200] * 5 + [400]
