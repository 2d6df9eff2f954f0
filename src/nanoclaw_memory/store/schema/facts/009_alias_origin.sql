-- Who gave an entity another name. Of what was given before, its source tells it, or what else came from there.
ALTER TABLE aliases ADD COLUMN origin TEXT NOT NULL DEFAULT 'owner';
UPDATE aliases SET origin = 'agent' WHERE source LIKE 'session %';
UPDATE aliases SET origin = 'shared' WHERE shared AND (source LIKE 'session %' OR source = 'direct');
UPDATE aliases SET origin = 'import' WHERE source LIKE 'import %' OR rtrim(source, '0123456789') IN (
    SELECT rtrim(source, '0123456789') FROM facts WHERE origin = 'import'
    UNION
    SELECT rtrim(source, '0123456789') FROM relations WHERE origin = 'import'
);
-- Whether there is anything that the owner does not trust is asked with every question.
CREATE INDEX facts_origin ON facts (origin);
CREATE INDEX relations_origin ON relations (origin);
