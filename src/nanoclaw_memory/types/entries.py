"""Nouns of the entries: entry, brief, recall, proposal, audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nanoclaw_memory.types.search import Newer

CONFIRMED = {"approved": "owner", "said": "user"}  # whose an agent's entry is once it is confirmed


class Provenance(msgspec.Struct, frozen=True):
    """Where an entry came from; set by the program, never by the caller."""

    session_id: str
    group: str
    timestamp: str
    origin: str  # of ORIGINS
    source: str = ""
    project: str = ""
    private: bool = True  # stored in a private scope: shared ones see it only where its type is shared


class Entry(msgspec.Struct, frozen=True):
    """One typed memory; `behavioral` and `provenance` are never given by the caller."""

    id: str
    type: str
    content: str
    priority: str
    tags: tuple[str, ...]
    behavioral: bool
    provenance: Provenance
    status: str  # active, held, superseded, archived, expired
    token_cost: int
    reason: str = ""
    related_to: tuple[str, ...] = ()
    supersedes: str | None = None
    superseded_by: str | None = None
    expires: str | None = None
    suspicions: tuple[str, ...] = ()
    reinforcements: int = 0
    used_at: str = ""
    updated_at: str = ""
    confirmed: str = ""  # approved, said: why what an agent stored counts as the person's

    @property
    def author(self) -> str:
        """Whose it is: of an agent's entry that was confirmed, the person's."""
        return CONFIRMED.get(self.confirmed) or self.provenance.origin

    @property
    def unconfirmed(self) -> bool:
        """Whether it is no more than an agent's suggestion."""
        return self.behavioral and self.author == "agent"

    @property
    def stored_by(self) -> str:
        """The mark of what an agent stored and no person approved; that of a suggestion says it itself."""
        approved = self.provenance.origin != "agent" or self.confirmed == "approved"
        return "" if approved or self.unconfirmed else "agent"


class Stored(msgspec.Struct, frozen=True):
    """What `store` did."""

    id: str
    type: str
    category: str
    stored: bool
    deduplicated: bool
    token_cost: int
    redacted: int
    status: str
    superseded: str | None = None
    suspicions: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()  # ids that a resident model calls alike; the caller decides what to do
    notes: tuple[str, ...] = ()


class EntryHit(msgspec.Struct, frozen=True):
    """An entry that a search found; `relevance_score` is 0 to 1."""

    id: str
    type: str
    content: str
    behavioral: bool
    tags: tuple[str, ...]
    created_at: str
    relevance_score: float
    priority: str
    status: str
    age_days: int
    untrusted: bool
    provenance: Provenance
    importance: float
    reason: str = ""
    suspicions: tuple[str, ...] = ()
    why: str = ""
    unconfirmed: bool = False  # an agent's suggestion
    related_to: tuple[str, ...] = ()
    day: str = ""  # on which it was stored, by the user's calendar


class EntriesFound(msgspec.Struct, frozen=True):
    """Entries that a search found, and in `degraded` what could not take part."""

    hits: tuple[EntryHit, ...]
    degraded: tuple[str, ...] = ()


class RecalledEntry(msgspec.Struct, frozen=True):
    """An entry, or lines of a file (type `file`), that recall packed into its budget."""

    id: str
    type: str
    category: str
    content: str
    priority: str
    score: float
    stored_at: str
    tags: tuple[str, ...]
    origin: str
    age_days: int | None
    untrusted: bool = False
    unconfirmed: bool = False
    suspicions: tuple[str, ...] = ()
    context: str = ""
    group: str = ""
    project: str = ""
    mark: str = ""  # superseded, earlier: a newer statement on the same subject stands before it
    newer: Newer | None = None
    shared: bool = False  # said in a shared chat, and shown in private
    related_to: tuple[str, ...] = ()  # entries that it belongs with, by id


class Recall(msgspec.Struct, frozen=True):
    """Entries that recall packed, their fenced text, and its cost."""

    entries: tuple[RecalledEntry, ...]
    text: str
    token_count: int
    budget_remaining: int
    total_entries_matched: int
    fallback: str = ""  # "files" when no entry matched
    degraded: tuple[str, ...] = ()
    needed: int = 0  # tokens of the first line, where the budget holds none


class BriefEntry(msgspec.Struct, frozen=True):
    """One line of the brief."""

    id: str
    type: str
    content: str
    behavioral: bool
    tags: tuple[str, ...]
    age_days: int
    provenance: Provenance | None = None
    unconfirmed: bool = False
    origin: str = ""  # who stored it


class Brief(msgspec.Struct, frozen=True):
    """What matters, for a session's start."""

    text: str = ""
    entries: tuple[BriefEntry, ...] = ()
    generated_at: str = ""
    entry_count: int = 0
    brief_count: int = 0
    tokens: int = 0
    degraded: tuple[str, ...] = ()


class Deleted(msgspec.Struct, frozen=True):
    """What `delete` removed, and which entries came back because of it."""

    id: str
    deleted: bool
    restored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Proposal(msgspec.Struct, frozen=True):
    """A change that only a person may make."""

    id: str
    kind: str  # promotion, demotion, lesson, held, suggestion, archive, domain-edit, conflict
    payload: Mapping[str, Any]
    why: str
    source: str
    diff: str
    status: str  # open, accepted, rejected
    created_at: str
    decided_at: str | None = None
    origin: str = ""  # who said it
    effect: str = ""  # what accepting it does


class AuditShare(msgspec.Struct, frozen=True):
    """What one source costs."""

    source: str
    tokens: int
    percentage: float
    category: str  # system_prompt, memory_md, domains, brief, on_demand


class Duplicate(msgspec.Struct, frozen=True):
    """Two places with the same content."""

    content_a: str
    content_b: str
    similarity: float
    sources: tuple[str, str]


class AuditAnalysis(msgspec.Struct, frozen=True):
    """Where the tokens go."""

    total_tokens: int
    breakdown: tuple[AuditShare, ...]
    duplicates: tuple[Duplicate, ...]


class Recommendation(msgspec.Struct, frozen=True):
    """What would help, how much it saves, and what could go wrong."""

    action: str
    description: str
    estimated_savings_tokens: int
    risk: str  # low, medium, high
    targets: tuple[str, ...] = ()
    applied: bool = False


class Audit(msgspec.Struct, frozen=True):
    """What memory costs, and what to do about it."""

    analysis: AuditAnalysis
    recommendations: tuple[Recommendation, ...]
    checkpoint: str = ""


class IndexStatus(msgspec.Struct, frozen=True):
    """Health and statistics: the files, the entries, and what is always loaded."""

    legacy: Mapping[str, Any]
    progressive: Mapping[str, Any]
    index: Mapping[str, Any]


class AuditVerdict(msgspec.Struct, frozen=True):
    """Whether the audit log is whole; problems name the line."""

    ok: bool
    records: int
    problems: tuple[str, ...]


class EntryLife(msgspec.Struct, frozen=True):
    """All records of an entry in the audit log, and the entry as it is now."""

    records: tuple[Mapping[str, Any], ...]
    entry: Entry | None
    wordings: tuple[Mapping[str, Any], ...] = ()


class BroughtIn(msgspec.Struct, frozen=True):
    """Counts of what a migration or import stored, knew already, held for review, and could not place."""

    stored: int
    known: int
    held: int
    relations: int
    conversations: int
    types: Mapping[str, int]
    unplaced: tuple[str, ...]
    dry_run: bool = False
    judged: tuple[str, ...] = ()  # lines whose type the judge told, and how sure it was
    placed: tuple[str, ...] = ()  # of a dry run: each line with its place, type and text
    removed: int = 0  # entries that an undo took back
    checkpoint: str = ""  # made before anything was stored
    pages: int = 0  # that were copied


class ForgottenPage(msgspec.Struct, frozen=True):
    """Lines to remove from one page; `removed` is False when nobody agreed to it."""

    path: str
    lines: int
    diff: str
    removed: bool = False


class Forgotten(msgspec.Struct, frozen=True):
    """What was forgotten, store by store, and what could not be."""

    removed: Mapping[str, int]
    pages: tuple[ForgottenPage, ...] = ()
    checkpoints: tuple[str, ...] = ()  # contain it and were kept
    left: tuple[str, ...] = ()  # places that nobody but their owner may change
    unfinished: tuple[str, ...] = ()  # files that another process still reads
    dry_run: bool = False
    rows: tuple[str, ...] = ()  # of a dry run: what would go of the databases, kind and words
    kept_out: int = 0  # texts that may not come in from now on


class KeptOut(msgspec.Struct, frozen=True):
    """How much a group keeps out since a day, and why; what it is nobody can tell from fingerprints."""

    day: str
    reason: str
    texts: int = 0
    values: int = 0  # of facts and relations
