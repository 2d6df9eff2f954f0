"""Edit pages item by item or as a whole, preserving all other bytes and earlier versions; find a line's origin."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import Conflict, NotFound, StoreBusy
from nanoclaw_memory.statements import Features, features
from nanoclaw_memory.store.pages import PageTable
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import LineOrigin, PageVersion
from nanoclaw_memory.upkeep.log_blocks import LogBlock, blocks, headings
from nanoclaw_memory.workspace.files import (
    locked,
    make_folder,
    newline_of,
    read_or_empty,
    read_text,
    replace_text,
    split_lines,
)
from nanoclaw_memory.workspace.paths import GROUP_PAGE, within

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

VERSIONS_KEPT = 20
_WORD = re.compile(r"[^\W_]+")
_BULLET = re.compile(r"[-*+•]\s+")


# ---- the text of a page ----


def items(text: str) -> list[LogBlock]:
    """Return the bullets and paragraphs below the page's headings, without its introduction."""
    return [block for block in blocks(text) if block.heading]


def item_text(block: LogBlock) -> str:
    """Return the text of an item, without its bullet."""
    return _BULLET.sub("", block.text, count=1) if _BULLET.match(block.text) else block.text


def item_features(text: str) -> list[Features]:
    """Return the features of every item of a page, for comparison with new lines."""
    return [features(item_text(item)) for item in items(text)]


def find_item(text: str, wanted: str) -> LogBlock | None:
    """Return the item with exactly this text."""
    return next((block for block in items(text) if item_text(block) == wanted), None)


def titles(text: str) -> list[str]:
    """Return the headings of a page's sections."""
    return [title for _, mark, title in headings(split_lines(text)) if len(mark) > 1]


def add_item(text: str, section: str, line: str) -> str:
    """Add a bullet at the end of a section, which is created if it is missing; return the page."""
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
    """Replace the first line of one item; return the page unchanged if there is no such item."""
    block = find_item(text, old)
    if block is None:
        return text
    lines = split_lines(text)
    bullet = _BULLET.match(lines[block.start])
    end = lines[block.start][len(lines[block.start].rstrip("\r\n")) :]
    lines[block.start] = f"{bullet[0] if bullet else ''}{new}{end}"
    return "".join(lines)


def remove_item(text: str, old: str) -> str:
    """Return the page without one item."""
    block = find_item(text, old)
    if block is None:
        return text
    lines = split_lines(text)
    return "".join([*lines[: block.start], *lines[block.start + len(block.lines) :]])


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """Return heading line and end of a section, whatever its marks, case and `and` or `&`; -1 for none."""
    found = list(headings(lines))
    for place, (number, mark, title) in enumerate(found):
        if len(mark) > 1 and _title_key(title) == _title_key(section):
            following = (later for later, other, _ in found[place + 1 :] if len(other) <= len(mark))
            return number, next(following, len(lines))
    return -1, -1


def _title_key(title: str) -> str:
    return " ".join(word for word in _WORD.findall(title.casefold()) if word not in ("and", "the"))


# ---- the file ----


def read(group: Group, relative: str) -> str:
    """Return the text of a page of the group or of the pages that all groups read; empty if it is missing."""
    return read_or_empty(_place(group, relative))


def rewrite(group: Group, relative: str, change: Callable[[str], str]) -> Path | None:
    """Change a page under its folder's lock; return where the previous version is stored.

    A concurrent edit is never overwritten: editors do not take our lock.
    """
    path = _place(group, relative)
    with locked(path.parent):
        before = read_or_empty(path)
        after = change(before)
        if after == before:
            return None
        kept = None
        if before and group.page_table(relative) is None:  # a team's table has every version
            kept = _keep_version(group, relative, before)
        if read_or_empty(path) != before:
            raise StoreBusy(f"{relative} was changed meanwhile", "run the same command again")
        replace_text(path, after)
    return kept


def save(group: Group, relative: str, text: str, expected: str) -> None:
    """Replace a page by a person's text, if it has not changed since they read it; new text passes the intake."""

    def change(before: str) -> str:
        if fingerprint(before) != expected:
            raise Conflict(f"{relative} was changed meanwhile", "compare both, and save again")
        return _admitted(group, before, text)

    rewrite(group, relative, change)


def _admitted(group: Group, before: str, after: str) -> str:
    """Return the new text with credentials masked in the parts that were added."""
    old, new = split_lines(before), split_lines(after)
    parts = []
    for kind, _, _, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        part = "".join(new[start:end])
        parts.append(part if kind == "equal" or not part else group.intake.admit(part).text)
    return "".join(parts)


def _place(group: Group, relative: str) -> Path:
    own_page = group.home.has_group_page(group.scope.group) and not (group.workspace / GROUP_PAGE).exists()
    if relative == GROUP_PAGE and own_page:
        return group.home.group_page(group.scope.group)
    base, own = (group.workspace, relative)
    if relative.startswith("shared/"):
        base, own = group.home.shared, relative.removeprefix("shared/")
    return within(base / own, base)


# ---- versions ----


def versions(group: Group, relative: str) -> list[PageVersion]:
    """Return the stored versions of a page, newest first."""
    if (table := group.page_table(relative)) is not None:
        rows = PageTable(table[0]).versions(table[1])
        return [
            PageVersion(f"v{row.version}", later.saved_at, len(row.text.encode()))
            for later, row in pairwise(rows)
            if row.text is not None
        ]
    found = sorted(_version_files(group, relative).items(), reverse=True)
    return [PageVersion(name, _until(name), path.stat().st_size) for name, path in found]


def version(group: Group, relative: str, name: str) -> str:
    """Return the text of one version."""
    if (table := group.page_table(relative)) is not None:
        known = {f"v{row.version}": row.text for row in PageTable(table[0]).versions(table[1])}
        text = known.get(name)
    else:
        path = _version_files(group, relative).get(name)
        text = read_text(path) if path else None
    if text is None:
        raise NotFound(f"{relative} has no version {name[:60]!r}", "see the list of its versions")
    return text


def origins(group: Group, relative: str) -> list[LineOrigin]:
    """Return where each line of a page comes from: an accepted proposal, or the first version that has it."""
    proposed = {
        str(one.payload["text"]): one
        for one in (group.proposals.listed("accepted") if group.has("entries") else [])
        if one.payload.get("file") == relative
    }
    kept = [
        (one.until, set(version(group, relative, one.name).splitlines())) for one in versions(group, relative)
    ]
    found = []
    for number, line in enumerate(read_or_empty(_place(group, relative)).splitlines(), 1):
        since = next((until for until, lines in kept if line not in lines), "")
        proposal = proposed.get(_BULLET.sub("", line.strip(), count=1))
        found.append(
            LineOrigin(
                line=number,
                text=line,
                since=(proposal.decided_at or "") if proposal else since,
                proposal=proposal.id if proposal else "",
                sources=tuple(map(str, proposal.payload.get("sources", ()))) if proposal else (),
            )
        )
    return found


def _until(name: str) -> str:
    """Return the moment in a version's name, with the colons that a file name cannot contain."""
    moment = name.rpartition("-")[0]
    return f"{moment[:13]}:{moment[13:15]}:{moment[15:]}"


def _version_files(group: Group, relative: str) -> dict[str, Path]:
    """Return the stored versions by name; an earlier edition kept those of a/b.md and of a_b.md in one folder `a_b`."""
    folders = (relative.replace("/", "_").removesuffix(".md"), relative)
    found = (path for name in folders for path in (group.data / "versions" / name).glob("*.md"))
    return {path.stem: path for path in found if path.is_file()}


def _keep_version(group: Group, relative: str, text: str) -> Path:
    """Store a version outside the workspace, where no search finds it; the same text is stored once."""
    folder = group.data / "versions" / relative
    make_folder(folder)
    mark = fingerprint(text)[:12]
    known = sorted(path for path in folder.glob("*.md") if path.is_file())
    path = folder / f"{group.moment().replace(':', '')}-{mark}.md"
    same = [path for path in known if path.stem.endswith(mark)]
    if same:
        return same[-1].replace(path)  # it was the page's text until now
    replace_text(path, text)
    for old in known[: max(len(known) + 1 - VERSIONS_KEPT, 0)]:
        old.unlink(missing_ok=True)
    return path
