-- Every name that means something: an entity, or an alias of one. `name` is folded, `mirror` is it reversed,
-- so that a range scan finds names by their first or by their last letters.
CREATE TABLE names (
    name TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    mirror TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX names_mirror ON names(mirror);

CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    category TEXT NOT NULL DEFAULT 'fact',
    source TEXT,
    created_at TEXT NOT NULL DEFAULT (datetime('now')),
    last_accessed TEXT,
    access_count INTEGER NOT NULL DEFAULT 0,
    permanent BOOLEAN NOT NULL DEFAULT 0,
    decay_score REAL,
    activation REAL NOT NULL DEFAULT 1.0,
    importance REAL NOT NULL DEFAULT 0.5,
    valid_from TEXT NOT NULL DEFAULT '',
    valid_to TEXT,
    superseded_by INTEGER REFERENCES facts(id) ON DELETE SET NULL,
    shared BOOLEAN NOT NULL DEFAULT 0,
    name TEXT NOT NULL REFERENCES names(name),
    slot TEXT NOT NULL,
    digest TEXT NOT NULL,
    spaced TEXT -- only for scripts without spaces: every character apart, so that it can be found
);
CREATE UNIQUE INDEX facts_current ON facts(name, slot, digest) WHERE valid_to IS NULL;
CREATE INDEX facts_entity_key ON facts(name, slot);
CREATE INDEX facts_category ON facts(category);
CREATE INDEX facts_superseded ON facts(superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE relations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    source TEXT,
    created_at TEXT NOT NULL DEFAULT (datetime('now')),
    last_accessed TEXT,
    access_count INTEGER NOT NULL DEFAULT 0,
    activation REAL NOT NULL DEFAULT 1.0,
    valid_from TEXT NOT NULL DEFAULT '',
    valid_to TEXT,
    superseded_by INTEGER REFERENCES relations(id) ON DELETE SET NULL,
    shared BOOLEAN NOT NULL DEFAULT 0,
    subject_name TEXT NOT NULL REFERENCES names(name),
    slot TEXT NOT NULL,
    object_name TEXT NOT NULL REFERENCES names(name),
    spaced TEXT
);
CREATE UNIQUE INDEX relations_current ON relations(subject_name, slot, object_name) WHERE valid_to IS NULL;
CREATE INDEX relations_subject ON relations(subject_name, slot);
CREATE INDEX relations_object ON relations(object_name, slot);
CREATE INDEX relations_predicate ON relations(slot);
CREATE INDEX relations_superseded ON relations(superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE aliases (
    alias TEXT NOT NULL,
    entity TEXT NOT NULL,
    source TEXT,
    name TEXT NOT NULL REFERENCES names(name),
    target TEXT NOT NULL REFERENCES names(name),
    PRIMARY KEY (name, target)
);
CREATE INDEX aliases_target ON aliases(target);

-- fact_a < fact_b always: one row for a pair.
CREATE TABLE co_occurrences (
    fact_a INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
    fact_b INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
    weight REAL NOT NULL DEFAULT 1.0,
    last_wired TEXT,
    PRIMARY KEY (fact_a, fact_b),
    CHECK (fact_a < fact_b)
) WITHOUT ROWID;
CREATE INDEX co_occurrences_b ON co_occurrences(fact_b);

-- Which line of which file says a fact or relation; `mark` identifies what is said, so moving a line is no change.
CREATE TABLE mentions (
    path TEXT NOT NULL,
    mark TEXT NOT NULL,
    line INTEGER NOT NULL,
    kind TEXT NOT NULL,
    item INTEGER NOT NULL,
    PRIMARY KEY (path, mark)
) WITHOUT ROWID;
CREATE INDEX mentions_item ON mentions(kind, item);

-- What a person rejected or asked to forget: by entity, key and value, or by the fingerprint of a text.
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

CREATE TABLE graph_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE VIRTUAL TABLE facts_fts USING fts5(
    entity, key, value, spaced, content=facts, content_rowid=id, tokenize='porter unicode61 remove_diacritics 2'
);
-- Only a change of the text touches the index: a bump of activation does not.
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts(rowid, entity, key, value, spaced)
    VALUES (new.id, new.entity, new.key, new.value, new.spaced);
END;
CREATE TRIGGER facts_ad AFTER DELETE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, entity, key, value, spaced)
    VALUES ('delete', old.id, old.entity, old.key, old.value, old.spaced);
END;
CREATE TRIGGER facts_au AFTER UPDATE OF id, entity, key, value, spaced ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, entity, key, value, spaced)
    VALUES ('delete', old.id, old.entity, old.key, old.value, old.spaced);
    INSERT INTO facts_fts(rowid, entity, key, value, spaced)
    VALUES (new.id, new.entity, new.key, new.value, new.spaced);
END;

CREATE VIRTUAL TABLE relations_fts USING fts5(
    subject, predicate, object, spaced,
    content=relations, content_rowid=id, tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER relations_ai AFTER INSERT ON relations BEGIN
    INSERT INTO relations_fts(rowid, subject, predicate, object, spaced)
    VALUES (new.id, new.subject, new.predicate, new.object, new.spaced);
END;
CREATE TRIGGER relations_ad AFTER DELETE ON relations BEGIN
    INSERT INTO relations_fts(relations_fts, rowid, subject, predicate, object, spaced)
    VALUES ('delete', old.id, old.subject, old.predicate, old.object, old.spaced);
END;
CREATE TRIGGER relations_au AFTER UPDATE OF id, subject, predicate, object, spaced ON relations BEGIN
    INSERT INTO relations_fts(relations_fts, rowid, subject, predicate, object, spaced)
    VALUES ('delete', old.id, old.subject, old.predicate, old.object, old.spaced);
    INSERT INTO relations_fts(rowid, subject, predicate, object, spaced)
    VALUES (new.id, new.subject, new.predicate, new.object, new.spaced);
END;
