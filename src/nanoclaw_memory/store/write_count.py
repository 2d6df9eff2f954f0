"""The number of writes to each database, stored outside of it, so that a lost file or WAL is detected.

A transaction raises the number in the database (`PRAGMA application_id`) and, once it is committed, the copy in the
file `writes` of the home or group. A kill in between leaves the copy behind; only a loss leaves it ahead.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory.errors import CorruptDatabase
from nanoclaw_memory.store.integrity import remedy
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import SHARED

FILE = "writes"
_SHARED = tuple(f"{SHARED}{name}" for name in ("facts", "entries", "continuity", "sdk"))
_NAMES = ("facts", "entries", "continuity", "sdk", "forgotten", "messages", *_SHARED)
_LINES = (*_NAMES, *(f"{name}-lost" for name in _NAMES))
_WIDTH = 40


class WriteCount(msgspec.Struct, frozen=True):
    """The counts of one database; without a path nothing is counted. A writer has the database's write lock."""

    path: Path | None = None
    name: str = ""

    @classmethod
    def of(cls, database: Path) -> WriteCount:
        """Return the counts of a database file in `data/` or `store/` of a home or group."""
        return cls(database.parent.parent / FILE, database.stem)

    @property
    def known(self) -> int:
        """Return how many writes the database must contain."""
        return self._read(self.name)

    @property
    def lost(self) -> int:
        """Return how many writes were found lost, and not accepted by anybody yet."""
        return self._read(f"{self.name}-lost")

    def count(self, connection: Any) -> int:
        """Count one more write inside its transaction; `set` is called with the result after the commit."""
        if self.path is None:
            return 0
        number = counted_in(connection) + 1
        connection.execute(f"PRAGMA application_id = {number}")
        return number

    def set(self, known: int) -> None:
        self._write(self.name, known)

    def restart(self, known: int) -> None:
        """Count from here on: somebody chose another content, or none."""
        self.set(known)
        self.accept_loss()

    def accept_loss(self) -> None:
        self._write(f"{self.name}-lost", 0)

    def missing(self, connection: Any) -> int:
        """Return how many writes the database must contain and does not."""
        known = self.known  # read first: the other number may only grow
        return max(known - counted_in(connection), 0) if known else 0

    def note_loss(self, connection: Any) -> None:
        """Record what is missing: the next writes would hide it."""
        if missing := self.missing(connection):
            self._write(f"{self.name}-lost", self.lost + missing)
            self.set(counted_in(connection))

    def is_gone(self, database: Path) -> bool:
        """Return whether a non-empty database existed and is missing now."""
        try:
            there = database.stat().st_size or Path(f"{database}-wal").exists()
        except OSError:
            there = False
        return not there and self.known > 0

    def require(self, database: Path, kind: str) -> None:
        """Refuse to recreate a non-empty database silently."""
        if self.is_gone(database):
            told = f"{database.name} is gone, and {plural(self.known, 'write')} with it"
            raise CorruptDatabase(told, remedy(database, kind))

    def _read(self, line: str) -> int:
        if self.path is None or line not in _LINES:
            return 0
        try:
            with self.path.open("rb", buffering=0) as stream:
                stream.seek(_LINES.index(line) * _WIDTH)
                return int(stream.read(_WIDTH).split()[-1])
        except (OSError, ValueError, IndexError):
            return 0

    def _write(self, line: str, number: int) -> None:
        if self.path is None or line not in _LINES:
            return
        text = f"{line:<26} {number:012d}\n".encode("ascii")
        with suppress(OSError):  # the write itself is safe, and the next one counts it
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(handle, text, _LINES.index(line) * _WIDTH)
            finally:
                os.close(handle)


def counted_in(connection: Any) -> int:
    """Return how many writes the database itself has counted."""
    return int(connection.execute("PRAGMA application_id").fetchall()[0][0])


def has_shared(folder: Path) -> bool:
    """Return whether shared chats have anything in a folder, even a lost database; one check, since every question
    asks.
    """
    try:
        if any(name.startswith(SHARED) for name in os.listdir(folder)):  # noqa: PTH208 - only names
            return True
        written = (folder.parent / FILE).read_bytes()
    except OSError:
        return False
    starts = (_LINES.index(name) * _WIDTH for name in _SHARED)
    return any(written[start : start + _WIDTH].split()[-1:] > [b"0" * 12] for start in starts)


def has_database(path: Path) -> bool:
    """Return whether there is a database, even a lost one."""
    return path.exists() or WriteCount.of(path).is_gone(path)
