-- The day on which the index first saw a passage that has no day of its own.
ALTER TABLE passages ADD COLUMN seen TEXT NOT NULL DEFAULT '';

-- Statements that a later one overtakes (`superseded`) or that are older on the same subject (`earlier`).
CREATE TABLE currency (
  older INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
  newer INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
  kind  TEXT NOT NULL,
  why   TEXT NOT NULL,
  sure  REAL NOT NULL,
  PRIMARY KEY (older, newer)
) WITHOUT ROWID;
CREATE INDEX currency_newer ON currency (newer);
