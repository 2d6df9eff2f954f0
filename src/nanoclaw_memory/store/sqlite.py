"""SQLite: WAL, a connection per thread, one writer at a time over all processes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from nanoclaw_memory import private
from nanoclaw_memory.errors import CorruptDatabase, ReadOnlyStore, StoreBusy, StoreError
from nanoclaw_memory.store.database import Database, Params, Row
from nanoclaw_memory.store.integrity import remedy
from nanoclaw_memory.store.migrate import Adopt, Step, is_current, migrate, steps_of
from nanoclaw_memory.store.read_only import is_writable, open_copy, open_for_reading
from nanoclaw_memory.store.undecodable import bad_texts, mend, tolerant_rows
from nanoclaw_memory.store.write_count import WriteCount, counted_in

BUSY_MS = 10_000
_PRAGMAS = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON"


class SqliteDatabase(Database):
    """One SQLite file, opened on first use; `name` is its schema folder unless `steps` are passed."""

    is_file = True

    def __init__(
        self,
        path: Path,
        name: str,
        adopt: Adopt | None = None,
        steps: Sequence[Step] | None = None,
        durable: bool = False,
        counted: bool = False,
        wait_ms: int | None = None,
    ) -> None:
        self.path = path
        self.name = name
        self._adopt = adopt
        self._steps = steps
        # Durable: on disk when a commit returns; the others may lose the last commits in a power cut.
        self._pragmas = _PRAGMAS.replace("NORMAL", "FULL") if durable else _PRAGMAS
        self.writes = WriteCount.of(path) if counted else WriteCount()
        self._local = threading.local()
        self._opened: list[tuple[threading.Thread, Any]] = []
        self._guard = threading.Lock()
        self._migrated = False
        self._read_only: bool | None = None  # known once it is asked for, until it is closed
        self._holder = 0  # the thread that has blocked all other writers
        self._inode = 0
        self._wait_ms = wait_ms  # for another writer; without a limit unless a caller has one

    # ---- reading ----

    def query(self, sql: str, params: Params | None = None) -> list[Row]:
        import apsw

        connection = self._connection()
        try:  # without the context manager, which a question would use ninety times
            return connection.execute(sql, params or {}).fetchall()  # type: ignore[no-any-return]
        except UnicodeDecodeError as error:
            with self._translated():
                return list(self._tolerant(connection, sql, params, error))
        except apsw.Error:
            with self._translated():
                raise

    def query_within(self, limit_ms: int, sql: str, params: Params) -> list[Row]:
        import time

        import apsw

        deadline = time.monotonic() + limit_ms / 1000
        connection = self._connection()
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        try:
            return self.query(sql, params)
        except apsw.InterruptError:
            raise StoreBusy(f"the query took more than {limit_ms / 1000:g} s", "ask for less") from None
        finally:
            connection.set_progress_handler(None)

    def rows(self, sql: str, params: Params | None = None) -> Iterator[Row]:
        passed = 0
        with self._translated():
            connection = self._connection()
            try:
                for row in connection.execute(sql, params or {}):
                    passed += 1
                    yield row
            except UnicodeDecodeError as error:
                yield from islice(self._tolerant(connection, sql, params, error), passed, None)

    def match(
        self,
        table: str,
        terms: Sequence[str],
        limit: int,
        only: str = "",
        params: Params | None = None,
        newest: int = 0,
    ) -> list[tuple[int, float]]:
        if not terms:
            return []
        found, given = self.containing(table, terms, every=bool(newest))
        where = found + (f" AND {only}" if only else "")
        sql = f"SELECT rowid, -rank FROM {table} WHERE {where} ORDER BY rank LIMIT :limit"  # noqa: S608
        if newest:  # one pass: finding them first and then ranking them reads all rows of all terms twice
            last = (
                f"SELECT rowid, -rank AS score FROM {table} WHERE {where} ORDER BY rowid DESC LIMIT :newest"  # noqa: S608
            )
            sql = f"SELECT rowid, score FROM ({last}) ORDER BY score DESC LIMIT :limit"  # noqa: S608
        rows = self.query(sql, {**(params or {}), **given, "limit": limit, "newest": newest})
        return [(int(rowid), float(score)) for rowid, score in rows]

    def containing(
        self, table: str, terms: Sequence[str], every: bool = False, column: str = ""
    ) -> tuple[str, dict[str, Any]]:
        # Each term is quoted, so no user text is ever syntax.
        quoted = ('"' + term.replace("\x00", " ").replace('"', '""') + '"' for term in terms)
        asked = (" AND " if every else " OR ").join(quoted)
        return f"{table} MATCH :match", {"match": f"{column} : ({asked})" if column else asked}

    @property
    def read_only(self) -> bool:
        if self._read_only is None:
            self._read_only = not is_writable(self.path)
        return self._read_only

    @property
    def writing(self) -> bool:
        return bool(getattr(self._local, "depth", 0))

    @property
    def place(self) -> str:
        """Return the file; readers of an unwritable one may each have their own copy."""
        return f"{id(self)}" if self.read_only else str(self.path)

    @property
    def strict(self) -> bool:
        """Return whether a single bad text makes it unusable: if it can be rebuilt, or contains the tombstones."""
        return self._derived or self.name == "forgotten"

    def version(self) -> int:
        return int(self.query("PRAGMA data_version")[0][0])

    # ---- writing ----

    def execute(self, sql: str, params: Params | None = None) -> None:
        self.update(sql, params)

    def update(self, sql: str, params: Params | None = None) -> int:
        with self._translated():
            connection = self._writing()
            connection.execute(sql, params or {})
            return int(connection.changes())

    def insert(self, sql: str, params: Params | None = None) -> int:
        with self._translated():
            connection = self._writing()
            connection.execute(sql, params or {})
            return int(connection.last_insert_rowid())

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        with self._translated():
            self._writing().executemany(sql, params)

    @contextmanager
    def transaction(self, wait_ms: int | None = None) -> Iterator[None]:
        connection = self._connection()
        if self.writing:
            with connection:  # a savepoint: an inner failure that is caught outside leaves nothing behind
                yield
            return
        wait_ms = self._wait_ms if wait_ms is None else wait_ms
        with self._write_lock(wait_ms), self._translated():
            self._begin(connection, wait_ms)
            self._local.depth = 1
            before = connection.total_changes()
            try:
                yield
                number = self.writes.count(connection) if connection.total_changes() > before else 0
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            else:
                connection.execute("COMMIT")
                if number:
                    self.writes.set(number)
            finally:
                self._local.depth = 0

    # ---- whole file ----

    def exists(self) -> bool:
        return self.path.exists()

    def size(self) -> int:
        return self.path.stat().st_size

    def tables(self) -> dict[str, tuple[str, ...]]:
        return tables_of(self)

    def overwriting(self) -> SqliteDatabase:
        self.query("PRAGMA secure_delete = ON")
        return self

    def check(self) -> list[str]:
        """Return what the integrity check finds wrong; empty when sound. An older file is not migrated."""
        self.writes.require(self.path, self.name)
        if not self.path.exists():
            return []
        with self.unmigrated() as connection:
            is_current(connection, self._steps or steps_of(self.name), self.path)  # refuses a newer one
            rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
            named = bad_texts(connection) if broken or self.strict else ()
            bad = list(map(str, named))
        if bad and not self.strict:  # a name that cannot be decoded points to nothing
            bad, broken = [], []
        found = [str(row[0]) for row in rows if row[0] != "ok"]
        return (found + bad) + [
            f"{table}: row {rowid} points to a missing {parent}" for table, rowid, parent, _ in broken
        ]

    def lost_writes(self) -> int:
        """Return how many writes the file must contain and does not."""
        self.writes.require(self.path, self.name)
        with self.unmigrated() as connection:
            return self.writes.lost + self.writes.missing(connection)

    @contextmanager
    def unmigrated(self) -> Iterator[Any]:
        """Open a separate connection to the file as it is, whatever its schema."""
        import apsw

        with self._translated():
            if self.read_only:
                connection = open_for_reading(self.path, BUSY_MS)
            else:
                connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                connection.set_busy_timeout(BUSY_MS)
                yield connection
            finally:
                connection.close()

    def mend(self) -> int:
        """Write � for what cannot be decoded; return how many texts changed. Needs a transaction."""
        return mend(self._writing())

    def scrub(self, wait_ms: int = BUSY_MS) -> bool:
        """Remove every trace of deleted rows: keyword segments, free pages and WAL are rewritten.

        Return False when another process still reads an older state: its pages stay until it has finished.
        """
        if not self.path.exists():
            return True
        sql = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'"
        self.query("SELECT 1")  # creating or migrating takes the lock itself
        with self._write_lock(), self._translated():
            connection = self._connection()
            for (table,) in connection.execute(sql).fetchall():
                connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608
            connection.execute("VACUUM").fetchall()
            connection.set_busy_timeout(wait_ms)
            try:
                ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.set_busy_timeout(BUSY_MS)
        return not busy

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy while others read and write."""
        self.query("SELECT 1")
        target.unlink(missing_ok=True)
        with self._translated():
            self._connection().execute("VACUUM INTO :target", {"target": str(target)})

    def load_from(self, source: Path) -> None:
        """Replace the whole content by that of another file, in one transaction.

        SQLite's backup writes through the live file and its WAL, so that connections of other processes see the next
        version; a file put in its place would leave them on the old one.
        """
        import apsw

        self.query("SELECT 1")  # creating or migrating takes the lock itself
        with self._write_lock(), self._translated():
            saved = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                with self._connection().backup("main", saved, "main") as backup:
                    while not backup.done:
                        backup.step(-1)
                self.writes.restart(counted_in(self._connection()))
            finally:
                saved.close()

    def discard(self) -> None:
        """Remove the file with its WAL: for one too damaged to be opened, after copying it."""
        with self._write_lock():
            self.close()
            for path in (self.path, Path(f"{self.path}-wal"), Path(f"{self.path}-shm")):
                path.unlink(missing_ok=True)
            self.writes.restart(0)

    def set_aside(self) -> None:
        """Move the file with its WAL to `damaged/` beside it; the next use creates a new one."""
        with self._write_lock():
            self.close()
            folder = self.path.parent / "damaged"
            private.make_folder(folder)
            for path in (self.path, Path(f"{self.path}-wal"), Path(f"{self.path}-shm")):
                if path.exists():
                    path.replace(folder / path.name)
            self.writes.restart(0)

    def at(self, path: Path) -> SqliteDatabase:
        """Return a database of the same kind in another file."""
        return SqliteDatabase(path, self.name, self._adopt, self._steps)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Block the writers of all processes; this thread may still write. Readers are not blocked."""
        self._refuse_if_read_only()
        private.make_folder(self.path.parent)
        with open(f"{self.path}-lock", "a", opener=private.opener) as handle:
            # With a limit: a writer that owns this lock may itself be waiting for one that our caller owns.
            self._lock_within(handle, BUSY_MS)
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = 0

    def leave_replaced(self) -> bool:
        """Close a file that was replaced by another; return True if it was."""
        replaced = bool(self._opened) and not self.read_only and self._inode != _inode(self.path)
        if replaced:
            self.close()
        return replaced

    def close(self) -> None:
        with self._guard:
            for _, connection in self._opened:
                _close(connection)
            self._opened.clear()
            self._local = threading.local()
            self._migrated = False  # the file may be another one when it is opened again
            self._read_only = None

    # ---- inside ----

    def _tolerant(
        self, connection: Any, sql: str, params: Params | None, error: UnicodeDecodeError
    ) -> Iterator[Row]:
        """Yield the rows with � for what cannot be decoded."""
        if self.strict:
            raise self._damaged(error) from error
        return tolerant_rows(connection, sql, params or {})

    def _connection(self) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            with self._translated():
                connection = self._open()
            self._local.connection = connection
        return connection

    def _open(self) -> Any:
        import apsw

        steps = self._steps or steps_of(self.name)
        self.writes.require(self.path, self.name)
        if self.read_only:
            return self._open_unwritable(steps)
        private.make_folder(self.path.parent)
        try:
            # SQLite itself would make it readable for everybody
            open(self.path, "a", opener=private.opener).close()
        except OSError as error:
            raise self._unusable(error.strerror) from None
        connection = apsw.Connection(str(self.path))
        # Otherwise a statement is compiled again for other values, if a partial index or LIKE might fit them: a
        # quarter of a question's cost.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._inode = _inode(self.path)
        try:
            connection.set_busy_timeout(BUSY_MS)
            with self._guard:
                # Only an outdated file takes the lock: a reader never waits for a writer.
                if not self._migrated and not is_current(connection, steps, self.path):
                    with self._write_lock():
                        connection.execute(
                            self._pragmas
                        ).fetchall()  # apsw stops at a row until it is fetched
                        migrate(connection, steps, self.path, self._adopt)
                        self.path.chmod(0o600)
                else:
                    connection.execute(self._pragmas).fetchall()
                if not self._migrated and self.writes.missing(connection):
                    with self._write_lock():
                        self.writes.note_loss(connection)
                self._migrated = True
                self._close_orphans()
                self._opened.append((threading.current_thread(), connection))
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_unwritable(self, steps: Sequence[Step]) -> Any:
        """Open a file that cannot be written; if its schema must be migrated, open a copy in memory."""

        def prepare(copy: Any) -> None:
            migrate(copy, steps, self.path, self._adopt)

        connection = self._open_for_reading() if self.path.exists() else None
        if connection is None or self._derived or not is_current(connection, steps, self.path):
            source, connection = connection, open_copy(connection, prepare)
            if source is not None:
                source.close()
        with self._guard:
            self._close_orphans()
            self._opened.append((threading.current_thread(), connection))
        return connection

    def _open_for_reading(self) -> Any:
        """Return the file itself, or None for a damaged one that can be rebuilt elsewhere."""
        import apsw

        try:
            return open_for_reading(self.path, BUSY_MS)
        except (apsw.NotADBError, apsw.CorruptError):
            if not self._derived:
                raise
            return None

    @property
    def _derived(self) -> bool:
        """Return whether it can be rebuilt from files: then a read-only one is migrated as a copy in memory."""
        return self.name == "index"

    def _refuse_if_read_only(self) -> None:
        if self.read_only and not self._derived:
            raise ReadOnlyStore(
                f"{self.path.name} cannot be written: the home is read-only",
                f"make it writable: chmod -R u+w {self.path.parent}",
            )

    def _close_orphans(self) -> None:
        """Close the connections of threads that have ended: a long-lived process has many of them."""
        for thread, connection in self._opened:
            if not thread.is_alive():
                connection.close()
        self._opened = [(thread, connection) for thread, connection in self._opened if thread.is_alive()]

    def _writing(self) -> Any:
        if not self.writing:
            raise StoreError("a write outside of a transaction", "this is a bug; please report it")
        return self._connection()

    @contextmanager
    def _write_lock(self, wait_ms: int | None = None) -> Iterator[None]:
        # SQLite's busy handler polls and starves under many writers; a queue at the file system does not.
        import fcntl

        self._refuse_if_read_only()
        if self._holder == threading.get_ident() or self.read_only:
            yield
            return
        with open(f"{self.path}-lock", "a", opener=private.opener) as handle:
            wait_ms = self._wait_ms if wait_ms is None else wait_ms
            if wait_ms is None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            else:
                self._lock_within(handle, wait_ms)
            yield

    def _lock_within(self, handle: IO[str], wait_ms: int) -> None:
        """Take the write lock, or raise StoreBusy after `wait_ms`."""
        if not private.lock_within(handle, wait_ms / 1000):
            raise self._busy(wait_ms)

    def _begin(self, connection: Any, wait_ms: int | None) -> None:
        if wait_ms is None:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.set_busy_timeout(wait_ms)
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.set_busy_timeout(BUSY_MS)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import apsw

        try:
            yield
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise self._damaged(error) from error
        except apsw.SQLError as error:
            if not self._derived:
                raise
            raise self._damaged(error) from error  # its schema was changed by others; it is rebuilt
        except (apsw.BusyError, apsw.LockedError) as error:
            raise self._busy() from error
        except (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
            raise self._unusable(error) from error

    def _damaged(self, why: object) -> CorruptDatabase:
        return CorruptDatabase(f"{self.path.name} is damaged: {why}", remedy(self.path, self.name))

    def _unusable(self, why: object) -> StoreError:
        return StoreError(f"{self.path.name} cannot be used: {why}", "check free disk space and permissions")

    def _busy(self, wait_ms: int = BUSY_MS) -> StoreBusy:
        waited = f"stayed busy for {BUSY_MS // 1000} s" if wait_ms == BUSY_MS else "is being written"
        return StoreBusy(f"{self.path.name} {waited}", "try again; another process is writing")


def tables_of(database: SqliteDatabase, schema: str = "main") -> dict[str, tuple[str, ...]]:
    """Return the ordinary tables with their columns; keyword indexes follow from them."""
    rows = database.query(
        "SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_info(t.name, t.schema) AS c "
        "WHERE t.schema = :schema AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "ORDER BY t.name, c.cid",
        {"schema": schema},
    )
    tables: dict[str, tuple[str, ...]] = {}
    for table, column in rows:
        tables[table] = (*tables.get(table, ()), column)
    return tables


def _close(connection: Any) -> None:
    """Close a connection; one that an abandoned thread still uses is interrupted and left to the process's end."""
    import apsw

    try:
        connection.close()
    except apsw.ThreadingViolationError:
        connection.interrupt()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def in_memory(name: str) -> SqliteDatabase:
    """Return an empty database of a rebuildable kind, private to this process."""
    made = SqliteDatabase(Path("/nonexistent"), name)
    made._read_only = True
    return made
