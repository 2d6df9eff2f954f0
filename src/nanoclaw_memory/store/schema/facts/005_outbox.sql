-- What changed, in order, for the search index: it reads the rows after the last one it has seen. `mark` is random, so
-- that a restored or replaced file is noticed. Activation is no change: it moves with every answer.
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
CREATE TRIGGER facts_outbox_ai AFTER INSERT ON facts BEGIN
  INSERT INTO outbox (kind, number) VALUES ('facts', new.id);
END;
CREATE TRIGGER facts_outbox_au
AFTER UPDATE OF id, entity, key, value, category, source, valid_from, valid_to, shared ON facts BEGIN
  INSERT INTO outbox (kind, number) VALUES ('facts', new.id);
END;
CREATE TRIGGER facts_outbox_ad AFTER DELETE ON facts BEGIN
  INSERT INTO outbox (kind, number) VALUES ('facts', old.id);
END;
CREATE TRIGGER relations_outbox_ai AFTER INSERT ON relations BEGIN
  INSERT INTO outbox (kind, number) VALUES ('relations', new.id);
END;
CREATE TRIGGER relations_outbox_au
AFTER UPDATE OF id, subject, predicate, object, source, valid_from, valid_to, shared ON relations BEGIN
  INSERT INTO outbox (kind, number) VALUES ('relations', new.id);
END;
CREATE TRIGGER relations_outbox_ad AFTER DELETE ON relations BEGIN
  INSERT INTO outbox (kind, number) VALUES ('relations', old.id);
END;
CREATE TRIGGER lessons_outbox_ai AFTER INSERT ON growth_vectors BEGIN
  INSERT INTO outbox (kind, number) VALUES ('lessons', new.id);
END;
CREATE TRIGGER lessons_outbox_au
AFTER UPDATE OF id, trigger_pattern, lesson_text, principle, state, general, private, origin ON growth_vectors BEGIN
  INSERT INTO outbox (kind, number) VALUES ('lessons', new.id);
END;
CREATE TRIGGER lessons_outbox_ad AFTER DELETE ON growth_vectors BEGIN
  INSERT INTO outbox (kind, number) VALUES ('lessons', old.id);
END;
UPDATE growth_vectors SET trigger_embedding = NULL, embedder = '';
