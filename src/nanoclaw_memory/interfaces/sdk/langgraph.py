"""LangGraph's `BaseStore` on our database: items by namespace and key, found by meaning or by words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import StoredItem


class MemoryStore(BaseStore):
    """Items survive restarts and belong to the group of their memory."""

    def __init__(self, memory: Memory) -> None:
        self._items = memory.workspace.sdk_items

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out operations: reads see the state before the batch, the last put of a key counts."""
        asked = list(ops)
        results = [self._read(op) for op in asked]
        puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        for op in puts.values():
            self._items.put(op.namespace, op.key, op.value, () if op.index is False else op.index)
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Do the same without blocking the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Any) -> Any:
        if isinstance(op, GetOp):
            found = self._items.get(op.namespace, op.key)
            return Item(**_fields(found)) if found else None
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = self._items.search(op.namespace_prefix, op.query or "", _texts)
        kept = [(item, score) for item, score in found if _compare(item.value, op.filter or {})]
        page = kept[op.offset : op.offset + op.limit]
        return [SearchItem(**_fields(item), score=score) for item, score in page]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = self._items.namespaces()
        for condition in op.match_conditions or ():
            found = [name for name in found if _matches(name, condition)]
        if op.max_depth is not None:
            found = sorted({name[: op.max_depth] for name in found})
        return found[op.offset : op.offset + op.limit]


def _fields(found: StoredItem) -> dict[str, Any]:
    return {
        "namespace": found.namespace,
        "key": found.key,
        "value": dict(found.value),
        "created_at": moment_of(found.created_at),
        "updated_at": moment_of(found.updated_at),
    }


def _texts(item: StoredItem) -> list[str]:
    """Return the searchable texts of an item: all of it, or the fields named when it was put."""
    if item.fields is None:
        return ["; ".join(_values_with_names(item.value))] if item.value else []
    return [text for path in item.fields for text in get_text_at_path(item.value, path)]


def _values_with_names(value: Any) -> list[str]:
    """Return every value in a value, with the name before it."""
    if isinstance(value, Mapping):
        return [f"{name}: {text}" for name, part in value.items() for text in _values_with_names(part)]
    return (
        [text for part in value for text in _values_with_names(part)]
        if isinstance(value, list)
        else [str(value)]
    )


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda a, b: bool(a == b),
    "$ne": lambda a, b: bool(a != b),
    "$gt": lambda a, b: float(a) > float(b),
    "$gte": lambda a, b: float(a) >= float(b),
    "$lt": lambda a, b: float(a) < float(b),
    "$lte": lambda a, b: float(a) <= float(b),
}


def _compare(value: Any, condition: Any) -> bool:
    """Return whether a value meets a condition, as LangGraph's own stores compare: part by part, with operators."""
    if isinstance(condition, dict) and any(str(name).startswith("$") for name in condition):
        for name in condition:
            if name not in _OPERATORS:
                raise ValueError(f"Unsupported operator: {name}")
        return all(_OPERATORS[name](value, other) for name, other in condition.items())
    if isinstance(condition, dict):
        return isinstance(value, Mapping) and all(
            _compare(value.get(name), part) for name, part in condition.items()
        )
    if isinstance(condition, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(condition)
        return same and all(map(_compare, value, condition))
    return bool(value == condition)


def _matches(name: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(name) < len(path):
        return False
    part = name[: len(path)] if condition.match_type == "prefix" else name[len(name) - len(path) :]
    return all(wanted in ("*", own) for own, wanted in zip(part, path, strict=True))
