"""What a person decides on proposals: accepted ones change a page all or nothing, rejected ones never return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nanoclaw_memory.entries import lifecycle as care
from nanoclaw_memory.errors import FileProblem, InvalidValue, Refused, StoreBusy
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Proposal
from nanoclaw_memory.upkeep import page, versions
from nanoclaw_memory.upkeep.demote import MAX_BYTES, MAX_LINES, size_of
from nanoclaw_memory.upkeep.retain import with_archived
from nanoclaw_memory.workspace.files import locked, read_text, replace_text
from nanoclaw_memory.workspace.paths import ARCHIVE, within

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

LEFT = f"{ARCHIVE}/MEMORY.md"
MAX_LINE = 500
OWN_KINDS = ("promotion", "demotion", "lesson")
PAGE_FILE = "proposals.md"


def open_proposals(group: Group) -> list[Proposal]:
    """Everything that waits for a person; what makes room comes first."""
    if not group.has("entries"):
        return []
    order = {"demotion": 0, "promotion": 1, "lesson": 2}
    return sorted(group.proposals.listed("open"), key=lambda one: order.get(one.kind, 3))


def decide(group: Group, proposal_id: str, accept: bool, text: str = "") -> Proposal:
    """Carry out a decision. Killed at any point, the same decision made again ends in the same state.

    The page is written first and the proposal closed last: a line that is there already is not written twice.
    """
    group.entries.ledger.require_owner("decide on a proposal")
    proposal = group.proposals.get(proposal_id)
    if proposal.kind not in OWN_KINDS:
        if text:
            raise InvalidValue(f"a {proposal.kind} cannot be reworded", "accept or reject it")
        return care.decide(group.entries, proposal_id, accept)
    if proposal.status != "open":
        raise InvalidValue(f"proposal {proposal_id} was {proposal.status} already", "see: ncm review")
    if accept:
        payload = _reworded(group, proposal, text) if text else proposal.payload
        {"promotion": _promote, "demotion": _demote, "lesson": _metabolize}[proposal.kind](group, payload)
    return group.proposals.decide(proposal_id, accept, group.moment())


def _reworded(group: Group, proposal: Proposal, text: str) -> Mapping[str, Any]:
    """A person's own words for a proposal; kept before the page is written."""
    if proposal.kind == "demotion":
        raise InvalidValue("a demotion cannot be reworded", "accept or reject it")
    line = group.intake.admit(one_line(text).removeprefix("- ")).text
    if not line or len(line) > MAX_LINE:
        raise InvalidValue(f"the text has {len(line)} characters", f"give one line of 1 to {MAX_LINE}")
    payload = {**proposal.payload, "text": line}
    group.proposals.reword(proposal.id, payload)
    return payload


def _promote(group: Group, payload: Mapping[str, Any]) -> None:
    said, old = str(payload["text"]), str(payload.get("replaces", ""))

    def change(before: str) -> str:
        if page.find(before, said):
            return before
        if old and page.find(before, old):
            return page.replaced(before, old, said)
        return page.added(before or "# Long-Term Memory\n", str(payload["section"]), said)

    rewrite(group, str(payload["file"]), change, gone=old, limited=True)


def _demote(group: Group, payload: Mapping[str, Any]) -> None:
    """Into the archive first, then out of MEMORY.md."""
    said = str(payload["text"])
    block = page.find(group.page("MEMORY.md"), said)
    if block is None:
        return  # taken out already
    archive = within(group.workspace / LEFT, group.workspace)
    with locked(archive.parent):
        before = _read(archive)
        if f"\n{block.text}\n" not in before.replace("\r\n", "\n"):
            start = before or "# What left MEMORY.md\n"
            replace_text(archive, with_archived(start, group.today, [replace(block, day=None)]))
    rewrite(group, "MEMORY.md", lambda text: page.removed(text, said), gone=said)


def _metabolize(group: Group, payload: Mapping[str, Any]) -> None:
    """Into SOUL.md first, then the lesson stops being injected."""
    said = str(payload["text"])

    def change(before: str) -> str:
        if page.find(before, said):
            return before
        return page.added(before or "# Soul\n", str(payload["section"]), said)

    rewrite(group, str(payload["file"]), change)
    group.lessons.update(int(payload["lesson"]), state="metabolized", is_metabolized=1)


def rewrite(
    group: Group, relative: str, change: Callable[[str], str], gone: str = "", limited: bool = False
) -> None:
    """Change a page under the loss guard; the version before is kept, and an edit meanwhile is respected."""
    path = within(group.workspace / relative, group.workspace)
    with locked(path.parent):
        before = _read(path)
        after = change(before)
        if after == before:
            return
        _guard(before, after, gone, limited)
        if before:
            versions.keep(group.data, relative, before, group.moment())
        if _read(path) != before:
            raise StoreBusy(f"{relative} was changed meanwhile", "decide again: nanoclaw-memory review")
        replace_text(path, after)


def _guard(before: str, after: str, gone: str, limited: bool) -> None:
    """No item may get lost on the way, and a page may not grow over its limit."""
    left = {page.says(item) for item in page.items(after)} | {gone}
    lost = [page.says(item) for item in page.items(before) if page.says(item) not in left]
    if lost:
        raise FileProblem(
            f"the page would lose “{lost[0][:80]}”", "nothing was changed; edit the page by hand"
        )
    size = size_of(after)
    if limited and not size.fits and size.bytes > size_of(before).bytes:
        raise Refused(
            f"MEMORY.md would have {size.bytes:,} bytes and {size.lines} lines (limits {MAX_BYTES:,} and {MAX_LINES})",
            "accept a demotion first: nanoclaw-memory upkeep promote, then nanoclaw-memory review",
        )


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""


def write_page(group: Group) -> None:
    """All open proposals as a page to read: data/proposals.md; gone when there are none."""
    path = group.data / PAGE_FILE
    found = open_proposals(group)
    if not found:
        path.unlink(missing_ok=True)
        return
    parts = ["# Proposals\n\nDecide with `ncm review`.\n"]
    for one in found:
        diff = "\n".join(f"    {line}" for line in one.diff.split("\n"))
        source = f"From: {one.source}\n" if one.source else ""
        parts.append(f"## {one.id} ({one.kind})\n\nWhy: {one.why}\n{source}\n{diff}\n")
    text = "\n".join(parts)
    if _read(path) != text:
        replace_text(path, text, durable=False)
