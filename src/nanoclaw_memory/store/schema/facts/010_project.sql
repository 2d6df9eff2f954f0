-- The project in which a fact or relation was stated; empty: it belongs to none. A value of one project does not
-- replace that of another.
ALTER TABLE facts ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE relations ADD COLUMN project TEXT NOT NULL DEFAULT '';
DROP INDEX facts_current;
CREATE UNIQUE INDEX facts_current ON facts(name, slot, digest, project) WHERE valid_to IS NULL;
DROP INDEX relations_current;
CREATE UNIQUE INDEX relations_current ON relations(subject_name, slot, object_name, project) WHERE valid_to IS NULL;
DROP TRIGGER facts_outbox_au;
CREATE TRIGGER facts_outbox_au
AFTER UPDATE OF id, entity, key, value, category, source, valid_from, valid_to, shared, origin, project ON facts BEGIN
  INSERT INTO outbox (kind, number) VALUES ('facts', new.id);
END;
DROP TRIGGER relations_outbox_au;
CREATE TRIGGER relations_outbox_au
AFTER UPDATE OF id, subject, predicate, object, source, valid_from, valid_to, shared, origin, project ON relations BEGIN
  INSERT INTO outbox (kind, number) VALUES ('relations', new.id);
END;
