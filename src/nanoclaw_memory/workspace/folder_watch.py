"""Watch folders with inotify: a long-lived process learns that no page changed without listing them all."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

# Written, attributes, closed, moved from and to, created, deleted, the folder itself deleted and moved.
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
# ext, xfs, btrfs, tmpfs, overlayfs, f2fs, ZFS. On a network mount, changes from elsewhere are not reported.
_REPORTING = frozenset((0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630, 0xF2F52010, 0x2FC12FC1))
_ROOM = 65_536  # bytes of events read at once
_EVENT = struct.Struct(
    "iIII"
)  # the folder's number, the event, a cookie, the length of the name that follows
_OF_A_FOLDER = 0x40000000
_NONE = -1


class FolderWatch:
    """The pages directly in some folders. Where inotify does not work, everything always counts as changed.

    The kernel reports a change before the writer's call returns, so a later check sees it.
    """

    def __init__(self) -> None:
        self._handle = _NONE
        if sys.platform.startswith("linux"):
            self._libc = ctypes.CDLL(None)
            self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def add(self, folder: str) -> None:
        """Watch a folder, unless it is watched already."""
        path = os.fsencode(folder)
        if self._handle == _NONE or not os.path.isdir(path):  # noqa: PTH112 - every folder at every listing
            return
        if not self._reports(path) or self._libc.inotify_add_watch(self._handle, path, _CHANGES) == _NONE:
            self.close()  # too many are watched

    def changed(self) -> bool:
        """Return whether a page or a folder in them changed since the last call."""
        if self._handle == _NONE:
            return True
        found = False
        try:
            while events := os.read(self._handle, _ROOM):
                found = found or _is_of_pages(events)
        except BlockingIOError:
            return found
        return True

    def close(self) -> None:
        """Stop watching."""
        if self._handle != _NONE:
            os.close(self._handle)
            self._handle = _NONE

    __del__ = close

    def _reports(self, path: bytes) -> bool:
        status = ctypes.create_string_buffer(1024)  # struct statfs, which begins with the type
        size = struct.calcsize("l")
        known = self._libc.statfs(path, status) == 0
        return known and int.from_bytes(status.raw[:size], sys.byteorder) in _REPORTING


def _is_of_pages(events: bytes) -> bool:
    """Return whether any of these events concerns a page, a folder, or the watched folder itself."""
    start = 0
    while start < len(events):
        _, happened, _, length = _EVENT.unpack_from(events, start)
        start += _EVENT.size + length
        name = events[start - length : start].rstrip(b"\0")
        if not name or name.endswith(b".md") or happened & _OF_A_FOLDER:
            return True
    return False
