"""PostgreSQL: every database of a home is a schema of its own; one writer at a time in each."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from psycopg import errors

from nanoclaw_memory.errors import NewerSchema, StoreBusy, StoreError
from nanoclaw_memory.store import postgres_vectors
from nanoclaw_memory.store.database import Database, Params, Row
from nanoclaw_memory.store.migrate import Step, steps_of
from nanoclaw_memory.store.postgres_connections import (
    Connection,
    connected,
    explained,
    explaining_missing_rights,
    pool,
    quoted,
    search_path,
)
from nanoclaw_memory.store.postgres_schema import (
    COMMON,
    NUMBER_ON,
    creation,
    translated,
    upgrade,
    values,
)
from nanoclaw_memory.store.row_security import secure

WAIT_MS = 60_000  # for another writer, without a limit of the caller's
EXACT_ROWS = 20_000  # a smaller table is counted each time
FETCHED = 2_000  # rows fetched at once if there are too many for memory
LONGEST_NAME = 63
_COMMON_LOCK = 4_919_131_752  # any number that nobody else uses
_WEIGHTS = {"passages_fts": "{0, 0.5, 0.4, 1}", "entries_fts": "{0, 0, 0.5, 1}"}  # of the columns D, C, B, A
# BM25, as FTS5 ranks: rare terms count more, repetition and length less and less. ts_rank_cd of one term is its
# frequency, weighted by column; it is evaluated once per row, since tf / (tf + k) is 1 - k / (tf + k).
_RANKED = """
WITH whole AS ({whole}),
  asked AS MATERIALIZED (SELECT q, 0.9::float / usual AS each,
      2.2::float * greatest(ln((greatest(n, holding) - holding + 0.5) / (holding + 0.5)), 1e-6::float) AS weight
    FROM whole, (SELECT q, coalesce(known, {counted}) AS holding FROM (SELECT ncm.term(t) AS q, max(h) AS known
      FROM unnest(%(terms)s::text[], %(holding)s::float[]) x (t, h) GROUP BY 1) x WHERE numnode(q) > 0) y)
SELECT rowid, sum(weight - weight * (0.3::float + each * size)
  / (ts_rank_cd('{weights}', words, q) + 0.3::float + each * size)) AS score
FROM asked JOIN {table} ON words @@ q{only} GROUP BY rowid ORDER BY score DESC, rowid LIMIT %(limit)s"""
# Small tables are counted each time; the size of large ones is cached for a minute.
_WHOLE = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM {0} LIMIT 20000) x) AS n,
  (SELECT avg(size)::float FROM (SELECT size FROM {0} LIMIT 1000) y) AS usual"""
_WHOLE_KNOWN = "SELECT {0.rows}::float AS n, {0.usual}::float AS usual"
# How many rows contain a term, unless this question counted it already.
_COUNTED = "(SELECT count(*) FROM (SELECT 1 FROM {0} WHERE words @@ q LIMIT 20000) z)"
# For the most common words the server knows how many rows contain them; others are few and are counted.
_WORTH_KNOWING = 1_000
_STATISTICS = """
SELECT reltuples, (SELECT coalesce(max(rowid), 0) FROM {0}), CASE WHEN reltuples > 20000 THEN (
    SELECT avg(size)::float FROM (SELECT size FROM {0} ORDER BY rowid DESC LIMIT 1000) y) END
  FROM pg_class WHERE oid = '{0}'::regclass"""
# The server hides its statistics of tables with row-level security; its estimates are based on them. For an unknown
# word it assumes that a thousandth of the rows contain it.
_ESTIMATE = "EXPLAIN (FORMAT JSON) SELECT FROM {0} WHERE words @@ ncm.term(:term)"
_KNOWN_SHARE = 0.002
_KNOWN_SECONDS = 60.0  # the statistics themselves are older


class _Statistics(msgspec.Struct, frozen=True):
    """What the server knows about a table: its rows, the last of them, and their usual size if they are many."""

    at: float
    rows: float
    last: int
    usual: float | None


class PostgresDatabase(Database):
    """One schema of a PostgreSQL database; `path` is where its file would be, and determines the schema."""

    is_file = False
    read_only = False
    strict = True

    def __init__(
        self,
        url: str,
        home: Path,
        path: Path,
        name: str,
        steps: Sequence[Step] | None = None,
        wait_ms: int | None = None,
    ) -> None:
        self.url = url
        self.home = home
        self.path = path
        self.name = name
        self.schema = schema_of(path.relative_to(home))
        self._steps = tuple(steps or steps_of(name))
        self._ready = self._has_nearest = False
        self._wait_ms = WAIT_MS if wait_ms is None else wait_ms
        self._local = threading.local()
        self._statistics: dict[str, _Statistics] = {}

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
        if newest:
            found, more = self.containing(table, terms, every=True)
            found = f"rowid >= {self.newest(table, terms, newest)} AND {found}"
            only, params = f"{only} AND {found}" if only else found, {**(params or {}), **more}
        condition, lists = translated(only)
        holding = [self._counted.get((table, term)) for term in terms]
        whole = self._known(table)
        sql = _RANKED.format(
            table=table,
            whole=_WHOLE.format(table) if whole.usual is None else _WHOLE_KNOWN.format(whole),
            weights=_WEIGHTS.get(table, "{1, 1, 1, 1}"),
            only=f" AND {condition}" if only else "",
            counted=_COUNTED.format(table),
        )
        given = {**values(params, lists), "terms": list(terms), "holding": holding, "limit": limit}
        with self._connection() as connection:
            rows = connection.run(self.schema, sql, given).fetchall()
        return [(int(rowid), float(score)) for rowid, score in rows]

    def occurrences(
        self, table: str, term: str, most: int, only: str = "", params: Params | None = None
    ) -> int:
        count, known = None, most >= _WORTH_KNOWING and not only
        if known and (rows := self._known(table).rows) > EXACT_ROWS:
            ((plan,),) = self.query(_ESTIMATE.format(table), {"term": term})
            estimate = int(plan[0]["Plan"]["Plan Rows"])
            count = estimate if estimate > rows * _KNOWN_SHARE else None
        if count is None:
            count = super().occurrences(table, term, most, only, params)
        if known:
            self._counted[table, term] = count
        return min(count, most)

    def _known(self, table: str) -> _Statistics:
        found = self._statistics.get(table)
        if found is None or time.monotonic() - found.at > _KNOWN_SECONDS:
            (row,) = self.query(_STATISTICS.format(table))
            found = self._statistics[table] = _Statistics(time.monotonic(), *row)
        return found

    @property
    def _counted(self) -> dict[tuple[str, str], int]:
        """Return what this thread has counted recently: ranking needs it again."""
        kept: dict[tuple[str, str], int] = self._local.__dict__.setdefault("counted", {})
        if len(kept) > _WORTH_KNOWING:
            kept.clear()
        return kept

    def newest(self, table: str, terms: Sequence[str], most: int) -> int:
        count = min(self._counted.get((table, term), 0) for term in terms)
        if count > most:  # reading all rows of a common word costs too much
            last = self._known(table).last
            return last - last * most // count
        return super().newest(table, terms, most)

    def containing(
        self, table: str, terms: Sequence[str], every: bool = False, column: str = ""
    ) -> tuple[str, dict[str, Any]]:
        params = {f"term{number}": term for number, term in enumerate(terms)}
        asked = (" && " if every else " || ").join(f"ncm.term(:{name})" for name in params)
        # A named column is always the first one.
        return f"{table}.words @@ {'ncm.in_first' if column else ''}({asked})", params

    @property
    def has_nearest(self) -> bool:
        if not self._has_nearest:
            with self._connection() as connection:
                self._has_nearest = postgres_vectors.has_column(connection, self.schema)
        return self._has_nearest

    def nearest(
        self,
        owner: int,
        vector: Any,
        limit: int,
        within: str = "",
        without: str = "",
        params: Params | None = None,
    ) -> list[tuple[int, float]]:
        let_in, lists = translated(within)
        kept_out, others = translated(without)
        only = let_in, " AND ".join(filter(None, (let_in, kept_out)))
        given = values(params, (*lists, *others))
        with self._connection() as connection:
            return postgres_vectors.nearest(connection, self.schema, owner, vector, limit, only, given)

    def index_vectors(self, owner: int, dimensions: int) -> None:
        with self.claimed("nearest") as free, self._pinned() as connection:
            if free and postgres_vectors.add_column(connection):
                postgres_vectors.build_index(connection, self.schema, owner, dimensions)

    @property
    def writing(self) -> bool:
        return self._open is not None

    @property
    def place(self) -> str:
        return f"{self.url} {self.schema}"

    def version(self) -> int:
        return int(self.query("SELECT writes FROM ncm_state")[0][0])

    # ---- writing ----

    def execute(self, sql: str, params: Params | None = None) -> None:
        text, lists = translated(sql)
        with explained(self.url):
            self._writing().defer(self.schema, text, values(params, lists))

    def update(self, sql: str, params: Params | None = None) -> int:
        return int(self._run(self._writing(), sql, params).rowcount)

    def insert(self, sql: str, params: Params | None = None) -> int:
        cursor = self._run(self._writing(), f"{sql} RETURNING *", params)
        names = [column.name for column in cursor.description]
        row = cursor.fetchone()
        return int(row[names.index("rowid") if "rowid" in names else 0]) if row else 0

    def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        for param in params:
            self.execute(sql, param)

    @contextmanager
    def transaction(self, wait_ms: int | None = None) -> Iterator[None]:
        if self._open is not None:
            with self._savepoint(self._open):
                yield
            return
        limit = self._wait_ms if wait_ms is None else max(1, wait_ms)
        begin = f"BEGIN; SET LOCAL lock_timeout = {limit}; SELECT pg_advisory_xact_lock({self._key})"
        with self._connection() as connection:
            try:
                connection.run(self.schema, begin)
                self._local.open, self._local.wrote = connection, False
                yield
                if self._local.wrote:
                    connection.defer(self.schema, "UPDATE ncm_state SET writes = writes + 1")
                connection.run(self.schema, "COMMIT")
            except BaseException:
                with suppress(psycopg.OperationalError):  # the first error is reported
                    connection.roll_back()
                raise
            finally:
                self._local.open = None

    @contextmanager
    def _savepoint(self, connection: Connection) -> Iterator[None]:
        """Use a savepoint: an inner failure that is caught outside leaves nothing behind."""
        self._local.depth = depth = getattr(self._local, "depth", 0) + 1
        begin = f"SAVEPOINT inner{depth}"
        connection.deferred.append(begin)
        try:
            yield
            if connection.deferred[-1:] == [begin]:
                connection.deferred.pop()
            else:
                connection.flush(self.schema)  # errors must occur inside the savepoint
                connection.deferred.append(f"RELEASE inner{depth}")
        except BaseException:
            if begin in connection.deferred:  # nothing of it was sent yet
                del connection.deferred[connection.deferred.index(begin) :]
            else:
                connection.deferred = []
                connection.run(self.schema, f"ROLLBACK TO inner{depth}; RELEASE inner{depth}")
            raise
        finally:
            self._local.depth = depth - 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Block the writers of all processes; this thread may still write. Readers are not blocked."""
        with connected(self.url) as connection:  # its schema may not exist, and is not created
            connection.execute(f"SET lock_timeout = {WAIT_MS}; SELECT pg_advisory_lock({self._key})")
            try:
                with self._keeping(connection):
                    yield
            finally:
                connection.execute(f"SELECT pg_advisory_unlock({self._key})")

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        key = _lock_number(f"{self.schema}/{name}")
        with connected(self.url) as connection:
            ((free,),) = connection.execute(f"SELECT pg_try_advisory_lock({key})").fetchall()
            try:
                yield bool(free)
            finally:
                if free:
                    connection.execute(f"SELECT pg_advisory_unlock({key})")

    @contextmanager
    def _keeping(self, connection: Connection) -> Iterator[None]:
        """Use this connection for everything that the thread does meanwhile."""
        before, self._local.kept = getattr(self._local, "kept", None), connection
        try:
            yield
        finally:
            self._local.kept = before

    # ---- the whole ----

    def exists(self) -> bool:
        if self._ready:
            return True
        with explained(self.url):
            return pool(self.url).has_schema(self.schema)

    def check(self) -> list[str]:
        """Return what is wrong: invalid indexes, and tables that cannot be read from end to end."""
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
            " AND table_name NOT LIKE '%\\_fts' AND table_name <> 'ncm_state'"
            " AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position"
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
        """Rewrite every table, so that no deleted rows are left in it; the server's WAL expires by itself."""
        if not self.exists():
            return True
        try:
            with self._pinned() as connection:
                memory = postgres_vectors.BUILDING  # an index of vectors is rebuilt with its table
                self._run(connection, f"SET lock_timeout = {max(1, wait_ms)}; {memory}")
                for table in self._every_table():
                    self._run(connection, f"VACUUM (FULL) {table}")
                self._run(connection, "RESET lock_timeout; RESET maintenance_work_mem")
        except StoreBusy:
            return False
        return True

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy as a SQLite file."""
        from nanoclaw_memory.store.copying import copy_rows

        target.unlink(missing_ok=True)
        copy = self.at(target)
        try:
            with self._pinned() as connection, connection.transaction():
                self._run(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                with self._keeping(connection), copy.transaction():
                    copy.query("PRAGMA defer_foreign_keys = ON")
                    copy_rows(self, copy)
        finally:
            copy.close()
            Path(f"{target}-lock").unlink(missing_ok=True)

    def load_from(self, source: Path) -> None:
        """Replace the whole content by that of a SQLite file, in one transaction."""
        from nanoclaw_memory.store.copying import DERIVED, copy_rows

        saved = self.at(source)
        try:
            with self.transaction():
                self.execute("SET CONSTRAINTS ALL DEFERRED")
                for table in self._every_table():
                    if table.endswith("_fts") or table in DERIVED:  # readers of the outbox start again
                        self.execute(f"DELETE FROM {table}")  # noqa: S608 (our own tables)
                copy_rows(saved, self)
                self.execute("SET CONSTRAINTS ALL IMMEDIATE")
                self._open.flush(self.schema)
                self._open.execute(NUMBER_ON)
        finally:
            saved.close()

    def at(self, path: Path) -> Database:
        from nanoclaw_memory.store.sqlite import SqliteDatabase

        return SqliteDatabase(path, self.name, steps=self._steps)

    def discard(self) -> None:
        self._leave()
        with connected(self.url) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {quoted(self.schema)} CASCADE")

    def set_aside(self) -> None:
        """Rename the schema; the next use creates a new one."""
        self._leave()
        kept = quoted(f"damaged/{self.schema}"[:LONGEST_NAME])
        with connected(self.url) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {kept} CASCADE")
            connection.execute(f"ALTER SCHEMA {quoted(self.schema)} RENAME TO {kept}")

    def let_read(self, group: str, allowed: bool) -> None:
        from nanoclaw_memory.store.roles import let_read

        with connected(self.url) as connection:
            let_read(connection, self.schema, group, allowed)

    def close(self) -> None:
        self._ready = False

    # ---- inside ----

    @property
    def _open(self) -> Any:
        return getattr(self._local, "open", None)

    @functools.cached_property
    def _key(self) -> int:
        """Return the number of the lock that writers of this schema take."""
        return _lock_number(self.schema)

    def _writing(self) -> Connection:
        if self._open is None:
            raise StoreError("a write outside of a transaction", "this is a bug; please report it")
        self._local.wrote = True
        found: Connection = self._open
        return found

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Return the connection of this thread's transaction, or one of the pool; the schema is migrated."""
        if not self._ready:
            self._migrate()
        kept = self._open or getattr(self._local, "kept", None)
        if kept is not None:
            with explained(self.url):
                yield kept
            return
        with connected(self.url) as connection:
            yield connection

    @contextmanager
    def _pinned(self) -> Iterator[Connection]:
        """Return the same, with the schema in the search path whatever is rolled back meanwhile."""
        with self._connection() as connection:
            if connection.schema != self.schema or connection.deferred:
                connection.run(self.schema, "")
            yield connection

    def _run(self, connection: Connection, sql: str, params: Params | None = None) -> Any:
        text, lists = translated(sql)
        with explained(self.url):
            return connection.run(self.schema, text, values(params, lists))

    def _leave(self) -> None:
        self._ready = self._has_nearest = False
        pool(self.url).forget_schemas()

    def _migrate(self) -> None:
        """Create the schema, or migrate it; a newer one is refused unchanged."""
        with connected(self.url) as connection:
            if self._current(connection) == self._steps[-1].number:
                self._ready = True
                return
            connection.schema = ""
            with explaining_missing_rights(_rights_hint(connection)), connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": _COMMON_LOCK})
                if connection.execute("SELECT to_regproc('ncm.term')").fetchall() == [(None,)]:
                    connection.execute(COMMON)
                current = self._current(connection)
                if current != self._steps[-1].number:  # otherwise another process was first
                    self._make(connection, current)
        pool(self.url).forget_schemas()
        self._ready = True

    def _make(self, connection: Connection, current: int | None) -> None:
        """Create the schema, or the newest steps of it."""
        if current is None:
            connection.execute(f"CREATE SCHEMA {quoted(self.schema)}")
        connection.execute(search_path(self.schema))
        made = creation(self._steps) if current is None else ";".join(upgrade(self._steps, current))
        connection.execute(made.encode())
        if self.name == "index" and current is None:
            postgres_vectors.add_column(connection)
        secure(connection, self.schema, self.path.relative_to(self.home))
        connection.schema = self.schema

    def _current(self, connection: Any) -> int | None:
        """Return the number of the schema's last step; None if there is no schema."""
        table = f"{quoted(self.schema)}.ncm_state"
        if not connection.execute("SELECT to_regclass(%(table)s)", {"table": table}).fetchone()[0]:
            return None
        if not (rows := connection.execute(f"SELECT version FROM {table}").fetchall()):  # noqa: S608
            raise StoreError(
                f"the database refuses it: no policy lets this role reach {self.schema}",
                "use the role of this group, or the owner's",
            )
        ((number,),) = rows
        newest = self._steps[-1].number
        if number > newest:
            raise NewerSchema(
                f"{self.path.name} has schema {number}, this release knows {newest}",
                "upgrade nanoclaw-memory; nothing was changed",
            )
        return int(number)


def _rights_hint(connection: Connection) -> str:
    """Return how to get the right to create a schema."""
    given = f"GRANT CREATE ON DATABASE {quoted(connection.info.dbname)} TO {quoted(connection.info.user)}"
    return f"its owner can allow it: {given}; or use the role of this group: ncm db role NAME --group GROUP"


def _lock_number(name: str) -> int:
    from hashlib import sha256

    return int.from_bytes(sha256(name.encode()).digest()[:7], "big")


def schema_of(path: Path) -> str:
    """Return the schema of a database, from its path below the home: `groups/team/data/facts.db` is `team/facts`."""
    first, *rest = path.with_suffix("").parts
    group, own = (rest[0], rest[1:]) if first == "groups" else ("main", [first, *rest])
    if own[0] == "data":
        own = own[1:]
    elif group == "main" and len(own) > 1:  # of no group: store/messages
        group = ""
    name = "/".join(filter(None, (group, *own)))
    if len(name.encode()) <= LONGEST_NAME:
        return name
    from hashlib import sha256

    return f"{name[:30]}…{sha256(name.encode()).hexdigest()[:24]}"


def names_in(url: str, folder: Path) -> list[str]:
    """Return the databases of a folder: the last parts of the schemas below it."""
    start = schema_of(folder / "x").removesuffix("x")
    sql = (
        "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %(start)s)"
        " AND has_schema_privilege(oid, 'USAGE') ORDER BY 1"
    )
    with connected(url) as connection:
        found = connection.execute(sql, {"start": start}).fetchall()
    return [str(name).removeprefix(start) for (name,) in found]
