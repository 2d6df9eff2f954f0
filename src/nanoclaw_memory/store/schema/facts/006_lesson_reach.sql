-- How far a lesson reaches and why it was learnt; exchanges that no judge has read yet.
ALTER TABLE growth_vectors ADD COLUMN reach TEXT NOT NULL DEFAULT 'topic' CHECK (reach IN ('general', 'topic', 'once'));
ALTER TABLE growth_vectors ADD COLUMN why TEXT NOT NULL DEFAULT '';
UPDATE growth_vectors SET reach = 'general' WHERE general;

CREATE TABLE unjudged_exchanges (
  exchange_id INTEGER PRIMARY KEY                     -- in continuity.db
);

-- An injection that nobody reacted to proves nothing: only good and bad outcomes count from now on.
UPDATE vector_outcomes SET helped = NULL WHERE user_feedback = 'neutral';
UPDATE growth_vectors SET effectiveness_score =
  (1.0 + (SELECT count(*) FROM vector_outcomes WHERE vector_id = growth_vectors.id AND user_feedback = 'good'))
  / (1.0 + (SELECT count(*) FROM vector_outcomes WHERE vector_id = growth_vectors.id AND user_feedback IN ('good', 'bad')))
  WHERE EXISTS (SELECT 1 FROM vector_outcomes WHERE vector_id = growth_vectors.id AND user_feedback IS NOT NULL);
