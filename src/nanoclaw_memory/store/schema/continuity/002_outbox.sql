-- What changed, in order, for the search index: it reads the rows after the last one it has seen. `mark` is random, so
-- that a restored or replaced file is noticed. Search keeps words and vectors now.
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
CREATE TRIGGER exchanges_outbox_ai AFTER INSERT ON exchanges BEGIN
  INSERT INTO outbox (kind, number) VALUES ('exchanges', new.id);
END;
CREATE TRIGGER exchanges_outbox_au AFTER UPDATE ON exchanges BEGIN
  INSERT INTO outbox (kind, number) VALUES ('exchanges', new.id);
END;
CREATE TRIGGER exchanges_outbox_ad AFTER DELETE ON exchanges BEGIN
  INSERT INTO outbox (kind, number) VALUES ('exchanges', old.id);
END;
DROP TRIGGER exchanges_ad;
DROP TABLE exchanges_fts;
DROP TABLE exchange_vectors;
