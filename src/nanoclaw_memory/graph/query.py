"""Run graph queries: resolve names, read rows back as values, and note what the graph does not know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nanoclaw_memory.errors import StoreBusy
from nanoclaw_memory.graph.cypher import parse
from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.facts import FactTable, View, valid
from nanoclaw_memory.store.graph_pattern import GraphQuery
from nanoclaw_memory.store.graph_query import Compiler
from nanoclaw_memory.store.names import NameTable, fold, slot_of
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.types import GraphTable

LIMIT_MS = 2_000
MOST_FACTS = 20_000
MOST_NAMED = 12


class QueryRunner:
    """Run queries over one view of the graph."""

    def __init__(
        self,
        facts: FactTable,
        relations: RelationTable,
        names: NameTable,
        view: View,
        same: Mapping[str, str],
    ) -> None:
        self._facts = facts
        self._relations = relations
        self._names = names
        self._view = view
        self._same = same  # aliases under which statements are stored, each with the one entity that it means

    def run(self, text: str, most: int) -> GraphTable:
        """Return the table that a query asks for, of at most `most` rows."""
        query = parse(text)
        compiled = Compiler(self._facts.db, self._view, self._ends, self._same).compile(query, most)
        try:
            found = self._facts.db.query_within(LIMIT_MS, compiled.sql, compiled.params)
        except StoreBusy as error:
            hint = "name an entity or a relation type in the pattern, or make it shorter"
            raise StoreBusy(error.message, hint) from None
        rows = self._read(compiled.kinds, found[:most])
        columns = tuple(column.name for column in query.columns)
        notes = () if any(any(row) for row in rows) else tuple(self._unknown(query))
        return GraphTable(columns, rows, len(found) > most, notes)

    def _ends(self, name: str) -> Sequence[str]:
        """Return the entities that a name or alias means."""
        folded = fold(name)
        ends = self._names.meanings([folded])[folded].ends
        return list(dict.fromkeys(self._same.get(end, end) for end in ends))

    # ---- rows ----

    def _read(self, kinds: Sequence[str], rows: Sequence[Row]) -> tuple[tuple[Any, ...], ...]:
        """Return rows with entities and relations as objects, and keys with several values as lists."""
        columns = [self._column(kind, [row[number] for row in rows]) for number, kind in enumerate(kinds)]
        return tuple(zip(*columns, strict=True)) if rows else ()

    def _column(self, kind: str, cells: list[Any]) -> list[Any]:
        if kind == "value":
            lists = [json.loads(cell) if cell else [] for cell in cells]
            return [values if len(values) > 1 else next(iter(values), None) for values in lists]
        if kind == "list":
            return [json.loads(cell) if cell else [] for cell in cells]
        if kind in ("node", "properties"):
            nodes = self._nodes(dict.fromkeys(cells))
            return [nodes[cell] if kind == "node" else nodes[cell]["properties"] for cell in cells]
        if kind == "edge":
            edges = {number: self._edge(number) for number in dict.fromkeys(cells)}
            return [edges[cell] for cell in cells]
        return cells

    def _nodes(self, entities: Iterable[str]) -> dict[str, dict[str, Any]]:
        labels = self._names.labels(entities)
        found = {name: {"name": labels.get(name, name), "labels": [], "properties": {}} for name in entities}
        names = {**{name: name for name in found}, **{a: e for a, e in self._same.items() if e in found}}
        for row in self._facts.of(list(names), self._view, MOST_FACTS):
            node: dict[str, Any] = found[names[row.names[0]]]
            if row.item.category not in node["labels"]:
                node["labels"].append(row.item.category)
            values = node["properties"].setdefault(row.item.key, row.item.value)
            if values != row.item.value:
                several = values if isinstance(values, list) else [values]
                node["properties"][row.item.key] = [*several, row.item.value]
        return found

    def _edge(self, number: int) -> dict[str, Any]:
        row = self._relations.get(number)
        if row is None:
            return {}
        own = row.item
        ends = {"from": own.subject, "to": own.object, "since": own.valid_from}
        return {"type": own.predicate, **ends, **({"until": own.valid_to} if own.valid_to else {})}

    # ---- what the graph does not know ----

    def _unknown(self, query: GraphQuery) -> Iterable[str]:
        """Yield unknown relation types and labels of a query, with the known ones."""
        paths = [path for match in query.matches for path in match]
        types = {name for path in paths for edge in path.edges for name in edge.types}
        labels = {name for path in paths for node in path.nodes for name in node.labels}
        yield from self._missing(
            "relations", "slot", "relation type", {name: slot_of(name) for name in types}
        )
        yield from self._missing("facts", "category", "label", {name: name.casefold() for name in labels})
        named = [
            str(value)
            for path in paths
            for node in path.nodes
            for key, value in node.properties
            if key == "name"
        ]
        for name in named:
            ends = self._ends(name)
            if not self._facts.of(ends, self._view, 1) and not self._relations.of(ends, self._view, 1):
                yield f"no entity is called {name}"

    def _missing(self, table: str, column: str, what: str, asked: dict[str, str]) -> Iterable[str]:
        for name, form in sorted(asked.items()):
            there = f"SELECT 1 FROM {table} WHERE {column} = :form AND {valid(table)} LIMIT 1"  # noqa: S608
            if not self._facts.db.query(there, {**self._view.params, "form": form}):
                sql = (
                    f"SELECT {column} FROM {table} WHERE {valid(table)} GROUP BY 1 ORDER BY count(*) DESC, 1"  # noqa: S608
                )
                known = [row[0] for row in self._facts.db.query(sql, self._view.params)]
                yield f"there is no {what} {name}; there are: {', '.join(known[:MOST_NAMED]) or 'none'}"
