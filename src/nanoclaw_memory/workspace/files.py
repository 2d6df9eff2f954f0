"""Safe files: read with limits, append under a lock, replace all or nothing."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.types import Lines, Scope
from nanoclaw_memory.workspace.paths import Home, locate

MAX_BYTES = 10_000_000
HALF = "\ufffd"  # replaces half a character at the end of a log whose writer was killed
# Append-only files: the end may be torn, everything before it is intact.
APPENDED = regex(r"(?:exchanges-)?\d{4}-\d{2}(?:-\d{2})?\.md")


def read_text(path: Path, limit: int = MAX_BYTES, replacing: bool = False) -> str:
    """Return the whole text with its line ends; raise FileProblem for a file too large or not UTF-8.

    `replacing` puts a mark for each wrong byte: such a text is only shown and never written back.
    """
    try:
        # Non-blocking: nobody may ever write to a pipe among the files.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as handle:
            found = os.fstat(handle.fileno())
            size = found.st_size
            if not stat.S_ISREG(found.st_mode):
                raise FileProblem(f"{path.name} is no regular file", f"look at it: ls -l {path}")
            if size > limit:
                raise FileProblem(
                    f"{path.name} has {size:,} bytes, over the limit of {limit:,}",
                    "split the file; it was not read",
                )
            raw = handle.read(limit + 1)
    except IsADirectoryError:
        raise FileProblem(f"{path.name} is a directory", "give the name of a file in it") from None
    except FileNotFoundError:
        raise
    except OSError as error:  # permissions, a loop of links, a file in place of a folder
        raise FileProblem(
            f"{path.name} cannot be read: {error.strerror}", f"look at it: ls -l {path}"
        ) from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if APPENDED.fullmatch(path.name) and _cut_off(error, raw):
            return raw[: error.start].decode("utf-8") + HALF
        if replacing:
            return raw.decode("utf-8", "replace")
        raise FileProblem(
            f"{path.name} is not UTF-8 text (byte {error.start:,})",
            f"convert a copy: iconv -f latin1 -t utf-8 {path.name} > new.md; it was left as it is",
        ) from None


def read_or_empty(path: Path) -> str:
    """Return the same; empty if the file is missing."""
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""


def split_lines(text: str) -> list[str]:
    """Return the lines with their ends, as editors and grep count them: only ` ` ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def read_lines(
    home: Home,
    scope: Scope,
    shared_files: Sequence[str],
    file: str,
    start_line: int | None = None,
    end_line: int | None = None,
) -> Lines:
    """Return lines of a memory file; a missing file or range is empty with a note, never an error."""
    start = 1 if start_line is None else start_line
    if start < 1 or (end_line is not None and end_line < start):
        raise InvalidValue(
            f"lines {start} to {'the end' if end_line is None else end_line} are no range",
            "lines count from 1: --start 1 --end 20",
        )
    relative, path = locate(home, scope, file, shared_files)
    try:
        lines = split_lines(read_text(path))
    except FileNotFoundError:
        return Lines(relative, 0, 0, "", exists=False, note=f"there is no {relative} yet")
    chosen = lines[start - 1 : end_line]
    if not chosen:
        return Lines(relative, 0, 0, "", exists=True, note=f"{relative} has {len(lines):,} lines")
    return Lines(relative, start, start + len(chosen) - 1, "".join(chosen), exists=True)


def newline_of(text: str) -> str:
    """Return the line end that the text uses: its first one, ` ` when it has none."""
    position = text.find("\n")
    return "\r\n" if position > 0 and text[position - 1] == "\r" else "\n"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for one writer over all processes; readers do not wait."""
    import fcntl

    make_folder(folder)
    with _translated(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def append_line(path: Path, line: str, header: str = "") -> int:
    """Append one line and return its number; on disk when this returns.

    A new file starts with `header`. The file's own line ends are used; a missing final newline is added first, so
    that a line never joins another's.
    """
    _encoded(line)  # refused before anything is changed
    with locked(path.parent), _translated(path), private.appending(path) as handle:
        before = _mended(handle, path)
        newline = "\r\n" if b"\r\n" in before.head else "\n"
        text = line + newline
        if not before.size:
            text = header.replace("\n", newline) + text
        elif not before.tail.endswith(b"\n"):
            text = newline + text
        private.append_all(handle, _encoded(text), before.size)
        if not before.size:
            private.sync_folder(path.parent)
        return _count_lines(path)


def replace_text(path: Path, text: str, durable: bool = True) -> None:
    """Replace a file all or nothing, keeping its mode; a caller that read the old text must have it `locked`.

    A derived file need not be `durable`: after a power cut it is written again.
    """
    raw = _encoded(text)
    with _translated(path):
        private.replace_file(path, raw, durable)


def create_text(path: Path, text: str) -> bool:
    """Write a new file; return False, and do nothing, if it exists."""
    with locked(path.parent):
        if path.exists() or path.is_symlink():
            return False
        replace_text(path, text)
        return True


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents for its owner alone; an existing one is fine."""
    with _translated(folder):
        private.make_folder(folder)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"the text holds half a character (position {error.start:,})", "give text that is valid UTF-8"
        ) from None


class _Ends(NamedTuple):
    size: int
    head: bytes
    tail: bytes


def _head_and_tail(handle: int) -> _Ends:
    size = os.fstat(handle).st_size
    return _Ends(size, os.pread(handle, 4096, 0), os.pread(handle, 1, max(size - 1, 0)))


def _mended(handle: int, path: Path) -> _Ends:
    """Return the ends of a file; half a character that a killed writer left at a log's end is removed first."""
    before = _head_and_tail(handle)
    if before.tail < b"\x80" or not APPENDED.fullmatch(path.name):
        return before
    raw = os.pread(handle, before.size, 0)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if _cut_off(error, raw):
            os.ftruncate(handle, error.start)
            return _head_and_tail(handle)
    return before


def _cut_off(error: UnicodeDecodeError, raw: bytes) -> bool:
    """Return whether only the last character of a text is incomplete."""
    return error.reason == "unexpected end of data" and error.end == len(raw)


def _count_lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileProblem(
            f"{path.name} cannot be written: {error.strerror}",
            "check free disk space and permissions; nothing changed",
        ) from error
