"""Consistent copies of a group's databases: create, prepare, load back and compare."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from nanoclaw_memory.errors import CorruptDatabase, StoreError
from nanoclaw_memory.store.copying import DERIVED
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.sqlite import SqliteDatabase, tables_of
from nanoclaw_memory.text import plural


class Snapshots(msgspec.Struct, frozen=True):
    """The databases that cannot be rebuilt; `open` returns one by name."""

    names: tuple[str, ...]
    open: Callable[[str], Database]

    def existing(self) -> tuple[str, ...]:
        """Return the existing databases."""
        return tuple(name for name in self.names if self.open(name).exists())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Block the writers of all processes."""
        for name in self.existing():
            with suppress(StoreError):  # an older file is migrated before, for that may write another one
                self.open(name).query("SELECT 1")
        with ExitStack() as stack:
            for name in self.names:
                stack.enter_context(self.open(name).held())
            yield

    def copy(self, name: str, target: Path) -> bool:
        """Copy a database; return False for a damaged one, whose file is copied as it is, for rescue."""
        database = self.open(name)
        try:
            database.copy_to(target)
        except CorruptDatabase:
            shutil.copyfile(database.path, target)
            wal = Path(f"{database.path}-wal")
            if wal.exists():
                shutil.copyfile(wal, f"{target}-wal")
            return False
        finally:
            if target.exists():
                target.chmod(0o600)
        return True

    def prepare(self, name: str, source: Path | None, target: Path) -> None:
        """Return a copy of `source` migrated to this release's schema, or an empty database; refuse a newer one."""
        if source is not None:
            shutil.copyfile(source, target)
        ready = self.open(name).at(target)
        try:
            ready.query("SELECT count(*) FROM sqlite_schema")
        finally:
            ready.close()
            Path(f"{target}-lock").unlink(missing_ok=True)

    def load(self, name: str, prepared: Path) -> None:
        """Replace the live database's content by that of a prepared one; all or nothing."""
        database = self.open(name)
        try:
            database.load_from(prepared)
        except CorruptDatabase:
            database.discard()
            database.load_from(prepared)

    def differences(self, name: str, saved: Path) -> list[str]:
        """Return what changed since `saved`, table by table: 'facts: 3 rows added, 1 row removed'."""
        with self._file(name) as database:
            return _differences(database, saved)

    @contextmanager
    def _file(self, name: str) -> Iterator[SqliteDatabase]:
        """Return the database as a SQLite file: itself, or a copy."""
        database = self.open(name)
        if isinstance(database, SqliteDatabase):
            yield database
            return
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            database.copy_to(Path(folder) / "copy.db")
            copy = SqliteDatabase(Path(folder) / "copy.db", database.name)
            yield copy
            copy.close()


def _differences(database: SqliteDatabase, saved: Path) -> list[str]:
    database.query("ATTACH :saved AS saved", {"saved": str(saved)})
    try:
        now, then = (
            {table: columns for table, columns in tables.items() if table not in DERIVED}
            for tables in (tables_of(database), tables_of(database, "saved"))
        )
        lines = [f"{table}: new table" for table in sorted(now.keys() - then.keys())]
        lines += [f"{table}: no longer there" for table in sorted(then.keys() - now.keys())]
        for table in sorted(now.keys() & then.keys()):
            if now[table] != then[table]:
                lines.append(f"{table}: other columns")
            elif line := _rows_changed(database, table):
                lines.append(line)
        return lines
    finally:
        database.query("DETACH saved")


def _rows_changed(database: SqliteDatabase, table: str) -> str:
    name = '"' + table.replace('"', '""') + '"'
    count = "SELECT count(*) FROM (SELECT * FROM {0}.{2} EXCEPT SELECT * FROM {1}.{2})"
    ((added,),) = database.query(count.format("main", "saved", name))
    ((removed,),) = database.query(count.format("saved", "main", name))
    parts = [
        f"{plural(number, 'row')} {how}" for number, how in ((added, "added"), (removed, "removed")) if number
    ]
    return f"{table}: {', '.join(parts)}" if parts else ""
