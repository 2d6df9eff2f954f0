"""A whole home moves to PostgreSQL and back: every row is there, nothing newer is written over, the source stays."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope
from postgres import fresh_database

pytestmark = pytest.mark.xdist_group("postgres")

Open = Callable[..., Memory]


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NANOCLAW_STORE_URL", "")
    with fresh_database() as made:
        yield made


@pytest.fixture
def full(open_memory: Open, url: str) -> Memory:
    """A home with something of every kind, in two groups and a shared chat."""
    memory = open_memory()
    memory.init()
    open_memory("shire").init()
    memory.write("we call the boat Marigold")
    memory.graph.upsert("Keystone", "port", "5432")
    memory.graph.upsert("Keystone", "port", "5433")
    memory.graph.relate("Bilbo", "owns", "Keystone")
    memory.graph.alias("KS", "Keystone")
    memory.store("Chose SQLite for the boat's log", "decision", tags=["db"])
    memory.after_turn("no, the boat is \x00 green, not blue", "Noted.")
    memory.lessons.add("colour", "ask before painting")
    memory.graph.reject("Keystone", "port", "9999")
    memory.forget(text="the cellar key is under the mat", keep_out=True)
    memory.workspace.sdk_items.put(("notes",), "a", {"text": "hello"})
    open_memory("shire").graph.upsert("Ring", "place", "shire")
    open_memory(private=False).after_turn("the party is on Friday", "Good.")
    shared = memory.store("second breakfast is at ten", "fact")
    memory.entries.publish(shared.id)
    memory.host.state.store_chat_metadata("c1", "2026-02-23T11:00:00Z", "The Inn")
    return memory


def fingerprints(home: Path) -> dict[str, str]:
    """Every database file and page of a home, by its content."""
    found = [*home.rglob("*.md"), *home.rglob("*.db")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def answers(home: Path, clock: Any, **overrides: str) -> list[Any]:
    """What a home says, whatever its store."""
    with Memory.open(home, Scope("main", "s1"), clock=clock, overrides=overrides) as memory:
        facts = [(one.value, one.valid_to, one.origin) for one in memory.graph.history("Keystone")]
        entries = sorted((one.id, one.content, one.type) for one in memory.entries.all())
        talk = [(one.user_message, one.timestamp) for one in memory.conversations.session("s1")]
        lessons = [(one.id, one.lesson) for one in memory.lessons.lessons()]
        found = [
            memory.search("what is the boat called?").hits[0].text,
            memory.graph.search("KS port").hits[0].item.value,
            memory.admin.is_forgotten("the cellar key is under the mat"),
            memory.workspace.sdk_items.get(("notes",), "a"),
            [hit.text for hit in memory.search("when is the party?").hits][:1],
        ]
    with Memory.open(home, Scope("shire", "s1"), clock=clock, overrides=overrides) as memory:
        ring = [one.value for one in memory.graph.history("Ring")]
    return [facts, entries, talk, lessons, found, ring]


def test_a_home_moves_to_the_server_and_back(
    full: Memory, home: Path, url: str, ncm: Any, clock: Any, tmp_path: Path
):
    before, said = fingerprints(home), answers(home, clock)
    full.close()
    ran = ncm("migrate-store", "--to", url, "--json")
    assert ran.code == 0, ran.out
    moved = {one["name"]: one for one in ran.json["databases"]}
    assert moved["data/facts.db"]["tables"]["facts"] == 2
    assert {
        "data/entries.db",
        "data/forgotten.db",
        "groups/shire/data/facts.db",
        "store/messages.db",
    } <= moved.keys()
    assert ran.json["pages"] == len(list(home.rglob("*.md")))
    after = fingerprints(home)
    assert {name: after[name] for name in before if name.endswith(".md")} == {
        name: one for name, one in before.items() if name.endswith(".md")
    }
    assert answers(home, clock, **{"store.url": url}) == answers(home, clock) == said
    again = ncm("migrate-store", "--to", url, "--json").json
    with Memory.open(home, clock=clock, overrides={"store.url": url}) as memory:
        memory.graph.upsert("Keystone", "port", "5434")
        memory.write("the boat sails on Monday")
    ran = ncm("--set", f"store.url={url}", "migrate-store", "--to", "files", "--json")
    assert ran.code == 0, ran.out
    with Memory.open(home, clock=clock) as memory:
        assert memory.graph.search("KS port").hits[0].item.value == "5434"
        assert any("Monday" in hit.text for hit in memory.search("the boat sails on Monday").hits)
        assert memory.admin.is_forgotten("the cellar key is under the mat")
        assert not [one for one in memory.doctor() if one.level == "problem"]
    assert not any(one["moved"] for one in again["databases"])


def test_rows_that_are_not_of_this_home_are_not_written_over(
    full: Memory, home: Path, url: str, ncm: Any, clock: Any
):
    full.close()
    with Memory.open(home.with_name("other"), clock=clock, overrides={"store.url": url}) as other:
        other.init()
        other.graph.upsert("Ring", "place", "elsewhere")
    ran = ncm("migrate-store", "--to", url)
    assert (ran.code, "not of this home" in ran.err) == (2, True)
    assert ncm("migrate-store", "--to", url, "--replace").code == 0
    with psycopg.connect(url) as connection:
        assert connection.execute('SELECT value FROM "damaged/main/facts".facts').fetchall() == [
            ("elsewhere",)
        ]
        assert connection.execute('SELECT count(*) FROM "main/facts".facts').fetchall() == [(2,)]


def test_work_on_the_server_is_not_written_over_by_the_old_files(
    full: Memory, home: Path, url: str, ncm: Any, clock: Any
):
    full.close()
    assert ncm("migrate-store", "--to", url).code == 0
    with Memory.open(home, clock=clock, overrides={"store.url": url}) as memory:
        memory.graph.upsert("Keystone", "port", "5434")
    ran = ncm("migrate-store", "--to", url)
    assert (ran.code, "newer" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("to", "code", "told"),
    [
        ("mysql://db/x", 2, "is no store"),
        ("files", 2, "there already"),
        ("postgresql://nobody:secret@127.0.0.1:1/none", 1, "cannot be used"),
    ],
)
def test_a_target_that_cannot_be_is_said(full: Memory, ncm: Any, to: str, code: int, told: str):
    ran = ncm("migrate-store", "--to", to)
    assert (ran.code, told in ran.err, "secret" in ran.err) == (code, True, False)


def test_a_row_that_does_not_arrive_is_a_failure(
    full: Memory, url: str, ncm: Any, monkeypatch: pytest.MonkeyPatch
):
    from nanoclaw_memory.store import copying

    real = copying._rows
    monkeypatch.setattr(copying, "_rows", lambda *given: list(real(*given))[1:])
    ran = ncm("migrate-store", "--to", url, "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert "arrived" in ran.json["error"]["message"]


def test_an_export_is_written_and_taken_in_on_the_server_as_with_files(
    full: Memory, home: Path, url: str, ncm: Any, clock: Any, tmp_path: Path
):
    full.close()
    assert ncm("migrate-store", "--to", url).code == 0
    assert ncm("export", str(tmp_path / "a")).code == 0
    on_server = ("--set", f"store.url={url}")
    assert ncm(*on_server, "export", str(tmp_path / "b")).code == 0
    for path in sorted((tmp_path / "a").rglob("*.jsonl")):
        assert (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_text() == path.read_text()
    other = home.with_name("laptop")
    with Memory.open(other, clock=clock) as laptop:
        laptop.init()
        shutil.copy(home / "sync.key", other)
        laptop.upkeep.merge_in(tmp_path / "b")
        laptop.graph.upsert("Keystone", "port", "5435")
        laptop.forget(entity="Bilbo")
        laptop.upkeep.export(tmp_path / "b")
    ran = ncm(*on_server, "import", str(tmp_path / "b"), "--json")
    assert (ran.code, ran.json["problems"]) == (0, [])
    assert ran.json["removed"]["relations"] == 1
    assert ncm(*on_server, "graph", "search", "KS port", "--json").json["hits"][0]["value"] == "5435"
    again = ncm(*on_server, "import", str(tmp_path / "b"), "--json").json
    assert (again["added"], again["changed"], again["removed"]) == ({}, {}, {})


_DYING = """
import os, sys
from nanoclaw_memory.memory import Memory, migration
step, home, url = int(sys.argv[1]), sys.argv[2], sys.argv[3]
seen = 0
def dying(real):
    def call(*args, **kwargs):
        global seen
        seen += 1
        if seen == step:
            os._exit(9)
        return real(*args, **kwargs)
    return call
from nanoclaw_memory.store import copying, postgres
copying.EntryTable.reindex = dying(copying.EntryTable.reindex)
migration.StoreMigration._note = dying(migration.StoreMigration._note)
migration.contents = dying(migration.contents)
with Memory.open(home) as memory:
    memory.admin.migrate_store(url)
"""


@pytest.mark.parametrize("step", [1, 3, 6, 10, 20])
def test_killed_it_goes_on_and_ends_the_same_way(
    full: Memory, home: Path, url: str, ncm: Any, clock: Any, step: int
):
    said = answers(home, clock)
    full.close()
    command = [sys.executable, "-c", _DYING, str(step), str(home), url]
    assert subprocess.run(command, check=False).returncode == 9
    assert ncm("migrate-store", "--to", url).code == 0
    assert answers(home, clock, **{"store.url": url}) == said
    assert not list((home / "data").glob(".moving-*"))
