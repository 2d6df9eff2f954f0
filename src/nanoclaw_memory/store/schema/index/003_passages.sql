-- Derived from Markdown files and the group's databases; may be deleted at any time.
-- An index of an earlier version is replaced; its vectors stay, for they belong to texts, not to rows.
CREATE TABLE IF NOT EXISTS meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO meta (key, value) SELECT 'replaced', '1' WHERE EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'chunks');
DROP TABLE IF EXISTS chunks_fts;
DROP TABLE IF EXISTS chunks;
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS removed_files;
DROP TABLE IF EXISTS long_words;

-- What passages belong to: a file, the exchanges of a session, the entries of a type, the facts.
-- Size, time, fingerprint, chunking and `skipped` (why it has no passages) are those of files.
CREATE TABLE documents (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  source      TEXT NOT NULL,
  name        TEXT NOT NULL,
  size        INTEGER NOT NULL DEFAULT 0,
  mtime_ns    INTEGER NOT NULL DEFAULT 0,
  fingerprint TEXT NOT NULL DEFAULT '',
  chunking    TEXT NOT NULL DEFAULT '',
  skipped     TEXT NOT NULL DEFAULT '',
  UNIQUE (source, name)
);

-- The text of a row never changes: another text is another row. `number` is the row of the source's table, 0 for files.
CREATE TABLE passages (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  position    INTEGER NOT NULL,
  start_line  INTEGER NOT NULL,
  end_line    INTEGER NOT NULL,
  text        TEXT NOT NULL,
  kind        TEXT NOT NULL,
  heading     TEXT NOT NULL,
  day         TEXT NOT NULL,
  speaker     TEXT NOT NULL,
  importance  REAL,
  number      INTEGER NOT NULL,
  reference   TEXT NOT NULL,
  moment      TEXT NOT NULL,
  session     TEXT NOT NULL,
  project     TEXT NOT NULL,
  origin      TEXT NOT NULL,
  private     INTEGER NOT NULL,
  type        TEXT NOT NULL,
  tags        TEXT NOT NULL,
  status      TEXT NOT NULL,
  priority    INTEGER NOT NULL,
  expires     TEXT NOT NULL,
  fingerprint BLOB NOT NULL
);
CREATE INDEX passages_document ON passages (document_id, position);
CREATE INDEX passages_fingerprint ON passages (fingerprint);
CREATE INDEX passages_number ON passages (number) WHERE number > 0;
CREATE INDEX passages_reference ON passages (reference) WHERE kind = 'entry';
CREATE INDEX passages_day ON passages (day) WHERE kind = 'line';
CREATE INDEX passages_status ON passages (status) WHERE status <> '';
CREATE INDEX passages_expires ON passages (expires) WHERE expires <> '';
CREATE INDEX passages_private ON passages (id) WHERE private = 1;

-- Ids that are gone, so that a cache in memory can catch up.
CREATE TABLE removed (
  id         INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL
);
CREATE INDEX removed_generation ON removed (generation);

-- Contentless: the text is in `passages`; rowid = passages.id. `near` holds the turns beside a turn,
-- `around` what a passage stands under: file, headings, speaker, tags, day.
CREATE VIRTUAL TABLE passages_fts USING fts5(
  body, near, around,
  content = '', contentless_delete = 1,
  tokenize = "porter unicode61 remove_diacritics 2"
);
INSERT INTO passages_fts (passages_fts, rank) VALUES ('rank', 'bm25(1.0, 0.4, 0.5)');

-- Long words as they are written, so that a part of a compound finds the whole.
CREATE TABLE long_words (
  word TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Vectors by who made them and of what text: a cache that outlives a rebuild.
CREATE TABLE IF NOT EXISTS identities (
  id  INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS vectors (
  id          INTEGER PRIMARY KEY,
  identity_id INTEGER NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
  fingerprint BLOB NOT NULL,
  scale       REAL NOT NULL,
  codes       BLOB NOT NULL,
  UNIQUE (identity_id, fingerprint)
);
