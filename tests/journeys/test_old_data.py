"""Data and settings of the older systems: their databases open, their spellings count, a missing key degrades."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanoclaw_memory import Memory

pytestmark = pytest.mark.files("older releases had files only")

Run = Callable[..., Any]


@pytest.fixture
def old(ncm: Run, home: Path) -> Run:
    ncm("init")
    with sqlite3.connect(home / "data" / "continuity.db") as talk:
        talk.executescript(
            "CREATE TABLE exchanges (id INTEGER PRIMARY KEY, session_id TEXT, user_message TEXT, agent_response TEXT,"
            " timestamp TEXT, topic TEXT, embedding BLOB); CREATE INDEX exchanges_session ON exchanges (session_id);"
            "INSERT INTO exchanges VALUES (4, 's1', 'Which queue has Keystone?', 'RabbitMQ.', '2026-02-01 10:00:00',"
            " 'queue', x'00'),"
            " (7, NULL, 'We moved to Lisbon', NULL, NULL, NULL, NULL), (8, 's2', '', '', '', '', NULL);"
        )
    with sqlite3.connect(home / "data" / "facts.db") as facts:
        facts.executescript(
            "CREATE TABLE facts (id INTEGER PRIMARY KEY AUTOINCREMENT, entity TEXT NOT NULL, key TEXT NOT NULL,"
            " value TEXT NOT NULL, category TEXT NOT NULL, source TEXT, created_at TEXT NOT NULL, last_accessed TEXT,"
            " access_count INTEGER DEFAULT 0, permanent BOOLEAN DEFAULT 0, decay_score REAL,"
            " activation REAL DEFAULT 1.0, importance REAL DEFAULT 0.5);"
            "INSERT INTO facts (entity, key, value, category, created_at) VALUES"
            " ('Keystone', 'port', '3000', 'project', '2026-01-01 10:00:00'),"
            " ('keystone', 'Port', '2999', 'project', '2025-01-01 10:00:00'),"
            " ('Ada', 'hobby', 'chess', 'person', '2025-01-01 10:00:00'),"
            " ('Ada', 'hobby', 'go', 'person', '2025-02-01 10:00:00');"
        )
    return ncm


def test_a_conversation_archive_of_the_older_system_opens(old: Run, home: Path):
    listed = old("sessions", "list", "--json").json["sessions"]
    assert {one["session_id"] for one in listed} >= {"s1"}
    assert "RabbitMQ" in old("sessions", "search", "Keystone queue").out
    assert old("doctor", "--json").json["findings"] is not None
    assert "RabbitMQ" in old("--set", "embeddings.provider=none", "search", "Which queue has Keystone").out
    with sqlite3.connect(home / "data" / "continuity.db") as talk:
        kept = talk.execute("SELECT count(*) FROM before_nanoclaw_exchanges").fetchone()
        moved = talk.execute("SELECT id, timestamp FROM exchanges ORDER BY id").fetchall()
    assert kept == (3,) and moved == [(4, "2026-02-01T10:00:00.000Z"), (7, "1970-01-01T00:00:00.000Z")]


def test_a_damaged_row_of_the_older_system_costs_nothing_but_itself(old: Run, home: Path):
    with sqlite3.connect(home / "data" / "facts.db") as facts:
        facts.execute(
            "UPDATE facts SET value = CAST(x'676fc328' AS TEXT), access_count = 'n/a' WHERE value = 'go'"
        )
    with sqlite3.connect(home / "data" / "continuity.db") as talk:
        talk.execute("UPDATE exchanges SET user_message = CAST(x'4c6973626f6ec328' AS TEXT) WHERE id = 7")
    assert "Ada.hobby = go�(" in old("graph", "history", "Ada").out
    assert "Keystone.port = 3000" in old("graph", "search", "Keystone port").out
    assert "RabbitMQ" in old("sessions", "search", "Keystone queue").out


def test_of_two_values_of_a_key_the_newer_is_current(old: Run):
    history = old("graph", "history", "Keystone", "port", "--json").json["facts"]
    assert [(one["value"], one["current"]) for one in history] == [("2999", False), ("3000", True)]
    hits = old("graph", "search", "What is Keystone's port?", "--json").json["hits"]
    assert [hit["value"] for hit in hits] == ["3000"]
    assert len(old("graph", "history", "Ada", "hobby", "--json").json["facts"]) == 2
    assert {one["current"] for one in old("graph", "history", "Ada", "hobby", "--json").json["facts"]} == {
        True
    }


def test_settings_of_the_document_are_accepted_as_it_spells_them(
    ncm: Run, home: Path, monkeypatch: pytest.MonkeyPatch
):
    ncm("init")
    monkeypatch.setenv("AZURE_OPENAI_EMBEDDING_DEPLOYMENT", "my-large")
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2030-01-01")
    (home / "nanoclaw.json").write_text(
        json.dumps(
            {"plugins": {"entries": {"graph-memory": {"cacheTTL": 5000, "cacheSize": 3, "priority": 5}}}}
        )
    )
    shown = ncm("config", "show", "--json").out
    assert "my-large" in shown and "2030-01-01" in shown and "5000" in shown
    (home / "nanoclaw.json").write_text(json.dumps({"embeddings": {"deployment": "mine"}}))
    assert "my-large" not in ncm("config", "show", "--json").out  # what the file says counts


AZURE = {
    "provider": "azure-openai",
    "endpoint": "${AZURE_OPENAI_ENDPOINT}",
    "apiKey": "${AZURE_OPENAI_API_KEY}",
}


@pytest.mark.parametrize(
    "embeddings", [AZURE, {**AZURE, "endpoint": "https://x.example"}, {"provider": "openai"}]
)
def test_a_service_without_its_key_degrades_in_every_command(
    ncm: Run, home: Path, embeddings: dict[str, str], open_memory: Callable[..., Memory]
):
    ncm("init")
    ncm("write", "The boat is called Albatros", "--tag", "fact")
    ncm("graph", "add", "Keystone", "port", "3000")
    (home / "nanoclaw.json").write_text(json.dumps({"embeddings": embeddings}))
    found = ncm("search", "boat Albatros", "--json")
    assert found.code == 0 and "Albatros" in found.out
    assert any("not set" in note for note in found.json["degraded"])
    for command in (
        ["recall", "boat Albatros"],
        ["index"],
        ["turn", "What is Keystone's port?"],
        ["upkeep"],
        ["doctor"],
    ):
        ran = ncm(*command)
        assert ran.code == 0 or command == ["doctor"], (command, ran.out, ran.err)
        assert "Traceback" not in ran.err
    assert "3000" in ncm("graph", "search", "Keystone's port").out
    assert open_memory().search("boat").hits
