"""The table of relations: subject, predicate and object, found from either end."""

from __future__ import annotations

from collections.abc import Sequence

from nanoclaw_memory.store.facts import MAX_OF_ENTITY, RelationRow, StatementTable, View, valid
from nanoclaw_memory.store.names import placeholders
from nanoclaw_memory.types import Relation

_VALID = valid("relations")


class RelationTable(StatementTable[Relation]):
    """The relations of one database."""

    table = "relations"
    value = Relation
    kind = "relation"
    columns = f"{', '.join(Relation.__struct_fields__)}, subject_name, object_name, slot, shared"
    words = ("subject", "predicate", "object")
    ends = ("subject_name", "object_name")
    identity = ("subject_name", "slot", "object_name", "project")

    def of(self, names: Sequence[str], view: View, limit: int = MAX_OF_ENTITY) -> list[RelationRow]:
        """Return the relations that begin or end at any of the folded entities."""
        marks, params = placeholders("n", names)
        rest = (
            f"WHERE subject_name IN ({marks}) AND {_VALID} UNION SELECT {self.columns} FROM relations"  # noqa: S608
            f" WHERE object_name IN ({marks}) AND {_VALID} LIMIT :limit"
        )
        return self.select(rest, {**params, **view.params, "limit": limit})
