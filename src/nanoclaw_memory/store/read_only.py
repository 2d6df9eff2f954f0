"""Read a database that cannot be written: in place if SQLite can, else as a copy in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nanoclaw_memory.errors import CorruptDatabase
from nanoclaw_memory.store.undecodable import tolerant_rows


def is_writable(path: Path) -> bool:
    """Return whether a database can be written: the file, and the folder of its WAL and lock."""
    if path.exists() and not os.access(path, os.W_OK):
        return False
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def open_for_reading(path: Path, busy_ms: int) -> Any:
    """Return a read-only connection; without the WAL if even reading that would need a write."""
    import apsw

    try:
        return _opened(str(path), apsw.SQLITE_OPEN_READONLY, busy_ms)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        from urllib.parse import quote

        name = f"file:{quote(str(path.absolute()))}?immutable=1"
        return _opened(name, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, busy_ms)


def _opened(name: str, flags: int, busy_ms: int) -> Any:
    import apsw

    connection = apsw.Connection(name, flags=flags)
    try:
        connection.set_busy_timeout(busy_ms)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def open_copy(source: Any, prepare: Callable[[Any], None]) -> Any:
    """Return a copy in memory of an open database (or an empty one), migrated by `prepare`."""
    import apsw

    copy = apsw.Connection(":memory:")
    try:
        if source is not None:
            with copy.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(-1)
        prepare(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield every text in a database file that nobody writes to, with its column; the file is not changed."""
    import apsw

    try:
        connection = apsw.Connection(
            f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        tables = connection.execute("SELECT name FROM pragma_table_list WHERE type = 'table'").fetchall()
        for (table,) in tables:
            quoted = str(table).replace('"', '""')
            sql = f'SELECT * FROM "{quoted}"'  # noqa: S608 (a name from the schema)
            columns = [name for _, name, *_ in connection.execute(f'PRAGMA table_info("{quoted}")')]
            for row in tolerant_rows(connection, sql, {}):
                for column, value in zip(columns, row, strict=True):
                    if isinstance(value, str):
                        yield column, value
    except apsw.Error as error:
        raise CorruptDatabase(f"{path.name} cannot be read: {error}", "remove it by hand") from error
