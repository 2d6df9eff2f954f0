"""Find the lines that leave a page when a text, a session or an entity is forgotten; pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from nanoclaw_memory.store.erasure import Wanted
from nanoclaw_memory.store.names import fold
from nanoclaw_memory.store.phrases import lines_holding, words_of
from nanoclaw_memory.workspace.boot import ACTIVE_CONTEXT
from nanoclaw_memory.workspace.files import split_lines

_TURN = re.compile(r"\*\*(?:User|Agent)\*\*")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d+[.)])\s+")
_SESSION = re.compile(r"Session: (.*?)\s*$")
CONVERSATIONS = "conversations/"
EXCHANGES = "conversations/exchanges-"
FORGOTTEN_TITLE = "# A conversation\n"


def removed_lines(relative: str, text: str, wanted: Wanted) -> set[int]:
    """Return the lines to remove, counted from 0, with everything that belongs to them."""
    lines = split_lines(text)
    found = lines_holding(lines, wanted.matcher)
    if relative.startswith(EXCHANGES):
        if wanted.session:
            found |= {
                number
                for number, line in enumerate(lines)
                if line.startswith("## ") and line.split(maxsplit=3)[3:] == [f"{wanted.session}\n"]
            }
        return _whole_parts(lines, found, lambda line: line.startswith("## "))
    if relative.startswith(CONVERSATIONS):
        if wanted.session and wanted.session in _sessions(lines[:12]):
            return set(range(len(lines)))
        return _whole_parts(lines, found, lambda line: bool(_TURN.match(line)))
    if relative.startswith(ACTIVE_CONTEXT.removesuffix(".md")) and wanted.topics:
        found |= {number for number, line in enumerate(lines) if words_of(line) in wanted.topics}
    return _with_continuations(lines, found | _sections(lines, wanted.names))


def without(relative: str, text: str, gone: set[int]) -> str:
    """Return the text without these lines; empty if only the frame of a conversation remains."""
    lines = split_lines(text)
    if relative.startswith(CONVERSATIONS) and _names_the_page(lines, gone):
        lines[0] = FORGOTTEN_TITLE
        gone = gone - {0}
    kept = [line for number, line in enumerate(lines) if number not in gone]
    spoken = any(_TURN.match(line) for line in kept)
    if not "".join(kept).strip() or (relative.startswith(CONVERSATIONS) and gone and not spoken):
        return ""
    return "".join(kept)


def name_reveals_removed(relative: str, text: str, gone: set[int]) -> bool:
    """Return whether a conversation's title, and so its file name, comes from what was removed."""
    return relative.startswith(CONVERSATIONS) and bool(gone) and _names_the_page(split_lines(text), gone)


def _names_the_page(lines: Sequence[str], gone: set[int]) -> bool:
    if not lines or 0 in gone:
        return bool(lines)
    title = words_of(lines[0].rstrip("… \n"))
    starts = (words_of(_TURN.sub("", lines[number]))[-200:] for number in sorted(gone))
    return bool(title) and any(_contains(said, title) for said in starts)


def _contains(said: Sequence[str], part: Sequence[str]) -> bool:
    size = len(part)
    return any(tuple(said[place : place + size]) == tuple(part) for place in range(len(said) - size + 1))


def _sessions(lines: Sequence[str]) -> set[str]:
    return {match[1] for line in lines if (match := _SESSION.match(line))}


def _whole_parts(lines: Sequence[str], found: set[int], begins: Callable[[str], bool]) -> set[int]:
    """Extend the found lines to the whole turn or section; a title stays alone."""
    starts = [number for number, line in enumerate(lines) if begins(line)]
    grown = {number for number in found if not starts or number < starts[0]}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        if found & set(range(start, end)):
            last = end
            while last > start + 1 and lines[last - 1].startswith("## "):  # the next day's heading
                last -= 1
            grown.update(range(start, last))
    return grown


def _with_continuations(lines: Sequence[str], found: set[int]) -> set[int]:
    """Extend bullets to the lines that are indented below them."""
    grown = set(found)
    for number in found:
        bullet = _BULLET.match(lines[number])
        following = number + 1
        while bullet and following < len(lines) and lines[following].strip():
            indent = len(lines[following]) - len(lines[following].lstrip())
            if indent <= len(bullet[1]):
                break
            grown.add(following)
            following += 1
    return grown


def _sections(lines: Sequence[str], names: frozenset[str]) -> set[int]:
    """Return the sections whose heading is an entity's name."""
    found: set[int] = set()
    depth = 0
    for number, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading and depth and len(heading[1]) <= depth:
            depth = 0
        if heading and not depth and names and fold(heading[2]) in names:
            depth = len(heading[1])
        if depth:
            found.add(number)
    return found
