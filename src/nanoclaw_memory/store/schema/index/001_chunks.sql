-- Derived from the Markdown files; may be deleted at any time.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- One row a file that was looked at; `skipped` says why a file holds no chunks.
-- `generation` is that of the last change, so that a cache in memory can catch up.
CREATE TABLE files (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  path        TEXT NOT NULL UNIQUE,
  size        INTEGER NOT NULL,
  mtime_ns    INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,
  chunking    TEXT NOT NULL,
  skipped     TEXT NOT NULL DEFAULT '',
  generation  INTEGER NOT NULL
);
CREATE INDEX files_generation ON files (generation);

CREATE TABLE removed_files (
  id         INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL
);

CREATE TABLE chunks (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  file_id     INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE,
  position    INTEGER NOT NULL,
  start_line  INTEGER NOT NULL,
  end_line    INTEGER NOT NULL,
  grain       TEXT NOT NULL,
  heading     TEXT NOT NULL,
  day         TEXT NOT NULL,
  speaker     TEXT NOT NULL,
  importance  REAL,
  text        TEXT NOT NULL,
  fingerprint BLOB NOT NULL
);
CREATE INDEX chunks_file ON chunks (file_id, position);
CREATE INDEX chunks_fingerprint ON chunks (fingerprint);

-- Contentless: the text is in `chunks`; rowid = chunks.id. `near` holds the turns before and after a turn,
-- `around` what a chunk stands under: file, headings, speaker, day.
CREATE VIRTUAL TABLE chunks_fts USING fts5(
  body, near, around,
  content = '', contentless_delete = 1,
  tokenize = "porter unicode61 remove_diacritics 2"
);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('rank', 'bm25(1.0, 0.4, 0.5)');

-- Long words as they are written, so that a part of a compound finds the whole.
CREATE TABLE long_words (
  word TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Vectors by who made them and of what text: a cache that outlives a rebuild.
CREATE TABLE identities (
  id  INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE
);
CREATE TABLE vectors (
  id          INTEGER PRIMARY KEY,
  identity_id INTEGER NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
  fingerprint BLOB NOT NULL,
  scale       REAL NOT NULL,
  codes       BLOB NOT NULL,
  UNIQUE (identity_id, fingerprint)
);
