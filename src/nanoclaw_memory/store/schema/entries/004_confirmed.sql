-- `author` is who stored it, of more kinds than `origin` may name; `confirmed` why what an agent stored as a preference,
-- instruction or correction counts as the person's: 'approved' by them, or 'said' by them in that session.
ALTER TABLE entries ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN confirmed TEXT NOT NULL DEFAULT '';
UPDATE entries SET author = CASE WHEN private = 0 AND origin IN ('owner', 'agent') THEN 'shared' ELSE origin END;
DROP TRIGGER entries_outbox_au;
CREATE TRIGGER entries_outbox_au
AFTER UPDATE OF id, type, content, tags, priority, reason, status, expires_at, author, created_at, confirmed ON entries
BEGIN
  INSERT INTO outbox (kind, number) VALUES ('entries', new.number);
END;
-- Who said what a proposal is about, and what accepting it does.
ALTER TABLE proposals ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN effect TEXT NOT NULL DEFAULT '';
