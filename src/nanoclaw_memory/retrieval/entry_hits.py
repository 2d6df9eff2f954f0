"""Entries as hits, to stand beside lines of files."""

from __future__ import annotations

from collections.abc import Iterable

from nanoclaw_memory.entries.domains import domain_path
from nanoclaw_memory.types import EntryHit, Hit


def entry_hits(found: Iterable[EntryHit]) -> list[Hit]:
    """Each entry as a hit: its path is its type's domain file, `start_line` 0 says that it has no line."""
    return [
        Hit(
            kind="entry",
            path=domain_path(hit.type),
            start_line=0,
            end_line=0,
            text=hit.content,
            score=hit.relevance_score,
            why=hit.why,
            id=hit.id,
            day=hit.created_at[:10],
            type=hit.type,
            tags=hit.tags,
            behavioral=hit.behavioral,
            created_at=hit.created_at,
            origin=hit.provenance.origin,
            untrusted=hit.untrusted,
            suspicions=hit.suspicions,
        )
        for hit in found
    ]
