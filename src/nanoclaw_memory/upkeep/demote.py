"""Propose the least valuable items of MEMORY.md for the archive when it would grow too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.statements import source_date
from nanoclaw_memory.store.mentions import MentionTable
from nanoclaw_memory.types import Proposal
from nanoclaw_memory.upkeep import pages
from nanoclaw_memory.upkeep.log_blocks import LogBlock
from nanoclaw_memory.workspace.boot import MEMORY_MAX_LINES, SIZE_TARGETS

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

MAX_BYTES = SIZE_TARGETS["MEMORY.md"]
MAX_LINES = MEMORY_MAX_LINES
HAND_WRITTEN = 2.0  # a person's own lines are demoted last
FRESHNESS = 0.3
HALF_LIFE = 180
PER_USE = 0.05


class Size(msgspec.Struct, frozen=True):
    """The size of a page, or its size after changes."""

    bytes: int
    lines: int

    @property
    def fits(self) -> bool:
        return self.bytes < MAX_BYTES and self.lines < MAX_LINES


def size_of(text: str) -> Size:
    """Return the size of a page."""
    return Size(len(text.encode("utf-8", "surrogatepass")), text.count("\n"))


def demote(group: Group, text: str) -> int:
    """Propose as many demotions as the open promotions need space; return how many are new."""
    if not group.has("entries"):
        return 0
    waiting = group.proposals.listed("open", "promotion")
    promotions = [one for one in waiting if one.payload["file"] == "MEMORY.md"]
    leaving = {str(one.payload["text"]) for one in group.proposals.listed("open", "demotion")}
    replaced = {
        str(one.payload.get("replaces", "")) for one in promotions
    }  # demoted before the promotions are accepted
    items = pages.items(text)
    after = _size_after(text, promotions, [item for item in items if pages.item_text(item) in leaving])
    proposed = 0
    for item, value in _cheapest(group, items):
        if after.fits:
            break
        line = pages.item_text(item)
        if line in leaving or line in replaced or group.intake.forgets(line):
            continue  # removed anyway, or forgotten and only kept by its owner
        made = group.proposals.propose(
            "demotion",
            {"file": "MEMORY.md", "text": line},
            why=f"MEMORY.md would have {after.bytes:,} bytes and {after.lines} lines; this counts least ({value:.2f})",
            key=line,
            moment=group.moment(),
            source="MEMORY.md",
            diff=f"- {line}",
            origin="owner",
            effect="moves from MEMORY.md to the archive beside it",
        )
        if made is not None:
            proposed += 1
            after = Size(after.bytes - _bytes(item), after.lines - len(item.lines))
    return proposed


def _size_after(text: str, promotions: list[Proposal], leaving: list[LogBlock]) -> Size:
    """Return the page's size once every proposal is accepted."""
    now = size_of(text)
    come = [one for one in promotions if not one.payload.get("replaces")]
    more = sum(len(str(one.payload["text"]).encode()) + 4 for one in promotions)
    more -= sum(len(str(one.payload["replaces"]).encode()) for one in promotions if one not in come)
    less = sum(_bytes(item) for item in leaving)
    lines = now.lines + len(come) - sum(len(item.lines) for item in leaving)
    return Size(now.bytes + more - less, lines)


def _bytes(item: LogBlock) -> int:
    return len("".join(item.lines).encode("utf-8", "surrogatepass"))


def _cheapest(group: Group, items: list[LogBlock]) -> list[tuple[LogBlock, float]]:
    """Return the items with their value by importance, age and use; least first."""
    accepted = group.proposals.listed("accepted", "promotion")
    importance = {str(one.payload["text"]): float(one.payload["importance"]) for one in accepted}
    uses = MentionTable(group.graph.db).uses() if group.has("facts") else {}
    weighed = []
    for item in items:
        line = pages.item_text(item)
        dated = source_date(line)
        answered = sum(uses.get(("MEMORY.md", item.start + 1 + n), 0) for n in range(len(item.lines)))
        value = importance.get(line, HAND_WRITTEN) + PER_USE * min(answered, 4)
        age = max((group.today - dated).days, 0) if dated else 0
        value += FRESHNESS * 2.0 ** (-age / HALF_LIFE)
        weighed.append((item, value))
    return sorted(weighed, key=lambda pair: (pair[1], pair[0].start))
