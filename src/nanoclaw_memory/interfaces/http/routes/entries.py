"""Endpoints of typed entries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import BroughtIn, Deleted, Entry, EntryLife, Stored

MOST_LISTED = 10_000


@route("GET", "/entries", listed=True)
def entries(
    memory: Memory, types: list[str] | None = None, tags: list[str] | None = None, status: str = "active"
) -> list[Entry]:
    """Entries as stored, newest first; status is active, held, superseded, archived, expired or all."""
    return memory.entries.all(types, tags or (), status, MOST_LISTED)


@route("POST", "/entries")
def store(
    memory: Memory,
    content: Annotated[str, Field(max_length=20_000)],
    type: str = "",
    category: str | None = None,
    tags: list[str] | None = None,
    priority: str | None = None,
    supersedes: str | None = None,
    related_to: list[str] | None = None,
    expires: str | None = None,
    context: str | None = None,
) -> Stored:
    """Store one typed entry; provenance comes from the scope, never from here."""
    return memory.store(
        content,
        type,
        category=category or "",
        tags=tags or (),
        priority=priority or "",
        supersedes=supersedes or "",
        related_to=related_to or (),
        expires=expires or "",
        context=context or "",
    )


@route("GET", "/entries/{id}")
def entry(memory: Memory, id: str) -> dict[str, Any]:
    """One entry, whatever its status, and those it replaced."""
    found, *replaced = memory.entries.history(id)
    return {"entry": found, "replaced": replaced}


@route("DELETE", "/entries/{id}")
def delete(memory: Memory, id: str) -> Deleted:
    """Remove an entry for good; what it had replaced becomes current again."""
    return memory.delete(id)


@route("POST", "/entries/{id}/reinforce")
def reinforce(memory: Memory, id: str) -> Entry:
    """Mark an entry as still relevant."""
    return memory.entries.reinforce(id)


@route("POST", "/entries/{id}/approve")
def approve(memory: Memory, id: str) -> Entry:
    """Let a held entry in."""
    return memory.entries.approve(id)


@route("POST", "/entries/{id}/reject")
def reject(memory: Memory, id: str) -> Entry:
    """Keep a held entry out."""
    return memory.entries.reject(id)


@route("POST", "/entries/{id}/archive")
def archive_entry(memory: Memory, id: str) -> Entry:
    """Take an entry out of briefs and searches, and keep it."""
    return memory.entries.archive(id)


@route("GET", "/entries/{id}/trace")
def audit_trace(memory: Memory, id: str) -> EntryLife:
    """Everything the audit log knows of an entry."""
    return memory.entries.trace(id)


@route("POST", "/entries/render", lasting=True)
def render(memory: Memory) -> dict[str, Any]:
    """Write the domain files anew."""
    written, left = memory.entries.render()
    return {"written": written, "left": left}


@route("POST", "/entries/migrate", lasting=True)
def entries_migrate(memory: Memory, dry_run: bool = False) -> BroughtIn:
    """MEMORY.md and memory/*.md into typed entries; the files stay as they are."""
    return memory.upkeep.migrate_files(dry_run)


@route("POST", "/entries/import", lasting=True)
def import_export(memory: Memory, kind: str, path: str, dry_run: bool = False) -> BroughtIn:
    """What another memory exported, from a file on this machine, with the origin `import`."""
    return memory.upkeep.import_export(kind, Path(path), dry_run)
