"""Check database files, name the commands that repair a damaged one, and correct dates of a clock in the future."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import msgspec

from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.names import NameTable
from nanoclaw_memory.store.undecodable import bad_texts
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import SHARED, DatabaseCheck

_SHOWN = 20  # problems that are listed
_REBUILT = {
    "facts": (
        "nanoclaw-memory graph seed{group} && nanoclaw-memory upkeep ingest{group}",
        "what files say comes back; lessons do not",
    ),
    "entries": (
        "nanoclaw-memory entries migrate{group}",
        "what the domain files hold comes back; superseded entries do not",
    ),
    "continuity": ("nanoclaw-memory sessions archives{group}", "only archived conversations are left"),
    "sdk": ("nanoclaw-memory db check{group}", "the SDKs' items are lost"),
}


def check(home: Path, group: str, databases: Iterable[Database]) -> list[DatabaseCheck]:
    """Check databases whose files exist, and close them."""
    return [_checked(home, group, database) for database in databases]


def _checked(home: Path, group: str, database: Database) -> DatabaseCheck:
    path = database.path.relative_to(home).as_posix()
    try:
        problems, following = examine(database)
    finally:
        database.close()
    return DatabaseCheck(group, path, problems, following)


def examine(database: Database) -> tuple[tuple[str, ...], str]:
    """Return what is wrong with a database, and the command that helps."""
    from nanoclaw_memory.store.sqlite import SqliteDatabase

    name, fix = database.path.name, f"nanoclaw-memory doctor --fix{_group(database.path)}"
    try:
        if found := database.check():
            return (f"{name} is damaged: {found[0]}", *found[1:]), remedy(database.path, database.name)
        if not isinstance(database, SqliteDatabase):
            return (), ""
        with database.unmigrated() as connection:
            bad = tuple(f"{name}: {text}" for text in islice(bad_texts(connection), _SHOWN))
        lost = database.lost_writes()
    except StoreError as error:  # missing, damaged, newer, busy or unreadable: its own hint helps
        return (error.message,), error.hint
    if bad:
        return bad, f"replace what cannot be read: {fix}"
    if lost:
        told = f"{name} has lost its last {plural(lost, 'write')}"
        why = "its WAL was cut or removed, or an older file was put there"
        return (f"{told}: {why}",), f"store again what is missing, then: {fix}"
    return (), ""


def repair(database: Database) -> tuple[int, int]:
    """Write � for undecodable text and accept that writes were lost; return how many of each."""
    from nanoclaw_memory.store.sqlite import SqliteDatabase

    if not isinstance(database, SqliteDatabase):
        return 0, 0
    with database.transaction():
        lost = database.writes.lost
        if lost:
            database.writes.accept_loss()
        mended = 0 if database.strict else database.mend()
        if mended and "names" in database.tables():
            NameTable(database).complete()
        return mended, lost


def engine() -> tuple[str, bool]:
    """Return the version of SQLite, and whether it has full-text search."""
    import apsw

    return apsw.sqlite_lib_version(), "ENABLE_FTS5" in apsw.compile_options


# ---- repair ----


def remedy(path: Path, name: str) -> str:
    """Return the next step for a damaged file of the kind `name`."""
    if path.parent.name == "store":  # the host's messages: no checkpoint of a group contains them
        anew = "stop the bot, then: nanoclaw-memory db reset messages (chats and tasks are lost)"
        return f"stop the bot, then: {_away(path)} && {_recover(path)}" if path.exists() else anew
    if path.parent.name == "published":
        return f"move it away: {_away(path)} && nanoclaw-memory share publish ID --group {path.stem}"
    if path.parent.name == "corpora":
        return f"move it away: {_away(path)} && nanoclaw-memory corpus add {path.stem} FOLDER"
    group, shared = _group(path), path.name.startswith(SHARED)
    if name == "forgotten":  # in no checkpoint; a copy of the fingerprints is beside it
        return f"build the list anew from its copy: nanoclaw-memory doctor --fix{group}"
    if name == "index":  # everything in it comes from files
        return f"nanoclaw-memory index --rebuild{group}{' --shared' if shared else ''}"
    if saved := _checkpoint(path):
        return f"restore the last checkpoint that holds it: nanoclaw-memory checkpoint restore {saved}{group}"
    rebuild, lost = _REBUILT.get(
        "" if shared else name, ("nanoclaw-memory db check{group}", "it starts empty")
    )
    return (
        f"begin anew: nanoclaw-memory db reset {path.stem}{group} && {rebuild.format(group=group)} ({lost})"
    )


def _away(path: Path) -> str:
    """Return the command that moves a file away with its WAL; a remaining WAL would be replayed."""
    import shlex

    folder = shlex.quote(str(path.parent / "damaged"))
    return f"mkdir -p {folder} && mv {shlex.quote(str(path))}* {folder}"


def _recover(path: Path) -> str:
    import shlex

    moved = shlex.quote(str(path.parent / "damaged" / path.name))
    return f"sqlite3 {moved} .recover | sqlite3 {shlex.quote(str(path))}"


def _group(path: Path) -> str:
    root = path.parent.parent
    return f" --group {root.name}" if root.parent.name == "groups" else ""


def _checkpoint(path: Path) -> str:
    """Return the newest checkpoint with an intact copy; empty when there is none."""
    found = []
    for manifest in (path.parent.parent / "workspace" / "memory" / "checkpoints").glob("[!.]*/manifest.json"):
        try:
            found += _sound(manifest, path.stem)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no checkpoint that could be restored
    return max(found, default=("", ""))[1]


def _sound(manifest: Path, database: str) -> list[tuple[str, str]]:
    import json

    found = json.loads(manifest.read_text(encoding="utf-8"))
    saved = [one for one in found["databases"] if one["path"] == database and not one.get("damaged")]
    return [(str(found["created_at"]), manifest.parent.name)] if saved else []


# ---- rows dated by a clock in the future ----


class DatedTable(msgspec.Struct, frozen=True):
    """A table whose rows are dated when they are stored; `others` are set then or later."""

    table: str
    key: str = "id"
    stored: str = "created_at"
    others: tuple[str, ...] = ()
    valid: bool = False  # has valid_from, valid_to and superseded_by


DATED = {
    "facts": (
        DatedTable("facts", others=("last_accessed",), valid=True),
        DatedTable("relations", others=("last_accessed",), valid=True),
        DatedTable("growth_vectors", others=("last_seen",)),
    ),
    "entries": (DatedTable("entries", "number", others=("updated_at", "used_at")),),
    "continuity": (DatedTable("exchanges", stored="timestamp"),),
}


def dated_ahead(db: Database, name: str, now: str) -> tuple[int, str]:
    """Return how many rows are dated after now, and the last date."""
    found = [
        db.query(
            f"SELECT count(*), coalesce(max({one.stored}), '') FROM {one.table} WHERE {one.stored} > :now",  # noqa: S608
            {"now": now},
        )[0]
        for one in DATED[name]
    ]
    return sum(int(count) for count, _ in found), max(str(last) for _, last in found)


def date_anew(db: Database, name: str, now: str) -> int:
    """Date rows of the future by the row that was stored next, else by now; return how many."""
    with db.transaction():
        return sum(_date_anew(db, one, now) for one in DATED[name])


def _date_anew(db: Database, one: DatedTable, now: str) -> int:
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
