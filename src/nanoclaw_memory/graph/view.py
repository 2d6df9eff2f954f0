"""The neighbourhood of an entity as a tree for the terminal, as Mermaid, DOT or plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.store.facts import FactTable, View
from nanoclaw_memory.store.names import NameTable
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.types import FOREIGN, Fact, Relation, stated_by

MAX_DEPTH = 4
MAX_NODES = 200
_VALUE = 80


class Neighbourhood(msgspec.Struct):
    """Entities around one, with their facts and the relations between them."""

    center: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    depths: dict[str, int] = msgspec.field(default_factory=dict)
    facts: dict[str, list[Fact]] = msgspec.field(default_factory=dict)
    relations: list[tuple[str, str, Relation]] = msgspec.field(default_factory=list)
    truncated: bool = False


def neighbourhood(
    facts: FactTable, relations: RelationTable, names: NameTable, start: Sequence[str], depth: int, view: View
) -> Neighbourhood:
    """Walk the relations outwards from an entity's names, breadth first, up to a limit."""
    around = Neighbourhood(start[0])
    same = dict.fromkeys(start, start[0])
    around.depths[start[0]] = 0
    layer = list(start)
    seen: set[int] = set()
    for distance in range(1, depth + 1):
        following: list[str] = []
        for row in relations.of(layer, view) if layer else []:
            ends = [same.setdefault(end, end) for end in row.names]
            fresh = [end for end in ends if end not in around.depths]
            if len(around.depths) + len(fresh) > MAX_NODES:
                around.truncated = True
                continue
            for end in fresh:
                around.depths[end] = distance
                following.append(end)
            if row.item.id not in seen:
                seen.add(row.item.id)
                around.relations.append((ends[0], ends[1], row.item))
        layer = following
    for fact in facts.of([name for name, entity in same.items() if entity in around.depths], view):
        around.facts.setdefault(same[fact.names[0]], []).append(fact.item)
    for known in around.facts.values():
        known.sort(key=lambda fact: fact.origin in FOREIGN)
    around.labels = names.labels(around.depths)
    return around


def as_tree(around: Neighbourhood) -> str:
    """Render facts below each entity, relations as branches."""
    lines = [_label(around, around.center)]
    _branch(around, around.center, "", {around.center}, lines)
    if around.truncated:
        lines.append(f"… more than {MAX_NODES} entities; ask for a smaller --depth")
    return "\n".join(lines)


def _branch(around: Neighbourhood, name: str, indent: str, seen: set[str], lines: list[str]) -> None:
    rows: list[tuple[str, str]] = [
        (_marked(f"{fact.key} = {_short(fact.value)}", fact), "") for fact in around.facts.get(name, [])
    ]
    for subject, object_, relation in around.relations:
        if name not in (subject, object_):
            continue
        other = object_ if name == subject else subject
        if around.depths[other] < around.depths[name]:
            continue
        arrow = f"── {relation.predicate} ──▶" if name == subject else f"◀── {relation.predicate} ──"
        rows.append((_marked(f"{arrow} {_label(around, other)}", relation), "" if other in seen else other))
        seen.add(other)
    for number, (text, other) in enumerate(rows):
        last = number == len(rows) - 1
        lines.append(f"{indent}{'└' if last else '├'}─ {text}")
        if other:
            _branch(around, other, indent + ("   " if last else "│  "), seen, lines)


def as_mermaid(around: Neighbourhood) -> str:
    """Render a Mermaid flowchart."""
    ids = {name: f"n{number}" for number, name in enumerate(around.depths)}
    lines = ["graph LR"]
    for name, own in ids.items():
        body = "<br/>".join([_label(around, name), *_facts(around, name)]).replace('"', "#quot;")
        lines.append(f'  {own}["{body}"]')
    for subject, object_, relation in around.relations:
        predicate = _marked(visible_line(relation.predicate), relation).replace('"', "#quot;")
        lines.append(f'  {ids[subject]} -->|"{predicate}"| {ids[object_]}')
    return "\n".join(lines)


def as_dot(around: Neighbourhood) -> str:
    """Render a Graphviz digraph."""
    lines = ["digraph memory {", "  node [shape=box];"]
    for name in around.depths:
        body = "\\n".join(_quoted(text) for text in [_label(around, name), *_facts(around, name)])
        lines.append(f'  "{_quoted(name)}" [label="{body}"];')
    for subject, object_, relation in around.relations:
        edge = f'  "{_quoted(subject)}" -> "{_quoted(object_)}"'
        lines.append(f'{edge} [label="{_quoted(_marked(relation.predicate, relation))}"];')
    return "\n".join([*lines, "}"])


def as_data(around: Neighbourhood) -> dict[str, Any]:
    """Return plain data: nodes with their facts, and edges."""
    return {
        "center": _label(around, around.center),
        "nodes": [
            {
                "name": _label(around, name),
                "depth": depth,
                "facts": [
                    {"key": fact.key, "value": fact.value, "origin": fact.origin}
                    for fact in around.facts.get(name, [])
                ],
            }
            for name, depth in around.depths.items()
        ],
        "edges": [
            {
                "subject": _label(around, subject),
                "predicate": own.predicate,
                "object": _label(around, object_),
                "origin": own.origin,
            }
            for subject, object_, own in around.relations
        ],
        "truncated": around.truncated,
    }


def as_json(around: Neighbourhood) -> str:
    """Return the plain data as JSON text."""
    return json.dumps(as_data(around), ensure_ascii=False, indent=2)


def _label(around: Neighbourhood, name: str) -> str:
    return visible_line(around.labels.get(name, name))


def _facts(around: Neighbourhood, name: str) -> list[str]:
    return [
        _marked(f"{visible_line(fact.key)}: {_short(fact.value)}", fact)
        for fact in around.facts.get(name, [])
    ]


def _marked(text: str, item: Fact | Relation) -> str:
    """Return a statement with its author, unless that is the owner."""
    mark = stated_by(item.origin)
    return f"{text} ({mark})" if mark else text


def _short(value: str) -> str:
    return visible_line(value, _VALUE)


def _quoted(text: str) -> str:
    return visible_line(text).replace("\\", "\\\\").replace('"', '\\"')
