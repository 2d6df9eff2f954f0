"""What upkeep remembers of its own runs: one small file per group, replaced whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.workspace.files import locked, read_text, replace_text

FILE = "upkeep.json"


class Ran(msgspec.Struct, frozen=True):
    """A job's last run, and its last run that changed something."""

    at: str = ""
    changed: int = 0
    took_ms: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()
    well_at: str = ""  # the last run without an error
    changed_at: str = ""
    last_change: int = 0


class Journal(msgspec.Struct, frozen=True):
    """All runs of one group, and small notes of single jobs."""

    jobs: dict[str, Ran] = msgspec.field(default_factory=dict)
    notes: dict[str, Any] = msgspec.field(default_factory=dict)


def read(data: Path) -> Journal:
    """The journal; an empty one when there is none or it is damaged: every job may run again unharmed."""
    try:
        tree = json.loads(read_text(data / FILE))
        jobs = {name: Ran(**{**row, "notes": tuple(row["notes"])}) for name, row in tree["jobs"].items()}
        return Journal(jobs, dict(tree.get("notes", {})))
    except (FileNotFoundError, FileProblem, ValueError, KeyError, TypeError, AttributeError):
        return Journal()


def note_run(data: Path, name: str, ran: Ran) -> None:
    """Write down a run; a run that changed nothing keeps what the last change was."""
    with locked(data):
        journal = read(data)
        before = journal.jobs.get(name, Ran())
        ran = replace(ran, well_at=before.well_at if ran.error else ran.at)
        if ran.changed:
            ran = replace(ran, changed_at=ran.at, last_change=ran.changed)
        else:
            ran = replace(ran, changed_at=before.changed_at, last_change=before.last_change)
        _write(data, Journal({**journal.jobs, name: ran}, journal.notes))


def note(data: Path, name: str, value: Any) -> None:
    """Keep a small note of a job."""
    with locked(data):
        journal = read(data)
        if journal.notes.get(name) != value:
            _write(data, Journal(journal.jobs, {**journal.notes, name: value}))


def _write(data: Path, journal: Journal) -> None:
    jobs = {name: msgspec.to_builtins(ran) for name, ran in journal.jobs.items()}
    tree = {"jobs": jobs, "notes": journal.notes}
    # Not worth waiting for the disk: a run that was forgotten is run again, and does nothing.
    replace_text(data / FILE, json.dumps(tree, ensure_ascii=False, indent=1) + "\n", durable=False)
