-- Prompts that got a lesson were stored as typed, credentials included. Those with an outcome are needed no more; the
-- others lose at most that outcome.
UPDATE vector_outcomes SET query_text = '';
