-- What was said, and what was measured about it. Nothing here is derived: the rows are the record.
CREATE TABLE exchanges (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, so that a forgotten id stays unknown
  session_id     TEXT NOT NULL DEFAULT '',
  user_message   TEXT NOT NULL,
  agent_response TEXT NOT NULL,
  timestamp      TEXT NOT NULL,
  topic          TEXT NOT NULL DEFAULT '',
  private        INTEGER NOT NULL DEFAULT 1,         -- recorded in a private scope: a shared one never sees it
  fingerprint    TEXT NOT NULL
);
CREATE INDEX exchanges_session ON exchanges (session_id, id);
CREATE INDEX exchanges_time ON exchanges (timestamp);
CREATE INDEX exchanges_fingerprint ON exchanges (session_id, fingerprint);

-- Contentless: the text is in `exchanges`; rowid = exchanges.id. Written by the repository, because scripts
-- without spaces are spaced first; deleted by trigger, so that whoever deletes an exchange cannot forget it.
CREATE VIRTUAL TABLE exchanges_fts USING fts5(
  user_message, agent_response,
  content = '', contentless_delete = 1,
  tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE TRIGGER exchanges_ad AFTER DELETE ON exchanges BEGIN
  DELETE FROM exchanges_fts WHERE rowid = old.id;
END;

-- One vector for each side of an exchange (0 the user's, 1 the agent's), apart from the texts: a search reads
-- only these pages.
CREATE TABLE exchange_vectors (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  exchange_id INTEGER NOT NULL REFERENCES exchanges (id) ON DELETE CASCADE,
  side        INTEGER NOT NULL,
  identity    TEXT NOT NULL,
  vector      BLOB NOT NULL,
  UNIQUE (exchange_id, identity, side)
);
CREATE INDEX exchange_vectors_identity ON exchange_vectors (identity, id);

-- Entropy with its named parts, one row an exchange.
CREATE TABLE measures (
  exchange_id INTEGER PRIMARY KEY REFERENCES exchanges (id) ON DELETE CASCADE,
  session_id  TEXT NOT NULL,
  at          TEXT NOT NULL,
  entropy     REAL NOT NULL,
  parts       TEXT NOT NULL DEFAULT '{}'             -- JSON: name -> value
);
CREATE INDEX measures_session ON measures (session_id, exchange_id);

-- Signs of confabulation and slips of principle, found in an answer.
CREATE TABLE signs (
  id          INTEGER PRIMARY KEY,
  exchange_id INTEGER NOT NULL REFERENCES exchanges (id) ON DELETE CASCADE,
  session_id  TEXT NOT NULL,
  kind        TEXT NOT NULL,                         -- unsupported-memory, wrong-date, plan-as-done, principle
  detail      TEXT NOT NULL
);
CREATE INDEX signs_session ON signs (session_id, exchange_id);

CREATE TABLE tool_calls (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  at         TEXT NOT NULL,
  tool       TEXT NOT NULL,
  target     TEXT NOT NULL DEFAULT '',
  output     TEXT NOT NULL DEFAULT ''                -- a fingerprint; the text itself is not kept
);
CREATE INDEX tool_calls_session ON tool_calls (session_id, id);

-- One row a plugin and turn: what it injected, or why not.
CREATE TABLE injections (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  at         TEXT NOT NULL,
  plugin     TEXT NOT NULL,
  hits       INTEGER NOT NULL,
  tokens     INTEGER NOT NULL,
  ms         REAL NOT NULL,
  reason     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX injections_plugin ON injections (plugin, id);

-- Up to here a session's exchanges left the model's window when the host compacted it.
CREATE TABLE compactions (
  session_id   TEXT PRIMARY KEY,
  last_id      INTEGER NOT NULL,
  at           TEXT NOT NULL
) WITHOUT ROWID;

-- Answers of graph memory, kept for a minute over hook processes; `generation` is the graph's when it answered.
CREATE TABLE graph_answers (
  question   TEXT NOT NULL,
  private    INTEGER NOT NULL,
  generation TEXT NOT NULL,
  answer     TEXT NOT NULL,                          -- JSON: lines, fact ids, relation ids
  at         TEXT NOT NULL,
  used_at    TEXT NOT NULL,
  PRIMARY KEY (question, private)
) WITHOUT ROWID;
