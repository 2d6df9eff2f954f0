"""The tables of agents of other SDKs: session histories, and items by namespace and key, found by meaning or words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.table import insertion
from nanoclaw_memory.text import content_words
from nanoclaw_memory.types import StoredItem

_COLUMNS = "items.id, namespace, key, value, created_at, updated_at, fields"
Texts = Callable[[StoredItem], Sequence[str]]


class SdkItems(msgspec.Struct, frozen=True):
    """The histories and items of one group."""

    db: Database
    clock: Clock
    # Returns a value without credentials and forgotten texts, and the number of forgotten places; None when nothing
    # may be stored. This is `Intake.talk_value`, which is above this package.
    admit: Callable[[Any], tuple[Any, int] | None] = lambda value: (value, 0)
    # Returns vectors of texts, or of a question, with the identity of the model; None if there is no model.
    embed: Callable[[Sequence[str], bool], tuple[Any, str] | None] = lambda texts, question: None

    # ---- histories ----

    def history(self, session: str, limit: int | None = None) -> list[Any]:
        """Return a session's items, oldest first; the latest `limit` of them, all for a negative one."""
        rows = self.db.query(
            "SELECT item FROM history WHERE session_id = :session ORDER BY id DESC LIMIT :limit",
            {"session": session, "limit": -1 if limit is None else limit},
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
        """Remove and return the latest item of a session's history."""
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

    def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Mapping[str, Any] | None,
        fields: Sequence[str] | None = None,
    ) -> None:
        """Set an item; None removes it. What a person asked to forget is replaced by `[forgotten]`.

        An item with a forgotten name is skipped: under another name it would not be found.
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
            now = stamp(self.clock.now())
            row: dict[str, str | None] = {**where, "value": json.dumps(value, ensure_ascii=False)}
            row |= {"fields": None if fields is None else _name(fields), "updated_at": now}
            again = [name for name in row if name not in where]
            row["created_at"] = now
            self.db.execute(insertion("items", row, list(where), again), row)

    def search(
        self, prefix: Sequence[str], query: str, texts_of: Texts = lambda item: [json.dumps(item.value)]
    ) -> list[tuple[StoredItem, float | None]]:
        """Return the items below a namespace in order of creation, or by relevance to a question.

        `texts_of` returns the searchable texts of an item; an item without any has no score.
        """
        rows = self.db.query(
            f"SELECT {_COLUMNS} FROM items ORDER BY min(items.id) OVER (PARTITION BY namespace), items.id"  # noqa: S608
        )
        own = {row[0]: _item(row) for row in rows}
        below = {id_: item for id_, item in own.items() if item.namespace[: len(prefix)] == tuple(prefix)}
        if not query.strip():
            return [(item, None) for item in below.values()]
        texts = {id_: texts for id_, item in below.items() if (texts := texts_of(item))}
        scores = self._by_meaning(texts, query)
        if scores is None:
            found = self.db.match("items_fts", content_words(query) or query.split(), len(own) or 1)
            scores = {id_: score / (1 + score) for id_, score in found if id_ in texts}
        ranked = sorted(scores, key=lambda id_: -scores[id_])
        return [(below[id_], scores.get(id_)) for id_ in dict.fromkeys((*ranked, *below))]

    def _by_meaning(self, texts: Mapping[int, Sequence[str]], query: str) -> dict[int, float] | None:
        """Return the similarity of each item's nearest text to a question; None without a model."""
        asked = self.embed([query], True) if texts else None
        if asked is None:
            return None
        import numpy as np

        (vector,), identity = asked
        rows = self.db.query(
            "SELECT item_id, vectors FROM item_vectors WHERE identity = :it", {"it": identity}
        )
        kept: dict[int, bytes] = {row[0]: row[1] for row in rows}
        new = [id_ for id_ in texts if id_ not in kept]
        made = self.embed([text for id_ in new for text in texts[id_]], False) if new else None
        vectors = iter(made[0] if made else ())
        fresh = {id_: b"".join(next(vectors).tobytes() for _ in texts[id_]) for id_ in (new if made else ())}
        with self.db.transaction():
            self.db.execute_many(
                insertion("item_vectors", ("item_id", "identity", "vectors"), ["item_id", "identity"]),
                [{"item_id": id_, "identity": identity, "vectors": raw} for id_, raw in fresh.items()],
            )
        found = {id_: (kept | fresh)[id_] for id_ in texts if id_ in kept or id_ in fresh}
        tables = {id_: np.frombuffer(raw, np.float32).reshape(-1, len(vector)) for id_, raw in found.items()}
        return {id_: float((table @ vector).max()) for id_, table in tables.items()}

    def namespaces(self) -> list[tuple[str, ...]]:
        rows = self.db.query("SELECT DISTINCT namespace FROM items")
        return sorted(tuple(json.loads(row[0])) for row in rows)


def _name(namespace: Sequence[str]) -> str:
    return json.dumps(list(namespace), ensure_ascii=False)


def _item(row: Row) -> StoredItem:
    fields = None if row[6] is None else tuple(json.loads(row[6]))
    return StoredItem(tuple(json.loads(row[1])), row[2], json.loads(row[3]), row[4], row[5], fields)
