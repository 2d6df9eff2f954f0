"""A project's page: notes of people and agents are added to its sections; at a phase's end its log is proposed for
it.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.intake.suspicion import suspicions
from nanoclaw_memory.statements import features, restates
from nanoclaw_memory.text import nearest_names, one_line
from nanoclaw_memory.types import Proposal, Written
from nanoclaw_memory.upkeep import pages
from nanoclaw_memory.upkeep.absolute_dates import with_dates
from nanoclaw_memory.upkeep.log_candidates import DatedLine, dated_lines
from nanoclaw_memory.workspace.projects import SECTIONS, STARTER, page_to_write

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

PHASE_DAYS = 90
MAX_NOTE = 400
LEAST = 0.5  # minimal importance of a proposed log line
_BY_TAG = {
    "decision": "Architecture decisions",
    "lesson": "Lessons",
    "insight": "Lessons",
    "correction": "Lessons",
    "convention": "Conventions",
    "rule": "Conventions",
    "workflow": "Workflow",
    "risk": "Risks",
}


def note(group: Group, slug: str, text: str, section: str) -> Written:
    """Add a line to the page; a repetition changes nothing."""
    heading = _heading(section)
    admitted = group.intake.admit(one_line(text))
    if not 0 < len(admitted.text) <= MAX_NOTE:
        raise InvalidValue(f"a note of {len(admitted.text)} characters is refused", f"give 1 to {MAX_NOTE}")
    by = "" if group.scope.origin == "owner" else f"[by {group.scope.origin}] "
    group.refuse_decided(admitted.text)
    if held := group.hold_attack(admitted.text):
        return Written("", 0, admitted.redacted, held)
    page = page_to_write(group.home, group.scope.group, slug)
    line = f"{by}{with_dates(admitted.text, group.today)} ({group.today})"

    def change(before: str) -> str:
        known = pages.item_features(before)
        if any(restates(other, features(line.removeprefix(by))) for other in known):
            return before
        return pages.add_item(before or STARTER.format(title=slug), heading, line)

    pages.rewrite(group, page, change)
    found = pages.find_item(pages.read(group, page), line)
    return Written(path=page, line=found.start + 1 if found else 0, redacted=admitted.redacted)


def _heading(section: str) -> str:
    names = {one.casefold(): one for one in SECTIONS}
    found = names.get(section.casefold()) or _BY_TAG.get(section.casefold(), "")
    if not found:
        near = ", ".join(nearest_names(section.casefold(), names)) or ", ".join(SECTIONS)
        raise InvalidValue(f"there is no section {section[:40]!r}", f"one of: {near}")
    return found


def close_phase(group: Group, slug: str, since: str = "") -> list[Proposal]:
    """Propose log lines of the project that its page lacks; a person decides."""
    page = page_to_write(group.home, group.scope.group, slug)
    known = pages.item_features(pages.read(group, page))
    try:
        first = date.fromisoformat(since) if since else group.today - timedelta(days=PHASE_DAYS)
    except ValueError:
        raise InvalidValue(f"{since[:60]!r} is no date", "write it as YYYY-MM-DD") from None
    made = []
    for line in dated_lines(group, first, group.today + timedelta(days=1)):
        if (
            line.project != slug
            or line.tag not in _BY_TAG
            or line.importance < LEAST
            or suspicions(line.text)
        ):
            continue
        own = features(line.text)
        if any(restates(other, own) for other in known):
            continue
        known.append(own)
        if (proposal := _propose(group, page, slug, line)) is not None:
            made.append(proposal)
    return made


def _propose(group: Group, page: str, slug: str, line: DatedLine) -> Proposal | None:
    section = _BY_TAG[line.tag]
    text = f"{with_dates(group.intake.masked(line.text).text, line.day)} ({line.day})"
    source = f"{line.path}:{line.number}"
    return group.proposals.propose(
        "promotion",
        {
            "file": page,
            "section": section,
            "text": text,
            "replaces": "",
            "notes": [line.text],
            "sources": [source],
            "score": line.importance,
            "importance": line.importance,
        },
        why=f"{line.tag} of importance {line.importance:g} in the project {slug}",
        key=f"{page}\n{line.text.casefold()}",
        moment=group.moment(),
        source=source,
        origin=line.origin,
        effect=f"stands in {page}, which agents on the project read",
        diff=f"## {section}\n+ {text}",
    )
