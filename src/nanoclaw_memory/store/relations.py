"""Rows of relations: subject, predicate and object, found from either end."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.facts import MAX_OF_ENTITY, StatementTable, View, keyword_rows, valid
from nanoclaw_memory.store.names import placeholders
from nanoclaw_memory.types import Relation

_COLUMNS = (
    "id, subject, predicate, object, source, activation, access_count, last_accessed, created_at, valid_from,"
    " valid_to, superseded_by, subject_name, slot, object_name, shared, origin, project"
)
_VALID = valid("relations")


class RelationRow(msgspec.Struct, frozen=True):
    """A relation with the columns that only the graph needs."""

    relation: Relation
    subject: str
    slot: str
    object: str
    shared: bool

    @property
    def item(self) -> Relation:
        return self.relation

    @property
    def value(self) -> str:
        return self.relation.object

    @property
    def names(self) -> tuple[str, ...]:
        return self.subject, self.object


class RelationTable(StatementTable[RelationRow]):
    """The relations of one database."""

    table = "relations"
    kind = "relation"
    columns = _COLUMNS
    words = ("subject", "predicate", "object")
    identity = ("subject_name", "slot", "object_name", "project")

    def read(self, row: Row) -> RelationRow:
        return _row(row)

    # ---- reading ----

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
            " AND (:slot = '' OR slot = :slot) AND (:all = 1 OR shared = 1) ORDER BY slot, valid_from, id"
        )
        return [_row(row) for row in self.db.query(sql, {**params, "slot": slot, "all": everything})]

    def match(self, terms: Sequence[str], view: View, limit: int) -> list[RelationRow]:
        """Relations that contain any of the terms, best first."""
        only = f"rowid IN (SELECT id FROM relations WHERE id = relations_fts.rowid AND {_VALID})"  # noqa: S608
        found = keyword_rows(self.db, "relations_fts", terms, limit, only, view.params)
        marks, params = placeholders("i", found)
        sql = f"SELECT {_COLUMNS} FROM relations WHERE id IN ({marks})"  # noqa: S608
        rows = {row[0]: _row(row) for row in self.db.query(sql, params)}
        return [rows[rowid] for rowid in found if rowid in rows]

    # ---- writing ----

    def share(self, relation_id: int) -> None:
        """Make a relation visible to shared scopes: it was also given in one."""
        self.db.execute("UPDATE relations SET shared = 1 WHERE id = :id", {"id": relation_id})


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
        origin=row[16],
        project=row[17],
    )
    return RelationRow(relation, row[12], row[13], row[14], bool(row[15]))
