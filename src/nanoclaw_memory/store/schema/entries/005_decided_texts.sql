-- The letters of a text that a person decides on, as a fingerprint: under whatever type and spelling it comes back.
ALTER TABLE proposals ADD COLUMN text_key TEXT NOT NULL DEFAULT '';
CREATE INDEX proposals_by_text ON proposals (text_key) WHERE text_key <> '';
