-- Another name may be private like a fact: only what is shared may be seen in a shared scope. What was known before
-- is private, unless the file that says it says something that is shared.
ALTER TABLE aliases ADD COLUMN shared BOOLEAN NOT NULL DEFAULT 0;
UPDATE aliases SET shared = 1 WHERE source LIKE '%.md:%' AND rtrim(source, '0123456789') IN (
    SELECT rtrim(source, '0123456789') FROM facts WHERE shared
    UNION
    SELECT rtrim(source, '0123456789') FROM relations WHERE shared
);
