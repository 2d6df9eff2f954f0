"""Import and export: JSONL, CSV, the official MCP memory server's memory.jsonl, another facts.db, Neo4j, Graphiti."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nanoclaw_memory.clock import start_of
from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound, Refused
from nanoclaw_memory.graph.neo4j import (
    NodeReader,
    as_cypher,
    as_episodes,
    as_node_csv,
    as_relation_csv,
    episode_row,
)
from nanoclaw_memory.graph.writer import GraphWriter, NewFact, NewRelation, Origin
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import json_text
from nanoclaw_memory.store.facts import FactTable
from nanoclaw_memory.store.names import NameTable
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.types import Imported

MAX_BYTES = 500_000_000
_SQLITE = b"SQLite format 3\x00"
_FACT = ("entity", "key", "value", "category", "importance", "permanent", "source", "valid_from", "valid_to")
_RELATION = ("subject", "predicate", "object", "source", "valid_from", "valid_to")


# ---- export ----


def rows_of(
    facts: FactTable, relations: RelationTable, names: NameTable, everything: bool
) -> Iterator[dict[str, Any]]:
    """Yield every alias, fact and relation, past ones too, as plain rows."""
    for alias in names.aliases():
        yield {"type": "alias", "alias": alias.alias, "entity": alias.entity}
    for row in facts.every(everything):
        yield {"type": "fact", **{name: getattr(row.item, name) for name in _FACT}}
    for relation in relations.every(everything):
        yield {"type": "relation", **{name: getattr(relation.item, name) for name in _RELATION}}


# Spreadsheets evaluate a cell with such a beginning; a quote before it makes it text, and import removes it.
_FORMULA = regex(r"^'*[=+\-@\t\r]")


def _without_quote(begin: re.Match[str]) -> str:
    return begin[0].removeprefix("'")


def as_jsonl(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield one JSON object per line."""
    for row in rows:
        yield json_text(row)


def as_csv(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield one row per line; relations use entity, key and value for subject, predicate and object."""
    yield ",".join(("type", *_FACT))
    for row in rows:
        if row["type"] == "relation":
            row = {**row, "entity": row["subject"], "key": row["predicate"], "value": row["object"]}
        elif row["type"] == "alias":
            row = {**row, "value": row["alias"], "key": "alias"}
        out = io.StringIO()
        cells = [row.get(name, "") for name in ("type", *_FACT)]
        csv.writer(out, lineterminator="").writerow([_FORMULA.sub(r"'\g<0>", str(cell)) for cell in cells])
        yield out.getvalue()


def as_mcp(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the official MCP memory server's file: entities with observations, and relations; current ones only."""
    entities: dict[str, dict[str, Any]] = {}
    relations = []

    def entity(name: str, category: str) -> dict[str, Any]:
        empty = {"type": "entity", "name": name, "entityType": category, "observations": []}
        return entities.setdefault(name, empty)

    for row in rows:
        if row.get("valid_to"):
            continue
        if row["type"] == "fact":
            entity(row["entity"], row["category"])["observations"].append(f"{row['key']}: {row['value']}")
        elif row["type"] == "relation":
            ends = {
                "from": entity(row["subject"], "fact")["name"],
                "to": entity(row["object"], "fact")["name"],
            }
            relations.append({"type": "relation", **ends, "relationType": row["predicate"]})
    for row in [*entities.values(), *relations]:
        yield json_text(row)


FORMS: dict[str, Callable[[Iterable[dict[str, Any]]], Iterator[str]]] = {
    "jsonl": as_jsonl,
    "csv": as_csv,
    "mcp": as_mcp,
    "cypher": as_cypher,
    "neo4j-nodes": as_node_csv,
    "neo4j-relations": as_relation_csv,
    "graphiti": as_episodes,
}

# ---- import ----


def caller_rows(*kinds: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any] | str]:
    """Yield a caller's facts, relations and aliases; a row that sets its own provenance is refused."""
    for kind, given in zip(("fact", "relation", "alias"), kinds, strict=True):
        for row in given:
            if forged := sorted({"origin", "source"} & row.keys()):
                yield f"gives {' and '.join(forged)}: who says it is known without it"
            else:
                yield {**{key: row[key] for key in row if key != "valid_to"}, "type": kind}


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the rows of a file in any format, with their lines; a text in place of a row is its problem."""
    if not path.is_file():
        raise NotFound(f"there is no file {path.name}", "give a .jsonl, .csv or facts.db file")
    if path.stat().st_size > MAX_BYTES:
        raise FileProblem(f"{path.name} is over {MAX_BYTES:,} bytes", "split it")
    with path.open("rb") as handle:
        start = handle.read(16)
    if start == _SQLITE:
        yield from _from_database(path)
        return
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileProblem(f"{path.name} is not UTF-8 text: {error.reason}", "save it as UTF-8") from None
    yield from _from_csv(text) if path.suffix.casefold() == ".csv" else _from_jsonl(text)


def _from_jsonl(text: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    nodes = NodeReader()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            yield number, "is no JSON"
            continue
        if not isinstance(row, dict):
            yield number, "is no JSON object"
        elif row.get("type") == "entity" and "observations" in row:
            yield from ((number, fact) for fact in _observations(row))
        elif row.get("type") in ("node", "relationship"):
            yield from ((number, one) for one in nodes.json_line(row))
        elif "reference_time" in row and "content" in row:
            yield number, episode_row(row)
        elif "relationType" in row:
            names = {"subject": row.get("from"), "predicate": row["relationType"], "object": row.get("to")}
            yield number, {"type": "relation", **names}
        else:
            yield number, row


def _observations(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the observations of an MCP entity: `key: value` is a fact under that key, anything else a note."""
    known = row["observations"] if isinstance(row["observations"], list) else [row["observations"]]
    for observation in known:
        text = observation.get("content", "") if isinstance(observation, dict) else str(observation)
        key, colon, value = text.partition(": ")
        plain = bool(colon) and len(key.split()) <= 3 and value.strip()
        yield {
            "type": "fact",
            "entity": row.get("name"),
            "key": key if plain else "observation",
            "value": value if plain else text,
            "category": row.get("entityType", ""),
            "add": not plain,
        }


def _from_csv(text: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    reader = csv.DictReader(io.StringIO(text))
    nodes = NodeReader()
    foreign = {"_id", ":LABEL", ":START_ID"} & set(reader.fieldnames or ())
    for row in reader:
        if foreign:
            yield from ((reader.line_num, one) for one in nodes.csv_row(row))
            continue
        row = {name: _FORMULA.sub(_without_quote, cell or "") for name, cell in row.items()}
        kind = (row.get("type") or ("relation" if row.get("predicate") else "fact")).strip()
        if kind == "relation" and not row.get("subject"):
            row = {
                **row,
                "subject": row.get("entity"),
                "predicate": row.get("key"),
                "object": row.get("value"),
            }
        if kind == "alias" and not row.get("alias"):
            row = {**row, "alias": row.get("value")}
        yield reader.line_num, {**row, "type": kind}


def _from_database(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Read a copy of another facts.db, so that the original is not changed."""
    import shutil
    import tempfile

    from nanoclaw_memory.store.legacy import adopt

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "facts.db"
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        database = SqliteDatabase(copy, "facts", adopt)
        try:
            rows = rows_of(FactTable(database), RelationTable(database), NameTable(database), True)
            yield from enumerate(rows, 1)
        finally:
            database.close()


def import_rows(
    writer: GraphWriter, rows: Iterable[tuple[int, dict[str, Any] | str]], origin: Origin, source: str
) -> Imported:
    """Store rows in one transaction; a bad row is reported and skipped."""
    done = Imported()
    with writer.db.transaction():
        for number, row in rows:
            if isinstance(row, str):
                done = done.without(f"line {number} {row}")
                continue
            try:
                stated_in = replace(origin, source=f"{source}:{number}") if source else origin
                done = _import_row(writer, row, stated_in, done)
            except Refused as error:
                done = done.without(f"line {number}: {error.message}")
    return done


def _import_row(writer: GraphWriter, row: dict[str, Any], origin: Origin, done: Imported) -> Imported:
    kind = row.get("type") or ("relation" if "predicate" in row else "alias" if "alias" in row else "fact")
    now = writer.clock.now()
    start, end = (start_of(str(row[key]), now) if row.get(key) else "" for key in ("valid_from", "valid_to"))
    if kind == "alias":
        created = writer.alias(_text(row, "alias"), _text(row, "entity"), origin)
        return replace(done, aliases=done.aliases + created, known=done.known + (not created))
    if kind == "relation":
        stored = writer.relate(_relation(row, start), origin)
        done = replace(done, relations=done.relations + stored.created)
    elif kind == "fact":
        stored = writer.upsert(_fact(row, start, writer), origin)
        done = replace(done, facts=done.facts + stored.created)
    else:
        raise InvalidValue(f"type {str(kind)[:40]!r} is not known", "use fact, relation or alias")
    if end and stored.created:
        (writer.facts if kind == "fact" else writer.relations).retire(stored.id, end, None)
    changed = {"retired": done.retired + len(stored.retired), "redacted": done.redacted + stored.redacted}
    return replace(done, known=done.known + (not stored.created), **changed)


def _relation(row: dict[str, Any], start: str) -> NewRelation:
    return NewRelation(
        subject=_text(row, "subject"),
        predicate=_text(row, "predicate"),
        object=_text(row, "object"),
        valid_from=start,
    )


def _fact(row: dict[str, Any], start: str, writer: GraphWriter) -> NewFact:
    return NewFact(
        entity=_text(row, "entity"),
        key=_text(row, "key"),
        value=_text(row, "value"),
        category=writer.known_category(_text(row, "category")),
        importance=_number(row.get("importance")),
        permanent=str(row.get("permanent", "")).casefold() in ("1", "true", "yes"),
        add=bool(row.get("add")) or bool(row.get("valid_to")),
        valid_from=start,
    )


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)


def _number(value: Any) -> float:
    try:
        return min(max(float(value), 0.0), 1.0)
    except (TypeError, ValueError):
        return 0.5
