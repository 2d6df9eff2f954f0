"""Edit MEMORY.md, SOUL.md and active-context.md item by item, keeping every other byte and the version before."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import StoreBusy
from nanoclaw_memory.statements import Features, features
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.upkeep.log_blocks import LogBlock, blocks, headings
from nanoclaw_memory.workspace.files import (
    locked,
    make_folder,
    newline_of,
    read_text,
    replace_text,
    split_lines,
)
from nanoclaw_memory.workspace.paths import within

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

VERSIONS_KEPT = 20
_WORD = re.compile(r"[^\W_]+")
_BULLET = re.compile(r"[-*+•]\s+")


# ---- the text of a page ----


def items(text: str) -> list[LogBlock]:
    """The bullets and paragraphs below the page's headings, without its introduction."""
    return [block for block in blocks(text) if block.heading]


def item_text(block: LogBlock) -> str:
    """The text of an item, without its bullet."""
    return _BULLET.sub("", block.text, count=1) if _BULLET.match(block.text) else block.text


def item_features(text: str) -> list[Features]:
    """The features of every item of a page, to compare new lines with."""
    return [features(item_text(item)) for item in items(text)]


def find_item(text: str, wanted: str) -> LogBlock | None:
    """The item with exactly this text."""
    return next((block for block in items(text) if item_text(block) == wanted), None)


def add_item(text: str, section: str, line: str) -> str:
    """The page with a bullet at the end of a section, which is created if it is missing."""
    newline = newline_of(text)
    lines = split_lines(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    bullet = f"- {line}{newline}"
    start, end = _section(lines, section)
    if start < 0:
        gap = [newline] if lines and lines[-1].strip() else []
        return "".join([*lines, *gap, f"## {section}{newline}", newline, bullet])
    place = end
    while place > start + 1 and not lines[place - 1].strip():
        place -= 1
    after = [newline] if place == end and end < len(lines) else []
    return "".join([*lines[:place], bullet, *after, *lines[place:]])


def replace_item(text: str, old: str, new: str) -> str:
    """The page with another first line for one item; unchanged if there is no such item."""
    block = find_item(text, old)
    if block is None:
        return text
    lines = split_lines(text)
    bullet = _BULLET.match(lines[block.start])
    end = lines[block.start][len(lines[block.start].rstrip("\r\n")) :]
    lines[block.start] = f"{bullet[0] if bullet else ''}{new}{end}"
    return "".join(lines)


def remove_item(text: str, old: str) -> str:
    """The page without one item."""
    block = find_item(text, old)
    if block is None:
        return text
    lines = split_lines(text)
    return "".join([*lines[: block.start], *lines[block.start + len(block.lines) :]])


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """Heading line and end of a section, whatever its marks, case and `and` or `&`; -1 for none."""
    found = list(headings(lines))
    for place, (number, mark, title) in enumerate(found):
        if len(mark) > 1 and _title_key(title) == _title_key(section):
            following = (later for later, other, _ in found[place + 1 :] if len(other) <= len(mark))
            return number, next(following, len(lines))
    return -1, -1


def _title_key(title: str) -> str:
    return " ".join(word for word in _WORD.findall(title.casefold()) if word not in ("and", "the"))


# ---- the file ----


def read_or_empty(path: Path) -> str:
    """The text of a file; empty when there is none."""
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""


def rewrite(group: Group, relative: str, change: Callable[[str], str]) -> Path | None:
    """Change a page under its folder's lock; returns where the version before it is kept.

    An edit made meanwhile is never overwritten: editors do not take our lock.
    """
    path = within(group.workspace / relative, group.workspace)
    with locked(path.parent):
        before = read_or_empty(path)
        after = change(before)
        if after == before:
            return None
        kept = _keep_version(group, relative, before) if before else None
        if read_or_empty(path) != before:
            raise StoreBusy(f"{relative} was changed meanwhile", "run the same command again")
        replace_text(path, after)
    return kept


def _keep_version(group: Group, relative: str, text: str) -> Path:
    """Keep a version outside the workspace, where nobody searches it; the same text is kept once."""
    folder = group.data / "versions" / relative.replace("/", "_").removesuffix(".md")
    make_folder(folder)
    mark = fingerprint(text)[:12]
    known = sorted(folder.glob("*.md"))
    same = [path for path in known if path.stem.endswith(mark)]
    if same:
        return same[-1]
    path = folder / f"{group.moment().replace(':', '')}-{mark}.md"
    replace_text(path, text)
    for old in known[: max(len(known) + 1 - VERSIONS_KEPT, 0)]:
        old.unlink(missing_ok=True)
    return path
