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


def _without_sources(memory: Memory) -> list[dict[str, object]]:
    rows = map(json.loads, memory.graph.export())
    return [{key: row[key] for key in row if key != "source"} for row in rows]


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
    assert _without_sources(other) == _without_sources(known)
    assert {fact.origin for fact in other.graph.history("Alice")} == {"import"}
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
        + "[" * 100_000
    )
    done = memory.graph.import_file(path)
    assert (done.facts, done.skipped) == (1, 4)
    assert done.problems[0] == "line 2 is no JSON"
    assert done.problems[-1] == "line 5 is no JSON"


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


# ---- Neo4j and Graphiti ----


@pytest.fixture
def wide(known: Memory) -> Memory:
    known.graph.upsert("Alice", "hobby", "chess", category="person", add=True)
    known.graph.upsert("Alice", "hobby", "go; and more", category="person", add=True)
    known.graph.relate("Keystone", "depends on", "Kong")
    known.graph.unrelate("Keystone", "depends on", "Kong")
    return known


def test_a_script_for_neo4j_merges_every_entity_and_relation_once(wide: Memory) -> None:
    script = list(wide.graph.export("cypher"))
    (alice,) = [line for line in script if line.startswith('MERGE (n:Entity {name: "Alice"})')]
    assert "n:`Person`" in alice and 'n.`hobby` = ["chess", "go; and more"]' in alice
    assert 'n.`employer` = "Globex, \\"the\\" one\\nnew line"' in alice and 'n.`aliases` = ["Al"]' in alice
    (ended,) = [line for line in script if "DEPENDS_ON" in line]
    assert (
        'MATCH (a:Entity {name: "Keystone"}), (b:Entity {name: "Kong"})' in ended
        and "SET r.valid_to" in ended
    )
    assert all("\n" not in line and line.endswith(";") for line in script)


def test_files_for_neo4j_and_episodes_for_graphiti_come_in_again(
    wide: Memory, open_memory: Callable[..., Memory], tmp_path: Path
) -> None:
    query = "MATCH (a)-[r]->(b) RETURN a.name, type(r), b.name, a.employer ORDER BY b.name"
    for number, forms in enumerate((["neo4j-nodes", "neo4j-relations"], ["graphiti"])):
        other = open_memory(group=f"other{number}")
        other.init()
        for form in forms:
            path = tmp_path / f"{form}.{'jsonl' if form == 'graphiti' else 'csv'}"
            path.write_text("\n".join(wide.graph.export(form)), "utf-8")
            assert other.graph.import_file(path).problems == ()
        assert other.graph.query(query).rows == wide.graph.query(query).rows
        hobbies = "MATCH (a {name: 'Alice'}) WHERE a.hobby STARTS WITH 'go' RETURN count(*)"
        assert other.graph.query(hobbies).rows == ((1,),)
    past = other.graph.query("MATCH (a {name: 'Alice'}) RETURN a.employer", as_of="2025-06").rows
    assert past == (("Acme",),)  # episodes have the history too


def test_what_neo4j_exports_as_json_comes_in(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    rows = [
        {"type": "node", "id": "0", "labels": ["Person"], "properties":
         {"name": "Ada", "born": 1815, "langs": ["en", "fr"]}},
        {"type": "node", "id": "1", "labels": ["Machine"], "properties": {"title": "Engine"}},
        {"type": "node", "id": "2", "labels": ["Ghost"], "properties": {}},
        {"id": "7", "type": "relationship", "label": "WROTE_FOR", "properties": {"since": 1842},
         "start": {"id": "0", "labels": ["Person"]}, "end": {"id": "1", "labels": ["Machine"]}},
        {"id": "8", "type": "relationship", "label": "HAUNTS", "start": {"id": "2"}, "end": {"id": "1"}},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    done = memory.graph.import_file(path)
    assert (done.facts, done.relations) == (3, 1)
    assert done.problems == (
        "line 3 has no name, title, label",
        "line 5 relates nodes that the file does not name",
    )
    found = memory.graph.query(
        "MATCH (a:Person)-[:WROTE_FOR]->(b) RETURN a.name, a.born, a.langs, b.name"
    ).rows
    assert found == (("Ada", "1815", ["en", "fr"], "Engine"),)


def test_what_neo4j_exports_as_csv_comes_in(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text(
        '"_id","_labels","name","port","_start","_end","_type","valid_from"\n'
        '"4",":Project","Keystone","3000",,,,\n"5",":Person","Ada","",,,,\n,,,,"5","4","OWNS","2025-01-01"\n'
    )
    memory.graph.import_file(path)
    found = memory.graph.query("MATCH (a)-[r:OWNS]->(b:Project) RETURN a.name, b.port, r.since").rows
    assert found[0][:2] == ("Ada", "3000") and found[0][2].startswith("202")


def test_a_graph_of_graphiti_comes_in_with_its_predicates_and_dates(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "graphiti.json"
    own = {"uuid": "u", "group_id": "g", "created_at": "2025-01-01T00:00:00Z", "name_embedding": [0.1]}
    facts = {
        "name": "LIVES_IN",
        "fact": "Ada lives in Rome",
        "valid_at": "2025-02-01T00:00:00.000000000Z[UTC]",
    }
    rows = [
        {"type": "node", "id": "0", "labels": ["Entity"], "properties": {**own, "name": "Ada", "summary": "A writer"}},
        {"type": "node", "id": "1", "labels": ["Entity"], "properties": {**own, "name": "Rome"}},
        {"type": "node", "id": "2", "labels": ["Episodic"], "properties": {"name": "e1", "content": "Ada: I live"}},
        {"id": "3", "type": "relationship", "label": "MENTIONS", "start": {"id": "2"}, "end": {"id": "0"}},
        {"id": "4", "type": "relationship", "label": "RELATES_TO", "start": {"id": "0"}, "end": {"id": "1"},
         "properties": {**facts, "invalid_at": "2025-09-01T00:00:00Z"}},
        {"name": "e2", "content": "Ada: hello", "source": "message", "reference_time": "2025-01-01T00:00:00Z"},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    done = memory.graph.import_file(path)
    assert done.problems == ("line 6 is an episode in words; it states no fact by itself",)
    query = "MATCH (a)-[r]->(b) RETURN a.name, type(r), b.name"
    assert memory.graph.query(query, as_of="2025-03-01").rows == (("Ada", "lives_in", "Rome"),)
    assert memory.graph.query(query).rows == ()
    assert memory.graph.query("MATCH (a {name: 'Ada'}) RETURN a").rows[0][0]["properties"] == {
        "summary": "A writer"
    }
