-- What agents built with other SDKs keep: the history of their sessions, and items by namespace and key.
CREATE TABLE history (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    item       TEXT NOT NULL
);
CREATE INDEX history_session ON history(session_id, id);

CREATE TABLE items (
    id         INTEGER PRIMARY KEY,
    namespace  TEXT NOT NULL,  -- JSON array
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,  -- JSON object
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (namespace, key)
);

CREATE VIRTUAL TABLE items_fts USING fts5(value, content=items, content_rowid=id, tokenize='porter unicode61');
CREATE TRIGGER items_ai AFTER INSERT ON items BEGIN
    INSERT INTO items_fts(rowid, value) VALUES (new.id, new.value);
END;
CREATE TRIGGER items_ad AFTER DELETE ON items BEGIN
    INSERT INTO items_fts(items_fts, rowid, value) VALUES ('delete', old.id, old.value);
END;
CREATE TRIGGER items_au AFTER UPDATE OF value ON items BEGIN
    INSERT INTO items_fts(items_fts, rowid, value) VALUES ('delete', old.id, old.value);
    INSERT INTO items_fts(rowid, value) VALUES (new.id, new.value);
END;
