-- Whether a text without a day stood on its page when that was first read: it may be older than anything.
ALTER TABLE passages ADD COLUMN stood INTEGER NOT NULL DEFAULT 0;
UPDATE passages SET stood = 1 WHERE seen <> '' AND seen <=
  (SELECT min(p.seen) FROM passages p WHERE p.document_id = passages.document_id AND p.seen <> '');
