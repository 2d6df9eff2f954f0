-- Whether a text without a day stood on its page when that was first read: it may be older than anything.
ALTER TABLE passages ADD COLUMN stood INTEGER NOT NULL DEFAULT 0;
UPDATE passages SET stood = 1 WHERE seen <> '' AND seen <=
  (SELECT min(p.seen) FROM passages p WHERE p.document_id = passages.document_id AND p.seen <> '');
-- What makes a pair is judged more strictly: all pairs that nobody decided are compared again.
DELETE FROM currency WHERE kind = 'earlier' AND sure <= 0.5;
DELETE FROM meta WHERE key = 'cursor:compared';
