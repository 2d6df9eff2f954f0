"""Bring in what files and other memories hold: as entries with their source, relations, archived conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nanoclaw_memory.clock import Clock
from nanoclaw_memory.entries import migrate, rules
from nanoclaw_memory.entries.entries import Entries
from nanoclaw_memory.entries.importers import Imports, bring
from nanoclaw_memory.errors import NanoClawError, Refused
from nanoclaw_memory.graph.graph import KnowledgeGraph
from nanoclaw_memory.host.archive import archive
from nanoclaw_memory.types import BroughtIn
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import Home


@dataclass
class _Counts:
    stored: int = 0
    known: int = 0
    held: int = 0


def migrate_files(entries: Entries, files: Iterable[tuple[str, Path]], dry_run: bool) -> BroughtIn:
    """MEMORY.md and memory/*.md into typed entries; the files are never changed, a second run adds nothing."""
    counts = _Counts()
    unplaced: list[str] = []
    types: dict[str, int] = {}
    for relative, path in files:
        parts = relative.split("/")
        if relative != "MEMORY.md" and not (len(parts) == 2 and parts[0] in ("memory", "shared")):
            continue
        try:
            placed, left = migrate.read(relative, read_text(path))
        except NanoClawError as error:
            unplaced.append(f"{relative}: {error.message}")
            continue
        for one in placed:
            _admit(
                entries,
                one.type,
                one.content,
                f"{relative}:{one.line}",
                one.tags,
                one.priority,
                counts,
                dry_run,
            )
            types[one.type] = types.get(one.type, 0) + 1
        unplaced += [f"{relative}:{one.line}: {one.why}" for one in left]
    return BroughtIn(counts.stored, counts.known, counts.held, 0, 0, types, tuple(unplaced), dry_run)


def import_export(
    kind: str,
    path: Path,
    entries: Entries,
    graph: KnowledgeGraph,
    home: Home,
    group: str,
    clock: Clock,
    dry_run: bool,
    forgotten: Callable[[str], bool] = lambda text: False,
) -> BroughtIn:
    """An export of another memory; everything carries the origin `import` and its source."""
    found: Imports = bring(kind, path)
    counts = _Counts()
    types: dict[str, int] = {}
    unplaced = list(found.unplaced)
    for one in found.entries:
        _admit(entries, one.type, one.content, one.source, one.tags, "medium", counts, dry_run)
        types[one.type] = types.get(one.type, 0) + 1
    relations = conversations = 0
    for subject, predicate, target, source in found.relations:
        try:
            relations += (
                1
                if dry_run
                else int(graph.relate(subject, predicate, target, source=f"import {source}").created)
            )
        except Refused as error:
            unplaced.append(f"{source}: {error.message}")
    for transcript in found.conversations:
        conversations += 1 if dry_run else int(archive(home, group, transcript, clock, forgotten) is not None)
    return BroughtIn(
        counts.stored, counts.known, counts.held, relations, conversations, types, tuple(unplaced), dry_run
    )


def _admit(
    entries: Entries,
    kind: str,
    content: str,
    source: str,
    tags: tuple[str, ...],
    priority: str,
    counts: _Counts,
    dry_run: bool,
) -> None:
    """Let one text in, unless it was ever stored: what was superseded or archived since must not come back."""
    if entries.knows(kind, content):
        counts.known += 1
        return
    if dry_run:
        counts.stored += 1
        return
    try:
        stored = entries.admit(
            rules.Draft(content, kind, rules.tags_of(list(tags)), priority), source=source, limited=False
        )
    except Refused:  # rejected in review, or forgotten
        counts.known += 1
        return
    counts.held += stored.status == "held"
    counts.known += stored.deduplicated
    counts.stored += not stored.deduplicated
