"""Admit checked drafts as entries: mask, deduplicate, hold suspicious ones for review, write, supersede."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory import statements, tokens
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.ledger import EntryLedger, held_key
from nanoclaw_memory.entries.rules import EntryDraft
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.intake.suspicion import from_others, reads_like_rule, steering, suspicions
from nanoclaw_memory.store.entries import BEHAVIORAL
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import FOREIGN, ORIGINS, OWN, Entry, Provenance, Stored

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

LESSER = ("shared", "tool", "web")  # origins whose entries have at most medium priority
MAX_CHAIN = 100
PASTED = "its words stand in a text that was pasted in that session"


class Admission:
    """Admit drafts into one group's entries."""

    def __init__(self, ledger: EntryLedger, judge: Callable[[], Judge | None]) -> None:
        self._ledger = ledger
        self._judge = judge

    def admit(
        self,
        draft: EntryDraft,
        *,
        source: str = "",
        limited: bool = True,
        origin: str = "",
        find_source: Callable[[str], str] = lambda content: "",
    ) -> Stored:
        """Write a checked draft; `limited=False` is for a person's own import, `source` names its file.

        `origin` is set if somebody less trusted than the scope wrote the text. `find_source` returns where the session
        contains an agent's text: `said` by the person, or in what they had `pasted`.
        """
        draft, redacted = self._cleaned(draft, source)
        by = self._ledger.provenance(source)
        by = replace(by, origin=max(by.origin, origin or by.origin, key=ORIGINS.index))
        notes: list[str] = []
        draft = self._typed(draft, by.origin, notes)
        if by.origin in LESSER:
            draft = replace(draft, priority=rules.lower(draft.priority, "medium"))
        wishes = draft.type in BEHAVIORAL or draft.supersedes
        heard = find_source(draft.content) if by.origin == "agent" and wishes else ""
        with self._ledger.db.transaction():
            if limited:
                self._ledger.spend("store")
            target = self._superseded(draft, limited)
            related = tuple(self._ledger.entry(one, "related_to").id for one in draft.related_to)
            draft = replace(draft, related_to=related, supersedes=target.id if target else None)
            reasons = self._hold_reasons(draft, target, by, heard)
            duplicate = self._duplicate(draft, target)
            if reasons and duplicate and ORIGINS.index(duplicate.author) >= ORIGINS.index(by.origin):
                duplicate = None
            if duplicate is not None:
                entry, changed = self._merge(duplicate, draft, by, notes, heard)
            else:
                entry, changed = self._insert(draft, by, reasons, heard), True
            superseded = target if target and not reasons else None
            if superseded:
                self._ledger.supersede(superseded, entry.id)
        gone = [superseded] if superseded else []
        notes += self._ledger.changed(gone=gone, come=[entry] if changed and entry.status == "active" else [])
        if entry.status == "held":
            notes.append("held for review, out of the brief until a person approves it: ncm review")
        return Stored(
            entry.id,
            entry.type,
            entry.type,
            stored=changed,
            deduplicated=duplicate is not None,
            token_cost=entry.token_cost,
            redacted=redacted,
            status=entry.status,
            superseded=superseded.id if superseded else None,
            suspicions=entry.suspicions,
            notes=tuple(notes),
        )

    def _typed(self, draft: EntryDraft, origin: str, notes: list[str]) -> EntryDraft:
        """Turn a draft of an agent or a chat into an instruction if it reads like one: a command may be labelled as
        a fact.
        """
        if draft.type in BEHAVIORAL or origin not in ("agent", "shared"):
            return draft
        if not reads_like_rule(draft.content, self._judge()):
            return draft
        notes.append(
            f"reads like a rule, not a {draft.type}: kept as an instruction, for the person to approve"
        )
        return replace(draft, type="instruction")

    def _cleaned(self, draft: EntryDraft, source: str) -> tuple[EntryDraft, int]:
        """Mask the credentials of a draft; return it and their number."""
        found = self._ledger.intake.admit_all(draft.content, draft.reason, *draft.tags, source)
        content, reason, *tags = (admitted.text for admitted in found[:-1])
        redacted = sum(admitted.redacted for admitted in found[:-1])
        return replace(draft, content=content, reason=reason, tags=tuple(tags)), redacted

    def _superseded(self, draft: EntryDraft, limited: bool) -> Entry | None:
        """Return the entry to be superseded, which must belong to this group and be current."""
        if draft.supersedes is None:
            return None
        target = self._ledger.entry(draft.supersedes, "supersedes")
        if target.status != "active":
            newest = newest_of(self._ledger, target)
            raise InvalidValue(
                f"supersedes: {target.id} is {target.status} already",
                f"name the current one: {newest.id}" if newest.id != target.id else "see: ncm entries show",
            )
        if limited:
            self._ledger.spend("supersede")
        return target

    def _hold_reasons(self, draft: EntryDraft, target: Entry | None, by: Provenance, heard: str) -> list[str]:
        """Return why an entry must await review; empty for nearly all."""
        reasons = suspicions(draft.content)
        behavioral, foreign = draft.type in BEHAVIORAL, by.origin in FOREIGN
        if behavioral and foreign:
            reasons.append(from_others(by.origin))
        if by.origin not in OWN:
            reasons += steering(draft.content)
        if behavioral and heard == "pasted":
            reasons.append(PASTED)
        less = target is not None and ORIGINS.index(by.origin) > ORIGINS.index(target.author)
        wishes = behavioral or (target is not None and target.behavioral)
        if target and less and (foreign or (wishes and heard != "said")):
            reasons.append(f"would replace what the {target.author} stored")
        return [] if self._was_accepted(draft, by, reasons) else reasons

    def _was_accepted(self, draft: EntryDraft, by: Provenance, reasons: Sequence[str]) -> bool:
        """Return whether a person has approved this very text; what they rejected, or are asked about, is refused."""
        if reasons or by.origin != "owner":
            why = f" ({', '.join(reasons)})" if reasons else ""
            self._ledger.refuse_decided(draft.content, draft.type, why)
        kinds = ("held", "suggestion") if by.origin == "agent" else ("held",)
        offered = self._ledger.offered(draft.type, draft.content) if reasons or by.origin == "agent" else []
        return any(proposal.status == "accepted" and proposal.kind in kinds for proposal in offered)

    def _duplicate(self, draft: EntryDraft, target: Entry | None) -> Entry | None:
        """Return a duplicate of the draft among entries of its type; never the one to be superseded."""
        wanted = self._ledger.filter((draft.type,))
        key = statements.text_key(draft.content)
        same = self._ledger.table.same_text(draft.type, key, wanted.now)
        if not same:
            candidates = self._ledger.table.holding_all(statements.longest_words(draft.content), wanted, 20)
            same = [entry for entry in candidates if statements.near_duplicate(entry.content, draft.content)]
        # Private and shared entries are never merged: one would reveal the other's words, or that it is stored.
        own = [entry for entry in same if entry.provenance.private == self._ledger.scope.private]
        return None if not own or (target and own[0].id == target.id) else own[0]

    def _merge(
        self, duplicate: Entry, draft: EntryDraft, by: Provenance, notes: list[str], heard: str
    ) -> tuple[Entry, bool]:
        """Merge a draft into its duplicate: the newer wording, all tags, the higher priority."""
        if ORIGINS.index(by.origin) > ORIGINS.index(duplicate.author):
            notes.append(f"already stored by the {duplicate.author}; left as it is")
            return duplicate, False
        merged = replace(
            duplicate,
            content=draft.content,
            token_cost=tokens.estimate(draft.content),
            tags=rules.united(duplicate.tags, draft.tags),
            priority=rules.higher(duplicate.priority, draft.priority),
            reason=draft.reason or duplicate.reason,
            related_to=rules.united(duplicate.related_to, draft.related_to, rules.MAX_RELATED),
            expires=draft.expires if draft.expires and duplicate.expires else None,
            used_at=by.timestamp,
            updated_at=by.timestamp,
            provenance=replace(
                duplicate.provenance,
                origin=by.origin,  # nobody less trusted gets here
                project=_common(duplicate.provenance.project, by.project),
            ),
            confirmed=_confirmed(by, heard) or duplicate.confirmed,
        )
        if duplicate.unconfirmed and not merged.unconfirmed:
            self._ledger.proposals.withdraw("suggestion", held_key(draft.type, duplicate.content))
        if merged.content != duplicate.content:
            self._ledger.table.keep_wording(duplicate, by)
        self._ledger.table.change(merged, statements.text_key(merged.content))
        self._ledger.audit(
            "merge", merged.id, text=fingerprint(merged.content), before=fingerprint(duplicate.content)
        )
        return merged, True

    def _insert(self, draft: EntryDraft, by: Provenance, reasons: Sequence[str], heard: str) -> Entry:
        entry = Entry(
            id=f"mem-{uuid.uuid4()}",
            type=draft.type,
            content=draft.content,
            priority=draft.priority,
            tags=draft.tags,
            behavioral=draft.type in BEHAVIORAL,
            provenance=by,
            status="held" if reasons else "active",
            token_cost=tokens.estimate(draft.content),
            reason=draft.reason,
            related_to=draft.related_to,
            supersedes=draft.supersedes,
            expires=draft.expires,
            suspicions=tuple(reasons),
            used_at=by.timestamp,
            updated_at=by.timestamp,
            confirmed=_confirmed(by, heard) if by.origin == "agent" else "",
        )
        self._ledger.table.add(entry, statements.text_key(entry.content))
        if reasons or entry.unconfirmed:
            self._ledger.propose(entry)
        self._ledger.audit(
            "store",
            entry.id,
            type=entry.type,
            text=fingerprint(entry.content),
            status=entry.status,
            supersedes=entry.supersedes,
            source=by.source,
            why=list(reasons) or None,
        )
        return entry


def _confirmed(by: Provenance, heard: str) -> str:
    """Return why an entry counts as the person's: they store it themselves, or said it in the session."""
    return "approved" if by.origin == "owner" else "said" if heard == "said" else ""


def _common(project: str, other: str) -> str:
    """Return the common project of a statement that was stored twice; empty if the projects differ."""
    return project if project == other else ""


def newest_of(ledger: EntryLedger, entry: Entry) -> Entry:
    """Return the current end of an entry's chain; bounded in case of corrupt data."""
    seen = {entry.id}
    while entry.superseded_by and entry.superseded_by not in seen and len(seen) < MAX_CHAIN:
        seen.add(entry.superseded_by)
        entry = ledger.table.get(entry.superseded_by) or replace(entry, superseded_by=None)
    return entry
