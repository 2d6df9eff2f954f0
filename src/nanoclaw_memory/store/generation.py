"""Whether the graph is still as it was when an answer was given."""

from __future__ import annotations

from collections.abc import Sequence

from nanoclaw_memory.store.database import Database


def generation(facts: Database) -> str:
    """A stamp that changes with every new fact, value, relation or alias, and not with activation."""
    rows = facts.query(
        "SELECT coalesce((SELECT max(id) FROM facts), 0), coalesce((SELECT max(id) FROM relations), 0),"
        " coalesce((SELECT max(rowid) FROM aliases), 0)"
    )
    return ".".join(map(str, rows[0]))


def all_current(facts: Database, fact_ids: Sequence[int], relation_ids: Sequence[int]) -> bool:
    """Whether none of these was retired or deleted."""
    for table, ids in (("facts", fact_ids), ("relations", relation_ids)):
        numbers = ", ".join(str(int(number)) for number in ids)
        sql = f"SELECT count(*) FROM {table} WHERE id IN ({numbers}) AND valid_to IS NULL"  # noqa: S608 (numbers)
        if ids and facts.query(sql)[0][0] != len(set(ids)):
            return False
    return True
