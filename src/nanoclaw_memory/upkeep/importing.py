"""Import memory files and exports of other memories: entries with their source, relations, conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

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
from nanoclaw_memory.progress import counted
from nanoclaw_memory.store.entries import Filter
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.store.phrases import FORGOTTEN
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import Archived, BroughtIn, Transcript
from nanoclaw_memory.workspace.files import read_text

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.providers.judge import Judge

NOTHING = BroughtIn(stored=0, known=0, held=0, relations=0, conversations=0, types={}, unplaced=())
REMOVALS = ("delete", "purge")  # what these events removed must not be imported again


class EntryImport:
    """Import entries, each text only once ever, and count the results."""

    def __init__(self, entries: Entries, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.counts: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.placed: list[str] = []
        self._entries = entries
        self._ledger = ledger = entries.ledger
        # Wordings that a merge replaced, and deleted texts: the log contains their fingerprints.
        wordings = "SELECT e.type, m.content FROM merges m JOIN entries e ON e.id = m.entry_id"
        self._replaced = {(kind, statements.text_key(text)) for kind, text in ledger.db.query(wordings)}
        self._removed = {
            (str(record.get("type")), str(record.get("text")))
            for record in ledger.audit_log.records()
            if record.get("event") in REMOVALS and record.get("group") == ledger.scope.group
        }

    def run(self, found: Imports, source: str, relations: int = 0, conversations: int = 0) -> BroughtIn:
        """Import all entries and return a report; the audit log gets one line for the whole import."""
        for one in counted("entries looked at" if self.dry_run else "entries", found.entries):
            self.types[one.type] += 1
            try:
                self.counts[self._import(one)] += 1
            except Refused as error:
                found.skip(one.source, error.message)
        stored = self.counts["stored"] + self.counts["held"]
        if not self.dry_run and (stored or relations or conversations):
            named = FORGOTTEN if self._ledger.intake.forgets(source) else source
            counts = {"entries": stored, "relations": relations, "conversations": conversations}
            with self._ledger.db.transaction():
                self._ledger.audit("import", "", source=named, counts=counts)
        return BroughtIn(
            stored=stored,
            known=self.counts["known"],
            held=self.counts["held"],
            relations=relations,
            conversations=conversations,
            types=dict(self.types),
            unplaced=tuple(found.unplaced),
            dry_run=self.dry_run,
            judged=tuple(found.judged),
            placed=tuple(self.placed),
        )

    def _import(self, one: ImportedEntry) -> str:
        """Import one text, unless it was ever stored; return stored, held or known."""
        now = self._ledger.clock.now()
        draft = rules.draft(one.content, one.type, now=now, tags=one.tags, priority=one.priority)
        text = self._ledger.intake.masked(draft.content).text  # the form in which it would have been stored
        key = (one.type, statements.text_key(text))
        removed = (one.type, fingerprint(text)) in self._removed
        if removed or key in self._replaced or self._entries.knows(one.type, text):
            return "known"
        if self.dry_run:
            self._replaced.add(key)
            self.placed.append(f"{one.source}: {one.type}: {text}")
            return "stored"
        try:
            done = self._entries.admission.admit(draft, source=one.source, limited=False, origin=one.origin)
        except Refused:  # rejected in review, or forgotten
            return "known"
        return "known" if done.deduplicated else "held" if done.status == "held" else "stored"


def migrate_files(
    entries: Entries, files: Iterable[tuple[str, Path]], dry_run: bool, judge: Judge | None = None
) -> BroughtIn:
    """Import MEMORY.md and memory/*.md as typed entries; the files are unchanged, a second run adds nothing."""
    found = Imports()
    for relative, path in files:
        if not _is_memory(relative):
            continue
        try:
            read_page(found, relative, read_text(path), judge=judge)
        except (NanoClawError, FileNotFoundError) as error:
            found.skip(relative, getattr(error, "message", "it is gone"))
    return EntryImport(entries, dry_run).run(found, "memory files")


def undo_migration(entries: Entries, dry_run: bool) -> BroughtIn:
    """Remove what migrations stored and nobody has changed or replaced since; it can be migrated again."""
    migrated = [
        one.id
        for one in entries.ledger.table.all(Filter(entries.ledger.moment(), statuses=("active", "held")))
        if _is_memory(one.provenance.source.rpartition(":")[0])
        and not one.supersedes
        and one.updated_at == one.provenance.timestamp
    ]
    for entry_id in () if dry_run else migrated:
        entries.remove(entry_id, "undo")
    return BroughtIn(0, 0, 0, 0, 0, {}, (), dry_run=dry_run, removed=len(migrated))


def restore_lost(entries: Entries, dry_run: bool) -> BroughtIn:
    """Import entries from domain files that the database lost; those of an edited file count as imported."""
    domains = entries.ledger.domains
    lost = {kind: domains.lost(kind) for kind in rules.TYPES}
    found = Imports(
        [
            ImportedEntry(kind, one.text, f"{domain_path(kind)}:{one.line}", (), one.priority, one.origin)
            for kind, lines in lost.items()
            for one in lines
        ]
    )
    done = EntryImport(entries, dry_run).run(found, "memory/domains")
    for kind, lines in lost.items():
        file = domains.read(kind) if lines and not dry_run else None
        if file is not None and not file.edited:
            domains.discard_edits(kind)
    return done


def combined(first: BroughtIn, second: BroughtIn) -> BroughtIn:
    """Return the sum of two reports."""
    summed = ("stored", "known", "held", "relations", "conversations", "unplaced", "judged", "placed")
    sums = {name: getattr(first, name) + getattr(second, name) for name in summed}
    types = dict(sorted((Counter(first.types) + Counter(second.types)).items()))
    return replace(first, types=types, **sums)


def _is_memory(relative: str) -> bool:
    folder, _, name = relative.rpartition("/")
    return (
        relative == "MEMORY.md" or folder == "memory" or (folder == "shared" and name.startswith("project-"))
    )


def import_export(group: Group, kind: str, path: Path, dry_run: bool) -> BroughtIn:
    """Import an export of another memory; everything has the origin `import` and its source."""
    found = read_export(kind, path)  # read whole: nothing of a truncated file is imported
    relations = sum(
        _relate(group.graph, one, found, dry_run) for one in counted("relations", found.relations)
    )
    conversations = _archive_all(group, found.conversations, dry_run)
    return EntryImport(group.entries, dry_run).run(found, f"{kind}: {path.name}", relations, conversations)


def import_triples(group: Group, path: Path, dry_run: bool) -> BroughtIn:
    """Import the graph of the official MCP memory server (memory.jsonl): facts, relations, aliases."""
    if dry_run:
        from nanoclaw_memory.graph.transfer import read_rows

        return replace(NOTHING, relations=sum(1 for _ in read_rows(path)), dry_run=True)
    done = group.graph.import_file(path)
    count = done.facts + done.relations + done.aliases
    return replace(NOTHING, known=done.known, relations=count, unplaced=done.problems)


def _relate(graph: KnowledgeGraph, one: ImportedRelation, found: Imports, dry_run: bool) -> bool:
    """Store a relation; return whether it is new."""
    if dry_run:
        known = graph.relations.line([fold(one.subject)], slot_of(one.predicate))
        return not any(row.names[1] == fold(one.object) and not row.item.valid_to for row in known)
    try:
        origin = Origin(f"import {one.source}", by="import")
        new = NewRelation(subject=one.subject, predicate=one.predicate, object=one.object)
        return graph.writer.relate(new, origin).created
    except Refused as error:
        found.skip(one.source, error.message)
        return False


def _archive_all(group: Group, conversations: Sequence[Transcript], dry_run: bool) -> int:
    home, name = group.home, group.scope.group
    known: dict[str, list[Archived]] = {}
    for part in archives(home, name):  # listed once: an export may contain thousands
        known.setdefault(part.session_id, []).append(part)
    act = unarchived if dry_run else archive
    return sum(
        bool(act(home, name, one, group.clock, group.intake, known))
        for one in counted("conversations", conversations)
    )
