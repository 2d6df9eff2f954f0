-- The project in which a lesson was learnt; empty: it belongs to none. `only_there`: its words say that it holds there.
ALTER TABLE growth_vectors ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE growth_vectors ADD COLUMN only_there BOOLEAN NOT NULL DEFAULT 0;
