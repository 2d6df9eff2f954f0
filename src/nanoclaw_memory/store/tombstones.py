"""Tombstones: what a person rejected or asked to forget, so that no ingestion brings it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from nanoclaw_memory.errors import CorruptDatabase, NewerSchema
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.names import placeholders
from nanoclaw_memory.store.phrases import (
    FORGOTTEN,
    Marks,
    Phrases,
    holds,
    lines_holding,
    masked,
    masked_value,
)
from nanoclaw_memory.text import fingerprint

_KEPT = "FROM tombstones WHERE text_fingerprint <> ''"
# The fingerprints as last read from each database: every message asks for them, and they hardly ever change.
_read: WeakKeyDictionary[Database, tuple[Row, Marks]] = WeakKeyDictionary()


class TombstoneTable:
    """The tombstones of one facts database. Writing needs an open transaction."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def has(self, names: Sequence[str], slot: str, digest: str) -> bool:
        """Whether this value of an entity's key was rejected, under any of the entity's names."""
        marks, params = placeholders("n", [*names, *map(veiled, names)])
        rows = self.db.query(
            f"SELECT 1 FROM tombstones WHERE name IN ({marks}) AND slot IN (:slot, :veiled)"  # noqa: S608
            " AND digest = :digest",
            {**params, "slot": slot, "veiled": veiled(slot), "digest": digest},
        )
        return bool(rows)

    def has_text(self, fingerprint: str) -> bool:
        """Whether a text with this fingerprint was forgotten."""
        rows = self.db.query(
            "SELECT 1 FROM tombstones WHERE text_fingerprint = :fingerprint AND text_fingerprint <> ''",
            {"fingerprint": fingerprint},
        )
        return bool(rows)

    def forgets(self, *texts: str) -> bool:
        """Whether any of the texts is, or holds, one that was forgotten."""
        marks = self.marks()
        return bool(marks.kept) and any(
            fingerprint(text) in marks.kept or holds(marks, text) for text in texts
        )

    def marks(self) -> Marks:
        """The fingerprints of all texts that were forgotten."""
        try:
            # Ids are never given twice, so that these tell whether any came or went.
            state = self.db.query(
                f"SELECT count(*), max(id), min(text_fingerprint), max(text_fingerprint) {_KEPT}"
            )[0]
            if not state[0]:
                return _NONE
            known = _read.get(self.db)
            if known is None or known[0] != state:
                rows = self.db.query(f"SELECT text_fingerprint {_KEPT}")
                known = _read[self.db] = (state, Marks(frozenset(str(mark) for (mark,) in rows)))
            return known[1]
        except (CorruptDatabase, NewerSchema):  # doctor's to report; entries and exchanges go on without it
            return _NONE

    def masked(self, text: str) -> tuple[str, int]:
        """A text with `[forgotten]` for what was forgotten, and in how many places; for talk that goes on."""
        marks = self.marks()
        if not marks.kept:
            return text, 0
        return (FORGOTTEN, 1) if fingerprint(text) in marks.kept else masked(marks, text)

    def masked_value(self, value: Any) -> tuple[Any, int]:
        """The same for every text in a JSON value."""
        marks = self.marks()
        return masked_value(marks, value) if marks.kept else (value, 0)

    def without_forgotten(self, text: str) -> str:
        """A file's text with empty lines in the place of forgotten ones, so that line numbers stay."""
        marks = self.marks()
        if not marks.kept:
            return text
        lines = text.split("\n")
        gone = lines_holding(lines, marks)
        return "\n".join("" if number in gone else line for number, line in enumerate(lines))

    def forget(self, phrases: Phrases, reason: str, moment: str) -> None:
        """Keep texts away, and whatever holds them."""
        for mark in phrases.marks():
            self.add_text(mark, reason, moment)

    def allow(self, phrases: Phrases) -> int:
        """Let forgotten texts come back; gives how many were kept away."""
        return sum(
            self.db.execute("DELETE FROM tombstones WHERE text_fingerprint = :mark", {"mark": mark})
            for mark in phrases.marks()
        )

    def add(self, name: str, slot: str, digest: str, reason: str, moment: str) -> None:
        """Keep a value away."""
        self._insert({"name": name, "slot": slot, "digest": digest, "text": ""}, reason, moment)

    def forget_value(self, name: str, slot: str, digest: str, reason: str, moment: str) -> None:
        """Keep a value away without telling of whom or what."""
        self.add(veiled(name), veiled(slot), digest, reason, moment)

    def forgotten_values(self) -> set[tuple[str, str, str]]:
        """The values that `forget_value` keeps away."""
        sql = "SELECT name, slot, digest FROM tombstones WHERE digest <> '' AND name LIKE '#%'"
        return {(str(name), str(slot), str(digest)) for name, slot, digest in self.db.query(sql)}

    def all(self) -> list[Row]:
        """Every tombstone, to be carried over a restore."""
        return self.db.query(
            "SELECT name, slot, digest, text_fingerprint, reason, created_at FROM tombstones"
        )

    def carry(self, rows: Sequence[Row]) -> None:
        """Put up tombstones that an older state of the database did not know."""
        for name, slot, digest, text, reason, moment in rows:
            self._insert({"name": name, "slot": slot, "digest": digest, "text": text}, reason, moment)

    def add_text(self, fingerprint: str, reason: str, moment: str) -> None:
        """Keep a text away."""
        self._insert({"name": "", "slot": "", "digest": "", "text": fingerprint}, reason, moment)

    def remove(self, names: Sequence[str], slot: str, digest: str) -> bool:
        """Let a value come back; False when it was not kept away."""
        marks, params = placeholders("n", [*names, *map(veiled, names)])
        return bool(
            self.db.execute(
                f"DELETE FROM tombstones WHERE name IN ({marks}) AND slot IN (:slot, :veiled)"  # noqa: S608
                " AND digest = :digest",
                {**params, "slot": slot, "veiled": veiled(slot), "digest": digest},
            )
        )

    def _insert(self, key: dict[str, str], reason: str, moment: str) -> None:
        self.db.execute(
            "INSERT INTO tombstones (name, slot, digest, text_fingerprint, reason, created_at)"
            " VALUES (:name, :slot, :digest, :text, :reason, :moment) ON CONFLICT DO NOTHING",
            {**key, "reason": reason, "moment": moment},
        )


_NONE = Marks(frozenset())


def veiled(name: str) -> str:
    """A name as a fingerprint: what was forgotten must not be told by its tombstone."""
    return f"#{fingerprint(name)[:24]}"
