"""Row-level security: every table has a policy by the role of the connection, for its owner too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nanoclaw_memory.store.postgres_connections import quoted

SHARED_CHATS = "/shared"  # suffix to a group's name for the roles of its shared chats
FORGOTTEN = "forgotten"  # the database of tombstones
READ, WRITE = "SELECT", "SELECT, INSERT, UPDATE, DELETE"
# The policies' functions. They are declared immutable because nobody can change a connection's role: the planner
# evaluates them once per plan, and if they are true no condition remains that would prevent the use of an index.
# Names are bound when the functions are created, so that no search path redirects them.
FUNCTIONS = """
CREATE FUNCTION ncm.members(whose text) RETURNS text LANGUAGE sql STABLE RETURN (
  SELECT CASE WHEN octet_length(name) < 64 THEN name
    ELSE concat(left(name, 20), '…', left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 24)) END
  FROM (SELECT concat('ncm/', current_database(), '/', whose) AS name) x);
CREATE FUNCTION ncm.is_member(whose text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN EXISTS (
  SELECT 1 FROM pg_roles WHERE rolname = ncm.members(whose) AND pg_has_role(session_user, oid, 'MEMBER'));
CREATE FUNCTION ncm.is_owner(place text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN EXISTS (
  SELECT 1 FROM pg_namespace WHERE nspname IN (place, 'ncm') AND pg_has_role(session_user, nspowner, 'MEMBER'));
CREATE OR REPLACE FUNCTION ncm.author_of_role() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE before jsonb; after jsonb; said text;
BEGIN
  IF ncm.is_owner(TG_TABLE_SCHEMA) THEN
    RETURN NEW;
  END IF;
  IF TG_OP = 'UPDATE' THEN
    before := to_jsonb(OLD);
    after := to_jsonb(NEW);
    IF before ->> TG_ARGV[0] = 'owner' AND NOT EXISTS (
        SELECT 1 FROM unnest(TG_ARGV[1:]) x (said) WHERE before -> x.said IS DISTINCT FROM after -> x.said) THEN
      RETURN NEW;
    END IF;
  END IF;
  RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], 'agent'));
END $$;
"""
# Tables with the author of a row, and the columns with its text.
_SAID = {
    "facts": ("origin", "entity", "key", "value"),
    "relations": ("origin", "subject", "predicate", "object"),
    "aliases": ("origin", "alias", "entity"),
    "growth_vectors": ("origin", "trigger_pattern", "lesson_text", "principle", "state"),
    "entries": ("author", "content", "type"),
    "pages": ("author", "path", "text"),
}
_POLICIES = """
DO $do$ DECLARE one record; reading text; BEGIN
  FOR one IN SELECT oid::regclass AS place, relname AS name FROM pg_class
      WHERE relnamespace = {schema}::regnamespace AND relkind IN ('r', 'p') LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', one.place);
    EXECUTE format('DROP POLICY IF EXISTS reached ON %s', one.place);
    EXECUTE format('DROP POLICY IF EXISTS read ON %s', one.place);
    EXECUTE format('CREATE POLICY reached ON %s USING (%s)', one.place, {reached});
    reading := CASE one.name WHEN 'grants' THEN {granted} WHEN 'tombstones' THEN {forgotten} ELSE {read} END;
    IF reading <> '' THEN
      EXECUTE format('CREATE POLICY read ON %s FOR SELECT USING (%s)', one.place, reading);
    END IF;
  END LOOP;
END $do$"""


def secure(connection: Any, schema: str, path: Path) -> None:
    """Create policies and triggers on all tables of a schema, and grant them to the owners' roles.

    `path` is the path of the database below the home, which determines its owner.
    """
    make_functions(connection)
    writers, published = _writers(path), path.parent.name == "published"
    asked = (
        f"ncm.is_owner({_literal(schema)})",
        *(f"ncm.is_member({_literal(writer)})" for writer in writers),
    )
    granted = f"EXISTS (SELECT 1 FROM {quoted(schema)}.grants WHERE ncm.is_member(reader))"  # noqa: S608
    chats = f"ncm.is_member({_literal(_chats_of(path))})" if path.stem == FORGOTTEN else ""
    read = granted if published else "true" if _is_common(path) else chats
    connection.execute(
        _POLICIES.format(
            schema=_literal(quoted(schema)),
            reached=_literal(" OR ".join(asked)),
            read=_literal(read),
            granted=_literal("ncm.is_member(reader)" if published else read),
            forgotten=_literal(f"{chats} AND (text_fingerprint <> '' OR starts_with(name, '#'))"),
        )
    )
    _take_authors_from_roles(connection, schema)
    for role in filter(None, (existing_members(connection, writer) for writer in writers)):
        allow(connection, schema, role, WRITE)
        if path.stem == FORGOTTEN:  # only the owner allows again what a person forgot or rejected
            connection.execute(f"REVOKE UPDATE, DELETE ON {quoted(schema)}.tombstones FROM {quoted(role)}")
        if published:  # only the owner publishes and grants; a copy follows its entry
            connection.execute(f"REVOKE INSERT ON {quoted(schema)}.entries FROM {quoted(role)}")
            connection.execute(
                f"REVOKE INSERT, UPDATE, DELETE ON {quoted(schema)}.grants FROM {quoted(role)}"
            )
    for role in _reading_roles(connection, schema, path):
        allow(connection, schema, role, READ)


def make_functions(connection: Any) -> None:
    """Create the functions that policies and roles need, if they are missing."""
    if connection.execute("SELECT to_regproc('ncm.is_member')").fetchall() == [(None,)]:
        connection.execute(FUNCTIONS)


def allow(connection: Any, schema: str, role: str, what: str) -> None:
    """Let a role use a schema's tables, including those of later releases."""
    place, to = quoted(schema), quoted(role)
    connection.execute(f"GRANT USAGE ON SCHEMA {place}, ncm TO {to}")
    connection.execute(f"GRANT {what} ON ALL TABLES IN SCHEMA {place} TO {to}")
    connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {place} GRANT {what} ON TABLES TO {to}")


def members_of(connection: Any, whose: str) -> str:
    """Return the role that a group's agents are members of; roles are global to the server, so it contains the
    database.
    """
    ((name,),) = connection.execute("SELECT ncm.members(%(whose)s)", {"whose": whose}).fetchall()
    return str(name)


def _writers(path: Path) -> tuple[str, ...]:
    """Return whose roles may write a database: those of its group and, for shared chats, theirs."""
    if path.parent.name == "published":
        return (path.stem,)
    first, *rest = path.parts
    if first == "store":
        return ()
    group = rest[0] if first == "groups" else "main"
    return (group, _chats_of(path)) if path.stem.startswith("shared-") else (group,)


def _chats_of(path: Path) -> str:
    """Return the roles of the shared chats of a database's group. They read what was forgotten, not what was
    rejected.
    """
    first, *rest = path.parts
    return f"{rest[0] if first == 'groups' else 'main'}{SHARED_CHATS}"


def _is_common(path: Path) -> bool:
    return path.parts == ("store", "common.db")


def _reading_roles(connection: Any, schema: str, path: Path) -> list[str]:
    """Return the read-only roles of a schema: of groups with a grant, of the group's shared chats, or of all."""
    if path.parent.name == "published":
        readers = connection.execute(f"SELECT reader FROM {quoted(schema)}.grants").fetchall()  # noqa: S608
        return [role for (one,) in readers if (role := existing_members(connection, one))]
    if path.stem == FORGOTTEN:
        return list(filter(None, [existing_members(connection, _chats_of(path))]))
    if not _is_common(path):
        return []
    sql = "SELECT rolname FROM pg_roles WHERE starts_with(rolname, ncm.members('')) AND NOT rolcanlogin"
    return [str(role) for (role,) in connection.execute(sql).fetchall()]


def existing_members(connection: Any, whose: str) -> str:
    """Return the role of a group's agents; empty if there is none."""
    role = members_of(connection, whose)
    return role if role_exists(connection, role) else ""


def role_exists(connection: Any, role: str) -> bool:
    """Return whether the server has a role of this name."""
    sql = "SELECT 1 FROM pg_roles WHERE rolname = %(role)s"
    return bool(connection.execute(sql, {"role": role}).fetchall())


def _take_authors_from_roles(connection: Any, schema: str) -> None:
    """Create triggers that attribute a role's rows to the agent, whatever origin they claim."""
    sql = "SELECT relname FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND relname = ANY(%(names)s)"
    known = {"schema": quoted(schema), "names": list(_SAID)}
    for (table,) in connection.execute(sql, known).fetchall():
        author = _SAID[table][0]
        connection.execute(
            f"CREATE OR REPLACE TRIGGER author_of_role BEFORE INSERT OR UPDATE ON {quoted(schema)}.{table}"
            f" FOR EACH ROW WHEN (NEW.{author} = 'owner')"
            f" EXECUTE FUNCTION ncm.author_of_role({', '.join(_SAID[table])})"
        )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
