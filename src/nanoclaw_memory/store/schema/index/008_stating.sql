-- Questions and requests made pairs that only statements make: all pairs that nobody decided are compared again.
DELETE FROM currency WHERE kind = 'earlier' AND sure <= 0.5;
DELETE FROM meta WHERE key = 'cursor:compared';
