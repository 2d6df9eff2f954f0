"""Login roles of PostgreSQL, one per agent: each reads and writes the schemas of its group and nothing else.

A schema belongs to one group, so PostgreSQL refuses another group's before it looks at a row. What a role writes in the
owner's name becomes the agent's, by a trigger that only the owner of the tables could remove.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.store.opening import Store
from nanoclaw_memory.store.postgres import PostgresDatabase
from nanoclaw_memory.store.postgres_connections import connected, quoted

# Where a table keeps who said a row.
_AUTHORS = (
    ("facts", "origin"),
    ("relations", "origin"),
    ("aliases", "origin"),
    ("entries", "author"),
    ("pages", "author"),
)
_TAKEN_FROM_ROLE = """
CREATE OR REPLACE FUNCTION ncm.author_of_role() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NOT pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER')
     AND to_jsonb(NEW) ->> TG_ARGV[0] = 'owner'
     AND (TG_OP = 'INSERT' OR to_jsonb(OLD) ->> TG_ARGV[0] <> 'owner') THEN
    NEW := jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], 'agent'));
  END IF;
  RETURN NEW;
END $$"""


def make_role(store: Store, name: str, group: str, databases: Mapping[Path, str]) -> str:
    """A login role for an agent of a group with these databases, by path and kind; returns its URL."""
    import secrets

    password = secrets.token_urlsafe(24)
    made = [PostgresDatabase(_url(store), store.home, path, kind) for path, kind in databases.items()]
    common = PostgresDatabase(store.url, store.home, store.common_pages, "pages")
    for database in (*made, common):
        database.query("SELECT 1")
    with connected(store.url) as connection, connection.transaction():
        if _exists(connection, name):
            raise InvalidValue(
                f"there is a role {name!r} already", f"take another name, or: ncm db role {name} --drop"
            )
        members = members_of(connection, group)
        if not _exists(connection, members):
            connection.execute(f"CREATE ROLE {quoted(members)} NOLOGIN")
        secret = f"LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '{password}'"
        connection.execute(f"CREATE ROLE {quoted(name)} {secret} IN ROLE {quoted(members)}")
        connection.execute(_TAKEN_FROM_ROLE)
        allow(connection, common.schema, members, "SELECT")
        for database in made:
            allow(connection, database.schema, members, "SELECT, INSERT, UPDATE, DELETE")
            for table, column in _AUTHORS:
                if table in database.tables():
                    _take_from_role(connection, f"{quoted(database.schema)}.{table}", column)
    for publisher in store.names(store.published):
        shared = PostgresDatabase(store.url, store.home, store.published / f"{publisher}.db", "entries")
        if shared.query("SELECT 1 FROM grants WHERE reader = :group", {"group": group}):
            shared.let_read(group, True)
    return _url_of(store.url, name, password)


def drop_role(store: Store, name: str) -> None:
    """End the role of an agent, and its connections."""
    with connected(_url(store)) as connection:
        known = (
            "SELECT 1 FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member"
            " WHERE r.rolname = %(name)s AND starts_with(g.rolname, %(start)s)"
        )
        start = members_of(connection, "")
        if not connection.execute(known, {"name": name, "start": start}).fetchall():
            raise NotFound(f"there is no agent's role {name!r}", "ncm db role NAME --group GROUP makes one")
        connection.execute(f"ALTER ROLE {quoted(name)} NOLOGIN")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %(name)s"
        connection.execute(ended, {"name": name})
        connection.execute(f"DROP ROLE {quoted(name)}")


def _url_of(url: str, name: str, password: str) -> str:
    """The owner's URL with another name and password."""
    from urllib.parse import quote, urlsplit, urlunsplit

    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(name, safe='')}:{quote(password, safe='')}@{place}"))


def _url(store: Store) -> str:
    if not store.url:
        raise InvalidValue(
            "the databases of this home are files", "roles belong to PostgreSQL: see docs/team.md"
        )
    return store.url


def members_of(connection: Any, group: str) -> str:
    """The role that all agents of a group are members of; roles are the server's, so the database is in its name."""
    return f"ncm/{connection.info.dbname}/{group}"


def _exists(connection: Any, name: str) -> bool:
    return bool(
        connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %(name)s", {"name": name}).fetchall()
    )


def allow(connection: Any, schema: str, role: str, what: str) -> None:
    """Let a role use a schema's tables, those of later releases too."""
    place, to = quoted(schema), quoted(role)
    connection.execute(f"GRANT USAGE ON SCHEMA {place} TO {to}")
    connection.execute(f"GRANT {what} ON ALL TABLES IN SCHEMA {place} TO {to}")
    connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {place} GRANT {what} ON TABLES TO {to}")


def let_read(connection: Any, schema: str, group: str, allowed: bool) -> None:
    """Let the agents of a group read a schema, or no longer."""
    members = members_of(connection, group)
    if not _exists(connection, members):
        return
    if allowed:
        allow(connection, schema, members, "SELECT")
        return
    place, of = quoted(schema), quoted(members)
    connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {place} REVOKE ALL ON TABLES FROM {of}")
    connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {place} FROM {of}")
    connection.execute(f"REVOKE ALL ON SCHEMA {place} FROM {of}")


def _take_from_role(connection: Any, table: str, column: str) -> None:
    connection.execute(
        f"CREATE OR REPLACE TRIGGER author_of_role BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW"
        f" EXECUTE FUNCTION ncm.author_of_role({column})"
    )
