-- The host's operational state. Tables and columns of NanoClaw v1 keep their names, so its files open here
-- and its queries work; `arrival`, `chat_cursors`, `replies` and `task_leases` are ours.

CREATE TABLE IF NOT EXISTS chats (
  jid TEXT PRIMARY KEY,
  name TEXT,
  last_message_time TEXT,
  channel TEXT,
  is_group INTEGER
);

CREATE TABLE IF NOT EXISTS messages (
  id TEXT,
  chat_jid TEXT,
  sender TEXT,
  sender_name TEXT,
  content TEXT,
  timestamp TEXT,
  is_from_me INTEGER,
  is_bot_message INTEGER DEFAULT 0,
  arrival INTEGER,                       -- order of storing: never reused, unlike rowid and timestamps
  PRIMARY KEY (id, chat_jid),
  FOREIGN KEY (chat_jid) REFERENCES chats(jid)
);

CREATE TABLE IF NOT EXISTS arrivals (last INTEGER NOT NULL);
INSERT INTO arrivals (last) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM arrivals);

-- A v1 file is numbered once, in the order that v1 would have read it.
UPDATE messages SET arrival = numbered.place
FROM (SELECT rowid AS row, row_number() OVER (ORDER BY timestamp, rowid) AS place FROM messages) AS numbered
WHERE messages.rowid = numbered.row AND messages.arrival IS NULL;
UPDATE arrivals SET last = (SELECT COALESCE(MAX(arrival), 0) FROM messages);

CREATE UNIQUE INDEX IF NOT EXISTS messages_by_arrival ON messages(arrival);
CREATE INDEX IF NOT EXISTS messages_by_chat ON messages(chat_jid, arrival);

-- Whoever inserts without knowing about arrivals (v1 itself, a person with the sqlite shell) gets a number too.
CREATE TRIGGER IF NOT EXISTS messages_arrive AFTER INSERT ON messages WHEN NEW.arrival IS NULL
BEGIN
  UPDATE arrivals SET last = last + 1;
  UPDATE messages SET arrival = (SELECT last FROM arrivals) WHERE id = NEW.id AND chat_jid = NEW.chat_jid;
END;

CREATE TABLE IF NOT EXISTS sessions (
  group_folder TEXT PRIMARY KEY,
  session_id TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS router_state (
  key TEXT PRIMARY KEY,                  -- last_arrival; last_timestamp and last_agent_timestamp as in v1
  value TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS registered_groups (
  jid TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  folder TEXT NOT NULL UNIQUE,
  trigger_pattern TEXT NOT NULL,
  added_at TEXT NOT NULL,
  container_config TEXT,
  requires_trigger INTEGER DEFAULT 1
);

-- Per chat: answered up to and including `answered`; asked for an answer from `due_from` to `due_to`.
CREATE TABLE IF NOT EXISTS chat_cursors (
  chat_jid TEXT PRIMARY KEY,
  answered INTEGER NOT NULL DEFAULT 0,
  due_from INTEGER,
  due_to INTEGER
);
CREATE INDEX IF NOT EXISTS chat_cursors_due ON chat_cursors(due_to) WHERE due_to IS NOT NULL;

-- One row per answer, written together with the cursor: what must still be delivered and remembered.
CREATE TABLE IF NOT EXISTS replies (
  id TEXT PRIMARY KEY,
  chat_jid TEXT NOT NULL,
  group_folder TEXT NOT NULL,
  session_id TEXT NOT NULL DEFAULT '',
  first_arrival INTEGER,
  last_arrival INTEGER,
  created_at TEXT NOT NULL,
  delivered_at TEXT,
  remembered_at TEXT
);
CREATE INDEX IF NOT EXISTS replies_undelivered ON replies(chat_jid) WHERE delivered_at IS NULL;
CREATE INDEX IF NOT EXISTS replies_unremembered ON replies(created_at) WHERE remembered_at IS NULL;

CREATE TABLE IF NOT EXISTS scheduled_tasks (
  id TEXT PRIMARY KEY,
  group_folder TEXT NOT NULL,
  chat_jid TEXT NOT NULL,
  prompt TEXT NOT NULL,
  schedule_type TEXT NOT NULL,           -- cron, interval, once
  schedule_value TEXT NOT NULL,          -- five fields; milliseconds; a moment
  context_mode TEXT DEFAULT 'isolated',  -- group, isolated
  next_run TEXT,
  last_run TEXT,
  last_result TEXT,
  status TEXT DEFAULT 'active',          -- active, paused, completed
  created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS tasks_due ON scheduled_tasks(next_run) WHERE status = 'active';

CREATE TABLE IF NOT EXISTS task_run_logs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id TEXT NOT NULL,
  run_at TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  status TEXT NOT NULL,                  -- running, success, error, interrupted
  result TEXT,
  error TEXT,
  FOREIGN KEY (task_id) REFERENCES scheduled_tasks(id)
);
CREATE INDEX IF NOT EXISTS task_runs_by_task ON task_run_logs(task_id, run_at);

-- A run in progress; its owner also holds a lock that the operating system drops when the process dies.
CREATE TABLE IF NOT EXISTS task_leases (
  task_id TEXT PRIMARY KEY,
  run_id INTEGER NOT NULL,
  owner TEXT NOT NULL,
  started_at TEXT NOT NULL
);

-- v1 kept its cursors as timestamps: everything up to them was answered. Reading starts again at the chat that
-- is furthest behind, so that what v1 had seen but not answered is asked again.
INSERT OR IGNORE INTO chat_cursors (chat_jid, answered)
SELECT seen.key,
       COALESCE((SELECT MAX(arrival) FROM messages WHERE chat_jid = seen.key AND timestamp <= seen.value), 0)
FROM router_state,
     json_each(CASE WHEN json_valid(router_state.value) THEN router_state.value ELSE '{}' END) AS seen
WHERE router_state.key = 'last_agent_timestamp' AND seen.type = 'text';

INSERT OR IGNORE INTO router_state (key, value)
SELECT 'last_arrival', CAST(COALESCE(MIN(COALESCE(chat_cursors.answered, 0)), 0) AS TEXT)
FROM registered_groups LEFT JOIN chat_cursors ON chat_cursors.chat_jid = registered_groups.jid;
