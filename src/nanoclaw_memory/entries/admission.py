"""Admit checked drafts as entries: mask, deduplicate, hold suspicious ones for review, write, supersede."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from msgspec.structs import replace

from nanoclaw_memory import statements, tokens
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.ledger import EntryLedger, held_key
from nanoclaw_memory.entries.rules import ORIGINS, UNTRUSTED, EntryDraft
from nanoclaw_memory.errors import InvalidValue, Refused
from nanoclaw_memory.intake.suspicion import suspicions
from nanoclaw_memory.rendering import safe_line
from nanoclaw_memory.store.entries import BEHAVIORAL
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import Entry, Provenance, Stored


class Admission:
    """Admits drafts into one group's entries."""

    def __init__(self, ledger: EntryLedger) -> None:
        self._ledger = ledger

    def admit(self, draft: EntryDraft, *, source: str = "", limited: bool = True) -> Stored:
        """Write a checked draft; `limited=False` is for a person's own import, `source` names its file."""
        draft, redacted = self._cleaned(draft, source)
        by = self._ledger.provenance(source)
        notes: list[str] = []
        with self._ledger.db.transaction():
            if limited:
                self._ledger.spend("store")
            target = self._superseded(draft, limited)
            for related in draft.related_to:
                self._ledger.entry(related, "related_to")
            reasons = self._hold_reasons(draft, target)
            duplicate = None if reasons else self._duplicate(draft, target)
            if duplicate is not None:
                entry, changed = self._merge(duplicate, draft, by, notes)
            else:
                entry, changed = self._insert(draft, by, reasons), True
            superseded = target if target and not reasons else None
            if superseded:
                self._ledger.supersede(superseded, entry.id)
        gone = [superseded] if superseded else []
        notes += self._ledger.changed(gone=gone, come=[entry] if changed and entry.status == "active" else [])
        if reasons:
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
            suspicions=tuple(reasons),
            notes=tuple(notes),
        )

    def _cleaned(self, draft: EntryDraft, source: str) -> tuple[EntryDraft, int]:
        """The draft as it may be stored, and how many credentials were masked in it."""
        found = self._ledger.intake.admit_all(draft.content, draft.reason, *draft.tags, source)
        content, reason, *tags = (admitted.text for admitted in found[:-1])
        redacted = sum(admitted.redacted for admitted in found[:-1])
        return replace(draft, content=content, reason=reason, tags=tuple(tags)), redacted

    def _superseded(self, draft: EntryDraft, limited: bool) -> Entry | None:
        """The entry to be superseded, which must be ours and current."""
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

    def _hold_reasons(self, draft: EntryDraft, target: Entry | None) -> list[str]:
        """Why an entry must wait for a person; empty for nearly all."""
        reasons: list[str] = []
        behavioral = draft.type in BEHAVIORAL
        if behavioral:
            reasons += suspicions(draft.content)
        if behavioral and self._ledger.scope.origin == "web":
            reasons.append("an instruction from the web")
        if target and self._ledger.scope.origin in UNTRUSTED and target.provenance.origin not in UNTRUSTED:
            reasons.append(f"would replace what the {target.provenance.origin} stored")
        if reasons:
            earlier = self._ledger.proposals.find("held", held_key(draft.type, draft.content))
            if earlier is not None and earlier.status == "accepted":
                return []  # a person has let this very text in
            if earlier is not None:
                state = "rejected in review" if earlier.status == "rejected" else "stored before"
                raise Refused(f"content: this was {state} ({', '.join(reasons)})", "see: ncm review")
        return reasons

    def _duplicate(self, draft: EntryDraft, target: Entry | None) -> Entry | None:
        """A duplicate of the draft among entries of its type; never the one to be superseded."""
        wanted = self._ledger.filter((draft.type,))
        key = statements.text_key(draft.content)
        same = self._ledger.table.same_text(draft.type, key, wanted.now)
        if not same:
            candidates = self._ledger.table.holding_all(statements.longest_words(draft.content), wanted, 20)
            same = [one for one in candidates if statements.near_duplicate(one.content, draft.content)]
        # Private and shared entries are never united: one would show the other's words, or tell that it is stored.
        own = [one for one in same if one.provenance.private == self._ledger.scope.private]
        return None if not own or (target and own[0].id == target.id) else own[0]

    def _merge(
        self, duplicate: Entry, draft: EntryDraft, by: Provenance, notes: list[str]
    ) -> tuple[Entry, bool]:
        """Unite a draft with its duplicate: the newer wording, all tags, the higher priority."""
        if ORIGINS.index(by.origin) > ORIGINS.index(duplicate.provenance.origin):
            notes.append(f"already stored by the {duplicate.provenance.origin}; left as it is")
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
                duplicate.provenance, project=_common(duplicate.provenance.project, by.project)
            ),
        )
        if merged.content != duplicate.content:
            self._ledger.table.keep_wording(duplicate, by)
        self._ledger.table.change(merged, statements.text_key(merged.content))
        self._ledger.audit(
            "merge", merged.id, text=fingerprint(merged.content), before=fingerprint(duplicate.content)
        )
        return merged, True

    def _insert(self, draft: EntryDraft, by: Provenance, reasons: Sequence[str]) -> Entry:
        entry = Entry(
            id=f"mem-{uuid.uuid4()}",
            type=draft.type,
            content=draft.content,
            priority=rules.lower(draft.priority, "medium") if by.origin == "web" else draft.priority,
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
        )
        self._ledger.table.add(entry, statements.text_key(entry.content))
        if reasons:
            self._ledger.proposals.propose(
                "held",
                {"id": entry.id},
                why="; ".join(reasons),
                key=held_key(entry.type, entry.content),
                moment=by.timestamp,
                source=f"session {by.session_id or 'none'}, {by.origin}",
                diff=f"+ [{entry.type}] {safe_line(entry.content)}",
            )
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


def _common(project: str, other: str) -> str:
    """The project of a statement that was stored twice: what was said in two projects belongs to none."""
    return project if project == other else ""


def newest_of(ledger: EntryLedger, entry: Entry, depth: int = 100) -> Entry:
    """The current end of an entry's chain; bounded, whatever the data say."""
    seen = {entry.id}
    while entry.superseded_by and entry.superseded_by not in seen and len(seen) < depth:
        seen.add(entry.superseded_by)
        entry = ledger.table.get(entry.superseded_by) or replace(entry, superseded_by=None)
    return entry
