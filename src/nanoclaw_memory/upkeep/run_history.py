"""The history of upkeep runs: one small JSON file per group, replaced as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import private
from nanoclaw_memory.workspace.files import locked, replace_text

FILE = "upkeep.json"


class LastRun(msgspec.Struct, frozen=True):
    """A job's last run, and its last run that changed something."""

    at: str = ""
    changed: int = 0
    took_ms: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()
    well_at: str = ""  # the last run without an error
    changed_at: str = ""
    last_change: int = 0


class RunHistory(msgspec.Struct, frozen=True):
    """The last run of every job of one group, and small notes of single jobs."""

    jobs: dict[str, LastRun] = msgspec.field(default_factory=dict)
    notes: dict[str, Any] = msgspec.field(default_factory=dict)


def read(data: Path) -> RunHistory:
    """Return the history; empty if it is missing or damaged, because jobs can safely run again."""
    return private.read_json(data / FILE, RunHistory) or RunHistory()


def record_run(data: Path, name: str, run: LastRun) -> None:
    """Record a run; one that changed nothing keeps the record of the last change."""
    with locked(data):
        history = read(data)
        before = history.jobs.get(name, LastRun())
        run = replace(run, well_at=before.well_at if run.error else run.at)
        if run.changed:
            run = replace(run, changed_at=run.at, last_change=run.changed)
        else:
            run = replace(run, changed_at=before.changed_at, last_change=before.last_change)
        _write(data, RunHistory({**history.jobs, name: run}, history.notes))


def record_note(data: Path, name: str, value: Any) -> None:
    """Store a small note of a job."""
    with locked(data):
        history = read(data)
        if history.notes.get(name) != value:
            _write(data, RunHistory(history.jobs, {**history.notes, name: value}))


def _write(data: Path, history: RunHistory) -> None:
    text = msgspec.json.format(msgspec.json.encode(history), indent=1).decode()
    # Not worth waiting for the disk: a lost run is repeated, and does nothing.
    replace_text(data / FILE, f"{text}\n", durable=False)
