"""What stands beside an entry that is read back: age, origin, project, how far to trust it."""

from __future__ import annotations

from datetime import date, datetime

from nanoclaw_memory.clock import local_day, moment_of
from nanoclaw_memory.entries import rules
from nanoclaw_memory.intake import secrets
from nanoclaw_memory.types import FOREIGN, Entry, EntryHit, Provenance


def masked(text: str) -> str:
    """The text without credentials, on its way out.

    The intake masked it on its way in. This second look is for what never passed there: rows of releases that did
    not mask, rows that somebody put into the database, and pages, which people write by hand.
    """
    return secrets.mask(text)[0]


def age_days(created_at: str, today: date, now: datetime) -> int:
    """Whole days since, by the user's calendar: all ages change together at midnight."""
    return max((today - moment_of(created_at).astimezone(now.tzinfo).date()).days, 0)


def age(days: int | None) -> str:
    """'3d ago', 'today'."""
    if days is None:
        return "undated"
    return f"{days}d ago" if days else "today"


def origin_of(provenance: Provenance, own_group: str) -> str:
    """Who stored it, and in which group when that is not the reader's own."""
    if provenance.group == own_group:
        return provenance.origin
    return f"{provenance.origin} of group {provenance.group}"


def other_project(project: str, own: str) -> str:
    """How a line shows that it belongs to another project than the one that asks; empty when it does not."""
    return f"project {project}" if project not in ("", own) else ""


def as_hit(entry: Entry, score: float, why: str, now: datetime) -> EntryHit:
    """An entry as search gives it: masked, with its age and how far to trust it."""
    return EntryHit(
        id=entry.id,
        type=entry.type,
        content=masked(entry.content),
        behavioral=entry.behavioral,
        tags=entry.tags,
        created_at=entry.provenance.timestamp,
        relevance_score=round(min(score, 1.0), 4),
        priority=entry.priority,
        status=entry.status,
        age_days=age_days(entry.provenance.timestamp, now.date(), now),
        untrusted=entry.author in FOREIGN,
        unconfirmed=entry.unconfirmed,
        provenance=entry.provenance,
        importance=round(rules.importance(entry, now), 4),
        reason=masked(entry.reason),
        suspicions=entry.suspicions,
        why=why,
        related_to=entry.related_to,
        day=local_day(entry.provenance.timestamp, now.tzinfo),
    )
