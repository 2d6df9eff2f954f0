-- Whatever has a day is found by it: turns, log lines, changes of facts.
DROP INDEX IF EXISTS passages_day;
CREATE INDEX passages_day ON passages (day) WHERE day <> '';
