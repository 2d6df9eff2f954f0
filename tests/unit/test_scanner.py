"""Watching: a change is told after it is quiet, and sweeps come without any."""

from __future__ import annotations

import threading
from pathlib import Path

from nanoclaw_memory.retrieval.scanner import changes


def test_a_change_is_told_and_stopping_ends_the_watch(tmp_path: Path):
    stop = threading.Event()
    told = changes([tmp_path / "memory"], stop, quiet_ms=50, sweep_s=20)
    assert next(told) == "start"
    threading.Timer(0.2, lambda: (tmp_path / "memory" / "a.md").write_text("hello")).start()
    assert next(told) == "change"
    stop.set()
    assert list(told) == []


def test_a_sweep_comes_when_no_event_does(tmp_path: Path):
    stop = threading.Event()
    told = changes([tmp_path], stop, quiet_ms=20, sweep_s=0.1)
    assert [next(told), next(told)] == ["start", "sweep"]
    stop.set()


def test_files_that_are_no_memory_are_not_told(tmp_path: Path):
    stop = threading.Event()
    told = changes([tmp_path], stop, quiet_ms=20, sweep_s=0.5)
    next(told)
    threading.Timer(0.1, lambda: (tmp_path / "index.db-wal").write_text("x")).start()
    assert next(told) == "sweep"
    stop.set()
