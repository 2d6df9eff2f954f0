"""Login roles of PostgreSQL, one per agent: each reads and writes the schemas of its group and nothing else.

A schema belongs to one group, so PostgreSQL refuses another group's before it looks at a row; row-level security
(`row_security`) is a second barrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.store.opening import Store
from nanoclaw_memory.store.postgres import PostgresDatabase
from nanoclaw_memory.store.postgres_connections import connected, explaining_missing_rights, quoted
from nanoclaw_memory.store.row_security import (
    READ,
    SHARED_CHATS,
    allow,
    existing_members,
    make_functions,
    members_of,
    role_exists,
    secure,
)


def make_role(
    store: Store,
    name: str,
    group: str,
    databases: Mapping[Path, str],
    private: bool = True,
    password: str = "",
) -> str:
    """Create a login role for an agent of a group with these databases, by path and kind; return its URL.

    One that is not private can read the group's shared chats and nothing else.
    """
    import secrets

    password = password or secrets.token_urlsafe(24)
    common = PostgresDatabase(_url(store), store.home, store.common_pages, "pages")
    made = [PostgresDatabase(store.url, store.home, path, kind) for path, kind in databases.items()]
    made += [common, *_published(store)]
    for database in made:
        database.query("SELECT 1")
    with (
        connected(store.url) as connection,
        explaining_missing_rights(_rights_hint(connection)),
        connection.transaction(),
    ):
        if role_exists(connection, name):
            raise InvalidValue(
                f"there is a role {name!r} already", f"take another name, or: ncm db role {name} --drop"
            )
        members = members_of(connection, group if private else f"{group}{SHARED_CHATS}")
        if not role_exists(connection, members):
            connection.execute(f"CREATE ROLE {quoted(members)} NOLOGIN")
        secret = f"LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '{password}'"
        connection.execute(f"CREATE ROLE {quoted(name)} {secret} IN ROLE {quoted(members)}")
        for database in made:
            secure(connection, database.schema, database.path.relative_to(store.home))
    return role_url(store.url, name, password)


def _rights_hint(connection: Any) -> str:
    return f"a superuser of the database can allow it: ALTER ROLE {quoted(connection.info.user)} CREATEROLE"


def _published(store: Store) -> list[PostgresDatabase]:
    return [
        PostgresDatabase(store.url, store.home, store.published / f"{publisher}.db", "entries")
        for publisher in store.names(store.published)
    ]


def drop_role(store: Store, name: str) -> None:
    """Drop the role of an agent, and close its connections."""
    with connected(_url(store)) as connection:
        known = (
            "SELECT 1 FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member"
            " WHERE r.rolname = %(name)s AND starts_with(g.rolname, %(start)s)"
            " AND NOT m.admin_option"  # only the owner has it
        )
        make_functions(connection)
        start = members_of(connection, "")
        if not connection.execute(known, {"name": name, "start": start}).fetchall():
            raise NotFound(f"there is no agent's role {name!r}", "ncm db role NAME --group GROUP makes one")
        connection.execute(f"ALTER ROLE {quoted(name)} NOLOGIN")
        connection.execute(f"GRANT {quoted(name)} TO CURRENT_USER")  # its members may close its connections
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %(name)s"
        connection.execute(ended, {"name": name})
        connection.execute(f"DROP ROLE {quoted(name)}")


def role_url(url: str, name: str, password: str) -> str:
    """Return the owner's URL with another name and password."""
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


def let_read(connection: Any, schema: str, group: str, allowed: bool) -> None:
    """Let the agents of a group read a schema, or stop that."""
    members = existing_members(connection, group)
    if not members:
        return
    if allowed:
        allow(connection, schema, members, READ)
        return
    place, of = quoted(schema), quoted(members)
    connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {place} REVOKE ALL ON TABLES FROM {of}")
    connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {place} FROM {of}")
    connection.execute(f"REVOKE ALL ON SCHEMA {place} FROM {of}")
