"""Import memory files and exports of other memories: entries with their source, relations, conversations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory import statements
from nanoclaw_memory.conversations.archive import archive, archives, unarchived
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.domains import domain_path
from nanoclaw_memory.entries.entries import Entries
from nanoclaw_memory.entries.importers import read_export
from nanoclaw_memory.entries.markdown import ImportedEntry, ImportedRelation, Imports, read_page
from nanoclaw_memory.errors import NanoClawError, Refused
from nanoclaw_memory.graph.graph import KnowledgeGraph
from nanoclaw_memory.graph.writer import NewRelation, Origin
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.store.phrases import FORGOTTEN
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import Archived, BroughtIn, Transcript
from nanoclaw_memory.workspace.files import read_text

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

REMOVALS = ("delete", "purge")  # what was removed by these must not come back by an import


class EntryImport(msgspec.Struct):
    """Imports entries, each text once for all time."""

    entries: Entries
    dry_run: bool
    stored: int = 0
    known: int = 0
    held: int = 0
    types: dict[str, int] = msgspec.field(default_factory=dict)
    unplaced: list[str] = msgspec.field(default_factory=list)
    _before: set[tuple[str, str]] = msgspec.field(default_factory=set)
    _gone: set[tuple[str, str]] = msgspec.field(default_factory=set)

    def __post_init__(self) -> None:
        ledger = self.entries.ledger
        # Wordings that a merge replaced, and texts that were deleted: the log knows their fingerprints.
        wordings = "SELECT e.type, m.content FROM merges m JOIN entries e ON e.id = m.entry_id"
        self._before = {(kind, statements.text_key(text)) for kind, text in ledger.db.query(wordings)}
        self._gone = {
            (str(record.get("type")), str(record.get("text")))
            for record in ledger.audit_log.records()
            if record.get("event") in REMOVALS and record.get("group") == ledger.scope.group
        }

    def admit(self, one: ImportedEntry) -> None:
        """Import one text, unless it was ever stored: what was done with it since stays."""
        ledger = self.entries.ledger
        self.types[one.type] = self.types.get(one.type, 0) + 1
        try:
            draft = rules.draft(
                one.content, one.type, now=ledger.clock.now(), tags=one.tags, priority=one.priority
            )
        except Refused as error:
            self.unplaced.append(f"{one.source}: {error.message}")
            return
        text = ledger.intake.masked(draft.content).text  # as it was stored, if it ever was
        key = (one.type, statements.text_key(text))
        if (
            key in self._before
            or (one.type, fingerprint(text)) in self._gone
            or self.entries.knows(one.type, text)
        ):
            self.known += 1
            return
        if self.dry_run:
            self._before.add(key)
            self.stored += 1
            return
        try:
            done = self.entries.admission.admit(draft, source=one.source, limited=False)
        except Refused:  # rejected in review, or forgotten
            self.known += 1
            return
        self.held += done.status == "held"
        self.known += done.deduplicated
        self.stored += not done.deduplicated

    def report(self, source: str, relations: int = 0, conversations: int = 0) -> BroughtIn:
        """What was imported; the audit log gets one line for the whole."""
        if not self.dry_run and (self.stored or relations or conversations):
            ledger = self.entries.ledger
            with ledger.db.transaction():
                counts = {"entries": self.stored, "relations": relations, "conversations": conversations}
                named = FORGOTTEN if ledger.intake.forgets(source) else source
                ledger.audit("import", "", source=named, counts=counts)
        return BroughtIn(
            self.stored,
            self.known,
            self.held,
            relations,
            conversations,
            self.types,
            tuple(self.unplaced),
            self.dry_run,
        )


def migrate_files(entries: Entries, files: Iterable[tuple[str, Path]], dry_run: bool) -> BroughtIn:
    """Import MEMORY.md and memory/*.md as typed entries; never changes the files, a second run adds nothing."""
    done = EntryImport(entries, dry_run)
    found = Imports(unplaced=done.unplaced)
    for relative, path in files:
        if not _is_memory(relative):
            continue
        try:
            read_page(found, relative, read_text(path))
        except (NanoClawError, FileNotFoundError) as error:
            found.skip(relative, getattr(error, "message", "it is gone"))
    for one in found.entries:
        done.admit(one)
    return done.report("memory files")


def restore_lost(entries: Entries, dry_run: bool) -> BroughtIn:
    """Import what domain files contain of entries that the database lost; a file may have been changed since."""
    done = EntryImport(entries, dry_run)
    for kind in rules.TYPES:
        lost = entries.ledger.domains.lost(kind)
        for one in lost:
            source = f"{domain_path(kind)}:{one.line}"
            done.admit(ImportedEntry(kind, one.text, source, priority=one.priority))
        page = entries.ledger.domains.read(kind)
        if lost and not dry_run and page is not None and not page.edited:
            entries.ledger.domains.discard_edits(kind)
    return done.report("memory/domains")


def together(first: BroughtIn, second: BroughtIn) -> BroughtIn:
    """Two reports as one."""
    kinds = first.types.keys() | second.types.keys()
    return BroughtIn(
        first.stored + second.stored,
        first.known + second.known,
        first.held + second.held,
        first.relations + second.relations,
        first.conversations + second.conversations,
        {kind: first.types.get(kind, 0) + second.types.get(kind, 0) for kind in sorted(kinds)},
        first.unplaced + second.unplaced,
        first.dry_run,
    )


def _is_memory(relative: str) -> bool:
    folder, _, name = relative.rpartition("/")
    return (
        relative == "MEMORY.md" or folder == "memory" or (folder == "shared" and name.startswith("project-"))
    )


def import_export(group: Group, kind: str, path: Path, dry_run: bool) -> BroughtIn:
    """Import an export of another memory; everything has the origin `import` and its source."""
    found = read_export(kind, path)  # read whole: of a file that breaks off half-way nothing is imported
    done = EntryImport(group.entries, dry_run, unplaced=list(found.unplaced))
    for one in found.entries:
        done.admit(one)
    relations = sum(_relate(group.graph, one, done) for one in found.relations)
    conversations = _archive_all(group, found.conversations, dry_run)
    return done.report(f"{kind}: {path.name}", relations, conversations)


def _relate(graph: KnowledgeGraph, one: ImportedRelation, done: EntryImport) -> bool:
    """Store a relation; returns whether it is new."""
    if done.dry_run:
        known = graph.relations.line([fold(one.subject)], slot_of(one.predicate))
        return not any(row.object == fold(one.object) and not row.relation.valid_to for row in known)
    try:
        origin = Origin(f"import {one.source}")
        new = NewRelation(subject=one.subject, predicate=one.predicate, object=one.object)
        return graph.writer.relate(new, origin).created
    except Refused as error:
        done.unplaced.append(f"{one.source}: {error.message}")
        return False


def _archive_all(group: Group, conversations: Iterable[Transcript], dry_run: bool) -> int:
    home, name = group.home, group.scope.group
    known: dict[str, list[Archived]] = {}
    for part in archives(home, name):  # looked for once: an export may contain thousands
        known.setdefault(part.session_id, []).append(part)
    act = unarchived if dry_run else archive
    return sum(bool(act(home, name, one, group.clock, group.intake, known)) for one in conversations)
