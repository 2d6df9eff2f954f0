"""Merge two edits of one page line by line, based on their common ancestor."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import msgspec


class Merge(msgspec.Struct, frozen=True):
    """The merged text. Where both changed the same lines it contains theirs, and `mine` has my own there."""

    text: str
    mine: str

    @property
    def conflict(self) -> bool:
        return self.text != self.mine


class _Edit(msgspec.Struct, frozen=True):
    """Replacement lines for the base's lines from `start` to `end`."""

    start: int
    end: int
    lines: tuple[str, ...]
    by_me: bool


def merge(base: str, mine: str, theirs: str) -> Merge:
    """Merge both edits. Lines that both inserted at one place are kept, theirs first."""
    lines = base.split("\n")
    edits = [*_edits(lines, theirs.split("\n"), False), *_edits(lines, mine.split("\n"), True)]
    merged: list[str] = []
    alternative: list[str] = []
    at = 0
    for cluster in _clusters(edits):
        start, end = cluster[0].start, max(edit.end for edit in cluster)
        ours = _applied(lines, start, end, [edit for edit in cluster if edit.by_me])
        others = _applied(lines, start, end, [edit for edit in cluster if not edit.by_me])
        kept = lines[at:start]
        if len({edit.by_me for edit in cluster}) == 1:
            ours = others = ours if cluster[0].by_me else others
        elif start == end:
            ours = others = _both(others, ours)
        merged += [*kept, *others]
        alternative += [*kept, *ours]
        at = end
    rest = lines[at:]
    return Merge("\n".join([*merged, *rest]), "\n".join([*alternative, *rest]))


def _edits(base: list[str], changed: list[str], by_me: bool) -> list[_Edit]:
    codes = SequenceMatcher(None, base, changed).get_opcodes()
    return [
        _Edit(first, last, tuple(changed[start:end]), by_me)
        for kind, first, last, start, end in codes
        if kind != "equal"
    ]


def _clusters(edits: Sequence[_Edit]) -> list[list[_Edit]]:
    """Group edits that touch the same lines, or insert at the same place; adjacent ones stay separate."""
    found: list[list[_Edit]] = []
    end = -1
    for one in sorted(edits, key=lambda edit: (edit.start, edit.end, edit.by_me)):
        last = found[-1][-1] if found else None
        same_place = last is not None and one.start == one.end == last.start == last.end
        if one.start < end or same_place:
            found[-1].append(one)
        else:
            found.append([one])
        end = max(end, one.end)
    return found


def _applied(base: list[str], start: int, end: int, edits: Sequence[_Edit]) -> list[str]:
    lines: list[str] = []
    for edit in edits:
        lines += [*base[start : edit.start], *edit.lines]
        start = edit.end
    return [*lines, *base[start:end]]


def _both(theirs: list[str], mine: list[str]) -> list[str]:
    """Combine both insertions; lines that both inserted in the same order appear once."""
    lines: list[str] = []
    for _, first, last, start, end in SequenceMatcher(None, theirs, mine).get_opcodes():
        lines += theirs[first:last]
        lines += mine[start:end] if theirs[first:last] != mine[start:end] else []
    return lines
