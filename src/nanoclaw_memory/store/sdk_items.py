"""Rows of agents of other SDKs: session histories, and items by namespace and key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.text import content_words
from nanoclaw_memory.types import StoredItem

_COLUMNS = "items.id, namespace, key, value, created_at, updated_at"


class SdkItems(msgspec.Struct, frozen=True):
    """The histories and items of one group."""

    db: Database
    clock: Clock
    # Returns a value without credentials and forgotten texts, and in how many places something was forgotten;
    # None when nothing may be stored. This is `Intake.talk_value`, which stands above this package.
    admit: Callable[[Any], tuple[Any, int] | None] = lambda value: (value, 0)

    # ---- histories ----

    def history(self, session: str, limit: int | None = None) -> list[Any]:
        """A session's items, oldest first; the latest `limit` of them."""
        rows = self.db.query(
            "SELECT item FROM history WHERE session_id = :session ORDER BY id DESC LIMIT :limit",
            {"session": session, "limit": -1 if limit is None else max(limit, 0)},
        )
        return [json.loads(row[0]) for row in reversed(rows)]

    def extend(self, session: str, items: Sequence[Any]) -> None:
        """Append to a session's history; what a person asked to forget is replaced by `[forgotten]`."""
        kept = [admitted[0] for item in items if (admitted := self.admit(item)) is not None]
        with self.db.transaction():
            self.db.execute_many(
                "INSERT INTO history(session_id, item) VALUES (:session, :item)",
                [{"session": session, "item": json.dumps(item, ensure_ascii=False)} for item in kept],
            )

    def pop(self, session: str) -> Any | None:
        """Take the latest item off a session's history."""
        with self.db.transaction():
            rows = self.db.query(
                "SELECT id, item FROM history WHERE session_id = :session ORDER BY id DESC LIMIT 1",
                {"session": session},
            )
            if not rows:
                return None
            self.db.execute("DELETE FROM history WHERE id = :id", {"id": rows[0][0]})
            return json.loads(rows[0][1])

    def clear(self, session: str) -> None:
        """Delete a session's history."""
        with self.db.transaction():
            self.db.execute("DELETE FROM history WHERE session_id = :session", {"session": session})

    # ---- items ----

    def get(self, namespace: Sequence[str], key: str) -> StoredItem | None:
        rows = self.db.query(
            f"SELECT {_COLUMNS} FROM items WHERE namespace = :namespace AND key = :key",  # noqa: S608
            {"namespace": _name(namespace), "key": key},
        )
        return _item(rows[0]) if rows else None

    def put(self, namespace: Sequence[str], key: str, value: Mapping[str, Any] | None) -> None:
        """Set an item; None removes it. What a person asked to forget is replaced by `[forgotten]`.

        One whose very name was forgotten is left out: under another it would not be found.
        """
        where = {"namespace": _name(namespace), "key": key}
        if value is not None:
            named, admitted = self.admit([*namespace, key]), self.admit(dict(value))
            if named is None or named[1] or admitted is None:
                return
            value, _ = admitted
        with self.db.transaction():
            if value is None:
                self.db.execute("DELETE FROM items WHERE namespace = :namespace AND key = :key", where)
                return
            self.db.execute(
                "INSERT INTO items(namespace, key, value, created_at, updated_at) "
                "VALUES (:namespace, :key, :value, :now, :now) ON CONFLICT (namespace, key) "
                "DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                {**where, "value": json.dumps(value, ensure_ascii=False), "now": stamp(self.clock.now())},
            )

    def search(self, prefix: Sequence[str], query: str) -> list[tuple[StoredItem, float | None]]:
        """The items below a namespace: best first by words, or newest first without a query."""
        rows = self.db.query(f"SELECT {_COLUMNS} FROM items ORDER BY updated_at DESC, id DESC")  # noqa: S608
        own = {row[0]: _item(row) for row in rows}
        below = {id_: item for id_, item in own.items() if item.namespace[: len(prefix)] == tuple(prefix)}
        if not query.strip():
            return [(item, None) for item in below.values()]
        ranked = self.db.match("items_fts", content_words(query) or query.split(), len(own) or 1)
        return [(below[id_], score / (1 + score)) for id_, score in ranked if id_ in below]

    def namespaces(self) -> list[tuple[str, ...]]:
        rows = self.db.query("SELECT DISTINCT namespace FROM items")
        return sorted(tuple(json.loads(row[0])) for row in rows)


def _name(namespace: Sequence[str]) -> str:
    return json.dumps(list(namespace), ensure_ascii=False)


def _item(row: Row) -> StoredItem:
    return StoredItem(tuple(json.loads(row[1])), row[2], json.loads(row[3]), row[4], row[5])
