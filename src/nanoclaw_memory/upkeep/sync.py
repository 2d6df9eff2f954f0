"""Export a group's memory as text beside its pages, and record what this machine had when it did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.store.records import KINDS, RecordStore, RemovalRecord, StoredRecord, id_of
from nanoclaw_memory.types import Exported
from nanoclaw_memory.upkeep.sync_files import ExportDirectory, ExportedLines, sync_key
from nanoclaw_memory.upkeep.sync_merge import merge, without_removed

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

STATE_FILE = "sync.json"
DATABASES = ("facts", "entries", "continuity")
TABLES = tuple(kind for kind in KINDS if kind != "removed")  # kinds with rows; tombstones are handled first
Ids = dict[str, set[str]]  # of one kind in one world, as `world/kind`


class SyncState(msgspec.Struct):
    """What this machine had when it last exported or imported: ids only, no text."""

    cursors: dict[str, tuple[int, int]] = {}
    seen: Ids = {}  # present at the last export or import
    known: Ids = {}  # present at the last import: what other machines may know
    removed: Ids = {}  # deletions that were carried out here
    dropped: Ids = {}  # records that are not imported: forgotten, or the same as another

    @classmethod
    def of(cls, group: Group) -> SyncState:
        """Return the stored state; a lost one costs only the deletions since then."""
        return private.read_json(group.data / STATE_FILE, cls) or cls()

    def save(self, group: Group) -> None:
        """Store the state."""
        text = msgspec.json.encode(self, order="deterministic").decode()
        private.replace_file(group.data / STATE_FILE, text)

    def remember(
        self, world: str, store: RecordStore, rows: dict[str, dict[str, StoredRecord]], removed: Ids
    ) -> None:
        """Record what a world has now, and what was removed from it."""
        for kind in TABLES:
            self.seen[f"{world}/{kind}"] = set(rows[kind])
            self.removed[f"{world}/{kind}"] = removed[kind]
        for name in DATABASES:
            if cursor := store.cursor(name):
                self.cursors[f"{world}/{name}"] = cursor


def export(group: Group, folder: Path) -> Exported:
    """Write everything that is not Markdown into a directory; other machines' lines not imported yet stay there."""
    directory = directory_of(group, folder, new=True)
    state = SyncState.of(group)
    files, lines = directory.write_attributes(), 0
    for world, store in worlds_of(group):
        found = directory.read(world)
        rows = {kind: store.rows(kind) for kind in TABLES}
        removed = _removed_ids(state, world, store, rows, found)
        for kind in TABLES:
            records = _exported(kind, rows[kind], found, removed, state.dropped.get(f"{world}/{kind}", set()))
            files += directory.write(world, kind, records, found.foreign.get(kind, []))
            lines += len(records)
        gone = _removals(removed)
        files += directory.write(world, "removed", gone, found.foreign.get("removed", []))
        state.remember(world, store, rows, removed)
    state.save(group)
    return Exported(directory=str(folder), lines=lines, files_changed=files)


def _exported(
    kind: str, rows: dict[str, StoredRecord], found: ExportedLines, removed: Ids, dropped: set[str]
) -> dict[str, Any]:
    """Return the records for a file: ours merged with other versions of the same, and new ones of others."""
    gone = removed[kind]
    records = {}
    for name, row in rows.items():
        versions = [row.record, *found.records[kind].get(name, ())]
        records[name] = merge(without_removed(version, gone) for version in versions)
    for name, versions in found.records[kind].items():
        if name not in records and name not in gone and name not in dropped:
            records[name] = merge(without_removed(version, gone) for version in versions)
    return records


def _removed_ids(
    state: SyncState,
    world: str,
    store: RecordStore,
    rows: dict[str, dict[str, StoredRecord]],
    found: ExportedLines,
) -> Ids:
    """Return what was deleted on purpose, here or elsewhere. A restored or replaced database deletes nothing."""
    removed: Ids = {kind: set() for kind in TABLES}
    for one in (version for versions in found.records["removed"].values() for version in versions):
        removed.get(one.kind, set()).add(one.removed)
    for kind in TABLES:
        place, base = f"{world}/{kind}", KINDS[kind].database
        continued = base == "forgotten" or store.continues(base, state.cursors.get(f"{world}/{base}"))
        gone = state.seen.get(place, set()) - state.dropped.get(place, set()) if continued else set()
        removed[kind] |= state.removed.get(place, set()) | gone
        removed[kind] -= rows[kind].keys()
    return removed


def _removals(removed: Ids) -> dict[str, RemovalRecord]:
    gone = (RemovalRecord(kind=kind, removed=name) for kind, names in removed.items() for name in names)
    return {id_of("removed", removal_record): removal_record for removal_record in gone}


# ---- shared by export and import ----


def directory_of(group: Group, folder: Path, new: bool = False) -> ExportDirectory:
    """Return the directory of an export, for the owner alone; with `new` this machine may get its key."""
    group.require_owner("export or import memory")
    group.require_workspace()
    group.require_own_file(folder)
    return ExportDirectory(folder, sync_key(group.home.root, new), group.scope.group)


def worlds_of(group: Group, needed: list[str] | None = None) -> Iterator[tuple[str, RecordStore]]:
    """Yield the worlds of a group: its private memory, and its shared chats if they exist or are `needed`."""
    yield "private", RecordStore(group.database, group.has)
    chats = group.shared_chats
    if chats is None and "shared" in (needed or ()):
        chats = group.open_shared_chats()
    if chats is not None:
        # Tombstones apply to both worlds and are exported once.
        yield "shared", RecordStore(chats.database, lambda name: name != "forgotten" and chats.has(name))
