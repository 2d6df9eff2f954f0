"""PostgreSQL: every database of a home is a schema of its own; one writer at a time in each."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import ClientCursor, errors
from psycopg.adapt import Dumper, Loader
from psycopg.pq import TransactionStatus
from psycopg.types.string import StrDumper

from nanoclaw_memory.errors import NewerSchema, StoreBusy, StoreError
from nanoclaw_memory.store.database import Database, Params, Row
from nanoclaw_memory.store.dialect import translated, values
from nanoclaw_memory.store.migrate import Step, steps_of
from nanoclaw_memory.store.postgres_schema import COMMON, NUMBER_ON, statements, upgrade

WAIT_MS = 60_000  # for another writer, without a limit of the caller's
POOL_SECONDS = 10.0
CONNECTIONS = 20  # of one process
FETCHED = 2_000  # rows at once where they are too many to hold
LONGEST_NAME = 63
_COMMON_LOCK = 4_919_131_752  # any number that nobody else uses
_WEIGHTS = {"passages_fts": "{0, 0.5, 0.4, 1}", "entries_fts": "{0, 0, 0.5, 1}"}  # of the columns D, C, B, A
# BM25, as FTS5 ranks: rare terms count more, repetition and length less and less.
_RANKED = """
WITH asked AS (SELECT DISTINCT ncm.term(t) AS q FROM unnest(%(terms)s::text[]) t),
  whole AS (SELECT greatest((SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT 20000) x),
      (SELECT reltuples FROM pg_class WHERE oid = '{table}'::regclass)) AS n,
    (SELECT avg(length(words)) FROM (SELECT words FROM {table} LIMIT 200) y) AS size),
  terms AS (SELECT q, whole.size AS usual, greatest(ln((whole.n - f.n + 0.5) / (f.n + 0.5)), 1e-6) AS idf
    FROM asked, whole, LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM {table} WHERE words @@ q LIMIT 20000) z) f
    WHERE numnode(q) > 0 AND f.n > 0),
  found AS (SELECT rowid, idf, length(words) / usual AS size, ts_rank('{weights}', words, q) / 0.6079 AS tf
    FROM terms JOIN {table} ON words @@ q{only})
SELECT rowid, sum(idf * tf * 2.2 / (tf + 0.3 + 0.9 * size)) AS score
FROM found GROUP BY rowid ORDER BY score DESC, rowid LIMIT %(limit)s"""


class PostgresDatabase:
    """One schema of a PostgreSQL database; `path` is where its file would be, and says which one it is."""

    is_file = False
    read_only = False
    strict = True

    def __init__(
        self, url: str, home: Path, path: Path, name: str, steps: Sequence[Step] | None = None
    ) -> None:
        self.url = url
        self.home = home
        self.path = path
        self.name = name
        self.schema = schema_of(path.relative_to(home))
        self._steps = steps or steps_of(name)
        self._ready = False
        self._local = threading.local()

    # ---- reading ----

    def query(self, sql: str, params: Params | None = None) -> list[Row]:
        with self._connection() as connection:
            rows: list[Row] = self._run(connection, sql, params).fetchall()
        return rows

    def query_within(self, limit_ms: int, sql: str, params: Params) -> list[Row]:
        try:
            with self._pinned() as connection, connection.transaction():
                self._run(connection, f"SET LOCAL statement_timeout = {int(limit_ms)}")
                rows: list[Row] = self._run(connection, sql, params).fetchall()
                return rows
        except errors.QueryCanceled:
            raise StoreBusy(f"the query took more than {limit_ms / 1000:g} s", "ask for less") from None

    def rows(self, sql: str, params: Params | None = None) -> Iterator[Row]:
        with self._pinned() as connection, connection.transaction():
            self._run(connection, f"DECLARE streamed NO SCROLL CURSOR FOR {sql}", params)
            while batch := self._run(connection, f"FETCH {FETCHED} FROM streamed").fetchall():
                yield from batch
            self._run(connection, "CLOSE streamed")

    def match(
        self, table: str, terms: Sequence[str], limit: int, only: str = "", params: Params | None = None
    ) -> list[tuple[int, float]]:
        if not terms:
            return []
        condition, lists = translated(only)
        weights = _WEIGHTS.get(table, "{1, 1, 1, 1}")
        sql = _RANKED.format(table=table, weights=weights, only=f" AND {condition}" if only else "")
        given = {**values(params, lists), "terms": list(terms), "limit": limit}
        with self._connection() as connection:
            rows = self._executed(connection, sql, given).fetchall()
        return [(int(rowid), float(score)) for rowid, score in rows]

    def occurrences(
        self, table: str, term: str, most: int, only: str = "", params: Params | None = None
    ) -> int:
        found, given = self.containing(table, [term])
        where = found + (f" AND {only}" if only else "")
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {where} LIMIT :most) x"  # noqa: S608
        return int(self.query(sql, {**(params or {}), **given, "most": most})[0][0])

    def containing(
        self, table: str, terms: Sequence[str], every: bool = False, column: str = ""
    ) -> tuple[str, dict[str, Any]]:
        params = {f"term{number}": term for number, term in enumerate(terms)}
        asked = (" && " if every else " || ").join(f"ncm.term(:{name})" for name in params)
        # A column that is named is always the first one.
        return f"{table}.words @@ {'ncm.in_first' if column else ''}({asked})", params

    @property
    def place(self) -> str:
        return f"{self.url} {self.schema}"

    def version(self) -> int:
        return int(self.query("SELECT writes FROM ncm_state")[0][0])

    # ---- writing ----

    def execute(self, sql: str, params: Params | None = None) -> int:
        return int(self._written(sql, params).rowcount)

    def insert(self, sql: str, params: Params | None = None) -> int:
        row = self._written(f"{sql} RETURNING *", params).fetchone()
        return int(row[0]) if row else 0

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        for one in params:
            self._written(sql, one)

    @contextmanager
    def transaction(self, wait_ms: int | None = None) -> Iterator[None]:
        if self._open is not None:
            with (
                self._open.transaction()
            ):  # a savepoint: an inner failure that is caught outside leaves nothing
                yield
            return
        with self._pinned() as connection, connection.transaction():
            limit = WAIT_MS if wait_ms is None else max(1, wait_ms)
            self._run(connection, f"SET LOCAL lock_timeout = {limit}")
            self._run(connection, "SELECT pg_advisory_xact_lock(:key)", {"key": self._key})
            self._local.open, self._local.wrote = connection, False
            try:
                yield
                if self._local.wrote:
                    self._run(connection, "UPDATE ncm_state SET writes = writes + 1")
            finally:
                self._local.open = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Block the writers of all processes; this thread may still write. Readers are not blocked."""
        with self._pinned() as connection:
            self._run(connection, f"SET lock_timeout = {WAIT_MS}")
            self._run(connection, "SELECT pg_advisory_lock(:key)", {"key": self._key})
            self._local.kept = connection
            try:
                yield
            finally:
                self._local.kept = None
                self._run(connection, "SELECT pg_advisory_unlock(:key)", {"key": self._key})

    # ---- the whole ----

    def exists(self) -> bool:
        if self._ready:
            return True
        with self._unready() as connection:
            sql = "SELECT 1 FROM pg_namespace WHERE nspname = %(name)s"
            return bool(connection.execute(sql, {"name": self.schema}).fetchall())

    def check(self) -> list[str]:
        """What is wrong: indexes that are not valid, and tables that cannot be read from end to end."""
        if not self.exists():
            return []
        sql = (
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND NOT i.indisvalid"
        )
        found = [f"the index {name} is not valid" for (name,) in self.query(sql, {"schema": self.schema})]
        for table in self._every_table():
            try:
                self.query(f"SELECT sum(hashtext(t::text)) FROM {table} t")  # noqa: S608
            except errors.DataCorrupted as error:
                found.append(f"{table}: {error}")
        return found

    def _every_table(self) -> list[str]:
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = :schema ORDER BY 1"
        return [str(name) for (name,) in self.query(sql, {"schema": self.schema})]

    def tables(self) -> dict[str, tuple[str, ...]]:
        sql = (
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = :schema"
            " AND table_name NOT LIKE '%\\_fts' AND table_name <> 'ncm_state' ORDER BY table_name, ordinal_position"
        )
        found: dict[str, tuple[str, ...]] = {}
        for table, column in self.query(sql, {"schema": self.schema}):
            found[table] = (*found.get(table, ()), column)
        return found

    def size(self) -> int:
        sql = (
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND c.relkind = 'r'"
        )
        return int(self.query(sql, {"schema": self.schema})[0][0])

    def overwriting(self) -> PostgresDatabase:
        return self

    def scrub(self, wait_ms: int = WAIT_MS) -> bool:
        """Write every table anew, so that nothing of deleted rows is left in it; the server's WAL ages by itself."""
        if not self.exists():
            return True
        try:
            with self._pinned() as connection:
                self._run(connection, f"SET lock_timeout = {max(1, wait_ms)}")
                for table in self._every_table():
                    self._run(connection, f"VACUUM (FULL) {table}")
                self._run(connection, "RESET lock_timeout")
        except StoreBusy:
            return False
        return True

    def copy_to(self, target: Path) -> None:
        """A copy as a SQLite file, of one moment."""
        from nanoclaw_memory.store.copying import copy_rows

        target.unlink(missing_ok=True)
        copy = self.at(target)
        try:
            with self._pinned() as connection, connection.transaction():
                self._run(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                self._local.kept = connection
                try:
                    with copy.transaction():
                        copy.query("PRAGMA defer_foreign_keys = ON")
                        copy_rows(self, copy)
                finally:
                    self._local.kept = None
        finally:
            copy.close()
            Path(f"{target}-lock").unlink(missing_ok=True)

    def load_from(self, source: Path) -> None:
        """Replace the whole content by that of a SQLite file, in one transaction."""
        from nanoclaw_memory.store.copying import copy_rows

        saved = self.at(source)
        try:
            with self.transaction():
                self.execute("SET CONSTRAINTS ALL DEFERRED")
                for table in self._every_table():
                    if table.endswith("_fts"):
                        self.execute(f"DELETE FROM {table}")  # noqa: S608 (our own tables)
                copy_rows(saved, self)
                self.execute("SET CONSTRAINTS ALL IMMEDIATE")
                self._open.execute(NUMBER_ON)
        finally:
            saved.close()

    def at(self, path: Path) -> Database:
        from nanoclaw_memory.store.sqlite import SqliteDatabase

        return SqliteDatabase(path, self.name, steps=self._steps)

    def discard(self) -> None:
        self._ready = False
        with self._unready() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {quoted(self.schema)} CASCADE")

    def set_aside(self) -> None:
        """Rename the schema; the next use makes a new one."""
        self._ready = False
        kept = quoted(f"damaged/{self.schema}"[:LONGEST_NAME])
        with self._unready() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {kept} CASCADE")
            connection.execute(f"ALTER SCHEMA {quoted(self.schema)} RENAME TO {kept}")

    def let_read(self, group: str, allowed: bool) -> None:
        from nanoclaw_memory.store.roles import let_read

        with self._unready() as connection:
            let_read(connection, self.schema, group, allowed)

    def leave_replaced(self) -> bool:
        return False

    def lost_writes(self) -> int:
        return 0

    def close(self) -> None:
        self._ready = False

    # ---- inside ----

    @property
    def _open(self) -> Any:
        return getattr(self._local, "open", None)

    @functools.cached_property
    def _key(self) -> int:
        """The number of the lock that writers of this schema take."""
        from hashlib import sha256

        return int.from_bytes(sha256(self.schema.encode()).digest()[:7], "big")

    def _written(self, sql: str, params: Params | None) -> Any:
        if self._open is None:
            raise StoreError("a write outside of a transaction", "this is a bug; please report it")
        self._local.wrote = True
        with _explained(self.url):
            return self._run(self._open, sql, params)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """The connection of this thread's transaction, or one of the pool; the schema is up to date."""
        kept = self._open or getattr(self._local, "kept", None)
        if kept is not None:
            with _explained(self.url):
                yield kept
            return
        if not self._ready:
            self._migrate()
        with self._unready() as connection:
            yield connection

    @contextmanager
    def _pinned(self) -> Iterator[Any]:
        """The same, with the schema's tables at hand whatever is rolled back meanwhile."""
        with self._connection() as connection:
            if connection.schema != self.schema:
                connection.execute(_path(self.schema))
                connection.schema = self.schema
            yield connection

    @contextmanager
    def _unready(self) -> Iterator[Any]:
        with connected(self.url) as connection:
            yield connection

    def _run(self, connection: Any, sql: str, params: Params | None = None) -> Any:
        text, lists = translated(sql)
        return self._executed(connection, text, values(params, lists))

    def _executed(self, connection: Any, text: str, given: Params) -> Any:
        if connection.schema == self.schema:
            return connection.execute(text, given)
        # In one go with the statement: a connection serves the schemas by turns.
        cursor = connection.execute(f"{_path(self.schema)}; {text}", given)
        cursor.nextset()
        connection.schema = self.schema
        return cursor

    def _migrate(self) -> None:
        """Make the schema, or bring it up to date; a newer one is refused untouched."""
        with self._unready() as connection:
            if self._current(connection) == self._steps[-1].number:
                self._ready = True
                return
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": _COMMON_LOCK})
                if not connection.execute("SELECT to_regproc('ncm.term')").fetchone()[0]:
                    connection.execute(COMMON)
                current = self._current(connection)  # another process may have been first
                if current is None:
                    connection.execute(f"CREATE SCHEMA {quoted(self.schema)}")
                connection.execute(_path(self.schema))
                for statement in (
                    statements(self._steps) if current is None else upgrade(self._steps, current)
                ):
                    connection.execute(statement)
            connection.schema = ""
        self._ready = True

    def _current(self, connection: Any) -> int | None:
        """The number of the schema's last step; None where there is none."""
        table = f"{quoted(self.schema)}.ncm_state"
        if not connection.execute("SELECT to_regclass(%(table)s)", {"table": table}).fetchone()[0]:
            return None
        ((number,),) = connection.execute(f"SELECT version FROM {table}").fetchall()  # noqa: S608
        if number > self._steps[-1].number:
            raise NewerSchema(
                f"{self.path.name} has schema {number}, this release knows {self._steps[-1].number}",
                "upgrade nanoclaw-memory; nothing was changed",
            )
        return int(number)


def schema_of(path: Path) -> str:
    """The schema of a database, from its place below the home: `groups/team/data/facts.db` is `team/facts`."""
    parts = [part for part in path.with_suffix("").parts if part not in ("data", "groups")]
    name = "/".join(parts if len(parts) > 1 else ["main", *parts])
    if len(name.encode()) <= LONGEST_NAME:
        return name
    from hashlib import sha256

    return f"{name[:30]}…{sha256(name.encode()).hexdigest()[:24]}"


def names_in(url: str, folder: Path) -> list[str]:
    """The databases of a folder: the last parts of the schemas below it."""
    start = schema_of(folder / "x").removesuffix("x")
    sql = (
        "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %(start)s)"
        " AND has_schema_privilege(oid, 'USAGE') ORDER BY 1"
    )
    with connected(url) as connection:
        found = connection.execute(sql, {"start": start}).fetchall()
    return [str(name).removeprefix(start) for (name,) in found]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _path(schema: str) -> str:
    return f"SET search_path TO {quoted(schema)}, ncm, public"


class _Connection(psycopg.Connection[Row]):
    """A connection that knows which schema it was last used for, and when."""

    schema = ""
    used = 0.0


class _Pool:
    """The connections of this process to one database; a thread takes one for a statement or a transaction."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: list[_Connection] = []
        self._slots = threading.BoundedSemaphore(CONNECTIONS)

    @contextmanager
    def connection(self) -> Iterator[_Connection]:
        if not self._slots.acquire(timeout=POOL_SECONDS):
            raise StoreBusy(
                f"all {CONNECTIONS} connections to the database are in use", "try again in a moment"
            )
        try:
            connection = self._taken()
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._slots.release()

    def _taken(self) -> _Connection:
        while self._free:
            try:
                connection = self._free.pop()
                if time.monotonic() - connection.used > 1:
                    connection.execute("")  # it may have died meanwhile
                return connection
            except (IndexError, psycopg.OperationalError):
                continue
        made = _Connection.connect(
            self._url, autocommit=True, cursor_factory=ClientCursor, connect_timeout=5, application_name="ncm"
        )
        for kind, dumper in ((bool, _BoolDumper), (str, _StrDumper)):
            made.adapters.register_dumper(kind, dumper)
        made.adapters.register_loader("numeric", _NumericLoader)
        return made

    def _put_back(self, connection: _Connection) -> None:
        if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            return
        connection.used = time.monotonic()
        self._free.append(connection)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()


@functools.cache
def _pool(url: str) -> _Pool:
    return _Pool(url)


@contextmanager
def connected(url: str) -> Iterator[_Connection]:
    """A connection of the pool, whatever the schema."""
    with _explained(url), _pool(url).connection() as connection:
        yield connection


def disconnect(url: str) -> None:
    """Close the connections of this process that nobody uses."""
    _pool(url).close()


class _BoolDumper(Dumper):
    """SQLite has no booleans: columns that are yes or no hold 1 or 0."""

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"

    quote = dump


class _StrDumper(StrDumper):
    """PostgreSQL cannot keep the character NUL."""

    def dump(self, obj: Any) -> bytes | None:
        return super().dump(obj.replace("\x00", "\ufffd"))  # type: ignore[return-value]


class _NumericLoader(Loader):
    """Sums are numbers as in SQLite."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """What went wrong with the server, with the next step."""
    try:
        yield
    except (errors.LockNotAvailable, errors.TooManyConnections) as error:
        raise StoreBusy(f"the database is busy: {_first_line(error)}", "try again in a moment") from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the database refuses it: {_first_line(error)}", "use the role of this group, or the owner's"
        ) from error
    except errors.DiskFull as error:
        raise StoreError(f"the database's disk is full: {_first_line(error)}", "make room on it") from error
    except errors.QueryCanceled:
        raise
    except psycopg.OperationalError as error:
        raise StoreError(
            f"the database {_place(url)} cannot be used: {_first_line(error)}",
            "start it, or correct store.url: nanoclaw-memory config get store.url",
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _place(url: str) -> str:
    """Where the database is, without the password."""
    found = psycopg.conninfo.conninfo_to_dict(url)
    return f"{found.get('dbname', '')} at {found.get('host', 'localhost')}"
