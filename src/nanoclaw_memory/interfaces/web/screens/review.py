"""Review: decide on proposals one by one or many at once, also reworded, and undo decisions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.web.screen import (
    Answer,
    Redirection,
    RenderedScreen,
    Screen,
    WebRequest,
    lines_around,
)

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Proposal

AROUND = 2  # lines before and after a source
MAX_SOURCES = 3
_PLACE = re.compile(r"(.+\.md):(\d+)")


def show(memory: Memory, request: WebRequest, problems: tuple[str, ...] = ()) -> RenderedScreen:
    """Show the open proposals, of one kind or of all."""
    waiting = memory.upkeep.review()
    kinds = sorted({proposal.kind for proposal in waiting})
    chosen = [proposal for proposal in waiting if request.text("kind") in ("", proposal.kind)]
    found = request.slice(chosen)
    found["rows"] = [_card(memory, one) for one in found["rows"]]
    return RenderedScreen(
        "review.html", {**found, "kinds": kinds, "kind": request.text("kind"), "problems": problems}
    )


def _card(memory: Memory, proposal: Proposal) -> dict[str, Any]:
    places = proposal.payload.get("sources") or [proposal.source]
    return {
        "proposal": proposal,
        "diff": [(line[:1], line) for line in proposal.diff.split("\n")],
        "text": str(proposal.payload.get("text", "")) if proposal.may_be_reworded else "",
        "sources": [_source(memory, str(place)) for place in places[:MAX_SOURCES] if place],
    }


def _source(memory: Memory, place: str) -> dict[str, Any]:
    """Return a source with the lines around it, if it is a line of a file."""
    match = _PLACE.fullmatch(place)
    if not match:
        return {"place": place, "path": "", "line": 0, "lines": []}
    return {"place": place, **lines_around(memory, match[1], int(match[2]), AROUND)}


def decide(memory: Memory, request: WebRequest) -> Answer:
    """Accept, reword or reject: one proposal by its own button, or all that are ticked."""
    act, _, one = request.text("decide").partition(" ")
    decided: list[str] = []
    problems: list[str] = []
    for proposal_id in [one] if one else request.every("id"):
        text = request.text(f"text-{proposal_id}") if act == "edit" else ""
        try:
            memory.upkeep.decide(proposal_id, act != "reject", text)
            decided.append(proposal_id)
        except NanoClawError as error:
            problems.append(f"{error.message} ({error.hint})" if error.hint else error.message)
    if problems:
        return show(memory, request, tuple(problems))
    kind = request.text("kind")
    note = ("rejected" if act == "reject" else "accepted") if decided else "none"
    return Redirection(f"/review?kind={kind}" if kind.isalpha() else "/review", note, ",".join(decided))


def undo(memory: Memory, request: WebRequest) -> Redirection:
    """Undo decisions."""
    for proposal_id in request.text("undo").split(","):
        memory.upkeep.undo(proposal_id)
    return Redirection("/review", "undone")


SCREENS = (
    Screen("GET", "/review", show),
    Screen("POST", "/review", decide, lasting=True),
    Screen("POST", "/review/undo", undo, lasting=True),
)
