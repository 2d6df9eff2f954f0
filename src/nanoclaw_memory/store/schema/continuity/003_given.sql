-- What a session was given. Its start is kept as it was rendered, so that the same bytes come when it is asked again; of the
-- lines of its turns only fingerprints are kept. A compaction removes both: the model's window has lost them.
CREATE TABLE session_starts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  private    INTEGER NOT NULL,
  part       TEXT NOT NULL,                          -- boot with its arguments, or blocks
  content    TEXT NOT NULL,                          -- JSON
  at         TEXT NOT NULL,
  UNIQUE (session_id, private, part)
);
CREATE TABLE given_lines (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id  TEXT NOT NULL,
  private     INTEGER NOT NULL,
  subject     TEXT NOT NULL,                         -- fingerprints of what the line is about and what it states,
  stated      TEXT NOT NULL,                         -- without its mark and age; the last statements count
  UNIQUE (session_id, private, subject)
);
ALTER TABLE injections ADD COLUMN event TEXT NOT NULL DEFAULT 'turn';  -- turn, or start
ALTER TABLE injections ADD COLUMN lines TEXT NOT NULL DEFAULT '[]';    -- JSON: text and reason of each
CREATE INDEX injections_session ON injections (session_id, id);
