"""Migrate a continuity.db of the older systems: its exchanges are copied into ours, its table is renamed and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nanoclaw_memory.store.legacy_facts import KEPT, moment_of
from nanoclaw_memory.text import fingerprint


def adopt(connection: Any, version: int) -> Callable[[Any], None] | None:
    """Rename the older system's table; returns what moves its rows, or None for a file of ours."""
    if version or not connection.execute("PRAGMA table_info(exchanges)").fetchall():
        return None
    sql = "SELECT name FROM sqlite_schema WHERE tbl_name = 'exchanges' AND type = 'index' AND sql IS NOT NULL"
    indexes = connection.execute(sql).fetchall()
    for (name,) in indexes:
        quoted = name.replace('"', '""')
        connection.execute(f'DROP INDEX IF EXISTS "{quoted}"')
    connection.execute(f"ALTER TABLE exchanges RENAME TO {KEPT}exchanges")
    return _move


def _move(connection: Any) -> None:
    """Copy every exchange that says something; vectors are made anew, for they belong to a model."""
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({KEPT}exchanges)")}
    wanted = [name if name in columns else f"NULL AS {name}" for name in _COLUMNS]
    sql = f"SELECT rowid, {', '.join(wanted)} FROM {KEPT}exchanges ORDER BY rowid"  # noqa: S608
    for row in connection.execute(sql).fetchall():
        number, session, user, agent, at, topic = row
        user, agent = str(user or ""), str(agent or "")
        if not (user.strip() or agent.strip()):
            continue
        connection.execute(
            "INSERT INTO exchanges (id, session_id, user_message, agent_response, timestamp, topic, private,"
            " fingerprint) VALUES (:id, :session, :user, :agent, :at, :topic, 1, :mark)",
            {
                "id": number,
                "session": str(session or ""),
                "user": user,
                "agent": agent,
                "at": moment_of(at) or "1970-01-01T00:00:00.000Z",
                "topic": str(topic or ""),
                "mark": fingerprint(f"{user}\x00{agent}"),
            },
        )


_COLUMNS = ("session_id", "user_message", "agent_response", "timestamp", "topic")
