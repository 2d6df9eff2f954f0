"""Graph queries: the answers of a plain evaluation in Python, on random graphs and random queries."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory import Memory
from nanoclaw_memory.errors import InvalidValue, StoreBusy

ENTITIES = ["Ada", "Bo", "Cy", "Di", "Ed Q"]
ALIASES = ["Mama", "Boss"]
TYPES = ["owns", "likes", "part of"]
KEYS = ["city", "port"]
VALUES = ["Lisbon", "lisbon", "Rome", "3", "20", "-1.5", "1.2.3", "x-1"]
DAYS = ["2025-01-01", "2025-06-01"]

# ---- random graphs ----

_name = st.sampled_from(ENTITIES + ALIASES)
_day = st.sampled_from(DAYS)
_edge = st.tuples(_name, st.sampled_from(TYPES), _name, _day, st.booleans())
_fact = st.tuples(
    _name, st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from(["person", "tool"]), _day
)
_alias = st.tuples(st.sampled_from(ALIASES), st.sampled_from(ENTITIES))
graphs = st.tuples(
    st.lists(_edge, max_size=9),
    st.lists(_fact, max_size=7),
    st.lists(_alias, max_size=2, unique_by=lambda a: a[0]),
)

# ---- random queries, as text and as what the text means ----

_literal = st.sampled_from([*VALUES, 3, 20, -1.5, 0])
_variable = st.sampled_from("abc")
_leaf = st.one_of(
    st.tuples(
        st.sampled_from(["=", "<>", "<", ">=", "STARTS WITH", "CONTAINS", "ENDS WITH"]),
        _variable,
        st.sampled_from(KEYS),
        _literal,
    ),
    st.tuples(st.just("null"), _variable, st.sampled_from(KEYS)),
    st.tuples(st.just("named"), _variable, _name),
    st.tuples(st.just("same"), _variable, _variable),
    st.tuples(st.just("in"), _variable, st.sampled_from(KEYS), st.lists(_literal, max_size=3)),
    st.tuples(st.just("equal"), _variable, _variable, st.sampled_from(KEYS)),
    st.tuples(st.just("linked"), _variable, st.sampled_from(TYPES)),
)
conditions = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.tuples(st.just("NOT"), inner), st.tuples(st.sampled_from(["AND", "OR", "XOR"]), inner, inner)
    ),
    max_leaves=4,
)
_hop = st.tuples(
    st.sampled_from("><-"),
    st.lists(st.sampled_from(TYPES), max_size=2, unique=True),
    st.sampled_from([(1, 1), (1, 1), (1, 1), (1, 2), (2, 2)]),
)
_node = st.tuples(
    _variable, st.sampled_from(["", "", "person"]), st.sampled_from([None, None, None, "ada", "MAMA"])
)
paths = st.one_of(
    st.tuples(_node), st.tuples(_node, _hop, _node), st.tuples(_node, _hop, _node, _hop, _node)
).filter(lambda path: sum(hop[2][1] for hop in path[1::2]) <= 3)
queries = st.fixed_dictionaries(
    {
        "path": paths,
        "where": st.none() | conditions,
        "returns": st.lists(st.tuples(_variable, st.sampled_from(["name", *KEYS])), min_size=1, max_size=2),
        "how": st.sampled_from(["plain", "distinct", "count"]),
        "order": st.none() | st.booleans(),
        "as_of": st.sampled_from([None, "2025-03-01", "2025-08-01"]),
    }
)


def used(query: dict[str, Any]) -> dict[str, Any]:
    """The query with variables that its path has: any other one becomes the first."""
    first = query["path"][0][0]
    known = {node[0] for node in query["path"][::2]}

    def kept(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(kept(one) for one in part)
        return first if part in ("a", "b", "c") and part not in known else part

    returns = [(kept(variable), key) for variable, key in query["returns"]]
    return {**query, "where": kept(query["where"]), "returns": returns}


def as_text(query: dict[str, Any]) -> str:
    parts = [_node_text(query["path"][0])]
    for (direction, types, (low, high)), node in zip(query["path"][1::2], query["path"][2::2], strict=True):
        kind = ":" + "|".join(name.replace(" ", "_").upper() for name in types) if types else ""
        length = "" if (low, high) == (1, 1) else f"*{low}..{high}"
        detail = f"[{kind}{length}]" if kind or length else ""
        parts += [f"{'<' * (direction == '<')}-{detail}-{'>' * (direction == '>')}", _node_text(node)]
    where = f" WHERE {_condition_text(query['where'])}" if query["where"] else ""
    returned = [f"{variable}.{key}" for variable, key in query["returns"]]
    distinct = "DISTINCT " if query["how"] == "distinct" else ""
    counted = ["count(*) AS n"] if query["how"] == "count" else []
    order = "" if query["order"] is None else f" ORDER BY {returned[0]}{' DESC' * query['order']}"
    return f"MATCH {''.join(parts)}{where} RETURN {distinct}{', '.join([*returned, *counted])}{order}"


def _node_text(node: tuple[str, str, str | None]) -> str:
    variable, label, name = node
    return f"({variable}{f':{label.title()}' if label else ''}{f' {{name: {name!r}}}' if name else ''})"


def _condition_text(condition: Any) -> str:
    kind, *rest = condition
    if kind in ("AND", "OR", "XOR"):
        return f"({_condition_text(rest[0])} {kind} {_condition_text(rest[1])})"
    return {
        "NOT": lambda: f"NOT {_condition_text(rest[0])}",
        "null": lambda: f"{rest[0]}.{rest[1]} IS NULL",
        "named": lambda: f"{rest[0]}.name = {rest[1]!r}",
        "same": lambda: f"{rest[0]} = {rest[1]}",
        "in": lambda: f"{rest[0]}.{rest[1]} IN {rest[2]!r}",
        "equal": lambda: f"{rest[0]}.{rest[2]} = {rest[1]}.{rest[2]}",
        "linked": lambda: f"({rest[0]})-[:`{rest[1]}`]->()",
    }.get(kind, lambda: f"{rest[0]}.{rest[1]} {kind} {rest[2]!r}")()


# ---- the plain evaluation ----


class Reference:
    """The graph as lists, asked by trying everything."""

    def __init__(self, rows: list[dict[str, Any]], as_of: str | None) -> None:
        at = f"{as_of}T23:59:59" if as_of else "2026-02-23T12"
        shown = [
            row
            for row in rows
            if row["type"] == "alias"
            or (row["valid_from"] <= at and (not row["valid_to"] or row["valid_to"] > at))
        ]
        self.aliases = {row["alias"]: row["entity"] for row in rows if row["type"] == "alias"}
        self.edges = [
            (number, self.entity(row["subject"]), row["predicate"], self.entity(row["object"]))
            for number, row in enumerate(shown)
            if row["type"] == "relation"
        ]
        self.values: dict[tuple[str, str], list[str]] = {}
        self.labels: set[tuple[str, str]] = set()
        for row in shown:
            if row["type"] == "fact":
                entity = self.entity(row["entity"])
                self.values.setdefault((entity, row["key"]), []).append(row["value"])
                self.labels.add((entity, row["category"]))
        self.nodes = {e for edge in self.edges for e in (edge[1], edge[3])} | {e for e, _ in self.values}

    def entity(self, name: str) -> str:
        written = {one.casefold(): one for one in ENTITIES + ALIASES}.get(name.casefold(), name)
        return self.aliases.get(written, written)

    def walks(self, path: tuple[Any, ...]) -> list[dict[str, str]]:
        """Every way to lay the path on the graph, as what each variable is."""
        ways: list[tuple[str, frozenset[int], dict[str, str]]] = [
            (node, frozenset(), {path[0][0]: node}) for node in sorted(self.nodes) if self.fits(node, path[0])
        ]
        for hop, target in zip(path[1::2], path[2::2], strict=True):
            after = []
            for here, seen, bound in ways:
                for end, walked in self.steps(here, seen, hop):
                    if self.fits(end, target) and bound.get(target[0], end) == end:
                        after.append((end, walked, {**bound, target[0]: end}))
            ways = after
        return [bound for _, _, bound in ways]

    def steps(self, here: str, seen: frozenset[int], hop: Any) -> list[tuple[str, frozenset[int]]]:
        direction, types, (low, high) = hop
        found, layer = [], [(here, seen)]
        for length in range(1, high + 1):
            following = []
            for node, walked in layer:
                for number, subject, predicate, object_ in self.edges:
                    if number in walked or (types and predicate not in types):
                        continue
                    ends = {">": [(subject, object_)], "<": [(object_, subject)]}.get(
                        direction, list(dict.fromkeys([(subject, object_), (object_, subject)]))
                    )
                    following += [(end, walked | {number}) for start, end in ends if start == node]
            layer = following
            found += layer if length >= low else []
        return found

    def fits(self, entity: str, node: tuple[str, str, str | None]) -> bool:
        _, label, name = node
        return (not label or (entity, label) in self.labels) and (name is None or self.entity(name) == entity)

    def holds(self, condition: Any, bound: dict[str, str]) -> bool | None:
        kind, *rest = condition
        if kind == "NOT":
            inner = self.holds(rest[0], bound)
            return None if inner is None else not inner
        if kind in ("AND", "OR", "XOR"):
            a, b = self.holds(rest[0], bound), self.holds(rest[1], bound)
            if kind == "XOR":
                return None if a is None or b is None else a != b
            decisive = kind == "OR"
            return decisive if decisive in (a, b) else None if None in (a, b) else not decisive
        if kind == "named":
            return bound[rest[0]] == self.entity(rest[1])
        if kind == "same":
            return bound[rest[0]] == bound[rest[1]]
        if kind == "linked":
            return any(s == bound[rest[0]] and p == rest[1] for _, s, p, _ in self.edges)
        values = self.values.get((bound[rest[0]], rest[-1] if kind == "equal" else rest[1]), [])
        if kind == "null":
            return not values
        if kind == "equal":
            others = self.values.get((bound[rest[1]], rest[2]), [])
            return any(a == b for a, b in product(values, others)) if values and others else None
        if not values:
            return None
        if kind == "in":
            return any(compared("=", value, one) for value in values for one in rest[2])
        tests = [compared(kind, value, rest[2]) for value in values]
        return any(tests) if any(tests) or None not in tests or False in tests else None

    def rows(self, query: dict[str, Any]) -> list[tuple[Any, ...]]:
        kept = [
            bound
            for bound in self.walks(query["path"])
            if query["where"] is None or self.holds(query["where"], bound) is True
        ]
        rows = [
            tuple(self.read(bound[variable], key) for variable, key in query["returns"]) for bound in kept
        ]
        if query["how"] == "distinct":
            return list(dict.fromkeys(rows))
        return [(*row, count) for row, count in Counter(rows).items()] if query["how"] == "count" else rows

    def read(self, entity: str, key: str) -> Any:
        if key == "name":
            return entity
        values = sorted(set(self.values.get((entity, key), [])))
        return tuple(values) if len(values) > 1 else next(iter(values), None)


def compared(operator: str, value: str, literal: Any) -> bool | None:
    if isinstance(literal, int | float):
        try:
            number = float(value)
        except ValueError:
            return {"=": False, "<>": True}.get(operator)
        tests = {
            "=": number == literal,
            "<>": number != literal,
            "<": number < literal,
            ">=": number >= literal,
        }
        return tests.get(operator)
    return {
        "=": value == literal,
        "<>": value != literal,
        "<": value < literal,
        ">=": value >= literal,
        "STARTS WITH": value.startswith(literal),
        "ENDS WITH": value.endswith(literal),
        "CONTAINS": literal in value,
    }[operator]


def rank(cell: Any) -> tuple[Any, ...]:
    """The order of cells: numbers, then texts, then nothing; of several values the least text."""
    text = min(cell) if isinstance(cell, tuple) else cell
    if text is None:
        return (2,)
    try:
        return (0, float(text))
    except ValueError:
        return (1, text)


# ---- the same answers ----


def fill(memory: Memory, graph: Any) -> None:
    edges, facts, aliases = graph
    db = memory.group.database("facts")
    with db.transaction():
        for table in ("mentions", "relations", "facts", "aliases", "names"):
            db.execute(f"DELETE FROM {table}")
    for subject, predicate, object_, day, ended in edges:
        done = memory.graph.relate(subject, predicate, object_, valid_from=day)
        if ended and done.created:
            with db.transaction():
                memory.graph.relations.retire(done.id, "2025-07-01T00:00:00.000Z", None)
    for entity, key, value, category, day in facts:
        memory.graph.upsert(entity, key, value, category=category, add=True, valid_from=day)
    for alias, entity in aliases:
        memory.graph.alias(alias, entity)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(graph=graphs, asked=st.lists(queries.map(used), min_size=3, max_size=6))
def test_a_query_returns_what_trying_everything_returns(
    memory: Memory, graph: Any, asked: list[dict[str, Any]]
):
    fill(memory, graph)
    rows = [json.loads(line) for line in memory.graph.export("jsonl")]
    for query in asked:
        text = as_text(query)
        found = [
            tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row)
            for row in memory.graph.query(text, as_of=query["as_of"], limit=1000).rows
        ]
        expected = Reference(rows, query["as_of"]).rows(query)
        assert Counter(found) == Counter(expected), text
        if query["order"] is not None:
            ranks = [rank(row[0]) for row in found]
            assert ranks == sorted(ranks, reverse=query["order"]), text


# ---- single sentences ----


@pytest.fixture
def known(memory: Memory) -> Memory:
    graph = memory.graph
    graph.upsert("Keystone", "port", "3000", category="project")
    graph.upsert("Ada Lovelace", "city", "Lisbon", category="person", valid_from="2025-01-01")
    graph.upsert("Ada Lovelace", "city", "Rome", category="person", valid_from="2026-01-01")
    graph.relate("Ada Lovelace", "owns", "Keystone")
    graph.relate("Keystone", "depends_on", "Kong")
    graph.relate("Kong", "dependsOn", "PostgreSQL")
    graph.relate("Kong", "trusts", "Kong")
    graph.alias("Mama", "Ada Lovelace")
    return memory


def cells(memory: Memory, query: str, **more: Any) -> list[Any]:
    return [row[0] if len(row) == 1 else row for row in memory.graph.query(query, **more).rows]


def test_names_are_found_in_any_case_and_by_alias(known: Memory):
    for name in ("ada lovelace", "MAMA", "mama"):
        assert cells(known, f"MATCH (a {{name: '{name}'}})-[:OWNS]->(b) RETURN b.name") == ["Keystone"]
        assert cells(known, f"match (a) where a.name = '{name}' return a.name") == ["Ada Lovelace"]


def test_a_type_is_its_words_however_they_are_joined(known: Memory):
    for kind in ("DEPENDS_ON", "depends_on", "dependsOn", "`depends on`"):
        query = f"MATCH (a {{name: 'Keystone'}})-[:{kind}*]->(b) RETURN b.name ORDER BY b.name"
        assert cells(known, query) == ["Kong", "PostgreSQL"]


def test_a_relation_with_itself_is_met_once(known: Memory):
    assert cells(known, "MATCH (a)-[:TRUSTS]-(b) RETURN a.name, b.name") == [("Kong", "Kong")]


def test_a_query_about_the_past_sees_what_held_then(known: Memory):
    query = "MATCH (a {name: 'Mama'}) RETURN a.city"
    assert cells(known, query) == ["Rome"]
    assert cells(known, query, as_of="2025-06") == ["Lisbon"]


def test_an_entity_and_a_relation_are_returned_as_objects(known: Memory):
    ((entity, relation),) = known.graph.query("MATCH (a:Person)-[r]->(b) RETURN a, r").rows
    assert entity == {"name": "Ada Lovelace", "labels": ["person"], "properties": {"city": "Rome"}}
    assert (relation["type"], relation["from"], relation["to"]) == ("owns", "Ada Lovelace", "Keystone")


def test_what_nothing_matches_is_explained(known: Memory):
    table = known.graph.query("MATCH (a:Robot {name: 'Hal'})-[:KILLS]->(b) RETURN b")
    assert table.rows == ()
    assert any("no label Robot" in note and "person" in note for note in table.notes)
    assert any("no relation type KILLS" in note and "owns" in note for note in table.notes)
    assert "no entity is called Hal" in table.notes


@pytest.mark.parametrize(
    "query",
    [
        "CREATE (a {name: 'x'})",
        "MATCH (a) DELETE a",
        "MATCH (a) DETACH DELETE a",
        "MATCH (a) SET a.port = '1' RETURN a",
        "MERGE (a {name: 'x'}) RETURN a",
        "MATCH (a) REMOVE a.port RETURN a",
        "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
        "CALL apoc.load.json('x') YIELD value RETURN value",
        "MATCH (a) RETURN a; DROP TABLE facts",
        "MATCH (a) RETURN readfile('/etc/passwd')",
        "MATCH (a) RETURN load_extension('x')",
        "COPY facts TO 'x'",
        "SELECT * FROM facts",
        "",
        "MATCH (a)",
        "MATCH (a) RETURN b",
        "MATCH (a)-[r]->(b) RETURN r.value",
        "MATCH (a)-->(b)-->(c)-->(d)-->(e) RETURN e",
        "MATCH (a)-[*1..9]->(b) RETURN b",
        f"MATCH (a) WHERE {'NOT ' * 2000} a.x = 1 RETURN a",
        f"MATCH (a) WHERE {' OR '.join(['a.x = 1'] * 900)} RETURN a",
        f"MATCH (a) WHERE a.x IN [{','.join('1' * 900)}] RETURN a",
    ],
)
def test_what_writes_opens_files_or_is_no_query_is_refused(known: Memory, query: str):
    before = list(known.graph.export())
    with pytest.raises(InvalidValue):
        known.graph.query(query)
    assert list(known.graph.export()) == before


@given(
    st.text(st.characters(codec="utf-8"), max_size=60)
    | st.from_regex(r"MATCH \(a.{0,40}RETURN a.{0,9}", fullmatch=True)
)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_answered_or_refused(memory: Memory, text: str):
    try:
        memory.graph.query(text)
    except InvalidValue as error:
        assert error.hint


def test_values_are_parameters_never_sql(known: Memory):
    hostile = "x' OR 1=1 --"
    known.graph.upsert("Keystone", "motto", hostile)
    assert cells(known, 'MATCH (a) WHERE a.motto = "x\' OR 1=1 --" RETURN a.name') == ["Keystone"]
    assert cells(known, 'MATCH (a {name: "x\' OR 1=1 --"}) RETURN a') == []
    assert cells(known, "MATCH (a)-[:`x') OR 1=1 --`]->(b) RETURN a") == []


def test_a_query_that_would_take_too_long_is_ended(memory: Memory, monkeypatch: pytest.MonkeyPatch):
    rows = [{"subject": f"E{n % 14}", "predicate": "knows", "object": f"E{n // 14}"} for n in range(196)]
    memory.graph.ingest_rows(relations=rows)
    monkeypatch.setattr("nanoclaw_memory.graph.query.LIMIT_MS", 50)
    with pytest.raises(StoreBusy, match="took more than"):
        memory.graph.query("MATCH (a)--(b)--(c)--(d), (d)--(e)--(f)--(g) RETURN count(*)")
    assert cells(memory, "MATCH (a {name: 'E1'})-->(b {name: 'E2'}) RETURN b.name") == ["E2"]


def test_rows_beyond_the_limit_are_reported(known: Memory):
    assert known.graph.query("MATCH (a) RETURN a.name", limit=2).truncated
    assert not known.graph.query("MATCH (a) RETURN a.name LIMIT 2", limit=2).truncated
    assert len(cells(known, "MATCH (a) RETURN a.name ORDER BY a.name SKIP 1 LIMIT 2")) == 2


def test_only_a_graph_query_loads_the_parser(tmp_path: Path):
    import subprocess
    import sys

    code = "import sys, nanoclaw_memory.memory, nanoclaw_memory.graph.graph; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
