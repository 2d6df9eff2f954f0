"""Rows of relations: subject, predicate and object, found from either end."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.facts import MAX_OF_ENTITY, StatementTable, View, keyword_rows, valid
from nanoclaw_memory.store.names import placeholders
from nanoclaw_memory.store.table import as_struct
from nanoclaw_memory.types import Relation

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
    columns = f"{', '.join(Relation.__struct_fields__)}, subject_name, slot, object_name, shared"
    words = ("subject", "predicate", "object")
    identity = ("subject_name", "slot", "object_name", "project")

    def read(self, row: Row) -> RelationRow:
        *relation, subject, slot, object_, shared = row
        return RelationRow(as_struct(Relation, tuple(relation)), subject, slot, object_, bool(shared))

    # ---- reading ----

    def of(self, names: Sequence[str], view: View, limit: int = MAX_OF_ENTITY) -> list[RelationRow]:
        """The relations that begin or end at any of the folded entities."""
        marks, params = placeholders("n", names)
        rest = (
            f"WHERE subject_name IN ({marks}) AND {_VALID} UNION SELECT {self.columns} FROM relations"  # noqa: S608
            f" WHERE object_name IN ({marks}) AND {_VALID} LIMIT :limit"
        )
        return self.select(rest, {**params, **view.params, "limit": limit})

    def match(self, terms: Sequence[str], view: View, limit: int) -> list[RelationRow]:
        """Relations that contain any of the terms, best first."""
        only = f"rowid IN (SELECT id FROM relations WHERE id = relations_fts.rowid AND {_VALID})"  # noqa: S608
        found = keyword_rows(self.db, "relations_fts", terms, limit, only, view.params)
        marks, params = placeholders("i", found)
        rows = {row.relation.id: row for row in self.select(f"WHERE id IN ({marks})", params)}
        return [rows[rowid] for rowid in found if rowid in rows]
