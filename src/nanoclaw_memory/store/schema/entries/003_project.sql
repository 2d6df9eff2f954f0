-- The project that the working directory named when it was stored, and whether that was in private: what a shared
-- scope stored, shared scopes of the group may read.
ALTER TABLE entries ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN private INTEGER NOT NULL DEFAULT 1;
