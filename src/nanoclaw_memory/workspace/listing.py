"""List the Markdown files of a group with sizes and times: once per turn, or only after changes where they are
watched.
"""

from __future__ import annotations

import operator
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from nanoclaw_memory.clock import file_time
from nanoclaw_memory.text import encodable
from nanoclaw_memory.workspace.paths import GROUP_PAGE, Home, of_shared_chats

if TYPE_CHECKING:
    from nanoclaw_memory.workspace.folder_watch import FolderWatch

LONGEST_WATCHED = 30.0  # seconds: changes through a hard link outside of the memory are not reported
DOMAINS = "memory/domains/"  # generated from entries, which are passages themselves
_name = operator.attrgetter("name")


class Seen(msgspec.Struct, frozen=True):
    """A file on disk: its path in the memory, its location, and its stat."""

    relative: str
    path: str
    size: int
    mtime_ns: int


class WatchedPages:
    """The pages of one group, listed again only when something changed; the threads of a process share it."""

    def __init__(self, home: Home, group: str) -> None:
        from nanoclaw_memory.workspace.folder_watch import FolderWatch

        self._home, self._group = home, group
        self._watch = FolderWatch()
        self._lock = threading.Lock()
        self._listed: list[Seen] = []
        self._listed_at = -LONGEST_WATCHED

    def pages(self) -> list[Seen]:
        """Return every page; the same list while nothing changes."""
        with self._lock:
            now = time.monotonic()
            if self._watch.changed() or now - self._listed_at >= LONGEST_WATCHED:
                found = memory_pages(self._home, self._group, self._watch)
                self._listed = self._listed if found == self._listed else found
                self._listed_at = now
            return self._listed


_watched: WeakValueDictionary[tuple[Home, str], WatchedPages] = WeakValueDictionary()


class PageListing:
    """The pages of one group; several readers of a turn share one listing."""

    def __init__(self, home: Home, group: str) -> None:
        self._home, self._group = home, group
        self._listed: list[Seen] | None = None
        self._private: tuple[list[Seen], list[Seen]] = ([], [])
        self._keeping = 0
        self._watched: WatchedPages | None = None

    def watch(self) -> None:
        """List only after changes from now on; worthwhile in a long-lived process."""
        key = (self._home, self._group)
        self._watched = _watched.get(key) or _watched.setdefault(key, WatchedPages(*key))

    def pages(self) -> list[Seen]:
        """Return every page."""
        if self._listed is not None:
            return self._listed
        found = self._watched.pages() if self._watched else memory_pages(self._home, self._group)
        if self._keeping:
            self._listed = found
        return found

    def private_pages(self) -> list[Seen]:
        """Return all pages but those of shared chats."""
        found = self.pages()
        if self._private[0] is not found:
            self._private = found, [seen for seen in found if not of_shared_chats(seen.relative)]
        return self._private[1]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """List at most once during this context."""
        self._keeping += 1
        try:
            yield
        finally:
            self._keeping -= 1
            if not self._keeping:
                self._listed = None


def memory_pages(home: Home, group: str, watch: FolderWatch | None = None) -> list[Seen]:
    """Return every Markdown file of a group that is a source of passages; links to the outside are left out."""
    found: list[Seen] = []
    if watch is not None:  # the workspace or the group's page may appear there
        watch.add(str(home.root))
        watch.add(str(home.group_root(group)))
    for base, prefix in ((home.workspace(group), ""), (home.shared, "shared/")):
        _add_below(found, str(base), prefix, base, watch)
    if home.has_group_page(group) and not (home.workspace(group) / GROUP_PAGE).exists():
        status = home.group_page(group).stat()
        found.append(Seen(GROUP_PAGE, str(home.group_page(group)), status.st_size, file_time(status)))
    return found


def _add_below(
    found: list[Seen], folder: str, prefix: str, base: Path, watch: FolderWatch | None = None
) -> None:
    # One stat per file and no Path: this runs at every search.
    if watch is not None:
        watch.add(folder)
    try:
        entries = sorted(os.scandir(folder), key=_name)
    except OSError:
        return
    for entry in entries:
        name = entry.name
        # no valid text; doctor reports it
        if name[0] == "." or not (name.isascii() or encodable(name) == name):
            continue
        if name.endswith(".md"):
            if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(base.resolve()):
                continue
            try:
                status = entry.stat()
            except OSError:
                continue  # deleted since it was listed
            if stat.S_ISREG(status.st_mode):
                found.append(Seen(prefix + name, entry.path, status.st_size, file_time(status)))
        elif name != "checkpoints" and prefix + name + "/" != DOMAINS and entry.is_dir(follow_symlinks=False):
            _add_below(found, entry.path, f"{prefix}{name}/", base, watch)
