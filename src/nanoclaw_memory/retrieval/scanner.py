"""Which files changed since the index last saw them, by size and time alone, and a watcher that waits for changes."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.store.passages import FileRow
from nanoclaw_memory.text import encodable
from nanoclaw_memory.workspace.paths import Home

DOMAINS = "memory/domains/"  # written from entries, which are passages themselves


class Seen(msgspec.Struct, frozen=True):
    """A file on disk: its path in the memory, where it is, and what `stat` says."""

    relative: str
    path: str
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


def scan(files: Iterable[Seen], known: Mapping[str, FileRow], chunking: str) -> Scan:
    """Compare what is on disk with what the index knows."""
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


def memory_pages(home: Home, group: str) -> Iterator[Seen]:
    """Every Markdown file of a group that is a source of passages; links that leave are left out."""
    for base, prefix in ((home.workspace(group), ""), (home.shared, "shared/")):
        if base.is_dir():
            yield from _below(str(base), prefix, base.resolve())


def _below(folder: str, prefix: str, root: Path) -> Iterator[Seen]:
    # One stat a file and no Path: this runs at every search.
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = entry.name
        if name.startswith(".") or encodable(name) != name:  # a name that is no text; doctor reports it
            continue
        if name.endswith(".md"):
            if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root):
                continue
            if (seen := _seen(prefix + name, entry)) is not None:
                yield seen
        elif name != "checkpoints" and prefix + name + "/" != DOMAINS and entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, f"{prefix}{name}/", root)


def _seen(relative: str, entry: os.DirEntry[str]) -> Seen | None:
    try:
        found = entry.stat()
    except OSError:
        return None  # gone since it was listed
    if not stat.S_ISREG(found.st_mode):
        return None
    return Seen(relative, entry.path, found.st_size, found.st_mtime_ns)


def seen_files(files: Iterable[tuple[str, Path]]) -> Iterator[Seen]:
    """Files by path with what `stat` says of them."""
    for relative, path in files:
        try:
            found = path.stat()
        except OSError:
            continue  # gone since it was listed
        if stat.S_ISREG(found.st_mode):
            yield Seen(relative, str(path), found.st_size, found.st_mtime_ns)


QUIET_MS = 1_500
LONGEST_MS = 15_000
SWEEP_S = 30.0


def changes(
    folders: Sequence[Path], stop: threading.Event, quiet_ms: int = QUIET_MS, sweep_s: float = SWEEP_S
) -> Iterator[str]:
    """Yield `start`, then `change` when files were quiet again after a change, and `sweep` now and then."""
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
    """Whether an event can be of a memory file; a folder's own events have no suffix."""
    name = path.rpartition("/")[2]
    return not name.startswith(".") and ("." not in name or name.endswith(".md"))
