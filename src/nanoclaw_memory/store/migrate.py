"""Numbered schema steps per database: `schema/<database>/NNN_name.sql`; a newer schema is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory.errors import CorruptDatabase, NewerSchema
from nanoclaw_memory.store.integrity import remedy

IMPLAUSIBLE = 10_000  # no release will have a schema of such a number


class Step(msgspec.Struct, frozen=True):
    """One numbered step of plain SQL."""

    number: int
    name: str
    sql: str


@functools.cache
def steps_of(database: str) -> tuple[Step, ...]:
    """Return the steps of one database in order."""
    folder = Path(__file__).with_name("schema") / database  # importlib.resources would cost a hook 6 ms
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".sql")
    return tuple(
        Step(int(name[:3]), name[4:-4], (folder / name).read_text(encoding="utf-8")) for name in names
    )


def is_current(connection: Any, steps: Sequence[Step], path: Path) -> bool:
    """Return whether the file has the newest schema; read one page and refuse a newer file unchanged."""
    newest = steps[-1].number
    (current,) = connection.execute("PRAGMA user_version").fetchone()
    if current > IMPLAUSIBLE:
        raise CorruptDatabase(f"{path.name} is damaged: schema {current}", remedy(path, path.stem))
    if current > newest:
        raise NewerSchema(
            f"{path.name} has schema {current}, this release knows {newest}",
            "upgrade nanoclaw-memory; nothing was changed",
        )
    return bool(current == newest)


# Runs before the steps, with the version of the file (0: not ours yet); may return a function to run after them.
Adopt = Callable[[Any, int], Callable[[Any], None] | None]


def migrate(connection: Any, steps: Sequence[Step], path: Path, adopt: Adopt | None = None) -> None:
    """Migrate an open connection's schema to the newest; the caller has the write lock.

    `adopt` prepares a file for the steps: it renames the tables of an older system, so that the steps can create
    theirs, and returns a function that moves the rows over.
    """
    if is_current(connection, steps, path):  # another process was first
        return
    (current,) = connection.execute("PRAGMA user_version").fetchone()
    with connection:
        finish = adopt(connection, current) if adopt is not None else None
        for step in steps:
            if step.number > current:
                connection.execute(step.sql).fetchall()  # apsw stops at a row until it is fetched
        if finish is not None:
            finish(connection)
        connection.execute(f"PRAGMA user_version = {steps[-1].number}")
