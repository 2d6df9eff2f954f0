"""Limits per session on stores, replacements and deletions, counted in the database: no session can flood memory."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Scope


class Limits(msgspec.Struct, frozen=True):
    """How often a session may store, supersede and delete."""

    stores: int = 20
    supersedes: int = 5
    deletes: int = 5

    def spend(self, db: Database, scope: Scope, kind: str, day: str) -> None:
        """Count one more of `kind` (store, supersede, delete), or refuse. Inside the writer's transaction.

        A person at the command line without a session is not limited. An agent that names no session
        shares one counter a day with all such agents.
        """
        session = scope.session_id
        if not session:
            if scope.origin == "owner":
                return
            session = f"({scope.origin} without a session on {day})"
        key = {"session": session, "kind": kind}
        rows = db.query("SELECT count FROM session_counts WHERE session_id = :session AND kind = :kind", key)
        done = int(rows[0][0]) if rows else 0
        most = {"store": self.stores, "supersede": self.supersedes, "delete": self.deletes}[kind]
        if done >= most:
            raise Refused(
                f"this session has used its {plural(most, kind)}",
                "wait for the next session, or let the person do it at the command line",
            )
        db.execute(
            "INSERT INTO session_counts (session_id, kind, count) VALUES (:session, :kind, 1) "
            "ON CONFLICT (session_id, kind) DO UPDATE SET count = count + 1",
            key,
        )
