"""Propose lines of logs and of talk for MEMORY.md; a person decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.ingest import LASTING
from nanoclaw_memory.intake.suspicion import suspicions
from nanoclaw_memory.statements import (
    contradiction,
    features,
    restates,
    same_statement,
    source_date,
)
from nanoclaw_memory.store.names import slot_of
from nanoclaw_memory.text import content_words, one_line, plural
from nanoclaw_memory.types import ORIGINS, JobResult, Proposal
from nanoclaw_memory.upkeep import pages
from nanoclaw_memory.upkeep.absolute_dates import with_dates
from nanoclaw_memory.upkeep.demote import demote
from nanoclaw_memory.upkeep.log_candidates import SAID, PromotionCandidate, log_candidates
from nanoclaw_memory.upkeep.outdated_items import outdated_item
from nanoclaw_memory.upkeep.rewording import reworded
from nanoclaw_memory.upkeep.talk_candidates import outdated_exchanges, talk_lines

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.providers.judge import Judge

PAGE = "MEMORY.md"
SECTIONS = {
    "preference": "Preferences",
    "project": "Active projects",
    "milestone": "Active projects",
    "person": "About the user",
    "user": "About the user",
    "family": "About the user",
    "instruction": "Preferences",
    "correction": "Preferences",
}
DEFAULT_SECTION = "Decisions and lessons"
MOST_COMPARED = 12  # lines of a section
_DECIDED = frozenset({"decision", "lesson", "insight"})


class PromotionDraft(msgspec.Struct, frozen=True):
    """The text of a promotion, and the candidates it is made from."""

    text: str
    candidates: tuple[PromotionCandidate, ...]

    @property
    def first(self) -> PromotionCandidate:
        return self.candidates[0]


def promote(group: Group, dry_run: bool = False) -> JobResult:
    """Propose lines for MEMORY.md, and what to demote when it would grow too large."""
    text = group.page(PAGE)
    past = _past(group)
    fresh, notes = _fresh(group, text, log_candidates(group, talk_lines(group)), past)
    free = group.settings.upkeep.max_proposals - sum(one.status == "open" for one in past)
    if dry_run:
        return JobResult(
            len(fresh), tuple(f"would propose: {one.text[:100]} ({one.why})" for one in fresh[:50])
        )
    withdrawn = _withdraw_done(group, text, past)
    chosen = fresh[: max(free + withdrawn, 0)]
    if len(fresh) > len(chosen):
        notes.append(f"{plural(len(fresh) - len(chosen), 'more line')} wait until others are reviewed")
    drafts, rewording_notes = _drafts(group, chosen)
    proposed = sum(_propose(group, text, draft) for draft in drafts)
    demoted = demote(group, text)
    return JobResult(proposed + demoted, (*notes, *rewording_notes))


def _past(group: Group) -> list[Proposal]:
    """Return every promotion ever proposed."""
    if not group.has("entries"):
        return []
    kinds = ("open", "accepted", "rejected")
    found = (one for status in kinds for one in group.proposals.listed(status, "promotion"))
    return [one for one in found if one.payload["file"] == PAGE]


def _fresh(
    group: Group, text: str, candidates: list[PromotionCandidate], past: list[Proposal]
) -> tuple[list[PromotionCandidate], list[str]]:
    """Return candidates that are new, current and not suspicious, and why others are not proposed."""
    known = pages.item_features(text)
    notes_before = [str(note) for one in past for note in one.payload.get("notes", ())]
    exact = {note.casefold() for note in notes_before}
    proposed = [features(note) for note in notes_before]
    notes: list[str] = []
    fresh: list[PromotionCandidate] = []
    for one in candidates:
        own = features(one.text)
        if one.text.casefold() in exact or any(restates(other, own) for other in known):
            continue
        if any(same_statement(other, own) for other in proposed) or _forgotten(group, one):
            continue
        if reasons := suspicions(one.text):
            notes.append(f"{one.sources[0]} is not proposed: {', '.join(reasons)}")
            continue
        if later := _contradicted_by(one, candidates):
            notes.append(f"{one.sources[0]} is not proposed: {later.sources[0]} is newer and disagrees")
            continue
        if given_up := group.retrieval.given_up(one.best.path, one.best.number):
            notes.append(f"{one.sources[0]} is not proposed: {given_up[1].after(given_up[0])}")
            continue
        if group.outdated(one.text, one.best.day):
            notes.append(f"{one.sources[0]} is not proposed: the graph has a newer value, or it was rejected")
            continue
        fresh.append(one)
    return fresh, notes


def _contradicted_by(one: PromotionCandidate, others: list[PromotionCandidate]) -> PromotionCandidate | None:
    """Return a newer candidate that contradicts this one."""
    for other in others:
        if other.best.day > one.best.day and contradiction(features(one.text), features(other.text)):
            return other
    return None


def _forgotten(group: Group, one: PromotionCandidate) -> bool:
    return any(group.intake.forgets(line.text) for line in one.lines)


def _drafts(group: Group, chosen: list[PromotionCandidate]) -> tuple[list[PromotionDraft], list[str]]:
    """Return the candidates in their own words, or in those of the language model if nothing was lost."""
    masked = [with_dates(group.intake.masked(one.text).text, one.best.day) for one in chosen]
    allowed = "reword" in group.settings.writer.tasks
    writer = group.resources.writer if chosen and allowed else None
    if writer is None:
        return [PromotionDraft(text, (one,)) for text, one in zip(masked, chosen, strict=True)], []
    wordings, notes = reworded(writer, masked)
    drafts = [PromotionDraft(one.text, tuple(chosen[place] for place in one.places)) for one in wordings]
    covered = {place for one in wordings for place in one.places}
    rest = [PromotionDraft(masked[place], (one,)) for place, one in enumerate(chosen) if place not in covered]
    return [*drafts, *rest], notes


def _propose(group: Group, text: str, draft: PromotionDraft) -> bool:
    candidates = draft.candidates
    section = section_for(group, text, draft.text, draft.first.best.tag)
    day = max(line.day for one in candidates for line in one.lines)
    old = outdated_item(text, draft.text)
    line = f"{old.instead or draft.text} ({day.isoformat()})"
    why = "; ".join(dict.fromkeys(one.why for one in candidates)) + _known_about(text, draft.text)
    for best in (one.best for one in candidates):
        if later := group.retrieval.overtaken_line(best.path, best.number):
            why += f"; said later at {later[1].place} of {later[1].day}: “{later[1].text}”"
    if old.text:
        why += f"; MEMORY.md says “{old.text[:200]}”: {old.why}"
    sources = list(dict.fromkeys(source for one in candidates for source in one.sources))
    payload: dict[str, Any] = {
        "file": PAGE,
        "section": section,
        "text": line,
        "replaces": old.text,
        "notes": [line.text for one in candidates for line in one.lines],
        "sources": sources,
        "score": max(one.score for one in candidates),
        "importance": max(line.importance for one in candidates for line in one.lines),
    }
    made = group.proposals.propose(
        "promotion",
        payload,
        why=why,
        key="\n".join(sorted(one.text.casefold() for one in candidates)),
        moment=group.moment(),
        source=", ".join(sources[:10]),
        origin=max((one.origin for one in candidates), key=ORIGINS.index),
        effect=f"stands in {PAGE}, which every private session reads",
        diff=(f"- {old.text}\n" if old.text else f"## {section}\n") + f"+ {line}",
    )
    return made is not None


def section_for(group: Group, page: str, line: str, tag: str) -> str:
    """Return the section of a page for a line: one whose name it contains, else one with lines of its kind."""
    own = set(content_words(line))
    lines: dict[str, list[str]] = {}
    for item in pages.items(page):
        lines.setdefault(item.heading, []).append(pages.item_text(item))
        if (named := set(content_words(item.heading))) and named <= own:
            return item.heading
    lines.pop("", None)
    ours = {*SECTIONS.values(), DEFAULT_SECTION}
    empty = [title for title in pages.titles(page) if title in ours and title not in lines]
    ours_for = DEFAULT_SECTION if tag in _DECIDED else SECTIONS.get(tag, "")
    if ours_for in (*lines, *empty):
        return ours_for
    if (
        tag not in SECTIONS
        and (not lines or SECTIONS["user"] in (*lines, *empty))
        and _is_of_user(group, line)
    ):
        return SECTIONS["user"]
    judge = group.resources.judge
    if judge is not None and len(lines) + len(empty) > 1 and lines:
        own_kinds = judge.line_types(line, "")
        profiles = {heading: _profile(judge, lines.get(heading, []), heading) for heading in (*lines, *empty)}
        return min(profiles, key=lambda heading: _distance(own_kinds, profiles[heading]))
    kind = judge.line_type(line, "")[0] if judge and tag not in SECTIONS and tag not in _DECIDED else tag
    return SECTIONS.get(kind, DEFAULT_SECTION)


def _profile(judge: Judge, lines: list[str], heading: str) -> dict[str, float]:
    """Return the mean share of each kind in a section; for an empty one of ours, the kinds it is meant for."""
    kinds = [kind for kind, title in SECTIONS.items() if title == heading] or list(_DECIDED)
    known = [judge.line_types(one, "") for one in lines[-MOST_COMPARED:]] or [dict.fromkeys(kinds, 1.0)]
    sums = {kind: sum(one.get(kind, 0.0) for one in known) for kind in (*known[0], *kinds)}
    return {kind: share / sum(sums.values()) for kind, share in sums.items()}


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(abs(one.get(kind, 0.0) - other.get(kind, 0.0)) for kind in {*one, *other})


def _is_of_user(group: Group, line: str) -> bool:
    """Return whether a line is about the person or somebody of theirs: "allergic to penicillin", "my sister Kemi"."""
    user = group.settings.user.entity
    found = extract(f"- {line}", FileRules(user, "user", user, names=True))
    return any(user in (one.subject, one.object) or slot_of(one.predicate) in LASTING for one in found)


def _known_about(text: str, line: str) -> str:
    """Return what MEMORY.md contains about the names in a line."""
    names = features(line).names
    if not names:
        return ""
    known = [one for one in pages.item_features(text) if names & one.stems]
    return f"; MEMORY.md has {plural(len(known), 'line')} about it" if known else "; new in MEMORY.md"


def _withdraw_done(group: Group, text: str, past: list[Proposal]) -> int:
    """Close open promotions that MEMORY.md contains by now; delete those whose lines are gone or revoked."""
    known = pages.item_features(text)
    settled = 0
    for one in past:
        if one.status != "open":
            continue
        own = features(str(one.payload["text"]))
        if any(restates(other, own) for other in known):
            group.proposals.decide(one.id, True, group.moment())
            settled += 1
        elif not _still_logged(group, one) or _outdated(group, one) or _is_revoked(group, one):
            settled += group.proposals.take_back(one.id)
    return settled


def _outdated(group: Group, proposal: Proposal) -> bool:
    """Return whether the graph has a newer value than any line of a proposal."""
    day = source_date(str(proposal.payload["text"]))
    notes = [str(note) for note in proposal.payload.get("notes", ())]
    return day is not None and any(group.outdated(note, day) for note in notes)


def _is_revoked(group: Group, proposal: Proposal) -> bool:
    """Return whether a later statement revokes every line of a proposal."""
    places = [str(source).rpartition(":") for source in proposal.payload.get("sources", ())]
    return bool(places) and all(
        line.isdigit() and group.retrieval.given_up(path, int(line)) for path, _, line in places
    )


def _still_logged(group: Group, proposal: Proposal) -> bool:
    """Return whether a log, its archive or a message still contains a line of the proposal."""
    notes = [str(note) for note in proposal.payload.get("notes", ())]
    for source in proposal.payload.get("sources", ()):
        path = str(source).rpartition(":")[0]
        if path.startswith(SAID):
            if _still_said(group, int(path.removeprefix(SAID)), notes):
                return True
            continue
        month = f"memory/archive/{path.rpartition('/')[2][:7]}.md"
        for relative in (path, month):
            text = group.page(relative)
            if any(note in text for note in notes):
                return True
    return False


def _still_said(group: Group, number: int, notes: list[str]) -> bool:
    """Return whether an exchange still contains one of these lines, and nothing later supersedes it."""
    found = group.exchanges.get([number]).get(number)
    text = one_line(found.user_message) if found else ""
    return any(note in text for note in notes) and not outdated_exchanges(group, [number])
