-- "What happened yesterday?": the lines of a day without a look at all others.
CREATE INDEX chunks_day ON chunks (day) WHERE grain = 'line';
