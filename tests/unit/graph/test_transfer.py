"""The graph goes out and comes in again, in every format."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound
from nanoclaw_memory.memory import Memory


@pytest.fixture
def known(memory: Memory) -> Memory:
    memory.graph.upsert("Alice", "employer", "Acme", valid_from="2025-01-01")
    memory.graph.upsert("Alice", "employer", 'Globex, "the" one\nnew line', valid_from="2026-01-01")
    memory.graph.relate("Alice", "owns", "Keystone")
    memory.graph.alias("Al", "Alice")
    return memory


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_goes_out_comes_in_with_its_history(
    known: Memory, open_memory: Callable[..., Memory], tmp_path: Path, form: str
) -> None:
    path = tmp_path / f"graph.{form}"
    path.write_text("\n".join(known.graph.export(form)), "utf-8")
    other = open_memory(group="other")
    other.init()
    done = other.graph.import_file(path)
    assert (done.facts, done.relations, done.aliases, done.skipped) == (2, 1, 1, 0)
    assert other.graph.search("al's employer").hits[0].item.value.startswith("Globex")  # type: ignore[union-attr]
    assert other.graph.search("al's employer", as_of="2025-06-01").hits[0].item.value == "Acme"  # type: ignore[union-attr]
    assert list(other.graph.export()) == list(known.graph.export())
    again = other.graph.import_file(path)
    assert (again.facts, again.relations, again.aliases) == (0, 0, 0)


def test_the_official_memory_servers_file_comes_in_and_goes_out(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    rows = [
        {
            "type": "entity",
            "name": "Alice",
            "entityType": "person",
            "observations": ["Likes tea", "phone: 1"],
        },
        {"type": "relation", "from": "Alice", "to": "Acme", "relationType": "works_at"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    done = memory.graph.import_file(path)
    assert (done.facts, done.relations) == (2, 1)
    assert memory.graph.search("Alice's phone").hits[0].text == "Alice.phone = 1"
    out = [json.loads(line) for line in memory.graph.export("mcp")]
    assert out[0]["observations"] == ["observation: Likes tea", "phone: 1"]
    assert out[-1] == rows[1]


def test_bad_lines_are_said_and_the_good_ones_come_in(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text(
        '{"entity": "A", "key": "k", "value": "v"}\nnonsense\n[1]\n{"entity": "", "key": "k", "value": "v"}\n'
    )
    done = memory.graph.import_file(path)
    assert (done.facts, done.skipped) == (1, 3)
    assert done.problems[0] == "line 2 is no JSON"


def test_files_that_cannot_be_read_are_refused(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        memory.graph.import_file(tmp_path / "none.jsonl")
    (tmp_path / "latin.csv").write_bytes(b"entity,key,value\nM\xfcller,k,v\n")
    with pytest.raises(FileProblem, match="UTF-8"):
        memory.graph.import_file(tmp_path / "latin.csv")
    with pytest.raises(InvalidValue):
        memory.graph.export("xml")


OLD_000 = """
CREATE TABLE facts (id INTEGER PRIMARY KEY AUTOINCREMENT, entity TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
  category TEXT NOT NULL, source TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now')), last_accessed TEXT,
  access_count INTEGER DEFAULT 0, permanent BOOLEAN DEFAULT 0, decay_score REAL, activation REAL DEFAULT 1.0,
  importance REAL DEFAULT 0.5, mood TEXT);
CREATE INDEX idx_facts_entity ON facts(entity);
CREATE VIRTUAL TABLE facts_fts USING fts5(entity, key, value, content=facts, content_rowid=id);
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
  INSERT INTO facts_fts(rowid, entity, key, value) VALUES (new.id, new.entity, new.key, new.value); END;
CREATE TABLE relations (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, predicate TEXT NOT NULL,
  object TEXT NOT NULL, source TEXT, created_at TEXT DEFAULT (datetime('now')));
CREATE TABLE aliases (alias TEXT NOT NULL COLLATE NOCASE, entity TEXT NOT NULL COLLATE NOCASE,
  PRIMARY KEY (alias, entity));
CREATE TABLE co_occurrences (fact_a INTEGER NOT NULL, fact_b INTEGER NOT NULL, weight REAL DEFAULT 1.0, last_wired TEXT,
  PRIMARY KEY (fact_a, fact_b));
CREATE TABLE growth_vectors (id INTEGER PRIMARY KEY, lesson_text TEXT);
INSERT INTO growth_vectors VALUES (1, 'be brief');
INSERT INTO facts (entity, key, value, category, source, created_at, access_count, activation, permanent, mood) VALUES
  ('Partner Boyd', 'birthday', 'July 7, 1976', 'person', 'USER.md', '2026-02-14 10:00:00', 3, 2.5, 1, 'sunny'),
  ('Partner Boyd', 'birthday', 'July 7, 1976', 'person', 'USER.md', '2026-02-15 10:00:00', 2, 1.0, 0, NULL),
  ('Keystone', 'port', '3000', 'project', NULL, '2026-02-15 10:00:00', 0, 1.0, 0, NULL);
INSERT INTO relations (subject, predicate, object, created_at) VALUES
  ('User', 'owns', 'Keystone', '2026-02-15 10:00:00'), ('User', 'owns', 'Keystone', '2026-02-16 10:00:00');
INSERT INTO aliases VALUES ('Partner', 'Partner Boyd');
INSERT INTO co_occurrences VALUES (1, 3, 4.0, NULL), (3, 2, 2.0, NULL);
"""
OLD_002 = """
CREATE TABLE facts (id INTEGER PRIMARY KEY, entity TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
  category TEXT NOT NULL, source TEXT, created_at TEXT NOT NULL, activation REAL DEFAULT 1.0,
  importance REAL DEFAULT 0.5, access_count INTEGER DEFAULT 0);
CREATE TABLE relations (subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL, source TEXT,
  created_at TEXT);
CREATE TABLE aliases (alias TEXT PRIMARY KEY, entity TEXT NOT NULL);
CREATE TABLE co_occurrences (fact_a TEXT NOT NULL, fact_b TEXT NOT NULL, weight REAL NOT NULL);
CREATE VIRTUAL TABLE facts_fts USING fts5(entity, key, value, content=facts);
INSERT INTO facts VALUES (7, 'Partner Boyd', 'birthday', 'July 7, 1976', 'person', 'x', '2026-02-14', 2.5, 0.9, 5),
  (9, 'Keystone', 'port', '3000', 'odd-category', NULL, 'long ago', 1.0, 0.5, 0);
INSERT INTO relations VALUES ('User', 'owns', 'Keystone', NULL, NULL);
INSERT INTO aliases VALUES ('Partner', 'Partner Boyd');
INSERT INTO co_occurrences VALUES ('7', '9', 3.0);
"""


def old_file(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


@pytest.mark.parametrize(("script", "count"), [(OLD_000, 5), (OLD_002, 5)])
def test_a_facts_db_of_the_older_systems_opens_with_everything_in_it(
    memory: Memory, script: str, count: int
) -> None:
    path = memory.home.data("main") / "facts.db"
    old_file(path, script)
    hits = memory.graph.search("When is Partner's birthday?").hits
    assert hits[0].text == "Partner Boyd.birthday = July 7, 1976"
    assert hits[0].item.access_count == count
    assert hits[0].item.activation == 2.5
    assert [hit.text for hit in hits if hit.linked] == ["Keystone.port = 3000"]
    assert memory.graph.search("Who owns Keystone?").hits[0].score == 90
    assert memory.group.database("facts").check() == []
    for table in ("facts", "relations"):
        with memory.group.database("facts").transaction():
            sql = f"INSERT INTO {table}_fts({table}_fts, rank) VALUES ('integrity-check', 1)"
            memory.group.database("facts").execute(sql)


def test_columns_and_tables_that_we_do_not_know_are_kept(memory: Memory) -> None:
    old_file(memory.home.data("main") / "facts.db", OLD_000)
    db = memory.group.database("facts")
    assert db.query("SELECT mood FROM before_nanoclaw_facts WHERE id = 1") == [("sunny",)]
    tables = {row[0] for row in db.query("SELECT name FROM sqlite_schema WHERE name LIKE '%growth_vectors'")}
    assert len(tables & {"growth_vectors", "before_nanoclaw_growth_vectors"}) >= 1
    kept = (
        "before_nanoclaw_growth_vectors" if "before_nanoclaw_growth_vectors" in tables else "growth_vectors"
    )
    assert db.query(f"SELECT lesson_text FROM {kept}") == [("be brief",)]


def test_another_facts_db_can_be_imported_and_stays_as_it_is(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "other" / "facts.db"
    old_file(path, OLD_002)
    before = path.read_bytes()
    done = memory.graph.import_file(path)
    assert (done.facts, done.relations, done.aliases) == (2, 1, 1)
    assert path.read_bytes() == before
    assert memory.graph.search("When is Partner's birthday?").hits[0].score == 95
