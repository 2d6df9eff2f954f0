"""Find files that changed since the last indexing run, by size and time alone, and watch for changes."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import file_time
from nanoclaw_memory.store.passages import FileRow
from nanoclaw_memory.workspace.listing import Seen


class Scan(msgspec.Struct, frozen=True):
    """What an index has to update."""

    changed: tuple[Seen, ...]
    removed: tuple[str, ...]
    known: Mapping[str, FileRow]

    @property
    def stale(self) -> bool:
        return bool(self.changed or self.removed)


def scan(files: Iterable[Seen], known: Mapping[str, FileRow], chunking: str) -> Scan:
    """Compare what is on disk with what the index contains."""
    changed: list[Seen] = []
    present: set[str] = set()
    for seen in files:
        if seen.relative in present:
            continue
        present.add(seen.relative)
        row = known.get(seen.relative)
        if row is None or row.size != seen.size or row.mtime_ns != seen.mtime_ns or row.chunking != chunking:
            changed.append(seen)
    return Scan(tuple(changed), tuple(path for path in known if path not in present), known)


def seen_files(files: Iterable[tuple[str, Path]]) -> Iterator[Seen]:
    """Yield files by path with size and time."""
    for relative, path in files:
        try:
            found = path.stat()
        except OSError:
            continue  # deleted since it was listed
        if stat.S_ISREG(found.st_mode):
            yield Seen(relative, str(path), found.st_size, file_time(found))


QUIET_MS = 1_500
LONGEST_MS = 15_000
SWEEP_S = 30.0


def changes(
    folders: Sequence[Path], stop: threading.Event, quiet_ms: int = QUIET_MS, sweep_s: float = SWEEP_S
) -> Iterator[str]:
    """Yield `start`, then `change` when files are quiet again after a change, and `sweep` at intervals."""
    import watchfiles

    for folder in folders:
        private.make_folder(folder)
    yield "start"
    batches = watchfiles.watch(
        *folders,
        watch_filter=_is_memory,
        step=quiet_ms,
        debounce=max(quiet_ms, LONGEST_MS),
        rust_timeout=int(sweep_s * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=True,
        ignore_permission_denied=True,
    )
    for batch in batches:
        if stop.is_set():
            return
        yield "change" if batch else "sweep"


def _is_memory(change: object, path: str) -> bool:
    """Return whether an event may concern a memory file; a folder's own events have no suffix."""
    name = path.rpartition("/")[2]
    return not name.startswith(".") and ("." not in name or name.endswith(".md"))
