"""Registered groups and the session each continues."""

from __future__ import annotations

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.types import Group


class Groups:
    """The rows of registered_groups and sessions."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def all(self) -> list[Group]:
        rows = self.database.query(
            "SELECT jid, name, folder, trigger_pattern, added_at, requires_trigger FROM registered_groups "
            "ORDER BY added_at, jid"
        )
        # Where v1 left NULL, a trigger is required.
        return [
            Group(jid, name, folder, pattern, at, required is None or bool(required))
            for jid, name, folder, pattern, at, required in rows
        ]

    def put(self, group: Group) -> None:
        self.database.execute(
            """INSERT INTO registered_groups (jid, name, folder, trigger_pattern, added_at, requires_trigger)
               VALUES (:jid, :name, :folder, :pattern, :at, :required)
               ON CONFLICT (jid) DO UPDATE SET name = excluded.name, folder = excluded.folder,
                 trigger_pattern = excluded.trigger_pattern, requires_trigger = excluded.requires_trigger""",
            {
                "jid": group.jid,
                "name": group.name,
                "folder": group.folder,
                "pattern": group.trigger_pattern,
                "at": group.added_at,
                "required": int(group.requires_trigger),
            },
        )

    def remove(self, jid: str) -> bool:
        return bool(self.database.execute("DELETE FROM registered_groups WHERE jid = :jid", {"jid": jid}))

    def sessions(self) -> dict[str, str]:
        return dict(
            self.database.query("SELECT group_folder, session_id FROM sessions ORDER BY group_folder")
        )

    def put_session(self, folder: str, session_id: str) -> None:
        self.database.execute(
            "INSERT INTO sessions (group_folder, session_id) VALUES (:folder, :session) "
            "ON CONFLICT (group_folder) DO UPDATE SET session_id = excluded.session_id",
            {"folder": folder, "session": session_id},
        )

    def remove_session(self, folder: str) -> bool:
        sql = "DELETE FROM sessions WHERE group_folder = :folder"
        return bool(self.database.execute(sql, {"folder": folder}))
