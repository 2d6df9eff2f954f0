-- The keyword index contains German stems: everything is read anew. Vectors stay, for they belong to texts.
INSERT INTO meta (key, value) SELECT 'replaced', '1' WHERE EXISTS (SELECT 1 FROM documents)
  ON CONFLICT (key) DO NOTHING;
INSERT INTO passages_fts (passages_fts) VALUES ('delete-all');
DELETE FROM currency;
DELETE FROM passages;
DELETE FROM documents;
DELETE FROM long_words;
DELETE FROM removed;
DELETE FROM sqlite_sequence; -- the newest id says how many passages there are
DELETE FROM meta WHERE key LIKE 'cursor:%' OR key LIKE 'covered:%';
