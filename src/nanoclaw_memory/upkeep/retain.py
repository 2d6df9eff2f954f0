"""Retention: move expired log lines to the month's archive; nothing is deleted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import FileProblem, PathRefused
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import JobResult
from nanoclaw_memory.upkeep.log_blocks import LogBlock, blocks, headings, logs
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.files import (
    locked,
    newline_of,
    read_or_empty,
    read_text,
    replace_text,
    split_lines,
)
from nanoclaw_memory.workspace.log import archived_day
from nanoclaw_memory.workspace.paths import archive_path, within

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

PERMANENT = 0.8
OBSERVATION = 0.4


class _Move(msgspec.Struct, frozen=True):
    """The blocks that leave one log."""

    day: date
    path: Path
    text: str
    gone: tuple[LogBlock, ...]


def retain(group: Group, dry_run: bool = False) -> JobResult:
    """Move expired lines of every log; report logs that cannot be read or are being edited."""
    moved, notes = 0, []
    for day, relative, path in logs(group.workspace):
        try:
            move = expired(day, path, group.today, group.settings)
            if move is None:
                continue
            if not dry_run and not _carry_out(group.workspace, move):
                notes.append(f"{relative} was changed meanwhile; it waits for the next run")
                continue
        except FileNotFoundError:  # deleted since it was listed
            continue
        except (FileProblem, PathRefused) as problem:
            notes.append(f"{relative} stays as it is: {problem.message}")
            continue
        moved += len(move.gone)
        verb = "would move" if dry_run else "moved"
        notes.append(f"{verb} {plural(len(move.gone), 'line')} of {relative}")
    return JobResult(moved, tuple(notes))


def kept_days(importance: float, settings: Settings) -> int | None:
    """Return how many days a line of this importance stays in its log; None for ever."""
    if importance >= PERMANENT:
        return None
    own = settings.upkeep
    return own.observation_days if importance >= OBSERVATION else own.routine_days


def expired(day: date, path: Path, today: date, settings: Settings) -> _Move | None:
    """Return the expired blocks of a log, or None."""
    age = (today - day).days
    if age <= min(settings.upkeep.routine_days, settings.upkeep.observation_days):
        return None
    text = read_text(path)
    gone = []
    for block in blocks(text):
        limit = kept_days(block.importance, settings)
        if limit is not None and age > limit:
            gone.append(block)
    return _Move(day, path, text, tuple(gone)) if gone else None


def _carry_out(workspace: Path, move: _Move) -> bool:
    """Write to the archive first, then remove from the log; return False if somebody else changed the log.

    After a kill between the two, the next run finds the lines in the archive and only removes them.
    """
    archive = within(workspace / archive_path(move.day), workspace)
    with locked(move.path.parent):
        if read_text(move.path) != move.text:
            return False
        with locked(archive.parent):
            before = read_or_empty(archive)
            after = with_archived(before, move.day, move.gone)
            if after != before:
                replace_text(archive, after)
        rest = _without(move.text, move.gone)
        if read_text(move.path) != move.text:  # an editor does not take our lock
            return False
        if rest.strip() in ("", log.header(move.day).strip()):
            move.path.unlink()
        else:
            replace_text(move.path, rest)
    return True


def with_archived(text: str, day: date, gone: Iterable[LogBlock]) -> str:
    """Add blocks under their day, each once; return the archive's text."""
    newline = newline_of(text)
    lines = split_lines(text) or [f"# Archive {day:%Y-%m}{newline}"]
    if not lines[-1].endswith("\n"):
        lines[-1] += newline
    start, end = _day_section(lines, day)
    archived = _plain(lines[start:end])
    fresh: dict[str, list[str]] = {}
    for block in gone:
        if f"\n{block.text}\n" not in archived:
            fresh.setdefault(block.heading, []).append(block.text)
            archived += f"{block.text}\n"
    if not fresh:
        return text
    if start == end:
        before = [newline] if end and lines[end - 1].strip() else []
        after = [newline] if end < len(lines) else []
        lines[end:end] = [*before, f"## {day.isoformat()}{newline}", *after]
    for heading, entries in fresh.items():
        _insert(lines, day, heading, [line + newline for entry in entries for line in _spaced(entry)])
    return "".join(lines)


def _plain(lines: list[str]) -> str:
    return "\n" + "".join(line.rstrip("\r\n") + "\n" for line in lines)


def _spaced(entry: str) -> list[str]:
    """Return the lines of an entry; a non-bullet needs a blank line to stay a separate entry."""
    lines = entry.split("\n")
    return lines if lines[0].startswith(("-", "*", "+", "•")) else ["", *lines]


def _insert(lines: list[str], day: date, heading: str, added: list[str]) -> None:
    """Insert lines at the end of a heading's part of a day, which is created if missing."""
    newline = newline_of("".join(lines[:1]))
    start, end = _day_section(lines, day)
    parts = [(number, title) for number, mark, title in headings(lines) if mark == "###"]
    heads = [number for number, _ in parts if start < number < end]
    titles = [title for number, title in parts if start < number < end]
    bounds = [*heads, end]
    first, last = start, bounds[0]
    if heading:
        named = [place for place, title in enumerate(titles) if title == heading]
        first, last = (heads[named[0]], bounds[named[0] + 1]) if named else (end, end)
    if first == last:
        added = [newline, f"### {heading}{newline}", newline, *added]
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    if not heading and last == start + 1:
        added = [newline, *added]
    lines[last:last] = added


def _day_section(lines: list[str], day: date) -> tuple[int, int]:
    """Return the lines of a day's section; an empty range at its place if there is none."""
    days = [
        (number, found)
        for number, mark, title in headings(lines)
        if mark == "##" and (found := archived_day(title))
    ]
    for place, (number, found) in enumerate(days):
        end = days[place + 1][0] if place + 1 < len(days) else len(lines)
        if found == day:
            return number, end
        if found > day:
            return number, number
    return len(lines), len(lines)


def _without(text: str, gone: tuple[LogBlock, ...]) -> str:
    lines = split_lines(text)
    left = set(range(len(lines)))
    for block in gone:
        left -= set(range(block.start, block.start + len(block.lines)))
    return "".join(line for number, line in enumerate(lines) if number in left)
