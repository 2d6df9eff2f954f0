"""Which files changed since the index last saw them: by size and time alone, so that looking is cheap."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from nanoclaw_memory.store.chunks import FileRow


class Seen(msgspec.Struct, frozen=True):
    """A file on disk: its path in the memory, where it is, and what `stat` says."""

    relative: str
    path: Path
    size: int
    mtime_ns: int


class Scan(msgspec.Struct, frozen=True):
    """What an index has to do to be up to date."""

    changed: tuple[Seen, ...]
    removed: tuple[str, ...]
    known: Mapping[str, FileRow]

    @property
    def stale(self) -> bool:
        return bool(self.changed or self.removed)


def scan(files: Iterable[tuple[str, Path]], known: Mapping[str, FileRow], chunking: str) -> Scan:
    """Compare what is on disk with what the index knows."""
    changed: list[Seen] = []
    present: set[str] = set()
    for relative, path in files:
        try:
            found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, and this runs at every search
        except OSError:
            continue  # gone since it was listed
        if not stat.S_ISREG(found.st_mode) or relative in present:
            continue
        present.add(relative)
        row = known.get(relative)
        if (
            row is None
            or row.size != found.st_size
            or row.mtime_ns != found.st_mtime_ns
            or row.chunking != chunking
        ):
            changed.append(Seen(relative, path, found.st_size, found.st_mtime_ns))
    removed = tuple(path for path in known if path not in present)
    return Scan(tuple(changed), removed, known)
