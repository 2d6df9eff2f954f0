"""Rows that a clock in the future has dated: how many there are, and dates for them by the order of storing."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.store.database import Database


class Dated(msgspec.Struct, frozen=True):
    """A table whose rows are dated when they are stored; `others` are set then or later."""

    table: str
    key: str = "id"
    stored: str = "created_at"
    others: tuple[str, ...] = ()
    valid: bool = False  # has valid_from, valid_to and superseded_by


DATED = {
    "facts": (
        Dated("facts", others=("last_accessed",), valid=True),
        Dated("relations", others=("last_accessed",), valid=True),
        Dated("growth_vectors", others=("last_seen",)),
    ),
    "entries": (Dated("entries", "number", others=("updated_at", "used_at")),),
    "continuity": (Dated("exchanges", stored="timestamp"),),
}


def dated_ahead(db: Database, name: str, now: str) -> tuple[int, str]:
    """How many rows are dated after now, and the last date."""
    found = [
        db.query(
            f"SELECT count(*), coalesce(max({one.stored}), '') FROM {one.table} WHERE {one.stored} > :now",  # noqa: S608
            {"now": now},
        )[0]
        for one in DATED[name]
    ]
    return sum(int(count) for count, _ in found), max(str(last) for _, last in found)


def date_anew(db: Database, name: str, now: str) -> int:
    """Date rows of the future by the row that was stored next, else by now; returns how many."""
    with db.transaction():
        return sum(_date_anew(db, one, now) for one in DATED[name])


def _date_anew(db: Database, one: Dated, now: str) -> int:
    table, stored = one.table, one.stored
    following = (
        f"coalesce((SELECT min(later.{stored}) FROM {table} AS later"  # noqa: S608
        f" WHERE later.{one.key} > {table}.{one.key} AND later.{stored} <= :now), :now)"
    )
    if one.valid:
        said = f"valid_from > :now AND {stored} > :now AND valid_from <= {stored}"
        ended = (
            f"UPDATE {table} SET valid_to = :now WHERE valid_to > :now AND superseded_by IN"  # noqa: S608
            f" (SELECT {one.key} FROM {table} WHERE {said})"
        )
        db.execute(ended, {"now": now})
        db.execute(f"UPDATE {table} SET valid_from = {following} WHERE {said}", {"now": now})  # noqa: S608
    for column in one.others:
        db.execute(f"UPDATE {table} SET {column} = {following} WHERE {column} > :now", {"now": now})  # noqa: S608
    return db.update(f"UPDATE {table} SET {stored} = {following} WHERE {stored} > :now", {"now": now})  # noqa: S608
