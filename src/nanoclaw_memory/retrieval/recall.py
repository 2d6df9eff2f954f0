"""Recall: entries that answer a question, packed into a token budget; lines of files when there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

import msgspec

from nanoclaw_memory import tokens
from nanoclaw_memory.entries.entries import Entries, check_query
from nanoclaw_memory.entries.lines import age, fenced, marks, masked, origin_of, safe_line
from nanoclaw_memory.entries.rules import choice, whole
from nanoclaw_memory.entries.shared import SharedEntries
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.retrieval.service import missing
from nanoclaw_memory.types import EntriesFound, EntryHit, Found, Hit, Provenance, Recall, RecalledEntry

CANDIDATES = 50
BRIEF_CHARS = 200
MAX_BUDGET = 200_000
# How much of an entry's rank is what was asked, and how much is what matters anyway.
RELEVANCE, IMPORTANCE = 0.75, 0.25
FORMATS = ("brief", "detailed")

Files = Callable[[str], Found]


class Wanted(msgspec.Struct, frozen=True):
    """What the caller asks of recall."""

    query: str
    types: tuple[str, ...] | None = None
    priority_min: str = "low"
    token_budget: int = 3_000
    include_context: bool = False
    format: str = "brief"
    fast: bool = False

    def __post_init__(self) -> None:
        choice("format", self.format, FORMATS)
        whole("token_budget", self.token_budget, 0, MAX_BUDGET)


class _Packed(msgspec.Struct, frozen=True):
    entry: RecalledEntry
    line: str


def recall(entries: Entries, files: Files, wanted: Wanted) -> Recall:
    """The weightiest answers first, whole lines only, never over the budget."""
    group = entries.ledger.scope.group
    try:
        known = entries.search(
            wanted.query,
            types=wanted.types,
            priority_min=wanted.priority_min,
            limit=CANDIDATES,
            fast=wanted.fast,
        )
    except StoreError as error:
        if wanted.types is not None:
            raise
        known = EntriesFound((), (missing("entries", error),))
    if known.hits:
        packed = [_from_entry(hit, wanted, group) for hit in ranked(known.hits)]
        return pack(packed, wanted, len(packed), degraded=known.degraded)
    if wanted.types is not None or not wanted.query.strip():  # files have no type
        return pack([], wanted, 0, degraded=known.degraded)
    found = files(wanted.query)
    lines = [
        _from_file(hit.path, hit.start_line, hit.end_line, hit.text, hit.score, wanted) for hit in found.hits
    ]
    return pack(
        lines, wanted, 0, fallback="files" if lines else "", degraded=(*known.degraded, *found.degraded)
    )


def hits_text(hits: Iterable[Hit], today: date) -> str:
    """What search found, fenced as data with origin and age, for an agent to read."""
    lines = []
    for hit in hits:
        if hit.kind == "entry":
            place, when = f"{hit.type} · {hit.origin}", age((today - date.fromisoformat(hit.day)).days)
        else:
            place, when = f"{hit.path}:{hit.start_line}", hit.day
        warned = marks(Provenance("", "", "", hit.origin), hit.suspicions)
        label = " · ".join(part for part in (place, when, warned) if part)
        lines.append(f"- [{safe_line(label)}] {safe_line(masked(hit.text))}")
    return fenced(lines)


def shared_recall(shared: SharedEntries, group: str, wanted: Wanted) -> Recall:
    """The same over what other groups have published and granted."""
    hits = shared.search(check_query(wanted.query), wanted.types, wanted.priority_min)
    return pack([_from_entry(hit, wanted, group) for hit in ranked(hits)[:CANDIDATES]], wanted, len(hits))


def ranked(hits: Iterable[EntryHit]) -> list[EntryHit]:
    """By relevance and importance together; what is held for review comes last."""
    return sorted(hits, key=lambda hit: (hit.status == "held", -_score(hit), hit.id))


def pack(
    candidates: Sequence[_Packed],
    wanted: Wanted,
    matched: int,
    fallback: str = "",
    degraded: tuple[str, ...] = (),
) -> Recall:
    """As many whole lines as the budget holds, in order; the count is that of the text itself."""
    budget = tokens.Budget(wanted.token_budget - tokens.count(fenced(["-"])), tokens.count)
    chosen = [candidate for candidate in candidates if budget.take(candidate.line + "\n")]
    text = fenced(packed.line for packed in chosen)
    while (cost := tokens.count(text)) > wanted.token_budget:  # lines are counted apart, the text is promised
        chosen.pop()
        text = fenced(packed.line for packed in chosen)
    left = wanted.token_budget - cost
    return Recall(tuple(packed.entry for packed in chosen), text, cost, left, matched, fallback, degraded)


def _score(hit: EntryHit) -> float:
    return RELEVANCE * hit.relevance_score + IMPORTANCE * hit.importance


def _from_entry(hit: EntryHit, wanted: Wanted, group: str) -> _Packed:
    brief = wanted.format == "brief"
    context = hit.reason if wanted.include_context else ""
    entry = RecalledEntry(
        id=hit.id,
        type=hit.type,
        category=hit.type,
        content=safe_line(hit.content, BRIEF_CHARS) if brief else hit.content,
        priority=hit.priority,
        score=round(_score(hit), 4),
        stored_at=hit.created_at,
        tags=hit.tags,
        origin=hit.provenance.origin,
        age_days=hit.age_days,
        untrusted=hit.untrusted,
        suspicions=hit.suspicions,
        context=context,
        group=hit.provenance.group,
    )
    about = [hit.type, hit.priority, origin_of(hit.provenance, group), age(hit.age_days)]
    warning = marks(hit.provenance, hit.suspicions)
    tail = f" (why: {safe_line(context, BRIEF_CHARS)})" if context else ""
    label = " · ".join([*about, *([warning] if warning else [])])
    return _Packed(entry, f"- [{label}] {safe_line(hit.content, BRIEF_CHARS if brief else None)}{tail}")


def _from_file(path: str, start: int, end: int, text: str, score: float, wanted: Wanted) -> _Packed:
    place = f"{path}:{start}-{end}"
    content = safe_line(masked(text), BRIEF_CHARS if wanted.format == "brief" else None)
    entry = RecalledEntry(place, "file", "file", content, "medium", round(score, 4), "", (), "file", None)
    return _Packed(entry, f"- [file · {safe_line(place)}] {content}")
