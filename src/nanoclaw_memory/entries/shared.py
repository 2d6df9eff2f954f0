"""Shared memory: entries that a group has published, readable only by groups with a grant.

Each publishing group has a file of its own outside every group's directory. A reader's process opens it only after
finding its own grant in it; no query ever runs over two groups at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from nanoclaw_memory import statements
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.ledger import EntryLedger
from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import EntryTable, Filter
from nanoclaw_memory.types import Entry
from nanoclaw_memory.workspace.paths import check_group, require_owner, visible

SHARED_PATH = "shared/entries"
MOST = 100  # maximal entries of one group that are considered


class Share(msgspec.Struct, frozen=True):
    """What a group publishes, and to whom."""

    publisher: str
    readers: tuple[str, ...]
    entries: tuple[str, ...]


class SharedEntries:
    """The published entries of all groups, as one scope may read and publish them."""

    def __init__(
        self, ledger: EntryLedger, publishers: Callable[[], list[str]], database: Callable[[str], Database]
    ) -> None:
        self._ledger = ledger
        self._publishers = publishers
        self._database = database
        ledger.on_change = self.follow

    # ---- the publisher ----

    def publish(self, entry_id: str) -> Entry:
        """Copy a current entry to where groups with a grant can read it."""
        require_owner(self._ledger.scope, "publish an entry")
        entry = self._ledger.entry(entry_id)
        if entry.status != "active":
            raise InvalidValue(f"id: {entry.id} is {entry.status}", "only current entries are published")
        self._copy(self._own(), entry)
        with self._ledger.db.transaction():
            self._ledger.audit("publish", entry.id)
        return entry

    def unpublish(self, entry_id: str) -> None:
        """Remove a published copy."""
        require_owner(self._ledger.scope, "take back a published entry")
        if self._remove(self._own(), [entry_id]) == 0:
            raise NotFound(f"id: {entry_id[:80]} is not published", "see: ncm share list")
        with self._ledger.db.transaction():
            self._ledger.audit("unpublish", entry_id)

    def grant(self, reader: str) -> None:
        """Allow another group to read what this one publishes."""
        require_owner(self._ledger.scope, "grant access")
        check_group(reader)
        if reader == self._ledger.scope.group:
            raise InvalidValue("reader: a group reads its own entries anyway", "name another group")
        if reader not in self._ledger.home.groups():
            raise NotFound(f"reader: there is no group {reader!r}", f"create it: ncm init --group {reader}")
        db = self._own()
        with db.transaction():
            db.execute(
                "INSERT INTO grants (reader, granted_at) VALUES (:reader, :moment) ON CONFLICT DO NOTHING",
                {"reader": reader, "moment": self._ledger.moment()},
            )
        db.let_read(reader, True)
        with self._ledger.db.transaction():
            self._ledger.audit("grant", "", reader=reader)

    def revoke(self, reader: str) -> None:
        """Revoke a grant; it takes effect with the reader's next question."""
        require_owner(self._ledger.scope, "revoke access")
        db = self._own()
        with db.transaction():
            if not db.update("DELETE FROM grants WHERE reader = :reader", {"reader": reader}):
                raise NotFound(f"reader: {reader[:80]!r} has no grant", "see: ncm share list")
        db.let_read(reader, False)
        with self._ledger.db.transaction():
            self._ledger.audit("revoke", "", reader=reader)

    def shares(self) -> list[Share]:
        """Return what this group publishes (hidden from shared scopes), and what it may read of others."""
        found = []
        for publisher in self._publishers():
            db = self._database(publisher)
            own = publisher == self._ledger.scope.group
            if (own and self._ledger.scope.private) or (not own and self._granted(db)):
                readers = tuple(str(row[0]) for row in db.query("SELECT reader FROM grants ORDER BY 1"))
                ids = tuple(entry.id for entry in EntryTable(db).all(Filter(self._ledger.moment())))
                found.append(Share(publisher, readers if own else (self._ledger.scope.group,), ids))
        return found

    def follow(self, gone: Sequence[Entry], come: Sequence[Entry]) -> None:
        """Update or remove the published copies of changed entries."""
        if self._ledger.scope.group not in self._publishers():
            return
        db = self._own()
        table = EntryTable(db)
        self._remove(db, [entry.id for entry in gone])
        for entry in come:
            if table.get(entry.id) is not None:
                self._copy(db, entry)

    # ---- the reader ----

    def matching(self, query: str, types: Iterable[str] | None, priority_min: str) -> list[Entry]:
        """Return published entries of the groups that granted this one: with any word of a query, or the recent
        ones.
        """
        if not visible(self._ledger.scope, SHARED_PATH, self._ledger.settings.privacy.shared_files):
            return []
        chosen = None if types is None else tuple(rules.choice("type", kind, rules.TYPES) for kind in types)
        wanted = Filter(self._ledger.moment(), chosen, priority_min=priority_min)
        found: list[Entry] = []
        for publisher in self._publishers():
            if publisher == self._ledger.scope.group:
                continue
            db = self._database(publisher)
            if not self._granted(db):
                continue
            table = EntryTable(db)
            found += table.matching(query, wanted, MOST) if query.strip() else table.recent(wanted, MOST)
        return found

    # ---- inside ----

    def _own(self) -> Database:
        return self._database(self._ledger.scope.group)

    def _granted(self, db: Database) -> bool:
        reader = {"reader": self._ledger.scope.group}
        return bool(db.query("SELECT 1 FROM grants WHERE reader = :reader", reader))

    def _copy(self, db: Database, entry: Entry) -> None:
        table = EntryTable(db)
        key = statements.text_key(entry.content)
        with db.transaction():
            table.change(entry, key) if table.get(entry.id) else table.add(entry, key)

    def _remove(self, db: Database, ids: Sequence[str]) -> int:
        table = EntryTable(db)
        with db.transaction():
            present = [entry_id for entry_id in ids if table.get(entry_id) is not None]
            for entry_id in present:
                table.delete(entry_id)
        return len(present)
