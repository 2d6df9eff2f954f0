-- Projects, and entries of shared scopes: every row and file is read again, and until then no entry is open to all.
UPDATE passages SET private = 1 WHERE kind = 'entry';
UPDATE documents SET chunking = '';
DELETE FROM meta WHERE key LIKE 'cursor:%';
