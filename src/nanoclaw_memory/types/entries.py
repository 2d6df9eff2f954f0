"""Types of the entries: entry, brief, recall, proposal, audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nanoclaw_memory.types.search import Newer

CONFIRMED = {"approved": "owner", "said": "user"}  # the origin that a confirmed entry of an agent counts as


class Provenance(msgspec.Struct, frozen=True):
    """Where an entry came from; set by the program, never by the caller."""

    session_id: str
    group: str
    timestamp: str
    origin: str  # one of ORIGINS
    source: str = ""
    project: str = ""
    private: bool = True  # stored in a private scope: shared scopes see it only if they see its type


class Entry(msgspec.Struct, frozen=True):
    """One typed memory; callers never set `behavioral` and `provenance`."""

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
    confirmed: str = ""  # approved or said: why an agent's entry counts as the person's

    @property
    def author(self) -> str:
        """Return the origin it counts as: for a confirmed entry of an agent, the person's."""
        return CONFIRMED.get(self.confirmed) or self.provenance.origin

    @property
    def unconfirmed(self) -> bool:
        """Return whether it is only an agent's suggestion."""
        return self.behavioral and self.author == "agent"

    @property
    def stored_by(self) -> str:
        """Return the mark of an agent's entry that no person approved; empty for a suggestion, which has its own
        mark.
        """
        approved = self.provenance.origin != "agent" or self.confirmed == "approved"
        return "" if approved or self.unconfirmed else "agent"


class Stored(msgspec.Struct, frozen=True):
    """The result of `store`."""

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
    # ids of entries that a loaded model calls similar; the caller decides what to do
    similar: tuple[str, ...] = ()
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
    day: str = ""  # when it was stored, in the user's calendar


class EntriesFound(msgspec.Struct, frozen=True):
    """Entries that a search found; `degraded` names what could not take part."""

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
    mark: str = ""  # superseded or earlier: a newer statement on the same subject precedes it
    newer: Newer | None = None
    shared: bool = False  # said in a shared chat, shown in private
    related_to: tuple[str, ...] = ()  # ids of related entries


class Recall(msgspec.Struct, frozen=True):
    """Entries that recall packed, their fenced text, and its cost."""

    entries: tuple[RecalledEntry, ...]
    text: str
    token_count: int
    budget_remaining: int
    total_entries_matched: int
    fallback: str = ""  # "files" when no entry matched
    degraded: tuple[str, ...] = ()
    needed: int = 0  # tokens of the first line, if the budget is too small for any


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
    """The brief for a session's start."""

    text: str = ""
    entries: tuple[BriefEntry, ...] = ()
    generated_at: str = ""
    entry_count: int = 0
    brief_count: int = 0
    tokens: int = 0
    degraded: tuple[str, ...] = ()


class Deleted(msgspec.Struct, frozen=True):
    """What `delete` removed, and which entries became current again."""

    id: str
    deleted: bool
    restored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Proposal(msgspec.Struct, frozen=True):
    """A change that requires a person's decision."""

    id: str
    kind: str  # promotion, demotion, lesson, held, suggestion, archive, domain-edit, conflict
    payload: Mapping[str, Any]
    why: str
    source: str
    diff: str
    status: str  # open, accepted, rejected
    created_at: str
    decided_at: str | None = None
    origin: str = ""  # the origin of the text
    effect: str = ""  # what accepting it does

    @property
    def may_be_reworded(self) -> bool:
        """Return whether a person may accept it in their own words."""
        return self.kind in ("promotion", "memory", "lesson")


class AuditShare(msgspec.Struct, frozen=True):
    """The token cost of one source."""

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
    """Token costs by source and category."""

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
    """Whether the audit log is intact; problems name the line."""

    ok: bool
    records: int
    problems: tuple[str, ...]


class EntryLife(msgspec.Struct, frozen=True):
    """All records of an entry in the audit log, and the entry as it is now."""

    records: tuple[Mapping[str, Any], ...]
    entry: Entry | None
    wordings: tuple[Mapping[str, Any], ...] = ()


class BroughtIn(msgspec.Struct, frozen=True):
    """How many rows a migration or import stored, already had, held for review, and could not place."""

    stored: int
    known: int
    held: int
    relations: int
    conversations: int
    types: Mapping[str, int]
    unplaced: tuple[str, ...]
    dry_run: bool = False
    judged: tuple[str, ...] = ()  # lines whose type the judge chose, with its probability
    placed: tuple[str, ...] = ()  # of a dry run: each line with its place, type and text
    removed: int = 0  # entries that an undo removed
    checkpoint: str = ""  # made before anything was stored
    pages: int = 0  # number of copied pages


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
    checkpoints: tuple[str, ...] = ()  # checkpoints that contain it and were kept
    left: tuple[str, ...] = ()  # places that only their owner may change
    unfinished: tuple[str, ...] = ()  # files that another process still reads
    dry_run: bool = False
    rows: tuple[str, ...] = ()  # of a dry run: rows that would be removed, kind and text
    kept_out: int = 0  # texts that are refused from now on


class KeptOut(msgspec.Struct, frozen=True):
    """How much a group has refused since a day, and why; fingerprints do not reveal what."""

    day: str
    reason: str
    texts: int = 0
    values: int = 0  # values of facts and relations
