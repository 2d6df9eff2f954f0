-- The days that a statement is about, as seen from the day on which it was made.
CREATE TABLE about_days (
  passage   INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
  first_day TEXT NOT NULL,
  last_day  TEXT NOT NULL,
  yearly    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (passage, first_day, last_day)
) WITHOUT ROWID;
CREATE INDEX about_days_first ON about_days (first_day);
