"""The integrity check of database files, with the next step for a damaged one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nanoclaw_memory.errors import CorruptDatabase, StoreError
from nanoclaw_memory.store.repair_hints import remedy
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.types import DatabaseCheck


def check(home: Path, group: str, databases: Iterable[SqliteDatabase]) -> list[DatabaseCheck]:
    """Check databases whose files exist, and close them."""
    return [_checked(home, group, database) for database in databases]


def of_all_groups(home: Path) -> list[SqliteDatabase]:
    """The databases below `store/` that exist: the host's messages, and what groups have published."""
    messages = home / "store" / "messages.db"
    found = [SqliteDatabase(messages, "messages")] if messages.exists() else []
    published = sorted((home / "store" / "published").glob("*.db"))
    return found + [SqliteDatabase(path, "entries") for path in published]


def _checked(home: Path, group: str, database: SqliteDatabase) -> DatabaseCheck:
    path = database.path.relative_to(home).as_posix()
    try:
        problems = tuple(database.check())
    except CorruptDatabase as error:
        problems = (error.message,)
    except StoreError as error:  # newer, busy or unreadable: not damaged, and its own hint helps
        return DatabaseCheck(group, path, (error.message,), error.hint)
    finally:
        database.close()
    return DatabaseCheck(group, path, problems, remedy(database.path, database.name) if problems else "")


def engine() -> tuple[str, bool]:
    """The version of SQLite, and whether it has full-text search."""
    import apsw

    return apsw.sqlite_lib_version(), "ENABLE_FTS5" in apsw.compile_options
