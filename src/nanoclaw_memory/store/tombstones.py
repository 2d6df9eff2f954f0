"""Tombstones: what a person rejected or asked to forget, so that no ingestion brings it back."""

from __future__ import annotations

from collections.abc import Sequence

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.names import placeholders


class TombstoneTable:
    """The tombstones of one facts database. Writing needs an open transaction."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def has(self, names: Sequence[str], slot: str, digest: str) -> bool:
        """Whether this value of an entity's key was rejected, under any of the entity's names."""
        marks, params = placeholders("n", names)
        rows = self.db.query(
            f"SELECT 1 FROM tombstones WHERE name IN ({marks}) AND slot = :slot AND digest = :digest",  # noqa: S608
            {**params, "slot": slot, "digest": digest},
        )
        return bool(rows)

    def has_text(self, fingerprint: str) -> bool:
        """Whether a text with this fingerprint was forgotten."""
        rows = self.db.query(
            "SELECT 1 FROM tombstones WHERE text_fingerprint = :fingerprint AND text_fingerprint <> ''",
            {"fingerprint": fingerprint},
        )
        return bool(rows)

    def add(self, name: str, slot: str, digest: str, reason: str, moment: str) -> None:
        """Keep a value away."""
        self._insert({"name": name, "slot": slot, "digest": digest, "text": ""}, reason, moment)

    def add_text(self, fingerprint: str, reason: str, moment: str) -> None:
        """Keep a text away."""
        self._insert({"name": "", "slot": "", "digest": "", "text": fingerprint}, reason, moment)

    def remove(self, names: Sequence[str], slot: str, digest: str) -> bool:
        """Let a value come back; False when it was not kept away."""
        marks, params = placeholders("n", names)
        return bool(
            self.db.execute(
                f"DELETE FROM tombstones WHERE name IN ({marks}) AND slot = :slot AND digest = :digest",  # noqa: S608
                {**params, "slot": slot, "digest": digest},
            )
        )

    def _insert(self, key: dict[str, str], reason: str, moment: str) -> None:
        self.db.execute(
            "INSERT INTO tombstones (name, slot, digest, text_fingerprint, reason, created_at)"
            " VALUES (:name, :slot, :digest, :text, :reason, :moment) ON CONFLICT DO NOTHING",
            {**key, "reason": reason, "moment": moment},
        )
