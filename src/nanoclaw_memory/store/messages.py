"""The tables of the host: chats, messages, cursors and replies; registered groups and their sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.table import Table, insertion, keep_note, note_of
from nanoclaw_memory.types import Chat, ChatGroup, Message, Reply

_OF_CHAT = "chat_jid = :jid AND arrival BETWEEN :first AND :last"
# Columns that NanoClaw v1 added over time; an older file lacks some of them.
_V1_COLUMNS = {
    "chats": {"channel": "TEXT", "is_group": "INTEGER"},
    "messages": {"is_bot_message": "INTEGER DEFAULT 0", "arrival": "INTEGER"},
    "scheduled_tasks": {"context_mode": "TEXT DEFAULT 'isolated'"},
    "registered_groups": {"container_config": "TEXT", "requires_trigger": "INTEGER DEFAULT 1"},
}


def adopt(connection: Any, version: int) -> None:
    """Add the columns that a v1 file lacks; its rows, other columns and other tables stay as they are."""
    if version:
        return
    for table, wanted in _V1_COLUMNS.items():
        present = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for name, kind in wanted.items():
            if present and name not in present:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
                if name == "is_bot_message":
                    _mark_bot_messages(connection)


def _mark_bot_messages(connection: Any) -> None:
    """Mark v1's own messages, which had no column for that, by their opening: `Andy: …`."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'registered_groups'").fetchone():
        return
    for (pattern,) in connection.execute("SELECT DISTINCT trigger_pattern FROM registered_groups").fetchall():
        name = str(pattern).lstrip("^@").rstrip("\\b")
        if name.isalnum():
            connection.execute(
                "UPDATE messages SET is_bot_message = 1 WHERE content LIKE :opening", {"opening": f"{name}:%"}
            )


class _ChatTable(Table[Chat]):
    table = "chats"
    columns = "jid, coalesce(nullif(name, ''), jid), coalesce(last_message_time, ''), channel, is_group"
    value = Chat


class MessageTable(Table[Message]):
    """The rows of chats and messages, and how far each chat has been read and answered."""

    table = "messages"
    columns = (
        "id, chat_jid, coalesce(sender, ''), coalesce(sender_name, ''), coalesce(content, ''),"
        " coalesce(timestamp, ''), is_from_me, is_bot_message, arrival"
    )
    value = Message

    # ---- chats ----

    def put_chat(self, chat: Chat) -> None:
        """Store a chat; an empty name or channel keeps the known one, activity only increases."""
        self.db.execute(
            """INSERT INTO chats (jid, name, last_message_time, channel, is_group)
               VALUES (:jid, :shown, :at, :channel, :is_group)
               ON CONFLICT (jid) DO UPDATE SET
                 name = COALESCE(:name, chats.name),
                 last_message_time = MAX(COALESCE(chats.last_message_time, ''), excluded.last_message_time),
                 channel = COALESCE(excluded.channel, chats.channel),
                 is_group = COALESCE(excluded.is_group, chats.is_group)""",
            {
                "jid": chat.jid,
                "name": chat.name or None,
                "shown": chat.name or chat.jid,
                "at": chat.last_message_time,
                "channel": chat.channel or None,
                "is_group": None if chat.is_group is None else int(chat.is_group),
            },
        )

    def chats(self) -> list[Chat]:
        return _ChatTable(self.db).select("ORDER BY last_message_time DESC, jid")

    def chat(self, jid: str) -> Chat | None:
        return _ChatTable(self.db).first("WHERE jid = :jid", {"jid": jid})

    # ---- messages ----

    def add(self, message: Message) -> bool:
        """Store a message of a known chat; return False if its id exists, without a change."""
        place = self.last_arrival() + 1
        sql = f"{insertion('messages', Message.__struct_fields__)} ON CONFLICT (id, chat_jid) DO NOTHING"
        added = self.db.update(sql, {**asdict(message), "arrival": place})
        if added:
            self.db.execute("UPDATE arrivals SET last = :place", {"place": place})
        return bool(added)

    def last_arrival(self) -> int:
        return int(self.db.query("SELECT last FROM arrivals")[0][0])

    def since(self, arrival: int, limit: int, jids: Sequence[str] | None = None) -> list[Message]:
        """Return the messages after `arrival` in order of arrival, of some chats or of all."""
        where = "" if jids is None else "AND chat_jid IN (SELECT value FROM json_each(:jids))"
        return self.select(
            f"WHERE arrival > :arrival {where} ORDER BY arrival LIMIT :limit",
            {"arrival": arrival, "limit": limit, "jids": json.dumps(list(jids or ()))},
        )

    def of_chat(self, jid: str, first: int, last: int, limit: int) -> list[Message]:
        """Return the newest of a chat's messages with `first <= arrival <= last`, in order."""
        return self.select(
            f"WHERE {_OF_CHAT} ORDER BY arrival DESC LIMIT :limit",
            {"jid": jid, "first": first, "last": last, "limit": limit},
        )[::-1]

    def of_people(self, jid: str, first: int, last: int, limit: int) -> list[Message]:
        """Return the oldest of a chat's messages that people wrote: not the agent's own, not empty."""
        return self.select(
            f"WHERE {_OF_CHAT} AND COALESCE(is_bot_message, 0) = 0 AND content != ''"
            " ORDER BY arrival LIMIT :limit",
            {"jid": jid, "first": first, "last": last, "limit": limit},
        )

    def count(self, jid: str, first: int, last: int) -> int:
        sql = f"SELECT COUNT(*) FROM messages WHERE {_OF_CHAT}"  # noqa: S608
        return int(self.db.query(sql, {"jid": jid, "first": first, "last": last})[0][0])

    # ---- cursors ----

    def state(self, key: str) -> str:
        return note_of(self.db, "router_state", key) or ""

    def put_state(self, key: str, value: str) -> None:
        keep_note(self.db, "router_state", key, value)

    def answered(self, jid: str) -> int:
        rows = self.db.query("SELECT answered FROM chat_cursors WHERE chat_jid = :jid", {"jid": jid})
        return int(rows[0][0]) if rows else 0

    def ask(self, jid: str, first: int, last: int) -> None:
        """Record that a chat asks for an answer from `first` to `last`, unless that is answered already."""
        self.db.execute(
            """INSERT INTO chat_cursors (chat_jid, due_from, due_to) VALUES (:jid, :first, :last)
               ON CONFLICT (chat_jid) DO UPDATE SET
                 due_from = COALESCE(chat_cursors.due_from, MAX(:first, chat_cursors.answered + 1)), due_to = :last
               WHERE chat_cursors.answered < :last""",
            {"jid": jid, "first": first, "last": last},
        )

    def due(self) -> list[tuple[str, int, int]]:
        """Return the chats that ask for an answer, the longest waiting first: jid, first and last arrival."""
        rows = self.db.query(
            "SELECT chat_jid, due_from, due_to FROM chat_cursors WHERE due_to IS NOT NULL ORDER BY due_from"
        )
        return [(str(jid), int(first), int(last)) for jid, first, last in rows]

    def due_of(self, jid: str) -> tuple[int, int] | None:
        sql = "SELECT due_from, due_to FROM chat_cursors WHERE chat_jid = :jid AND due_to IS NOT NULL"
        rows = self.db.query(sql, {"jid": jid})
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    def settle(self, jid: str, first: int, last: int) -> bool:
        """Move a chat's cursor to `last`; return False if any of it has been answered in the meantime."""
        moved = self.db.update(
            """UPDATE chat_cursors SET
                 answered = :last,
                 due_from = CASE WHEN due_to > :last THEN :last + 1 END,
                 due_to = CASE WHEN due_to > :last THEN due_to END
               WHERE chat_jid = :jid AND answered < :first""",
            {"jid": jid, "first": first, "last": last},
        )
        return bool(moved)

    # ---- replies ----

    def add_reply(self, reply: Reply, arrivals: tuple[int, int] | None) -> None:
        row = asdict(reply)
        del row["content"]  # part of the message
        row["group_folder"] = row.pop("group")
        row["first_arrival"], row["last_arrival"] = arrivals or (None, None)
        # A message that answers nobody is no exchange, so it counts as remembered.
        row["remembered_at"] = None if arrivals else reply.created_at
        self.db.execute(f"{insertion('replies', row)} ON CONFLICT (id) DO NOTHING", row)

    def replies(self, undone: str) -> list[tuple[Reply, int, int]]:
        """Return the replies not yet `delivered` or `remembered`, oldest first, with the arrivals they answer."""
        column = {"delivered": "delivered_at", "remembered": "remembered_at"}[undone]
        rows = self.db.query(
            f"""SELECT r.id, r.chat_jid, r.group_folder, m.content, r.session_id, r.created_at,
                       COALESCE(r.first_arrival, 0), COALESCE(r.last_arrival, -1)
                FROM replies r JOIN messages m ON m.id = r.id AND m.chat_jid = r.chat_jid
                WHERE r.{column} IS NULL ORDER BY r.created_at, m.arrival"""  # noqa: S608
        )
        return [(Reply(*row[:6]), int(row[6]), int(row[7])) for row in rows]

    def mark_reply(self, reply_id: str, done: str, at: str) -> bool:
        column = {"delivered": "delivered_at", "remembered": "remembered_at"}[done]
        sql = f"UPDATE replies SET {column} = :at WHERE id = :id AND {column} IS NULL"  # noqa: S608
        return bool(self.db.update(sql, {"at": at, "id": reply_id}))


class GroupTable(Table[ChatGroup]):
    """The rows of registered_groups and sessions: which chat belongs to which group, and what each resumes."""

    table = "registered_groups"
    columns = ", ".join(ChatGroup.__struct_fields__)
    value = ChatGroup

    def read(self, row: Row) -> ChatGroup:
        return super().read((*row[:-1], _config(row[-1])))

    def all(self) -> list[ChatGroup]:
        return self.select("ORDER BY added_at, jid")  # where v1 left NULL, a trigger is required

    def put(self, group: ChatGroup) -> None:
        config = group.container_config
        row = asdict(group)
        row["container_config"] = None if config is None else msgspec.json.encode(config).decode()
        changed = [name for name in row if name not in ("jid", "added_at")]
        self.db.execute(insertion("registered_groups", row, ["jid"], changed), row)

    def remove(self, jid: str) -> bool:
        return bool(self.db.update("DELETE FROM registered_groups WHERE jid = :jid", {"jid": jid}))

    def sessions(self) -> dict[str, str]:
        return dict(self.db.query("SELECT group_folder, session_id FROM sessions ORDER BY group_folder"))

    def put_session(self, folder: str, session_id: str) -> None:
        row = {"group_folder": folder, "session_id": session_id}
        self.db.execute(insertion("sessions", row, ["group_folder"]), row)

    def remove_session(self, folder: str) -> bool:
        sql = "DELETE FROM sessions WHERE group_folder = :folder"
        return bool(self.db.update(sql, {"folder": folder}))


def user_messages(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that people wrote: not the agent's own, not empty."""
    return [message for message in messages if not message.is_bot_message and message.content]


def _config(text: str | None) -> dict[str, Any] | None:
    """Return the container's configuration; an invalid one of an older host counts as none."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else None
    except msgspec.MsgspecError:
        return None
