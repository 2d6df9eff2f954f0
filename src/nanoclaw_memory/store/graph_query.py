"""Compile graph queries to SQL: patterns of entities and relations become joins over the facts and relations of a
view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import msgspec

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.facts import View, valid
from nanoclaw_memory.store.graph_pattern import (
    Comparison,
    EdgePattern,
    FunctionCall,
    GraphQuery,
    Literal,
    Logic,
    NodePattern,
    PathPattern,
    Property,
    Variable,
)
from nanoclaw_memory.store.names import slot_of

MAX_HOPS = 3  # in one path
MAX_RELATIONS = 6  # in a whole query
MAX_DEPTH, MAX_TERMS = 30, 200  # of conditions
MAX_WAYS = 64  # combinations of lengths and directions of a pattern
_EDGE = {
    "since": "valid_from",
    "valid_from": "valid_from",
    "until": "valid_to",
    "valid_to": "valid_to",
    "source": "source",
    "origin": "origin",
    "predicate": "predicate",
}


class CompiledQuery(msgspec.Struct, frozen=True):
    """A query as SQL; `kinds` says how each column is read."""

    sql: str
    params: dict[str, Any]
    kinds: tuple[str, ...]


class _Bound(msgspec.Struct):
    """The SQL of the variables, and the tables and conditions that they need."""

    nodes: dict[str, str] = msgspec.field(default_factory=dict)
    edges: dict[str, str] = msgspec.field(default_factory=dict)
    tables: list[str] = msgspec.field(default_factory=list)
    conditions: list[str] = msgspec.field(default_factory=list)

    def node(self, name: str) -> str:
        """Return the folded name of an entity, as SQL."""
        if name not in self.nodes:
            what = "is a relation" if name in self.edges else "is not in a MATCH"
            raise InvalidValue(f"{name} {what}", "name it in the pattern: MATCH (a)-[r]->(b)")
        return self.nodes[name]

    def edge(self, name: str) -> str:
        """Return the id of a relation, as SQL."""
        if name not in self.edges:
            what = "is an entity" if name in self.nodes else "is not in a MATCH"
            raise InvalidValue(f"{name} {what}", "name the relation in the pattern: MATCH (a)-[r]->(b)")
        return self.edges[name]

    def select(self, what: str) -> str:
        """Return one combination of the pattern as a SELECT."""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT {what} FROM {', '.join(self.tables)}{where}"  # noqa: S608


class Compiler:
    """Compile one query to one SELECT; it writes nothing, and every value is a parameter.

    `resolve` returns the entities that a name or alias means; `same` maps names with statements of their own to the
    entity that they are an alias of.
    """

    def __init__(
        self, db: Database, view: View, resolve: Callable[[str], Sequence[str]], same: Mapping[str, str]
    ) -> None:
        self._db = db
        self._params: dict[str, Any] = dict(view.params)
        self._resolve = resolve
        self._same = same
        self._listed: set[str] = set()  # entities that are found only by their labels and values
        self._number = 0

    def compile(self, query: GraphQuery, most: int) -> CompiledQuery:
        """Return the SELECT for a query; it asks for one row more than `most`, to detect that there are more."""
        nodes, edges = _variables(query)
        outer = _Bound(
            {name: f"m.n{number}" for number, name in enumerate(nodes)},
            {name: f"m.e{number}" for number, name in enumerate(edges)},
        )
        matched = " UNION ALL ".join(self._ways(query, nodes, edges))
        values = [self._returned(column.value, outer) for column in query.columns]
        sql = f"{self._aliases()}SELECT {', '.join(value for _, value in values)} FROM ({matched}) AS m"  # noqa: S608
        sql += self._grouping(query, [value for _, value in values]) + self._ordering(query, outer)
        limit = most if query.limit is None else min(query.limit, most)
        limits = {"row_limit": limit + (query.limit is None or query.limit > most), "row_skip": query.skip}
        sql += " LIMIT :row_limit OFFSET :row_skip"
        return CompiledQuery(sql, self._params | limits, tuple(kind for kind, _ in values))

    def _aliases(self) -> str:
        """Return the names that mean another entity, as a table."""
        if not self._same:
            return ""
        pairs = self._param(json.dumps(self._same))
        return f"WITH same (name, node) AS (SELECT key, value FROM json_each({pairs})) "  # noqa: S608

    # ---- patterns ----

    def _ways(self, query: GraphQuery, nodes: Sequence[str], edges: Sequence[str]) -> Iterator[str]:
        """Yield the pattern once for each combination of lengths and directions."""
        paths = [path for match in query.matches for path in match]
        ways = [way for way in product(*map(_path_ways, paths)) if _relations(way) <= MAX_RELATIONS]
        if not 1 <= len(ways) <= MAX_WAYS:
            raise InvalidValue("the pattern is too wide", "name directions (->) and lengths (*1..2)")
        anchored = _anchored(query.where)
        for way in ways:
            bound = _Bound()
            left = list(way)
            for match in query.matches:
                joined = [r for path in match for r in self._path(path, left.pop(0), bound, anchored)]
                bound.conditions += [f"{a}.id <> {b}.id" for a, b in combinations(joined, 2)]
            if query.where is not None:
                bound.conditions.append(self._required(query.where, bound))
            wanted = [f"{bound.nodes[name]} AS n{number}" for number, name in enumerate(nodes)]
            wanted += [f"{bound.edges[name]} AS e{number}" for number, name in enumerate(edges)]
            yield bound.select(", ".join(wanted) or "1")

    def _path(
        self, path: PathPattern, way: Sequence[Sequence[str]], bound: _Bound, anchored: frozenset[str]
    ) -> list[str]:
        """Add a path to the bound variables; return the names of its relations' rows."""
        joined: list[str] = []
        last = ""
        first = path.nodes[0]
        here = bound.nodes.get(first.variable)
        alone = here is None and not path.edges
        if alone:
            here = self._alone(bound)
        if here is not None:
            if alone and first.variable not in anchored and "name" not in dict(first.properties):
                self._listed.add(here)
            self._bind(first, here, bound)
        for edge, target, steps in zip(path.edges, path.nodes[1:], way, strict=True):
            for step in steps:
                row = self._name("r")
                joined.append(row)
                start, end = ("subject_name", "object_name")[:: 1 if step == ">" else -1]
                bound.tables.append(f"relations AS {row}")
                bound.conditions.append(valid("relations", row))
                if here is None:
                    here = self._entity(f"{row}.{start}")
                    self._bind(first, here, bound)
                else:
                    bound.conditions.append(self._is(f"{row}.{start}", here))
                bound.conditions += self._of_type(edge, row, step)
                last = f"{row}.{end}"
                here = self._entity(last)
            if edge.variable:
                if edge.variable in bound.edges or edge.variable in bound.nodes:
                    raise InvalidValue(f"{edge.variable} is named twice", "give each relation its own name")
                bound.edges[edge.variable] = f"{joined[-1]}.id"
            known = bound.nodes.get(target.variable)
            if known is not None:
                bound.conditions.append(self._is(last, known))
                here = known
            self._bind(target, here or "", bound)
        return joined

    def _alone(self, bound: _Bound) -> str:
        """Return an entity without a relation in the pattern: any that has a fact or relation."""
        row = self._name("n")
        stated = [
            f"EXISTS (SELECT 1 FROM {table} AS s WHERE {valid(table, 's')}"  # noqa: S608
            f" AND {self._is(f's.{column}', f'{row}.name')})"
            for table, column in (
                ("facts", "name"),
                ("relations", "subject_name"),
                ("relations", "object_name"),
            )
        ]
        bound.tables.append(f"names AS {row}")
        bound.conditions.append(f"({' OR '.join(stated)})")
        if self._same:
            bound.conditions.append(f"{row}.name NOT IN (SELECT name FROM same)")  # noqa: S608
        return f"{row}.name"

    def _bind(self, node: NodePattern, entity: str, bound: _Bound) -> None:
        """Bind an entity, with the conditions of its labels and properties."""
        if node.variable:
            if node.variable in bound.edges:
                raise InvalidValue(f"{node.variable} is named twice", "give each relation its own name")
            bound.nodes[node.variable] = entity
        own = _Bound({"": entity})
        for label in node.labels:
            own_label = f"FROM facts AS l WHERE l.category = {self._param(label.casefold())} AND {valid('facts', 'l')}"
            bound.conditions.append(
                f"{entity} IN (SELECT {self._entity('l.name')} {own_label})"
                if entity in self._listed
                else f"EXISTS (SELECT 1 {own_label} AND {self._is('l.name', entity)})"
            )
        for key, value in node.properties:
            bound.conditions.append(self._required(Comparison("=", Property("", key), Literal(value)), own))

    def _of_type(self, edge: EdgePattern, row: str, step: str) -> Iterator[str]:
        if edge.types:
            yield f"{row}.slot IN ({', '.join(self._param(slot_of(name)) for name in edge.types)})"
        if edge.direction == "-" and step == "<":  # a relation of an entity with itself has one direction
            yield f"{self._entity(f'{row}.subject_name')} <> {self._entity(f'{row}.object_name')}"

    def _entity(self, column: str) -> str:
        """Return the entity that a name in a row means."""
        if not self._same:
            return column
        return f"coalesce((SELECT node FROM same WHERE name = {column}), {column})"  # noqa: S608

    def _is(self, column: str, entity: str) -> str:
        """Return whether a name in a row means the entity; written so that an index on the column is used."""
        if not self._same:
            return f"{column} = {entity}"
        return f"{column} IN (SELECT name FROM same WHERE node = {entity} UNION ALL SELECT {entity})"  # noqa: S608

    # ---- conditions ----

    def _required(self, condition: Any, bound: _Bound) -> str:
        """Return a required condition; one that finds entities by a value uses the keyword index."""
        if isinstance(condition, Logic) and condition.operator == "AND" and len(condition.parts) <= MAX_TERMS:
            return f"({' AND '.join(self._required(part, bound) for part in condition.parts)})"
        if isinstance(condition, Comparison) and condition.operator == "=":
            own, value = condition.left, getattr(condition.right, "value", None)
            text = value if isinstance(value, str) and re.search("[A-Za-z0-9]", value) else ""
            of_entity = isinstance(own, Property) and own.key != "name" and own.variable in bound.nodes
            if of_entity and text and bound.nodes[own.variable] in self._listed:
                slot = self._param(slot_of(own.key))
                found, words = self._db.containing("facts_fts", [text])
                for name, word in words.items():
                    found = found.replace(f":{name}", self._param(word))
                return (
                    f"{bound.nodes[own.variable]} IN (SELECT {self._entity('v.name')} FROM facts AS v"  # noqa: S608
                    f" WHERE v.id IN (SELECT rowid FROM facts_fts WHERE {found})"
                    f" AND v.slot = {slot} AND v.value = {self._param(text)} AND {valid('facts', 'v')})"
                )
        return self._condition(condition, bound)

    def _condition(self, condition: Any, bound: _Bound, depth: int = 0) -> str:
        if depth > MAX_DEPTH:
            raise InvalidValue("the conditions are nested too deeply", "write them flat")
        if isinstance(condition, Comparison):
            return self._compared(condition, bound)
        if not isinstance(condition, Logic):
            raise InvalidValue("WHERE needs a condition", 'for example WHERE a.city = "Lisbon"')
        if condition.operator == "EXISTS":
            return self._exists(condition.parts[0], bound)
        if condition.operator == "IS NULL":
            value, tables, where = self._operand(condition.parts[0], bound)
            return (
                f"NOT EXISTS ({_Bound({}, {}, tables, where).select('1')})"
                if tables
                else f"({value} IS NULL)"
            )
        if len(condition.parts) > MAX_TERMS:
            raise InvalidValue(f"more than {MAX_TERMS} conditions are joined", "use IN, or ask in parts")
        parts = [self._condition(part, bound, depth + 1) for part in condition.parts]
        if condition.operator == "NOT":
            return f"(NOT {parts[0]})"
        if condition.operator == "XOR":
            return f"(({parts[0]}) <> ({parts[1]}))"
        return f"({f' {condition.operator} '.join(parts)})"

    def _exists(self, path: PathPattern, bound: _Bound) -> str:
        named = [node.variable for node in path.nodes] + [edge.variable for edge in path.edges]
        for name in filter(None, named):
            if name not in bound.nodes:
                raise InvalidValue(f"{name} is not in a MATCH", "a pattern in WHERE names nothing new")
        found = []
        for way in _path_ways(path):
            inner = _Bound(dict(bound.nodes))
            joined = self._path(path, way, inner, frozenset())
            inner.conditions += [f"{a}.id <> {b}.id" for a, b in combinations(joined, 2)]
            found.append(f"EXISTS ({inner.select('1') if inner.tables else _only(inner.conditions)})")
        return f"({' OR '.join(found)})"

    def _compared(self, comparison: Comparison, bound: _Bound) -> str:
        """Return a comparison; it is true for a key with several values if one matches, and NULL without a value."""
        if (named := self._named(comparison, bound)) is not None:
            return named
        left, tables, where = self._operand(comparison.left, bound)
        if comparison.operator == "IN":
            wanted = comparison.right.value if isinstance(comparison.right, Literal) else ()
            if len(wanted) > MAX_TERMS:
                raise InvalidValue(f"a list has more than {MAX_TERMS} values", "ask in parts")
            tests = [self._test("=", left, Literal(value), self._param(value)) for value in wanted]
            test = f"({' OR '.join(tests)})" if tests else "0"
        else:
            right, more, on = self._operand(comparison.right, bound)
            tables, where = tables + more, where + on
            number = next((s for s in (comparison.left, comparison.right) if _is_number(s)), None)
            test = self._test(comparison.operator, left, number or comparison.right, right)
        return f"({_Bound({}, {}, tables, where).select(f'max({test})')})" if tables else f"({test})"

    def _named(self, comparison: Comparison, bound: _Bound) -> str | None:
        """Compare a name as the entity that it means: in any case, and by its aliases too."""
        left, right, operator = comparison.left, comparison.right, comparison.operator
        if operator not in ("=", "<>", "IN"):
            return None
        if not _is_name(left) and _is_name(right):
            left, right = right, left
        if not _is_name(left) or (isinstance(left, Property) and left.variable in bound.edges):
            return None
        entity = bound.node(left.variable if isinstance(left, Property) else left.name)
        no = "NOT " if operator == "<>" else ""
        if isinstance(right, Literal):
            texts = right.value if operator == "IN" else [right.value]
            if None in texts:
                return "NULL"
            ends = [end for text in texts for end in self._resolve(str(text))]
            return f"({entity} {no}IN ({', '.join(map(self._param, ends))}))"
        if _is_name(right):
            other = bound.node(right.variable if isinstance(right, Property) else right.name)
            return f"({entity} {operator} {other})"
        return None

    def _test(self, operator: str, left: str, literal: Any, right: str) -> str:
        if _is_number(literal):
            if operator.isalpha() or " " in operator:
                return "NULL"  # a number has no beginning
            a, b = (_number(side) for side in (left, right))
            if operator in ("=", "<>"):
                return f"({'NOT ' if operator == '<>' else ''}coalesce({a} = {b}, FALSE))"
            return f"({a} {operator} {b})"
        if operator == "STARTS WITH":
            return f"substr({left}, 1, length({right})) = {right}"
        if operator == "ENDS WITH":
            return f"substr({left}, length({left}) - length({right}) + 1) = {right}"
        if operator == "CONTAINS":
            return f"instr({left}, {right}) > 0"
        return f"{left} {operator} {right}"

    def _operand(self, value: Any, bound: _Bound) -> tuple[str, list[str], list[str]]:
        """Return a value as SQL, with the rows of facts that it is read from."""
        if isinstance(value, Literal):
            return self._param(value.value), [], []
        if isinstance(value, Variable):
            if value.name in bound.edges:
                return bound.edge(value.name), [], []
            return bound.node(value.name), [], []
        if isinstance(value, FunctionCall):
            if value.name in ("tolower", "toupper"):
                inner, tables, where = self._operand(value.argument, bound)
                return f"{value.name[2:]}({inner})", tables, where
            if value.name == "type" and isinstance(value.argument, Variable):
                return self._of_edge(bound.edge(value.argument.name), "predicate"), [], []
            raise InvalidValue(
                f"{value.name}() is not known here", "use type, toLower, toUpper; in RETURN count too"
            )
        if value.variable in bound.edges:
            return self._of_edge(bound.edge(value.variable), value.key), [], []
        entity = bound.node(value.variable)
        if value.key == "name":
            return f"(SELECT label FROM names WHERE name = {entity})", [], []  # noqa: S608
        row = self._name("f")
        slot = self._param(slot_of(value.key))
        where = [self._is(f"{row}.name", entity), f"{row}.slot = {slot}", valid("facts", row)]
        return f"{row}.value", [f"facts AS {row}"], where

    def _of_edge(self, edge: str, key: str) -> str:
        if key not in _EDGE:
            raise InvalidValue(f"a relation has no property {key!r}", f"use {', '.join(_EDGE)}")
        return f"(SELECT nullif({_EDGE[key]}, '') FROM relations WHERE id = {edge})"  # noqa: S608

    # ---- what is returned ----

    def _returned(self, value: Any, bound: _Bound) -> tuple[str, str]:
        """Return the kind of a column, and its SQL."""
        if isinstance(value, Variable):
            kind = "edge" if value.name in bound.edges else "node"
            return kind, bound.edge(value.name) if kind == "edge" else bound.node(value.name)
        if isinstance(value, FunctionCall) and value.name == "count":
            if value.argument is None:
                return "plain", "count(*)"
            return "plain", f"count({'DISTINCT ' * value.distinct}{self._returned(value.argument, bound)[1]})"
        if isinstance(value, FunctionCall) and value.name in ("labels", "keys", "properties"):
            entity = bound.node(getattr(value.argument, "name", ""))
            column = {"labels": "category", "keys": "key"}.get(value.name, "")
            return ("list", self._list(column, entity)) if column else ("properties", entity)
        if isinstance(value, Property) and value.variable not in bound.edges and value.key != "name":
            slot = self._param(slot_of(value.key))
            return "value", self._list("value", bound.node(value.variable), f" AND f.slot = {slot}")
        plain, tables, where = self._operand(value, bound)
        return "plain", f"({_Bound({}, {}, tables, where).select(f'min({plain})')})" if tables else plain

    def _list(self, column: str, entity: str, more: str = "") -> str:
        """Return all values of an entity's facts as a JSON array; NULL without any."""
        of_entity = f"{self._is('f.name', entity)}{more} AND {valid('facts', 'f')}"
        rows = f"SELECT DISTINCT f.{column} AS v FROM facts AS f WHERE {of_entity} ORDER BY v"  # noqa: S608
        return f"(SELECT nullif(json_group_array(v), '[]') FROM ({rows}))"  # noqa: S608

    def _grouping(self, query: GraphQuery, values: Sequence[str]) -> str:
        counts = [column.counts for column in query.columns]
        keys = [value for value, counted in zip(values, counts, strict=True) if not counted]
        return f" GROUP BY {', '.join(keys)}" if keys and (any(counts) or query.distinct) else ""

    def _ordering(self, query: GraphQuery, bound: _Bound) -> str:
        """Sort numbers by size and before texts; missing values last, or first when descending."""
        known = {column.name: column.value for column in query.columns}
        grouped = query.distinct or any(column.counts for column in query.columns)
        keys = []
        for value, descending in query.order:
            if isinstance(value, Variable) and value.name in known:
                value = known[value.name]
            elif grouped and value not in known.values() and not _is_of(value, known.values()):
                raise InvalidValue(
                    "ORDER BY names what is not returned", "return it, or leave out DISTINCT and count"
                )
            sql = self._sortable(value, bound)
            order = " DESC" if descending else ""
            keys += [
                f"{key}{order}" for key in (f"{sql} IS NULL", f"{_number(sql)} IS NULL", _number(sql), sql)
            ]
        return f" ORDER BY {', '.join(keys)}" if keys else ""

    def _sortable(self, value: Any, bound: _Bound) -> str:
        """Return one scalar to sort by: the least of several values, the name of an entity."""
        if isinstance(value, Variable) and value.name in bound.nodes:
            value = Property(value.name, "name")
        if isinstance(value, FunctionCall) and value.name in ("count", "labels", "keys", "properties"):
            return self._returned(value, bound)[1]
        plain, tables, where = self._operand(value, bound)
        return f"({_Bound({}, {}, tables, where).select(f'min({plain})')})" if tables else plain

    # ---- names ----

    def _param(self, value: Any) -> str:
        name = self._name("p")
        self._params[name] = str(value).casefold() if isinstance(value, bool) else value
        return f":{name}"

    def _name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"


def _variables(query: GraphQuery) -> tuple[list[str], list[str]]:
    """Return the names of all entities and of all relations, in the order of the pattern."""
    paths = [path for match in query.matches for path in match]
    nodes = dict.fromkeys(node.variable for path in paths for node in path.nodes if node.variable)
    edges = dict.fromkeys(edge.variable for path in paths for edge in path.edges if edge.variable)
    return list(nodes), list(edges)


def _path_ways(path: PathPattern) -> list[tuple[tuple[str, ...], ...]]:
    """Return the combinations of lengths and directions of one path, within the limit of hops."""
    least = sum(edge.low for edge in path.edges)
    if least > MAX_HOPS:
        raise InvalidValue(
            f"a path of {least} relations is too long", f"at most {MAX_HOPS}; use a second MATCH"
        )
    ways = product(*(edge.ways for edge in path.edges))
    return [way for way in ways if sum(map(len, way)) <= MAX_HOPS]


def _relations(way: Sequence[Sequence[Sequence[str]]]) -> int:
    return sum(len(steps) for path in way for steps in path)


def _anchored(where: Any) -> frozenset[str]:
    """Return variables whose name a condition fixes: they need no list of all with their label."""
    if isinstance(where, Logic) and where.operator == "AND":
        return frozenset().union(*map(_anchored, where.parts))
    fixed = isinstance(where, Comparison) and where.operator in ("=", "IN") and _is_name(where.left)
    return frozenset([where.left.variable]) if fixed and isinstance(where.left, Property) else frozenset()


def _is_name(value: Any) -> bool:
    return isinstance(value, Variable) or (isinstance(value, Property) and value.key == "name")


def _is_of(value: Any, returned: Iterable[Any]) -> bool:
    """Return whether it is a property of something that is returned."""
    return isinstance(value, Property) and Variable(value.variable) in returned


def _is_number(value: Any) -> bool:
    number = value.value if isinstance(value, Literal) else None
    return isinstance(number, int | float) and not isinstance(number, bool)


def _number(sql: str) -> str:
    """Return a value as a number if its text is one, else NULL."""
    text = f"CAST({sql} AS TEXT)"
    digits = (
        f"trim({text}, '0123456789.-') = '' AND trim({text}, '.-') <> '' AND substr({text}, 2) NOT LIKE '%-%'"
    )
    return f"(CASE WHEN {digits} AND {text} NOT LIKE '%.%.%' THEN CAST({sql} AS DOUBLE PRECISION) END)"


def _only(conditions: Sequence[str]) -> str:
    return f"SELECT 1 WHERE {' AND '.join(conditions) or '1 = 1'}"
