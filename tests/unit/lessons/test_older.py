"""Lessons of the older systems come along."""

from __future__ import annotations

import sqlite3

OLD = """
CREATE TABLE growth_vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT, trigger_pattern TEXT NOT NULL, trigger_embedding BLOB,
    lesson_text TEXT NOT NULL, principle TEXT, effectiveness_score REAL DEFAULT 1.0, injection_count INTEGER DEFAULT 0,
    maturity_days INTEGER DEFAULT 0, is_metabolized BOOLEAN DEFAULT 0, activation REAL DEFAULT 1.0,
    created_at TEXT DEFAULT (datetime('now')));
CREATE TABLE vector_outcomes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, vector_id INTEGER NOT NULL, query_text TEXT, pre_entropy REAL,
    post_entropy REAL, user_feedback TEXT, helped BOOLEAN, injection_time TEXT DEFAULT (datetime('now')),
    FOREIGN KEY (vector_id) REFERENCES growth_vectors(id));
INSERT INTO growth_vectors (trigger_pattern, trigger_embedding, lesson_text, principle, injection_count)
VALUES ('deploy', x'00', 'Ask before deploying', 'reliability', 7);
INSERT INTO vector_outcomes (vector_id, query_text, helped) VALUES (1, 'deploy it', 1), (99, 'orphan', 0);
"""


def test_lessons_and_outcomes_of_an_older_file_are_kept_and_used(memory, home):
    path = home / "data" / "facts.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as old:
        old.executescript(OLD)
    (lesson,) = memory.lessons.lessons()
    assert (lesson.lesson, lesson.state, lesson.injections) == ("Ask before deploying", "active", 7)
    assert len(memory.lessons.detail(lesson.id).outcomes) == 1
    turn = memory.before_turn("Deploying the site now")
    assert any("Ask before deploying" in block.text for block in turn.blocks)
