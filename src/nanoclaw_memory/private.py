"""Create folders and files for their owner alone (0700, 0600); what exists keeps its mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

FILE_MODE = 0o600


def make_folder(folder: Path) -> None:
    """Create a folder and those above it that are missing; one that exists is fine."""
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


def replace_file(path: Path, text: str) -> None:
    """Write a small file all or nothing, for its owner alone; the folder is created where it is missing."""
    import threading

    make_folder(path.parent)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with open(scratch, "w", encoding="utf-8", opener=opener) as stream:
        stream.write(text)
    scratch.replace(path)


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """An exclusive lock on a file, created where it is missing; yields a handle that appends to it."""
    import fcntl

    with appending(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


@contextmanager
def appending(path: Path) -> Iterator[int]:
    """A handle that reads a file and appends to it; the file is created where it is missing."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, FILE_MODE)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def tried_lock(path: Path) -> Iterator[bool]:
    """The lock on a file or folder that exists, if nobody has it: whether it was taken."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield lock_within(handle, 0)
    finally:
        os.close(handle)


def lock_within(handle: int | IO[str], seconds: float) -> bool:
    """Lock an open file; False when another process keeps the lock for so many seconds."""
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
