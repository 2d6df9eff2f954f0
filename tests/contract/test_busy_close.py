"""Closing while a thread that was given up is still inside the database."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import apsw

from nanoclaw_memory.store.sqlite import SqliteDatabase


def test_a_database_in_which_a_thread_still_works_is_closed_without_an_error(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "facts.db", "facts")
    database.query("SELECT 1")
    begun = threading.Event()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

    def work() -> None:
        begun.set()
        with suppress(apsw.InterruptError):
            database.query(endless)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    begun.wait()
    threading.Event().wait(0.2)  # the thread is inside its query now
    database.close()
    thread.join(10)
    assert not thread.is_alive()
