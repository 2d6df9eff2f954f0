"""List daily logs and archives, and split Markdown into blocks of lines that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import PathRefused
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.files import split_lines
from nanoclaw_memory.workspace.log import archived_day
from nanoclaw_memory.workspace.paths import ARCHIVE, day_in_path, within

UNTAGGED = 0.5
_FENCE = re.compile(r"\s*(?:```|~~~)")
_FRAME = re.compile(r"\s{0,3}(?:#{1,6}(?:\s|$)|<!--|([-*_])\s*(?:\1\s*){2,}$)")
_BULLET = re.compile(r"[-*+•]\s+\S")


class LogBlock(msgspec.Struct, frozen=True):
    """An entry of a log with its continuation lines; `start` counts from 0."""

    start: int
    lines: tuple[str, ...]
    importance: float
    heading: str = ""
    day: date | None = None  # of the heading in an archive

    @property
    def text(self) -> str:
        """Return the lines with plain line ends and closed code blocks, without blank ones at the end."""
        plain = [line.rstrip("\r\n") for line in self.lines]
        fences = [line for line in plain if _FENCE.match(line)]
        closing = [fences[-1].strip()[:3]] if len(fences) % 2 else []
        return "\n".join([*plain, *closing]).rstrip()


def logs(workspace: Path) -> list[tuple[date, str, Path]]:
    """Return every daily log as (day, workspace path, file), oldest first."""
    found = []
    for path in (workspace / "memory").glob("[0-9]*.md"):
        relative = f"memory/{path.name}"
        day = day_in_path(relative)
        if day is not None and _is_own(path, workspace):
            found.append((day, relative, path))
    return sorted(found)


def archives(workspace: Path) -> list[tuple[str, Path]]:
    """Return every archive, a month's and that of MEMORY.md, as (workspace path, file)."""
    folder = workspace / ARCHIVE
    return sorted(
        (f"{ARCHIVE}/{path.name}", path) for path in folder.glob("[!.]*.md") if _is_own(path, workspace)
    )


def _is_own(path: Path, workspace: Path) -> bool:
    """Return whether a file belongs to the workspace: a link may lead to another group's memory."""
    try:
        return within(path, workspace).is_file()
    except PathRefused:
        return False


def blocks(text: str) -> list[LogBlock]:
    """Return the blocks of a log: a bullet with the lines indented below it, a paragraph, a code block.

    Headings, rules, comments and blank lines between blocks belong to none.
    """
    lines = split_lines(text)
    return [_block(lines, *found) for found in _ranges(lines)]


def headings(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield number, marks and title of every heading, except in code blocks."""
    fenced = False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.startswith("#"):
            mark, _, title = line.strip().partition(" ")
            if not mark.strip("#"):
                yield number, mark, title.strip()


def dated_blocks(text: str, day: date | None) -> Iterator[tuple[date, LogBlock]]:
    """Yield the blocks with their days: the log's own, or that of the heading in an archive."""
    for block in blocks(text):
        found = day or block.day
        if found is not None:
            yield found, block


class _Position(msgspec.Struct):
    """The state of the line reader."""

    start: int = -1
    blank: bool = False
    fenced: bool = False
    day: date | None = None
    heading: str = ""

    def enter(self, line: str) -> None:
        """Remember a heading; rules and comments change nothing."""
        mark, _, title = line.strip().partition(" ")
        if not mark.startswith("#"):
            return
        day = archived_day(title) if len(mark) == 2 else None
        self.day = day or (self.day if len(mark) > 1 else None)
        self.heading = title.strip() if len(mark) > 1 and day is None else ""

    def starts(self, line: str) -> bool:
        """Return whether a line begins a block."""
        return self.start < 0 or (self.blank and not line[:1].isspace())


def _ranges(lines: list[str]) -> Iterator[tuple[int, int, _Position]]:
    """Yield first line, line after the last, and position of each block."""
    position = _Position()
    for number, raw in enumerate(lines):
        line = raw.rstrip("\r\n")
        fence = bool(_FENCE.match(line))
        inside = position.fenced
        position.fenced ^= fence
        if inside:
            continue
        if not line.strip():
            position.blank = True
            continue
        framed = not fence and bool(_FRAME.match(line))
        begins = framed or position.starts(line) or (not fence and bool(_BULLET.match(line)))
        if begins and position.start >= 0:
            yield position.start, number, replace(position)
        if begins:
            position.start = -1 if framed else number
        if framed:
            position.enter(line)
        position.blank = False
    if position.start >= 0:
        yield position.start, len(lines), replace(position)


def _block(lines: list[str], start: int, end: int, position: _Position) -> LogBlock:
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    own = lines[start:end]
    given = [entry.importance for entry in log.parse("".join(own)) if entry.importance is not None]
    return LogBlock(start, tuple(own), max(given, default=UNTAGGED), position.heading, position.day)
