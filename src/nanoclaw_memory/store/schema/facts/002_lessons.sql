-- Lessons from corrections; the first block of columns is that of the older systems, the rest is ours.
CREATE TABLE growth_vectors (
  id                  INTEGER PRIMARY KEY AUTOINCREMENT,
  trigger_pattern     TEXT NOT NULL,
  trigger_embedding   BLOB,
  lesson_text         TEXT NOT NULL,
  principle           TEXT,
  effectiveness_score REAL NOT NULL DEFAULT 1.0,
  injection_count     INTEGER NOT NULL DEFAULT 0,
  maturity_days       INTEGER NOT NULL DEFAULT 0,     -- days on which it was active when last looked at
  is_metabolized      BOOLEAN NOT NULL DEFAULT 0,
  activation          REAL NOT NULL DEFAULT 1.0,
  created_at          TEXT NOT NULL DEFAULT (datetime('now')),

  state               TEXT NOT NULL DEFAULT 'active'
                      CHECK (state IN ('candidate', 'active', 'metabolized', 'retired')),
  seen                INTEGER NOT NULL DEFAULT 1,     -- how often the correction was made
  general             BOOLEAN NOT NULL DEFAULT 0,     -- applies to every answer, not to a topic
  private             BOOLEAN NOT NULL DEFAULT 1,     -- learnt in a private scope: a shared one never sees it
  origin              TEXT NOT NULL DEFAULT 'correction',
  session_id          TEXT NOT NULL DEFAULT '',
  exchange_id         INTEGER NOT NULL DEFAULT 0,     -- in continuity.db; 0 when a person added it
  embedder            TEXT NOT NULL DEFAULT '',       -- identity of who made trigger_embedding
  last_seen           TEXT NOT NULL DEFAULT '',
  retired_because     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX growth_vectors_state ON growth_vectors (state, id);
CREATE INDEX growth_vectors_exchange ON growth_vectors (exchange_id);

CREATE TABLE vector_outcomes (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  vector_id      INTEGER NOT NULL REFERENCES growth_vectors (id) ON DELETE CASCADE,
  query_text     TEXT,
  pre_entropy    REAL,
  post_entropy   REAL,
  user_feedback  TEXT,                                -- good, bad, neutral; NULL while the next message is awaited
  helped         BOOLEAN,
  injection_time TEXT NOT NULL DEFAULT (datetime('now')),
  session_id     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX vector_outcomes_vector ON vector_outcomes (vector_id, id);
CREATE INDEX vector_outcomes_open ON vector_outcomes (session_id, id) WHERE user_feedback IS NULL;
