"""Connections to a PostgreSQL server: a pool in each process, statements sent together, errors with the next step."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import ClientCursor, errors
from psycopg.adapt import Dumper, Loader
from psycopg.pq import TransactionStatus
from psycopg.types.string import StrDumper

from nanoclaw_memory.errors import StoreBusy, StoreError
from nanoclaw_memory.store.database import Row

POOL_SECONDS = 10.0
CONNECTIONS = 20  # of one process
KNOWN_SECONDS = 0.25  # a schema that another process creates is seen after this delay at most
# A machine that vanishes loses its locks after half a minute.
_LEASE = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
DEFERRED = 500  # statements that wait for the next one


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def search_path(schema: str) -> str:
    return f"SET search_path TO {quoted(schema)}, ncm, public"


class Connection(psycopg.Connection[Row]):
    """A connection that remembers its last schema; deferred statements are sent with the next one."""

    schema = ""
    used = 0.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.deferred: list[str] = []

    def run(self, schema: str, text: str, params: Mapping[str, Any] | None = None) -> Any:
        """Run a statement in a schema, after all deferred ones, in one round trip."""
        cursor = ClientCursor(self)
        path = [] if schema == self.schema else [search_path(schema)]
        parts = [*path, *self.deferred, cursor.mogrify(text, params or {})]
        self.deferred = []
        cursor.execute(";\n".join(parts).encode())
        for _ in parts[1:]:
            cursor.nextset()
        self.schema = schema
        return cursor

    def defer(self, schema: str, text: str, params: Mapping[str, Any] | None = None) -> None:
        """Run a statement with the next one, which also reports its errors."""
        self.deferred.append(ClientCursor(self).mogrify(text, params or {}))
        if len(self.deferred) >= DEFERRED:
            self.flush(schema)

    def flush(self, schema: str) -> None:
        """Run the deferred statements."""
        if self.deferred:
            self.run(schema, "")

    def roll_back(self) -> None:
        """Roll back the transaction, including a path that was set in it."""
        self.deferred, self.schema = [], ""
        self.execute("ROLLBACK")


class ConnectionPool:
    """The connections of this process to one database; a thread takes one for a statement or a transaction."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: list[Connection] = []
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._schemas: set[str] = set()
        self._asked = 0.0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
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

    def has_schema(self, name: str) -> bool:
        """Return whether a schema exists; all of them are queried at once."""
        if name not in self._schemas and time.monotonic() - self._asked > KNOWN_SECONDS:
            with self.connection() as connection:
                rows = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
            self._schemas, self._asked = {str(found) for (found,) in rows}, time.monotonic()
        return name in self._schemas

    def forget_schemas(self) -> None:
        """Query the schemas again: this process has created or removed one."""
        self._schemas, self._asked = set(), 0.0

    def _taken(self) -> Connection:
        while self._free:
            try:
                connection = self._free.pop()
                if time.monotonic() - connection.used > 1:
                    connection.execute("")  # the connection may have died meanwhile
                return connection
            except (IndexError, psycopg.OperationalError):
                continue
        made = Connection.connect(
            self._url, autocommit=True, cursor_factory=ClientCursor, connect_timeout=5, application_name="ncm"
        )
        made.execute(_LEASE)
        for kind, dumper in ((bool, _BoolDumper), (str, _StrDumper)):
            made.adapters.register_dumper(kind, dumper)
        made.adapters.register_loader("numeric", _NumericLoader)
        return made

    def _put_back(self, connection: Connection) -> None:
        if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            return
        connection.used = time.monotonic()
        self._free.append(connection)

    def close(self) -> None:
        self.forget_schemas()
        while self._free:
            self._free.pop().close()


@functools.cache
def pool(url: str) -> ConnectionPool:
    """Return the pool of this process to a database."""
    return ConnectionPool(url)


# A forked process needs its own connections.
os.register_at_fork(after_in_child=pool.cache_clear)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Take a connection of the pool, whatever the schema."""
    with explained(url), pool(url).connection() as connection:
        yield connection


def disconnect(url: str) -> None:
    """Close the connections of this process that nobody uses."""
    pool(url).close()


class _BoolDumper(Dumper):
    """SQLite has no booleans: boolean columns contain 1 or 0."""

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"

    quote = dump


class _StrDumper(StrDumper):
    """PostgreSQL cannot store the character NUL."""

    def dump(self, obj: Any) -> bytes | None:
        return super().dump(obj.replace("\x00", "\ufffd"))  # type: ignore[return-value]


class _NumericLoader(Loader):
    """Sums are numbers as in SQLite."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Translate errors of the server into ours, with the next step."""
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


@contextmanager
def explaining_missing_rights(hint: str) -> Iterator[None]:
    """Report a statement that the role has no right to run; `hint` says how to get it."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise StoreError(f"the database refuses it: {_first_line(error)}", hint) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _place(url: str) -> str:
    """Return where the database is, without the password."""
    found = psycopg.conninfo.conninfo_to_dict(url)
    return f"{found.get('dbname', '')} at {found.get('host', 'localhost')}"
