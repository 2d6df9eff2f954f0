-- Every passage has an origin, and what a message quotes is apart from its own words: everything is read again.
UPDATE documents SET chunking = '';
DELETE FROM meta WHERE key LIKE 'cursor:%';
