-- What a person rejected or asked to forget, as fingerprints: no checkpoint holds this file, no restore takes it back.
CREATE TABLE tombstones (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL DEFAULT '',
    slot TEXT NOT NULL DEFAULT '',
    digest TEXT NOT NULL DEFAULT '',
    text_fingerprint TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    UNIQUE (name, slot, digest, text_fingerprint)
);
CREATE INDEX tombstones_text ON tombstones(text_fingerprint) WHERE text_fingerprint <> '';
