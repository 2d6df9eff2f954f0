-- Items are found by meaning: which of their fields are searched (a JSON array of paths; empty: none, NULL: all), and
-- vectors of those, made when they are first searched.
ALTER TABLE items ADD COLUMN fields TEXT;

CREATE TABLE item_vectors (
    item_id  INTEGER NOT NULL,
    identity TEXT NOT NULL,  -- of the embedder
    vectors  BLOB NOT NULL,  -- float32, one row a text
    PRIMARY KEY (item_id, identity)
);
CREATE TRIGGER item_vectors_ad AFTER DELETE ON items BEGIN
    DELETE FROM item_vectors WHERE item_id = old.id;
END;
CREATE TRIGGER item_vectors_au AFTER UPDATE OF value, fields ON items BEGIN
    DELETE FROM item_vectors WHERE item_id = old.id;
END;
