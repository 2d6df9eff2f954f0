-- Typed entries. Lists (tags, related_to, suspicions) stand one a line between newlines, so that a filter is
-- plain LIKE in every engine; none of their elements may hold a newline.
CREATE TABLE entries (
  number         INTEGER PRIMARY KEY,
  id             TEXT NOT NULL UNIQUE,
  type           TEXT NOT NULL CHECK (type IN ('preference', 'instruction', 'correction', 'fact', 'context',
                                               'project', 'person', 'decision', 'insight')),
  content        TEXT NOT NULL CHECK (length(content) BETWEEN 1 AND 4000),
  text_key       TEXT NOT NULL,              -- fingerprint of the normalised content
  tags           TEXT NOT NULL DEFAULT '',
  priority       INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),   -- 0 critical to 3 low
  reason         TEXT NOT NULL DEFAULT '',
  related_to     TEXT NOT NULL DEFAULT '',
  supersedes     TEXT,
  superseded_by  TEXT,
  superseded_at  TEXT,
  expires_at     TEXT,
  status         TEXT NOT NULL CHECK (status IN ('active', 'held', 'superseded', 'archived', 'expired')),
  suspicions     TEXT NOT NULL DEFAULT '',
  token_cost     INTEGER NOT NULL,
  reinforcements INTEGER NOT NULL DEFAULT 0,
  in_domain      INTEGER NOT NULL DEFAULT 1, -- 0: its domain file was being edited when it was stored
  used_at        TEXT NOT NULL,              -- last stored, reinforced or recalled
  -- Provenance: ours, never the caller's.
  session_id     TEXT NOT NULL,
  group_name     TEXT NOT NULL,
  origin         TEXT NOT NULL CHECK (origin IN ('owner', 'agent', 'tool', 'web', 'import')),
  source         TEXT NOT NULL DEFAULT '',   -- for imports: file and line
  created_at     TEXT NOT NULL,
  updated_at     TEXT NOT NULL
);
CREATE INDEX entries_text ON entries (type, text_key);
CREATE INDEX entries_recent ON entries (status, created_at);
CREATE INDEX entries_brief ON entries (status, type, priority, created_at DESC, expires_at);
CREATE INDEX entries_successor ON entries (superseded_by) WHERE superseded_by IS NOT NULL;

-- rowid = entries.number; written by the repository, in the same transaction.
CREATE VIRTUAL TABLE entries_fts USING fts5(
  content, around,
  content = '', contentless_delete = 1,
  tokenize = "porter unicode61 remove_diacritics 2"
);
INSERT INTO entries_fts (entries_fts, rank) VALUES ('rank', 'bm25(1.0, 0.5)');

CREATE TABLE entry_vectors (
  number   INTEGER NOT NULL REFERENCES entries (number) ON DELETE CASCADE,
  identity TEXT NOT NULL,
  vector   BLOB NOT NULL,
  PRIMARY KEY (number, identity)
) WITHOUT ROWID;

-- The wording that a merge replaced.
CREATE TABLE merges (
  id         INTEGER PRIMARY KEY,
  entry_id   TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
  content    TEXT NOT NULL,
  session_id TEXT NOT NULL,
  origin     TEXT NOT NULL,
  merged_at  TEXT NOT NULL
);
CREATE INDEX merges_entry ON merges (entry_id);

-- What a session has done, because a hook process forgets its counters.
CREATE TABLE session_counts (
  session_id TEXT NOT NULL,
  kind       TEXT NOT NULL,
  count      INTEGER NOT NULL,
  PRIMARY KEY (session_id, kind)
) WITHOUT ROWID;

-- Changes that only a person may make. A fingerprint is offered once: a rejected one never comes back.
CREATE TABLE proposals (
  number      INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  kind        TEXT NOT NULL,
  payload     TEXT NOT NULL,
  why         TEXT NOT NULL,
  source      TEXT NOT NULL DEFAULT '',
  diff        TEXT NOT NULL DEFAULT '',
  status      TEXT NOT NULL CHECK (status IN ('open', 'accepted', 'rejected')),
  fingerprint TEXT NOT NULL UNIQUE,
  created_at  TEXT NOT NULL,
  decided_at  TEXT
);
CREATE INDEX proposals_status ON proposals (status, number);

-- The last line that this group wrote to the audit log: the log may not end before it.
CREATE TABLE audit_anchor (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  seq  INTEGER NOT NULL,
  hash TEXT NOT NULL
);

-- Only used in a group's published copy: who else may read it.
CREATE TABLE grants (
  reader     TEXT PRIMARY KEY,
  granted_at TEXT NOT NULL
) WITHOUT ROWID;
