-- The Markdown pages of a team: one row per version of a page; the highest version of a path is the page.
CREATE TABLE pages (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of all changes, whatever clocks say
    path     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    text     TEXT,                               -- NULL: the page was deleted
    author   TEXT NOT NULL,                      -- owner, or agent
    machine  TEXT NOT NULL,
    saved_at TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,                   -- of the file: every machine gives its copy the same
    merged   TEXT NOT NULL DEFAULT '',           -- fingerprint of the file that came in, where it was merged
    UNIQUE (path, version)
);

-- One row: by it a mirror knows that it is the same table as before.
CREATE TABLE identity (name TEXT PRIMARY KEY);
