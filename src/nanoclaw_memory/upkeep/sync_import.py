"""Merge in what the person's other machines exported: tombstones, deletions, then rows; conflicts are proposed."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple, replace

from nanoclaw_memory.errors import NotFound, Refused
from nanoclaw_memory.progress import counted
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.store.records import KINDS, RecordStore, StoredRecord, id_of
from nanoclaw_memory.types import MergedIn
from nanoclaw_memory.upkeep.sync import DATABASES, TABLES, SyncState, directory_of, worlds_of
from nanoclaw_memory.upkeep.sync_files import WORLDS, ExportedLines
from nanoclaw_memory.upkeep.sync_merge import (
    ImportedRows,
    conflicting_successors,
    conflicting_values,
    merge,
    stored_twice,
    without_removed,
)

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group


def import_directory(group: Group, folder: Path) -> MergedIn:
    """Merge in what other machines exported; what was forgotten anywhere is forgotten here."""
    if not folder.is_dir():
        hint = "give the directory that ncm export wrote; another memory's export needs its kind: ncm import --help"
        raise NotFound(f"{folder} is a file" if folder.exists() else f"there is no {folder}", hint)
    directory = directory_of(group, folder)
    worlds = {world: directory.read(world) for world in WORLDS}
    if not any(found.signed for found in worlds.values()):
        foreign = any(found.foreign for found in worlds.values())
        raise Refused(
            f"{folder} contains no line that is signed with this machine's key",
            "copy sync.key from the machine that exported it" if foreign else "give what ncm export wrote",
        )
    state = SyncState.of(group)
    done = MergedIn(problems=tuple(problem for found in worlds.values() for problem in found.problems))
    for world, store in worlds_of(group, [world for world, found in worlds.items() if found.signed]):
        done = _WorldImport(group, world, store, state, worlds[world]).run(done)
    if done.added.get("tombstones"):
        group.forget_again()
    for world, store in worlds_of(group):
        rows = {kind: store.rows(kind) for kind in TABLES}
        gone = {kind: state.removed.get(f"{world}/{kind}", set()) - rows[kind].keys() for kind in TABLES}
        state.remember(world, store, rows, gone)
        for kind in TABLES:
            state.known[f"{world}/{kind}"] = set(rows[kind])
            state.dropped[f"{world}/{kind}"] = worlds[world].records[kind].keys() - rows[kind].keys()
    state.save(group)
    return done


class _WorldImport:
    """The import of one world."""

    def __init__(
        self, group: Group, world: str, store: RecordStore, state: SyncState, found: ExportedLines
    ) -> None:
        self.group = group
        self.own = group if world == "private" else group.shared_chats or group
        self.world = world
        self.store = store
        self.state = state
        self.found = found
        self.rows: dict[str, dict[str, StoredRecord]] = {}
        self.same: dict[str, str] = {}  # ids of records that another one replaces
        self.added: dict[str, int] = {}
        self.changed: dict[str, int] = {}
        self.removed: dict[str, int] = {}
        self.refused = 0
        self.new: dict[str, set[str]] = {kind: set() for kind in TABLES}  # records that were added or changed
        self.came: dict[str, set[str]] = {kind: set() for kind in TABLES}

    def run(self, done: MergedIn) -> MergedIn:
        """Import tombstones first, then deletions, then everything else; each database in one transaction."""
        self._add_tombstones()
        with ExitStack() as stack:
            for name in DATABASES:
                if self.store.has(name) or self._brings(name) or name == "entries":
                    stack.enter_context(self.store.database(name).transaction())
            self.rows = {kind: self.store.rows(kind) for kind in TABLES}
            self._delete()
            for kind in TABLES[1:]:
                self._take_all(kind)
            for kind in ("facts", "relations", "lessons"):
                self._link(kind)
            conflicts = self._propose_conflicts()
        self._withdraw()
        self._render()
        return MergedIn(
            added=_sum(done.added, self.added),
            changed=_sum(done.changed, self.changed),
            removed=_sum(done.removed, self.removed),
            forgotten=done.forgotten + self.refused,
            conflicts=(*done.conflicts, *conflicts),
            problems=done.problems,
        )

    def _brings(self, database: str) -> bool:
        return any(self.found.records[kind] for kind in TABLES if KINDS[kind].database == database)

    def _add_tombstones(self) -> None:
        """Refuse what was forgotten or rejected elsewhere."""
        known = self.store.rows("tombstones")
        gone = self._gone("tombstones")
        new = [v[0] for name, v in self.found.records["tombstones"].items() if name not in {*known, *gone}]
        if new:
            self.group.intake.add_tombstones(list(map(astuple, new)))
            self.added["tombstones"] = len(new)
        allowed = [row.record for name, row in known.items() if name in self._new_removals("tombstones")]
        if allowed:
            self.group.intake.remove_tombstones(list(map(astuple, allowed)))

    def _gone(self, kind: str) -> set[str]:
        """Return the ids of a kind that were deleted on purpose, on any machine."""
        every = (version for versions in self.found.records["removed"].values() for version in versions)
        return {one.removed for one in every if one.kind == kind}

    def _new_removals(self, kind: str) -> set[str]:
        """Return deletions not carried out here yet, without what was stated again since."""
        place = f"{self.world}/{kind}"
        gone = self._gone(kind)
        new = gone - self.state.removed.get(place, set())
        self.state.removed[place] = self.state.removed.get(place, set()) | gone
        return new

    def _delete(self) -> None:
        for kind in TABLES[1:]:
            for name in sorted(self._new_removals(kind) & self.rows[kind].keys()):
                self._remove(kind, name)
        for kind in ("facts", "relations"):
            for name in [
                name for name, row in self.rows[kind].items() if self._is_rejected(kind, row.record)
            ]:
                self._remove(kind, name)
        if any(
            self.removed.get(kind) for kind in ("facts", "relations")
        ):  # the statements that they had replaced are valid again
            self.rows |= {kind: self.store.rows(kind) for kind in ("facts", "relations")}

    def _remove(self, kind: str, name: str) -> None:
        row = self.rows[kind].pop(name)
        self.store.delete(kind, row)
        if kind == "entries":
            self.own.entries.ledger.audit("delete", row.record.id, by="another machine")
        self.removed[kind] = self.removed.get(kind, 0) + 1

    # ---- rows ----

    def _take_all(self, kind: str) -> None:
        gone, dropped = self._gone(kind), self.state.dropped.setdefault(f"{self.world}/{kind}", set())
        current = {
            _content(kind, row.record): name
            for name, row in self.rows[kind].items()
            if _is_current(row.record)
        }
        found = self.found.records[kind]
        for name in counted(kind, sorted(found, key=lambda one: KINDS[kind].order(found[one][0]))):
            if name in dropped or (name in gone and name not in self.rows[kind]):
                continue
            row = self.rows[kind].get(name)
            versions = [without_removed(one, gone) for one in found[name]]
            record = merge([*([row.record] if row else []), *versions])
            if row and record == row.record:
                continue
            admitted = self._admitted(kind, record)
            if admitted is None:
                dropped.add(name)
                self.refused += 1
                continue
            self._take(kind, name, admitted, row, current)

    def _take(
        self, kind: str, name: str, record: Any, row: StoredRecord | None, current: dict[tuple[str, ...], str]
    ) -> None:
        """Store one record; a statement that is current here is the same one, dated by its first mention."""
        place = f"{self.world}/{kind}"
        other = current.get(_content(kind, record)) if _is_current(record) else None
        if other is not None and other != name:
            if row is not None:  # it would be current twice
                return
            row = self.rows[kind].pop(other)
            record = merge([record, row.record])
        stored = id_of(kind, record)
        for gone in {name, other or name} - {stored}:
            self.state.dropped.setdefault(place, set()).add(gone)
            self.same[gone] = stored
        number = self.store.put(kind, record, row.number if row else 0)
        self.rows[kind][stored] = StoredRecord(number, record)
        if _is_current(record):
            current[_content(kind, record)] = stored
        counts = self.changed if row else self.added
        counts[kind] = counts.get(kind, 0) + 1
        self.new[kind].add(stored)
        if not row:
            self.came[kind].add(stored)
        if kind == "entries":
            self.own.entries.ledger.audit("import", record.id, source="another machine")

    def _admitted(self, kind: str, record: Any) -> Any | None:
        """Return the record after the intake; None if it was forgotten or rejected here."""
        own = KINDS[kind]
        texts = [str(getattr(record, name)) for name in own.texts]
        if self.group.intake.forgets(*texts) or self._is_rejected(kind, record):
            return None
        if kind == "facts":
            return replace(
                record, value=self.group.intake.masked_fact(record.entity, record.key, record.value).text
            )
        clean = {
            name: self.group.intake.masked(text).text for name, text in zip(own.texts, texts, strict=True)
        }
        return replace(record, **clean)

    def _is_rejected(self, kind: str, record: Any) -> bool:
        if kind == "facts":
            name, slot, value = fold(record.entity), slot_of(record.key), record.value
        elif kind == "relations":
            name, slot, value = fold(record.subject), slot_of(record.predicate), record.object
        else:
            return False
        return self.own.intake.rejects((name,), slot, value)

    def _link(self, kind: str) -> None:
        """Point statements and lessons of this import to the rows that they refer to."""
        rows, others = self.rows[kind], self.rows["exchanges" if kind == "lessons" else kind]
        field = "exchange" if kind == "lessons" else "superseded_by"
        links = []
        for name in self.new[kind]:
            wanted = getattr(rows[name].record, field)
            other = others.get(self.same.get(wanted, wanted))
            links.append((rows[name].number, other.number if other else 0 if kind == "lessons" else None))
        if links:
            self.store.link(kind, links)

    # ---- conflicts between two machines ----

    def _propose_conflicts(self) -> list[str]:
        """Keep one of two equal entries, and let the person decide between different ones; return the proposals."""
        if self.came["entries"]:
            for name, record, author in list(stored_twice(self.rows["entries"])):
                self._put("entries", name, record)
                if author == "owner":
                    self._accept(record)
        own = self.group.settings.graph
        found = [
            *(
                proposal
                for kind in ("facts", "relations")
                for proposal in conflicting_values(self._merged(kind), own, self.world)
            ),
            *conflicting_successors(self._merged("entries"), self.world),
        ]
        gone = self._gone("proposals")
        new = {id_of("proposals", proposal): proposal for proposal in found}
        new = {
            name: proposal
            for name, proposal in new.items()
            if name not in self.rows["proposals"] and name not in gone
        }
        for name, proposal in new.items():
            self._put("proposals", name, proposal)
        return [proposal.id for proposal in new.values()]

    def _merged(self, kind: str) -> ImportedRows:
        known = self.state.known.get(f"{self.world}/{kind}", set())
        return ImportedRows(kind, self.rows[kind], self.came[kind], known)

    def _accept(self, ended: Any) -> None:
        """Close open decisions on an entry that the person stored themselves elsewhere."""
        for name, row in list(self.rows["proposals"].items()):
            one = row.record
            if one.status == "open" and json.loads(one.payload).get("id") == ended.id:
                self._put("proposals", name, replace(one, status="accepted", decided_at=ended.updated_at))

    def _put(self, kind: str, name: str, record: Any) -> None:
        row = self.rows[kind].get(name)
        self.rows[kind][name] = StoredRecord(self.store.put(kind, record, row.number if row else 0), record)
        self.new[kind].add(name)

    def _withdraw(self) -> None:
        """Withdraw proposals of lessons that were decided elsewhere."""
        decided = {
            self.rows["lessons"][name].number
            for name in self.new["lessons"]
            if self.rows["lessons"][name].record.state != "candidate"
        }
        for proposal in self.own.proposals.listed("open", "lesson") if decided else ():
            if proposal.payload.get("lesson") in decided and "file" not in proposal.payload:
                self.own.proposals.take_back(proposal.id)

    def _render(self) -> None:
        """Write the domain files of entries that were added or changed."""
        if self.world == "private":
            changed = {self.rows["entries"][name].record.type for name in self.new["entries"]}
            for kind in sorted(changed):
                self.group.entries.ledger.domains.render(kind)


def _is_current(record: Any) -> bool:
    return hasattr(record, "valid_to") and record.valid_to is None


def _content(kind: str, record: Any) -> tuple[str, ...]:
    """Return the content of a statement without its dates; the first three fields name its subject and project."""
    return KINDS[kind].identity(record)[:4] if hasattr(record, "valid_to") else ()


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {kind: one.get(kind, 0) + other.get(kind, 0) for kind in {**one, **other}}
