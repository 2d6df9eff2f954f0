"""Tokens of agents at a server on PostgreSQL: each is a login role, and the database itself refuses what it may not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from serving import Served, serving

from postgres import OWNER, alone, as_superuser, fresh_database

pytestmark = pytest.mark.xdist_group("postgres")  # roles belong to the whole server

API = "/api/v1"


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with alone(), fresh_database() as made:
        monkeypatch.setenv("NANOCLAW_STORE_URL", made)
        yield made


@pytest.fixture
def served(url: str, tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home", "--no-upkeep") as found:
        ncm(found.home, "init", "--group", "work")
        yield found


def ncm(home: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return dict(json.loads(done.stdout))


def agent(served: Served, *options: str) -> tuple[httpx2.Client, str]:
    made = ncm(served.home, "token", "new", "--group", "work", *options)
    return served.client(Authorization=f"Bearer {made['token']}"), f"ncm_{made['id']}"


def as_root(url: str, sql: str) -> list[Any]:
    with psycopg.connect(as_superuser(url), autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def members(url: str, suffix: str = "") -> str:
    return f'"ncm/{psycopg.conninfo.conninfo_to_dict(url)["dbname"]}/work{suffix}"'


def test_a_request_is_made_of_the_database_as_the_tokens_role(served: Served, url: str):
    api, role = agent(served)
    with api:
        stored = api.post(f"{API}/entries", json={"content": "The kettle is blue", "type": "fact"})
        assert stored.status_code == 200, stored.text
        api.post(f"{API}/log", json={"content": "the kettle was descaled"}).raise_for_status()
        api.post(
            f"{API}/graph/facts", json={"entity": "Kettle", "key": "colour", "value": "blue"}
        ).raise_for_status()
        prompt = {"session_id": "s1", "prompt": "which kettle is ours?"}
        assert api.post(f"{API}/hooks/user-prompt-submit", json=prompt).status_code == 200
        found = api.get(f"{API}/search", params={"query": "kettle"})
        assert "blue" in found.text and "descaled" in found.text
        assert as_root(url, f"SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = '{role}'") == [
            (True,)
        ]
        as_root(url, f"REVOKE {members(url)} FROM {role} GRANTED BY {OWNER}")
        refused = api.get(f"{API}/search", params={"query": "kettle"})
        assert "blue" not in refused.text
    with served.client(**{"X-NanoClaw-Group": "work"}) as owner:
        assert "blue" in owner.get(f"{API}/search", params={"query": "kettle"}).text


def test_a_shared_tokens_role_does_not_reach_what_is_private(served: Served, url: str):
    with served.client(**{"X-NanoClaw-Group": "work"}) as owner:
        owner.post(f"{API}/log", json={"content": "a private thought about quinces"}).raise_for_status()
        owner.post(f"{API}/entries", json={"content": "quinces are in the cellar", "type": "fact"})
    api, role = agent(served, "--shared")
    with api:
        api.post(f"{API}/entries", json={"content": "The cake is for Ida", "type": "fact"}).raise_for_status()
        assert "Ida" in api.get(f"{API}/search", params={"query": "cake"}).text
        assert "quinces" not in api.get(f"{API}/search", params={"query": "quinces"}).text
    own = "SELECT has_schema_privilege('{0}', 'work/{1}', 'USAGE')"
    assert as_root(url, own.format(role, "shared-entries")) == [(True,)]
    for private in ("entries", "facts", "continuity", "index", "pages", "sdk"):
        assert as_root(url, own.format(role, private)) == [(False,)], private
    assert (served.home / "groups/work/workspace/MEMORY.md").exists()  # no page is lost that it does not see


def test_a_revoked_token_is_no_role_any_more(served: Served, url: str):
    api, role = agent(served)
    with api:
        assert api.get(f"{API}/log").status_code == 200
        ncm(served.home, "token", "revoke", role.removeprefix("ncm_"))
        assert api.get(f"{API}/log").status_code == 401
    assert as_root(url, f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'") == []


def test_a_role_that_a_revoked_token_left_while_the_database_was_away_ends_later(
    served: Served, url: str, monkeypatch: pytest.MonkeyPatch
):
    api, role = agent(served)
    revoke = ["token", "revoke", role.removeprefix("ncm_")]
    monkeypatch.setenv("NANOCLAW_STORE_URL", "postgresql:///none?host=/nonexistent")
    with pytest.raises(AssertionError, match="cannot be used"):
        ncm(served.home, *revoke)
    with api:
        assert api.get(f"{API}/log").status_code == 401
    monkeypatch.setenv("NANOCLAW_STORE_URL", url)
    ncm(served.home, *revoke)
    assert as_root(url, f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'") == []
    with pytest.raises(AssertionError, match="there is no token"):
        ncm(served.home, *revoke)


def test_an_owner_who_may_make_no_roles_makes_tokens_all_the_same(served: Served, url: str):
    as_root(url, "ALTER ROLE ncm_tests NOCREATEROLE")
    try:
        api, role = agent(served)
    finally:
        as_root(url, "ALTER ROLE ncm_tests CREATEROLE")
    with api:
        assert api.get(f"{API}/log").status_code == 200
    assert as_root(url, f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'") == []
