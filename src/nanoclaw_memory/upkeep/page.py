"""MEMORY.md and SOUL.md as sections of lines: add one, replace one, take one out; all else stays as it is."""

from __future__ import annotations

import re

from nanoclaw_memory.upkeep.logbook import LogBlock, blocks, headings
from nanoclaw_memory.workspace.files import newline_of, split_lines

_WORD = re.compile(r"[^\W_]+")


def items(text: str) -> list[LogBlock]:
    """The bullets and paragraphs below the page's headings; the lines that introduce the page are none."""
    return [block for block in blocks(text) if block.heading]


def says(block: LogBlock) -> str:
    """What an item says, without its bullet."""
    return re.sub(r"^[-*+•]\s+", "", block.text)


def added(text: str, section: str, line: str) -> str:
    """The page with a bullet at the end of a section; the section is made when there is none."""
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


def replaced(text: str, old: str, new: str) -> str:
    """The page with one item's first line said anew; the page as it is when there is no such item."""
    block = find(text, old)
    if block is None:
        return text
    lines = split_lines(text)
    bullet = re.match(r"[-*+•]\s+", lines[block.start])
    end = lines[block.start][len(lines[block.start].rstrip("\r\n")) :]
    lines[block.start] = f"{bullet[0] if bullet else ''}{new}{end}"
    return "".join(lines)


def removed(text: str, old: str) -> str:
    """The page without one item."""
    block = find(text, old)
    if block is None:
        return text
    lines = split_lines(text)
    return "".join([*lines[: block.start], *lines[block.start + len(block.lines) :]])


def find(text: str, said: str) -> LogBlock | None:
    """The item that says exactly this."""
    return next((block for block in items(text) if says(block) == said), None)


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """Heading line and end of a section, found whatever its marks, case and `and` or `&`; -1 for none."""
    found = list(headings(lines))
    for place, (number, mark, title) in enumerate(found):
        if len(mark) > 1 and _key(title) == _key(section):
            following = (later for later, other, _ in found[place + 1 :] if len(other) <= len(mark))
            return number, next(following, len(lines))
    return -1, -1


def _key(title: str) -> str:
    return " ".join(word for word in _WORD.findall(title.casefold()) if word not in ("and", "the"))
