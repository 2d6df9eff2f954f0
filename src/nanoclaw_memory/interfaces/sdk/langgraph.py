"""LangGraph's `BaseStore` on our database: items by namespace and key, found by words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
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
)

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import StoredItem


class MemoryStore(BaseStore):
    """Items survive restarts and belong to the group of the memory they were put into."""

    def __init__(self, memory: Memory) -> None:
        self._items = memory.workspace.sdk_items

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out operations in order."""
        return [self._one(op) for op in ops]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """The same without holding up the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _one(self, op: Any) -> Any:
        if isinstance(op, GetOp):
            found = self._items.get(op.namespace, op.key)
            return Item(**_fields(found)) if found else None
        if isinstance(op, PutOp):
            return self._items.put(op.namespace, op.key, op.value)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise TypeError(f"unknown operation {type(op).__name__}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = self._items.search(op.namespace_prefix, op.query or "")
        kept = [(item, score) for item, score in found if _passes(item.value, op.filter or {})]
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


def _passes(value: Any, wanted: dict[str, Any]) -> bool:
    return all(_compare(value.get(field), condition) for field, condition in wanted.items())


def _compare(value: Any, condition: Any) -> bool:
    if not isinstance(condition, dict) or not any(str(key).startswith("$") for key in condition):
        return bool(value == condition)
    tests = {
        "$eq": lambda a, b: a == b,
        "$ne": lambda a, b: a != b,
        "$gt": lambda a, b: float(a) > float(b),
        "$gte": lambda a, b: float(a) >= float(b),
        "$lt": lambda a, b: float(a) < float(b),
        "$lte": lambda a, b: float(a) <= float(b),
    }
    return all(tests[name](value, other) for name, other in condition.items())


def _matches(name: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(name) < len(path):
        return False
    part = name[: len(path)] if condition.match_type == "prefix" else name[len(name) - len(path) :]
    return all(wanted in ("*", own) for own, wanted in zip(part, path, strict=True))
