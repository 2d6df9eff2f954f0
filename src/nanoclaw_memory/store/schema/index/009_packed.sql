-- Vectors of many passages are in a file alone: a text that comes again is known by the passage that had it.
ALTER TABLE removed ADD COLUMN fingerprint BLOB;
CREATE INDEX removed_fingerprint ON removed (fingerprint);
