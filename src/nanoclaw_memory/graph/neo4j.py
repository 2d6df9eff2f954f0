"""Export for Neo4j and Graphiti, and import their exports: Cypher, CSV, JSON lines of nodes, episodes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from nanoclaw_memory.store.names import slot_of

Rows = Iterable[dict[str, Any]]
_NAMES = ("name", "title", "label", "id", "key")  # what other graphs call a node's name, best first
# Names that Graphiti and Neo4j reserve.
_OWN = frozenset(
    "uuid group_id labels created_at name_embedding fact_embedding episodes aliases source_description".split()
)
_ARRAY = ";"


# ---- export ----


def as_cypher(rows: Rows) -> Iterator[str]:
    """Yield a script that fills a Neo4j database with current facts; running it twice changes nothing."""
    nodes, relations = _graph(rows)
    yield "CREATE CONSTRAINT entity_name IF NOT EXISTS FOR (n:Entity) REQUIRE n.name IS UNIQUE;"
    for name, node in nodes.items():
        labels = [f"n:{_quoted(label.title())}" for label in node["labels"]]
        known = {key: values if len(values) > 1 else values[0] for key, values in node["facts"].items()}
        known |= {"aliases": node["aliases"]} if node["aliases"] else {}
        parts = [*labels, *(f"n.{_quoted(key)} = {_literal(value)}" for key, value in known.items())]
        yield f"MERGE (n:Entity {{name: {_literal(name)}}}){' SET ' + ', '.join(parts) if parts else ''};"
    for row in relations:
        kind = _quoted(_type(row["predicate"]))
        start = f"{{valid_from: {_literal(row['valid_from'])}}}"
        end = f" SET r.valid_to = {_literal(row['valid_to'])}" if row["valid_to"] else ""
        ends = (
            f"(a:Entity {{name: {_literal(row['subject'])}}}), (b:Entity {{name: {_literal(row['object'])}}})"
        )
        yield f"MATCH {ends} MERGE (a)-[r:{kind} {start}]->(b){end};"


def as_node_csv(rows: Rows) -> Iterator[str]:
    """Yield the nodes file of `neo4j-admin database import`; several values of a key are joined by a semicolon."""
    nodes, _ = _graph(rows)
    keys = list(dict.fromkeys(key for node in nodes.values() for key in node["facts"]))
    several = {key for node in nodes.values() for key, values in node["facts"].items() if len(values) > 1}
    yield _line(["name:ID", ":LABEL", *(f"{key}:string[]" if key in several else key for key in keys)])
    for name, node in nodes.items():
        labels = _ARRAY.join(["Entity", *(label.title() for label in node["labels"])])
        values = [_ARRAY.join(one.replace(_ARRAY, ",") if key in several else one for one in node["facts"].get(key, ()))
                  for key in keys]  # fmt: skip
        yield _line([name, labels, *values])


def as_relation_csv(rows: Rows) -> Iterator[str]:
    """Yield the relationships file of `neo4j-admin database import`."""
    _, relations = _graph(rows)
    yield _line([":START_ID", ":END_ID", ":TYPE", "valid_from", "valid_to"])
    for row in relations:
        yield _line(
            [row["subject"], row["object"], _type(row["predicate"]), row["valid_from"], row["valid_to"]]
        )


def as_episodes(rows: Rows) -> Iterator[str]:
    """Yield episodes for Graphiti's `add_episode_bulk`, one per statement, oldest first; past ones too."""
    stated = [row for row in rows if row["type"] != "alias"]
    for row in sorted(stated, key=lambda row: str(row["valid_from"])):
        names = ("entity", "key", "value") if row["type"] == "fact" else ("subject", "predicate", "object")
        content = {name: row[name] for name in (*names, "valid_to") if row[name]}
        episode = {
            "name": f"{row[names[0]]} {row[names[1]]}",
            "content": json.dumps(content, ensure_ascii=False),
            "source": "json",
            "source_description": f"nanoclaw-memory {row['type']}: {row['source']}",
            "reference_time": row["valid_from"],
        }
        yield json.dumps(episode, ensure_ascii=False)


def _graph(rows: Rows) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Return entities with their current facts and other names, and all relations."""
    nodes: dict[str, dict[str, Any]] = {}
    relations = []

    def node(name: str) -> dict[str, Any]:
        return nodes.setdefault(name, {"labels": [], "facts": {}, "aliases": []})

    for row in rows:
        if row["type"] == "alias":
            node(row["entity"])["aliases"].append(row["alias"])
        elif row["type"] == "relation":
            node(row["subject"]), node(row["object"])
            relations.append(row)
        elif not row["valid_to"]:
            own = node(row["entity"])
            own["facts"].setdefault("full_name" if row["key"] == "name" else row["key"], []).append(
                row["value"]
            )
            if row["category"] not in own["labels"]:
                own["labels"].append(row["category"])
    return nodes, relations


def _type(predicate: str) -> str:
    return re.sub(r"\W+", "_", slot_of(predicate)).upper().strip("_") or "RELATED_TO"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(str(value), ensure_ascii=False)


def _line(cells: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()


# ---- import ----


class NodeReader:
    """Convert nodes and relationships of a Neo4j export to rows; remembers the names of nodes by their ids."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def node(
        self, id: Any, labels: Iterable[str], properties: dict[str, Any]
    ) -> Iterator[dict[str, Any] | str]:
        """Yield the facts that a node's properties state."""
        kinds = [label for label in labels if label not in ("Entity", "")]
        if "Episodic" in kinds or "Community" in kinds:
            return  # Graphiti's sources and summaries of several nodes
        name = next((str(properties[key]) for key in _NAMES if properties.get(key)), "")
        if not name:
            yield f"has no {', '.join(_NAMES[:3])}"
            return
        self._names[str(id)] = name
        for key, value in properties.items():
            values = value if isinstance(value, list) else [value]
            if key == "aliases":
                yield from ({"type": "alias", "alias": one, "entity": name} for one in values)
            if key in _OWN or str(value) == name:
                continue
            category = kinds[0].casefold() if kinds else ""
            for one in filter(lambda one: one not in (None, ""), values):
                row = {"type": "fact", "entity": name, "key": key, "value": _plain(one), "category": category}
                yield {**row, "add": len(values) > 1}

    def relationship(
        self, kind: str, start: Any, end: Any, properties: dict[str, Any]
    ) -> Iterator[dict[str, Any] | str]:
        """Yield the relation of a relationship; Graphiti stores its predicate and dates as properties."""
        if kind in ("MENTIONS", "HAS_MEMBER", "HAS_EPISODE", "NEXT_EPISODE"):
            return
        ends = [self._names.get(str(one), "" if str(one).isdigit() else str(one)) for one in (start, end)]
        if not all(ends):
            yield "relates nodes that the file does not name"
            return
        stated = properties.get("name") if kind == "RELATES_TO" else ""
        yield {
            "type": "relation",
            "subject": ends[0],
            "predicate": str(stated or kind).casefold(),
            "object": ends[1],
            "valid_from": _moment(properties.get("valid_from") or properties.get("valid_at")),
            "valid_to": _moment(
                properties.get("valid_to") or properties.get("invalid_at") or properties.get("expired_at")
            ),
        }

    def json_line(self, row: dict[str, Any]) -> Iterator[dict[str, Any] | str]:
        """Convert a line of `apoc.export.json`."""
        if row["type"] == "node":
            yield from self.node(row.get("id"), row.get("labels") or (), row.get("properties") or {})
            return
        ends = [row.get("start") or {}, row.get("end") or {}]
        for end in ends:
            if str(end.get("id")) not in self._names and end.get("properties"):
                yield from self.node(end.get("id"), end.get("labels") or (), end["properties"])
        kind = str(row.get("label") or "")
        yield from self.relationship(kind, ends[0].get("id"), ends[1].get("id"), row.get("properties") or {})

    def csv_row(self, row: dict[str, str]) -> Iterator[dict[str, Any] | str]:
        """Convert a line of `apoc.export.csv`, or of a file for `neo4j-admin database import`."""
        plain = {
            key.partition(":")[0]: cell.split(_ARRAY) if key.endswith("[]") else cell
            for key, cell in row.items()
            if key and cell and not key.startswith(("_", ":"))
        }
        kind = row.get("_type") or row.get(":TYPE")
        if kind:
            start, end = (row.get(f"_{part}") or row.get(f":{part.upper()}_ID") for part in ("start", "end"))
            yield from self.relationship(kind, start, end, plain)
            return
        labels = re.split("[:;]", row.get("_labels") or row.get(":LABEL") or "")
        yield from self.node(row.get("_id") or plain.get("name"), labels, plain)


def episode_row(episode: dict[str, Any]) -> dict[str, Any] | str:
    """Return the fact or relation of a Graphiti episode, if it is not text."""
    try:
        content = json.loads(episode["content"])
    except ValueError:
        content = None
    if not isinstance(content, dict) or not {"entity", "subject"} & content.keys():
        return "is an episode in words; it states no fact by itself"
    kind = "fact" if "entity" in content else "relation"
    return {
        **content,
        "type": kind,
        "valid_from": _moment(episode.get("reference_time")),
        "add": "valid_to" in content,
    }


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _moment(moment: Any) -> str:
    return str(moment or "").partition("[")[0]  # Neo4j writes the zone after its offset
