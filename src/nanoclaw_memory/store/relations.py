"""Relations in their table: subject, predicate, object, found from either end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.facts import MAX_OF_ENTITY, View, keyword_rows, unspaced
from nanoclaw_memory.store.names import placeholders
from nanoclaw_memory.types import Relation

_COLUMNS = (
    "id, subject, predicate, object, source, activation, access_count, last_accessed, created_at, valid_from,"
    " valid_to, superseded_by, subject_name, slot, object_name, shared"
)
_VALID = "valid_from <= :at AND (valid_to IS NULL OR valid_to > :at) AND (:all OR shared)"


class RelationRow(msgspec.Struct, frozen=True):
    """A relation with the columns that only the graph needs."""

    relation: Relation
    subject: str
    slot: str
    object: str
    shared: bool

    @property
    def names(self) -> tuple[str, ...]:
        return self.subject, self.object


class RelationTable:
    """The relations of one database. Writing needs an open transaction."""

    def __init__(self, db: Database) -> None:
        self.db = db

    # ---- reading ----

    def get(self, relation_id: int) -> RelationRow | None:
        rows = self.db.query(f"SELECT {_COLUMNS} FROM relations WHERE id = :id", {"id": relation_id})  # noqa: S608
        return _row(rows[0]) if rows else None

    def of(self, names: Sequence[str], view: View, limit: int = MAX_OF_ENTITY) -> list[RelationRow]:
        """The relations that begin or end at any of the folded entities."""
        marks, params = placeholders("n", names)
        sql = (
            f"SELECT {_COLUMNS} FROM relations WHERE subject_name IN ({marks}) AND {_VALID} UNION"  # noqa: S608
            f" SELECT {_COLUMNS} FROM relations WHERE object_name IN ({marks}) AND {_VALID} LIMIT :limit"
        )
        return [_row(row) for row in self.db.query(sql, {**params, **view.params, "limit": limit})]

    def line(self, names: Sequence[str], slot: str = "", everything: bool = True) -> list[RelationRow]:
        """Every object that a subject ever had, oldest first."""
        marks, params = placeholders("n", names)
        sql = (
            f"SELECT {_COLUMNS} FROM relations WHERE subject_name IN ({marks})"  # noqa: S608
            " AND (:slot = '' OR slot = :slot) AND (:all OR shared) ORDER BY slot, valid_from, id"
        )
        return [_row(row) for row in self.db.query(sql, {**params, "slot": slot, "all": everything})]

    def match(self, terms: Sequence[str], view: View, limit: int) -> list[RelationRow]:
        """Relations that hold any of the terms, best first."""
        only = f"rowid IN (SELECT id FROM relations WHERE id = relations_fts.rowid AND {_VALID})"  # noqa: S608
        found = keyword_rows(self.db, "relations_fts", terms, limit, only, view.params)
        marks, params = placeholders("i", found)
        sql = f"SELECT {_COLUMNS} FROM relations WHERE id IN ({marks})"  # noqa: S608
        rows = {row[0]: _row(row) for row in self.db.query(sql, params)}
        return [rows[rowid] for rowid in found if rowid in rows]

    def every(self, everything: bool) -> Iterable[RelationRow]:
        """All relations, past ones too."""
        sql = f"SELECT {_COLUMNS} FROM relations WHERE :all OR shared ORDER BY id"  # noqa: S608
        return (_row(row) for row in self.db.rows(sql, {"all": everything}))

    # ---- writing ----

    def insert(self, row: Mapping[str, Any]) -> int:
        """A new relation; `row` has the columns' names."""
        filled = {**row, "spaced": unspaced(row["subject"], row["predicate"], row["object"])}
        columns = ", ".join(filled)
        marks = ", ".join(f":{name}" for name in filled)
        return self.db.insert(f"INSERT INTO relations ({columns}) VALUES ({marks})", filled)  # noqa: S608

    def reshare(self, path: str, shared: bool) -> None:
        """What a file says may be seen by as many as the file itself."""
        self.db.execute(
            "UPDATE relations SET shared = :shared WHERE shared <> :shared AND source LIKE :path || ':%' AND id IN"
            " (SELECT item FROM mentions WHERE mentions.path = :path AND kind = 'relation')",
            {"path": path, "shared": int(shared)},
        )

    def retire(self, relation_id: int, moment: str, by: int | None) -> None:
        """The relation held until `moment`."""
        self.db.execute(
            "UPDATE relations SET valid_to = :moment, superseded_by = :by WHERE id = :id",
            {"id": relation_id, "moment": moment, "by": by},
        )

    def extend(self, relation_id: int, start: str) -> None:
        """The relation holds since `start` already."""
        self.db.execute(
            "UPDATE relations SET valid_from = :start WHERE id = :id", {"id": relation_id, "start": start}
        )

    def share(self, relation_id: int) -> None:
        """Said in a shared scope too."""
        self.db.execute("UPDATE relations SET shared = 1 WHERE id = :id", {"id": relation_id})

    def resource(self, relation_id: int, before: str, source: str) -> None:
        """The line that says the relation moved."""
        self.db.execute(
            "UPDATE relations SET source = :source WHERE id = :id AND source = :before",
            {"id": relation_id, "source": source, "before": before},
        )

    def delete(self, relation_id: int) -> None:
        """Erase a relation; the one it had replaced holds again."""
        self.db.execute(
            "UPDATE relations SET valid_to = (SELECT valid_to FROM relations WHERE id = :id),"
            " superseded_by = (SELECT superseded_by FROM relations WHERE id = :id)"
            " WHERE superseded_by = :id AND NOT EXISTS (SELECT 1 FROM relations AS same"
            " WHERE same.subject_name = relations.subject_name AND same.slot = relations.slot"
            " AND same.object_name = relations.object_name"
            " AND same.valid_to IS NULL)",
            {"id": relation_id},
        )
        self.db.execute("DELETE FROM mentions WHERE kind = 'relation' AND item = :id", {"id": relation_id})
        self.db.execute("DELETE FROM relations WHERE id = :id", {"id": relation_id})

    def bump(self, amounts: Mapping[int, float], moment: str) -> None:
        """Raise activation and count the access."""
        self.db.execute_many(
            "UPDATE relations SET activation = activation + :amount, access_count = access_count + 1,"
            " last_accessed = :moment WHERE id = :id",
            [{"id": key, "amount": amount, "moment": moment} for key, amount in amounts.items()],
        )

    def cool(self, factor: float, after: str, before: str) -> int:
        """Lower the activation of what was learnt from `after` until `before`."""
        return self.db.execute(
            "UPDATE relations SET activation = max(activation * :factor, 0.01)"
            " WHERE activation > 0.01 AND created_at >= :after AND created_at < :before",
            {"factor": factor, "after": after, "before": before},
        )


def _row(row: Row) -> RelationRow:
    relation = Relation(
        id=row[0],
        subject=row[1],
        predicate=row[2],
        object=row[3],
        source=row[4] or "",
        activation=row[5],
        access_count=row[6],
        last_accessed=row[7] or "",
        created_at=row[8],
        valid_from=row[9],
        valid_to=row[10] or "",
        superseded_by=row[11],
    )
    return RelationRow(relation, row[12], row[13], row[14], bool(row[15]))
