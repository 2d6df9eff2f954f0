"""Exact lines of a memory file, as one scope may see them."""

from __future__ import annotations

from collections.abc import Sequence

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.types import Lines, Scope
from nanoclaw_memory.workspace.files import read_text, split_lines
from nanoclaw_memory.workspace.paths import Home, locate


def read_lines(
    home: Home,
    scope: Scope,
    shared_files: Sequence[str],
    file: str,
    start_line: int | None = None,
    end_line: int | None = None,
) -> Lines:
    """Lines of a memory file; a missing file or range is empty with a note, never an error."""
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
        return Lines(relative, 0, 0, "", False, f"there is no {relative} yet")
    chosen = lines[start - 1 : end_line]
    if not chosen:
        return Lines(relative, 0, 0, "", True, f"{relative} has {len(lines):,} lines")
    return Lines(relative, start, start + len(chosen) - 1, "".join(chosen), True)
