-- What changed, in order, for the search index: it reads the rows after the last one it has seen. `mark` is random, so
-- that a restored or replaced file is noticed. Search keeps the vectors now.
CREATE TABLE outbox (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  kind   TEXT NOT NULL,
  number INTEGER NOT NULL,
  mark   INTEGER NOT NULL DEFAULT (random())
);
INSERT INTO outbox (kind, number) VALUES ('start', 0);
CREATE TRIGGER outbox_ai AFTER INSERT ON outbox BEGIN
  DELETE FROM outbox WHERE seq <= new.seq - 20000;
END;
CREATE TRIGGER entries_outbox_ai AFTER INSERT ON entries BEGIN
  INSERT INTO outbox (kind, number) VALUES ('entries', new.number);
END;
CREATE TRIGGER entries_outbox_au
AFTER UPDATE OF id, type, content, tags, priority, reason, status, expires_at, origin, created_at ON entries BEGIN
  INSERT INTO outbox (kind, number) VALUES ('entries', new.number);
END;
CREATE TRIGGER entries_outbox_ad AFTER DELETE ON entries BEGIN
  INSERT INTO outbox (kind, number) VALUES ('entries', old.number);
END;
DROP TABLE entry_vectors;
