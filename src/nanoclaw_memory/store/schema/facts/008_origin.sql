-- Who stated a fact or relation. Of what was stored before, the source tells it as far as it can.
ALTER TABLE facts ADD COLUMN origin TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE relations ADD COLUMN origin TEXT NOT NULL DEFAULT 'owner';
UPDATE facts SET origin = 'agent' WHERE source LIKE 'session %';
UPDATE relations SET origin = 'agent' WHERE source LIKE 'session %';
UPDATE facts SET origin = 'import' WHERE source LIKE 'import %';
UPDATE relations SET origin = 'import' WHERE source LIKE 'import %';
UPDATE facts SET origin = 'shared' WHERE shared AND (source LIKE 'session %' OR source = 'direct');
UPDATE relations SET origin = 'shared' WHERE shared AND (source LIKE 'session %' OR source = 'direct');
UPDATE growth_vectors SET origin = CASE WHEN private THEN 'user' ELSE 'shared' END WHERE origin = 'correction';
DROP TRIGGER facts_outbox_au;
CREATE TRIGGER facts_outbox_au
AFTER UPDATE OF id, entity, key, value, category, source, valid_from, valid_to, shared, origin ON facts BEGIN
  INSERT INTO outbox (kind, number) VALUES ('facts', new.id);
END;
DROP TRIGGER relations_outbox_au;
CREATE TRIGGER relations_outbox_au
AFTER UPDATE OF id, subject, predicate, object, source, valid_from, valid_to, shared, origin ON relations BEGIN
  INSERT INTO outbox (kind, number) VALUES ('relations', new.id);
END;
