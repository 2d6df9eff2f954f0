-- Who spoke to the agent: the person in private, everybody in a shared chat, or what another program fetched.
ALTER TABLE exchanges ADD COLUMN origin TEXT NOT NULL DEFAULT 'user';
UPDATE exchanges SET origin = 'shared' WHERE private = 0;
-- Numbers of the lines of the message that the judge told to be somebody else's, between spaces.
ALTER TABLE exchanges ADD COLUMN foreign_lines TEXT NOT NULL DEFAULT '';
