"""Describe an entry that is read back: age, origin, project, trust."""

from __future__ import annotations

from datetime import date, datetime

from nanoclaw_memory.clock import local_day, moment_of
from nanoclaw_memory.entries import rules
from nanoclaw_memory.intake import secrets
from nanoclaw_memory.types import FOREIGN, Entry, EntryHit, Provenance


def masked(text: str) -> str:
    """Mask credentials in a text for display.

    The intake masks new texts. This second pass covers what never went through it: rows of releases that did not
    mask, rows that somebody wrote into the database, and hand-written pages.
    """
    return secrets.mask(text)[0]


def age_days(created_at: str, today: date, now: datetime) -> int:
    """Return whole days by the user's calendar: all ages change together at midnight."""
    return max((today - moment_of(created_at).astimezone(now.tzinfo).date()).days, 0)


def age(days: int | None) -> str:
    """Return '3d ago' or 'today'."""
    if days is None:
        return "undated"
    return f"{days}d ago" if days else "today"


def origin_of(provenance: Provenance, own_group: str) -> str:
    """Return who stored it, and in which group if that is not the reader's own."""
    if provenance.group == own_group:
        return provenance.origin
    return f"{provenance.origin} of group {provenance.group}"


def other_project(project: str, own: str) -> str:
    """Return the label of an entry of another project than the reader's, else an empty text."""
    return f"project {project}" if project not in ("", own) else ""


def as_hit(entry: Entry, score: float, why: str, now: datetime) -> EntryHit:
    """Return an entry as a search hit: masked, with its age and trust marks."""
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
