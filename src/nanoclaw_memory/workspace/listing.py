"""The Markdown files of a group with their sizes and times: listed anew, or once for all that a turn asks."""

from __future__ import annotations

import operator
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from nanoclaw_memory.text import encodable
from nanoclaw_memory.workspace.paths import GROUP_PAGE, Home

DOMAINS = "memory/domains/"  # written from entries, which are passages themselves
_name = operator.attrgetter("name")


class Seen(msgspec.Struct, frozen=True):
    """A file on disk: its path in the memory, where it is, and what `stat` says."""

    relative: str
    path: str
    size: int
    mtime_ns: int


class PageListing:
    """The pages of one group; several readers of a turn share one listing."""

    def __init__(self, home: Home, group: str) -> None:
        self._home, self._group = home, group
        self._listed: list[Seen] | None = None
        self._keeping = 0

    def pages(self) -> list[Seen]:
        """Every page that there is."""
        if self._listed is not None:
            return self._listed
        found = memory_pages(self._home, self._group)
        if self._keeping:
            self._listed = found
        return found

    @contextmanager
    def kept(self) -> Iterator[None]:
        """List at most once for whatever is asked meanwhile."""
        self._keeping += 1
        try:
            yield
        finally:
            self._keeping -= 1
            if not self._keeping:
                self._listed = None


def memory_pages(home: Home, group: str) -> list[Seen]:
    """Every Markdown file of a group that is a source of passages; links that leave are left out."""
    found: list[Seen] = []
    for base, prefix in ((home.workspace(group), ""), (home.shared, "shared/")):
        _add_below(found, str(base), prefix, base)
    if home.has_group_page(group) and not (home.workspace(group) / GROUP_PAGE).exists():
        status = home.group_page(group).stat()
        found.append(Seen(GROUP_PAGE, str(home.group_page(group)), status.st_size, status.st_mtime_ns))
    return found


def _add_below(found: list[Seen], folder: str, prefix: str, base: Path) -> None:
    # One stat a file and no Path: this runs at every search.
    try:
        entries = sorted(os.scandir(folder), key=_name)
    except OSError:
        return
    for entry in entries:
        name = entry.name
        if name[0] == "." or not (name.isascii() or encodable(name) == name):  # no text; doctor reports it
            continue
        if name.endswith(".md"):
            if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(base.resolve()):
                continue
            try:
                status = entry.stat()
            except OSError:
                continue  # gone since it was listed
            if stat.S_ISREG(status.st_mode):
                found.append(Seen(prefix + name, entry.path, status.st_size, status.st_mtime_ns))
        elif name != "checkpoints" and prefix + name + "/" != DOMAINS and entry.is_dir(follow_symlinks=False):
            _add_below(found, entry.path, f"{prefix}{name}/", base)
