-- What a language model decided on pairs of statements, by the fingerprint of both: asked once, kept with the reason.
CREATE TABLE verdicts (
  pair    TEXT PRIMARY KEY,
  verdict TEXT NOT NULL,
  reason  TEXT NOT NULL,
  model   TEXT NOT NULL,
  at      TEXT NOT NULL
);
