"""Create folders and files for their owner alone (0700, 0600); existing ones keep their mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

FILE_MODE = 0o600
T = TypeVar("T")


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents; an existing one is fine."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise


def opener(path: str, flags: int) -> int:
    """For `open(path, mode, opener=opener)`: a new file is readable by its owner only."""
    return os.open(path, flags, FILE_MODE)


def replace_file(path: Path, content: str | bytes, durable: bool = False) -> None:
    """Write a file all or nothing, following a link; a missing folder is created.

    A `durable` write is on disk when this returns; another may be lost by a power cut, but is never half there.
    """
    raw = content.encode() if isinstance(content, str) else content
    target = path.resolve() if path.is_symlink() else path
    make_folder(target.parent)
    scratch = target.with_name(f".{target.name[:80]}.{os.urandom(8).hex()}.tmp")
    try:
        with open(scratch, "xb", opener=opener) as stream:
            stream.write(raw)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        if target.exists():
            scratch.chmod(target.stat().st_mode & 0o7777)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path, kind: type[T]) -> T | None:
    """Read a small JSON file of ours; return None if it is missing, damaged or of another kind."""
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def replace_json(path: Path, value: object) -> None:
    """Write what `read_json` reads."""
    import msgspec

    replace_file(path, msgspec.json.encode(value) + b"\n")


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Lock a file exclusively, creating it if missing; yield a handle that appends to it."""
    import fcntl

    with appending(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


@contextmanager
def appending(path: Path) -> Iterator[int]:
    """Open a file for reading and appending; create it if missing."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, FILE_MODE)
    try:
        yield handle
    finally:
        os.close(handle)


def append_all(handle: int, raw: bytes, size: int) -> None:
    """Append to a file of this size, all or nothing; it is on disk when this returns."""
    if os.write(handle, raw) != len(raw):  # a full disk cuts a write short: remove the part that was written
        os.ftruncate(handle, size)
        raise OSError(28, "no space left on device")
    os.fsync(handle)


@contextmanager
def tried_lock(path: Path) -> Iterator[bool]:
    """Try to lock an existing file or folder; yield whether it was free."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield lock_within(handle, 0)
    finally:
        os.close(handle)


def lock_within(handle: int | IO[str], seconds: float) -> bool:
    """Lock an open file; return False if another process holds the lock for so many seconds."""
    import fcntl
    import time

    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)
