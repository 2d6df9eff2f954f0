-- The project that the working directory named when it was said; empty for none.
ALTER TABLE exchanges ADD COLUMN project TEXT NOT NULL DEFAULT '';
CREATE INDEX exchanges_project ON exchanges (project, timestamp);
