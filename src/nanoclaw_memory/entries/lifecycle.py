"""Expire and purge entries, propose stale ones for archiving, and carry out decisions on proposals."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nanoclaw_memory import statements
from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.domains import domain_path
from nanoclaw_memory.entries.entries import Entries
from nanoclaw_memory.entries.rules import EntryDraft
from nanoclaw_memory.errors import Refused
from nanoclaw_memory.rendering import item_line
from nanoclaw_memory.store.entries import Filter
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import Entry, Proposal

STALE_IMPORTANCE = 0.12
STALE_DAYS = 30


def expire(entries: Entries) -> int:
    """Mark entries past their date as expired; readers already leave them out."""
    ledger = entries.ledger
    with ledger.db.transaction():
        gone = expired(entries)
        for entry in gone:
            ledger.table.set_status(entry.id, "expired", ledger.moment())
            ledger.audit("expire", entry.id)
    ledger.changed(gone=gone)
    return len(gone)


def expired(entries: Entries) -> list[Entry]:
    """Return current entries past their date."""
    return entries.ledger.table.expired_by(entries.ledger.moment())


def purge(entries: Entries) -> int:
    """Delete entries that were replaced more than the configured number of days ago."""
    ledger = entries.ledger
    with ledger.db.transaction():
        gone = purgeable(entries)
        for entry in gone:
            ledger.table.delete(entry.id)
            ledger.audit("purge", entry.id, type=entry.type, text=fingerprint(entry.content))
    return len(gone)


def purgeable(entries: Entries) -> list[Entry]:
    """Return entries replaced more than the configured number of days ago."""
    kept = entries.ledger.settings.entries.purge_superseded_days
    if not kept:
        return []
    return entries.ledger.table.superseded_before(stamp(entries.ledger.clock.now() - timedelta(days=kept)))


def stale(entries: Entries) -> list[Entry]:
    """Return current entries of medium or low priority whose importance has faded."""
    now = entries.ledger.clock.now()
    active = entries.ledger.table.all(Filter(entries.ledger.moment()))
    return [
        entry
        for entry in active
        if entry.priority in ("medium", "low")
        and (now - moment_of(entry.used_at)).days >= STALE_DAYS
        and rules.importance(entry, now) < STALE_IMPORTANCE
    ]


def propose_stale(entries: Entries) -> int:
    """Propose stale entries for archiving; return how many proposals are new."""
    proposed = 0
    for entry in stale(entries):
        proposal = entries.ledger.proposals.propose(
            "archive",
            {"id": entry.id},
            why=f"priority {entry.priority}, last used {entry.used_at[:10]}",
            key=f"{entry.id}\n{entry.used_at}",
            moment=entries.ledger.moment(),
            source=entry.id,
            diff=f"- [{entry.type}] {item_line(entry.content)}",
            origin=entry.author,
            effect="leaves brief, search and recall; it is kept in the archive",
        )
        proposed += proposal is not None
    return proposed


def decide(entries: Entries, proposal: Proposal, accept: bool) -> Proposal:
    """Carry out a person's decision on an open proposal about an entry: held, archive or domain-edit."""
    ledger = entries.ledger
    if proposal.kind in ("held", "suggestion"):
        entry_id = _surviving(entries, str(proposal.payload["id"]))
        entries.approve(entry_id) if accept else entries.reject(entry_id)
        return ledger.proposals.get(proposal.id)
    draft = _added(entries, proposal) if accept else None
    gone: list[Entry] = []
    come: list[Entry] = []
    with ledger.db.transaction():
        decided = ledger.proposals.decide(proposal.id, accept, ledger.moment())
        if accept and draft is None:
            gone, come = _carry_out(entries, proposal)
    # Files only after the commit: a process that has locked a folder may be waiting for the database.
    ledger.changed(gone, come)
    if draft is not None:
        entries.admission.admit(draft, source=domain_path(draft.type), limited=False)
    if proposal.kind == "domain-edit":
        _rewrite_when_decided(entries, str(proposal.payload["type"]))
    return decided


def _surviving(entries: Entries, entry_id: str) -> str:
    """Return the entry, or the one that replaced it because two machines stored the same text."""
    entry = entries.ledger.table.get(entry_id)
    other = entries.ledger.table.get(entry.superseded_by) if entry and entry.superseded_by else None
    return other.id if entry and other and other.content == entry.content else entry_id


def undo(entries: Entries, proposal: Proposal) -> None:
    """Restore an entry to its state before a decision on it."""
    ledger = entries.ledger
    if proposal.kind == "domain-edit":
        return _undo_edit(entries, proposal)
    accepted, held = proposal.status == "accepted", proposal.kind == "held"
    if proposal.kind == "archive" and not accepted:
        return None
    entry = ledger.entry(str(proposal.payload["id"]))
    left = "active" if accepted and proposal.kind != "archive" else "archived"
    if entry.status != left:
        raise Refused(f"entry {entry.id} is {entry.status} since", "see: ncm entries show")
    before = replace(
        entry,
        status="held" if held else "active",
        suspicions=tuple(proposal.why.split("; ")) if held else entry.suspicions,
        confirmed=entry.confirmed if proposal.kind == "archive" else "",
        updated_at=ledger.moment(),
    )
    with ledger.db.transaction():
        restored = ledger.table.predecessors(entry.id) if held and accepted else []
        for old in restored:
            ledger.table.restore(old.id, ledger.moment())
        ledger.table.change(before, statements.text_key(before.content))
        ledger.audit("undo", entry.id)
    gone, come = ([entry], restored) if held else ([], [before])
    ledger.changed(gone=gone, come=come)
    return None


def _undo_edit(entries: Entries, proposal: Proposal) -> None:
    """Undo a person's edit of a domain file: the entry is removed, restored or reworded."""
    if proposal.status != "accepted":
        return
    ledger = entries.ledger
    with ledger.db.transaction():
        entry, before = _before_edit(entries, proposal)
        ledger.table.change(before, statements.text_key(before.content))
        ledger.audit("undo", entry.id)
    came = before.status == "active"
    ledger.changed(gone=[] if came else [entry], come=[before] if came else [])


def _before_edit(entries: Entries, proposal: Proposal) -> tuple[Entry, Entry]:
    """Return the entry that an accepted edit changed, and its former state; an added entry is archived."""
    ledger, payload = entries.ledger, proposal.payload
    edited, content, now = str(payload["id"]), str(payload["content"]), ledger.moment()
    if not edited:
        added = ledger.table.same_text(str(payload["type"]), statements.text_key(content), now)
        if not added:
            raise Refused("the entry that the edit added was changed since", "see: ncm entries list")
        return added[0], replace(added[0], status="archived", updated_at=now)
    entry = ledger.entry(edited)
    wordings = [one["content"] for one in ledger.table.merges_of(entry.id)] if content else [entry.content]
    if (entry.status == "active") != bool(content) or not wordings:
        raise Refused(f"entry {entry.id} was changed or forgotten since", "see: ncm entries show")
    by = replace(entry.provenance, origin=str(payload.get("origin") or "agent"))
    return entry, replace(entry, status="active", content=wordings[-1], provenance=by, updated_at=now)


def _added(entries: Entries, proposal: Proposal) -> EntryDraft | None:
    """Return the entry that a person added to a domain file."""
    if proposal.kind != "domain-edit" or proposal.payload["id"]:
        return None
    payload = proposal.payload
    return rules.draft(payload["content"], payload["type"], now=entries.ledger.clock.now())


def _carry_out(entries: Entries, proposal: Proposal) -> tuple[list[Entry], list[Entry]]:
    """Archive or reword an entry; return the entries that were removed and added."""
    entry = entries.ledger.entry(str(proposal.payload["id"]))
    content = str(proposal.payload.get("content", ""))
    if content:
        return [], [_reword(entries, entry, content)]
    entries.archive_now(entry)
    return [entry], []


def _reword(entries: Entries, entry: Entry, content: str) -> Entry:
    """Set a person's wording and origin of an entry; the old wording is kept."""
    ledger = entries.ledger
    by = ledger.provenance(domain_path(entry.type))
    draft = rules.draft(content, entry.type, now=ledger.clock.now())
    draft = replace(draft, content=ledger.intake.admit(draft.content).text)
    ledger.table.keep_wording(entry, by)
    provenance = replace(entry.provenance, origin=by.origin, source=by.source)
    changed = replace(entry, content=draft.content, provenance=provenance, updated_at=by.timestamp)
    ledger.table.change(changed, statements.text_key(changed.content))
    ledger.audit("edit", entry.id, text=fingerprint(changed.content), before=fingerprint(entry.content))
    return changed


def _rewrite_when_decided(entries: Entries, entry_type: str) -> None:
    """Rewrite the domain file once all edits in it have been decided, unless there are newer ones."""
    domains, proposals = entries.ledger.domains, entries.ledger.proposals
    domains.render(entry_type)
    open_edits = [p for p in proposals.listed(kind="domain-edit") if p.payload["type"] == entry_type]
    if not open_edits:
        domains.discard_edits(entry_type)
