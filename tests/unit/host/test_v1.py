"""A messages.db of NanoClaw v1 opens here and loses nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from nanoclaw_memory import Host
from nanoclaw_memory.errors import CorruptDatabase, NewerSchema

# The shape that v1 had in its first weeks; the columns below came later, one by one.
OLD = """
CREATE TABLE chats (jid TEXT PRIMARY KEY, name TEXT, last_message_time TEXT{chat});
CREATE TABLE messages (
  id TEXT, chat_jid TEXT, sender TEXT, sender_name TEXT, content TEXT, timestamp TEXT,
  is_from_me INTEGER{message},
  PRIMARY KEY (id, chat_jid), FOREIGN KEY (chat_jid) REFERENCES chats(jid));
CREATE INDEX idx_timestamp ON messages(timestamp);
CREATE TABLE scheduled_tasks (
  id TEXT PRIMARY KEY, group_folder TEXT NOT NULL, chat_jid TEXT NOT NULL, prompt TEXT NOT NULL,
  schedule_type TEXT NOT NULL, schedule_value TEXT NOT NULL, next_run TEXT, last_run TEXT, last_result TEXT,
  status TEXT DEFAULT 'active', created_at TEXT NOT NULL{task});
CREATE TABLE task_run_logs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_at TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  status TEXT NOT NULL, result TEXT, error TEXT, FOREIGN KEY (task_id) REFERENCES scheduled_tasks(id));
CREATE TABLE router_state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sessions (group_folder TEXT PRIMARY KEY, session_id TEXT NOT NULL);
CREATE TABLE registered_groups (
  jid TEXT PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL UNIQUE, trigger_pattern TEXT NOT NULL,
  added_at TEXT NOT NULL, container_config TEXT{group});
"""
AGES = {
    "first": {"chat": "", "message": "", "task": "", "group": ""},
    "last": {
        "chat": ", channel TEXT, is_group INTEGER DEFAULT 0",
        "message": ", is_bot_message INTEGER DEFAULT 0, thread_id TEXT",
        "task": ", context_mode TEXT DEFAULT 'isolated', script TEXT",
        "group": ", requires_trigger INTEGER DEFAULT 1, is_main INTEGER DEFAULT 0",
    },
}
MESSAGES = [
    ("1", "a@g", "Ann", "@Andy first", "2026-02-20T10:00:00.000Z", 0),
    ("2", "a@g", "Me", "Andy: answered", "2026-02-20T10:00:05.000Z", 1),
    ("9", "b@g", "Bob", "@Andy in b", "2026-02-20T10:00:05.000Z", 0),
    ("7", "a@g", "Ann", "@Andy seen but never answered", "2026-02-20T10:01:00.000Z", 0),
    ("6", "a@g", "Ann", "@Andy new", "2026-02-20T10:03:00.000Z", 0),
]


@pytest.fixture(params=AGES)
def v1(request: pytest.FixtureRequest, home: Path) -> Path:
    path = home / "store" / "messages.db"
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(OLD.format(**AGES[request.param]))
    connection.executescript(
        "CREATE TABLE token_usage (id INTEGER, cost REAL); INSERT INTO token_usage VALUES (1, 2.5)"
    )
    for jid in ("a@g", "b@g"):
        connection.execute("INSERT INTO chats (jid, name, last_message_time) VALUES (?, ?, '')", (jid, jid))
        connection.execute(
            "INSERT INTO registered_groups (jid, name, folder, trigger_pattern, added_at) "
            "VALUES (?, ?, ?, '@Andy', '')",
            (jid, jid, f"folder-{jid[0]}"),
        )
    connection.executemany(
        "INSERT INTO messages (id, chat_jid, sender_name, content, timestamp, is_from_me) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        MESSAGES,
    )
    if request.param == "last":
        connection.execute("UPDATE messages SET is_bot_message = 1, thread_id = 't' WHERE id = '2'")
    state = {"a@g": "2026-02-20T10:00:00.000Z", "b@g": "2026-02-20T10:00:05.000Z"}
    connection.execute("INSERT INTO router_state VALUES ('last_timestamp', '2026-02-20T10:01:00.000Z')")
    connection.execute("INSERT INTO router_state VALUES ('last_agent_timestamp', ?)", (json.dumps(state),))
    connection.execute("INSERT INTO sessions VALUES ('folder-a', 'sess-a')")
    connection.execute(
        "INSERT INTO scheduled_tasks (id, group_folder, chat_jid, prompt, schedule_type, schedule_value, "
        "next_run, created_at) VALUES "
        "('t1', 'folder-a', 'a@g', 'hello', 'interval', '3600000', '2026-02-20T11:00:00.000Z', '')"
    )
    connection.execute(
        "INSERT INTO task_run_logs (task_id, run_at, duration_ms, status) VALUES ('t1', '', 5, 'success')"
    )
    connection.commit()
    connection.close()
    return path


def test_every_row_and_every_foreign_table_is_still_there(v1: Path, home: Path, clock) -> None:
    def rows(table: str, columns: str) -> list[tuple]:
        connection = sqlite3.connect(v1)
        found = connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()
        connection.close()
        return found

    wanted = {
        "messages": "id, chat_jid, sender_name, content, timestamp, is_from_me",
        "chats": "jid, name",
        "registered_groups": "jid, name, folder, trigger_pattern",
        "sessions": "group_folder, session_id",
        "scheduled_tasks": "id, prompt, schedule_value, next_run, status",
        "task_run_logs": "task_id, duration_ms, status",
        "token_usage": "id, cost",
        "router_state WHERE key LIKE 'last%timestamp'": "key, value",
    }
    before = {table: rows(table, columns) for table, columns in wanted.items()}
    with Host.open(home, clock=clock) as host:
        assert host.all_sessions() == {"folder-a": "sess-a"}
        assert set(host.groups) == {"a@g", "b@g"}
    assert {table: rows(table, columns) for table, columns in wanted.items()} == before


def test_the_cursors_go_on_where_v1_stopped(v1: Path, home: Path, clock) -> None:
    with Host.open(home, clock=clock) as host:
        (due,) = host.poll()
        batch = host.batch(due)
        assert [message.id for message in batch.messages] == ["7", "6"]
        assert batch.session_id == "sess-a"
        assert [message.id for message in batch.context] == ["2"]
        assert batch.context[0].is_bot_message


def test_tasks_of_v1_run(v1: Path, home: Path, clock) -> None:
    with Host.open(home, clock=clock) as host:
        (run,) = host.tasks().run_due(lambda task, session: task.context_mode)
        assert run.result == "isolated"
        assert len(host.tasks().logs("t1")) == 2
        assert (host.place("folder-a").directory / "CLAUDE.md").is_file()


def test_the_three_practical_checks_work_as_written(v1: Path, home: Path, clock) -> None:
    Host.open(home, clock=clock).close()
    connection = sqlite3.connect(v1)
    assert connection.execute("SELECT group_folder, session_id FROM sessions;").fetchall() == [
        ("folder-a", "sess-a")
    ]
    assert connection.execute(
        "SELECT chat_jid, MAX(timestamp) FROM messages GROUP BY chat_jid;"
    ).fetchall() == [
        ("a@g", "2026-02-20T10:03:00.000Z"),
        ("b@g", "2026-02-20T10:00:05.000Z"),
    ]
    found = connection.execute("SELECT jid, name, folder, trigger_pattern FROM registered_groups;").fetchall()
    assert found == [("a@g", "a@g", "folder-a", "@Andy"), ("b@g", "b@g", "folder-b", "@Andy")]
    connection.close()


def test_a_database_of_a_newer_release_is_refused_untouched(home: Path, clock) -> None:
    Host.open(home, clock=clock).close()
    path = home / "store" / "messages.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(NewerSchema):
        Host.open(home, clock=clock)


def test_a_file_that_is_no_database_is_an_error_and_is_left_as_it_is(home: Path, clock) -> None:
    path = home / "store" / "messages.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(CorruptDatabase):
        Host.open(home, clock=clock)
    assert path.read_bytes() == b"not a database" * 100
