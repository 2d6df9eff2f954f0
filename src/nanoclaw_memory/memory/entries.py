"""The part `memory.entries`: list, review, publish and trace single entries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from nanoclaw_memory.memory.group import Part
from nanoclaw_memory.types import MAIN_GROUP, AuditVerdict, Entry, EntryLife, Recall, Scope

if TYPE_CHECKING:
    from nanoclaw_memory.entries.shared import Share
    from nanoclaw_memory.types.arguments import Query, RecallFormat, TokenBudget


class EntriesPart(Part):
    """List, review, publish and trace entries; `Memory.store` and `Memory.delete` add and remove them."""

    @property
    def types(self) -> tuple[str, ...]:
        """Return the types that an entry may have."""
        from nanoclaw_memory.entries.rules import TYPES

        return TYPES

    def all(
        self,
        types: Sequence[str] | None = None,
        tags: Sequence[str] = (),
        status: str = "active",
        limit: int = 100,
    ) -> list[Entry]:
        """Return entries as stored, newest first; `status` is all, active, held, superseded, archived or expired."""
        found = self._group.entries.listed(types, tags, status, limit)
        if (chats := self._group.shared_chats) is not None and chats.has("entries"):
            found += chats.entries.listed(types, tags, status, limit)
        return sorted(found, key=lambda entry: entry.provenance.timestamp, reverse=True)[:limit]

    def get(self, entry_id: str) -> Entry:
        """Return one entry, whatever its status."""
        return self._group.entries_of(entry_id).get(entry_id)

    def history(self, entry_id: str) -> list[Entry]:
        """Return an entry and those it replaced, newest first."""
        own = self._group.entries_of(entry_id)
        return [own.get(entry.id) for entry in own.chain(own.get(entry_id))]

    def reinforce(self, entry_id: str) -> Entry:
        """Mark an entry as still relevant: its importance is reset and fades more slowly."""
        return self._group.entries_of(entry_id).reinforce(entry_id)

    def approve(self, entry_id: str) -> Entry:
        """Approve a held entry; the entry that it replaces is retired now."""
        self._group.require_owner("approve an entry")
        return self._group.entries_of(entry_id).approve(entry_id)

    def reject(self, entry_id: str) -> Entry:
        """Reject a held entry: it is archived, and the same text is refused from now on."""
        self._group.require_owner("reject an entry")
        return self._group.entries_of(entry_id).reject(entry_id)

    def archive(self, entry_id: str) -> Entry:
        """Remove an entry from brief, search and recall without deleting it."""
        return self._group.entries_of(entry_id).archive(entry_id)

    def render(self) -> tuple[list[str], list[str]]:
        """Rewrite all domain files; return those written, and notes about those that a person edited."""
        return self._group.entries.render()

    # ---- the audit log ----

    def trace(self, entry_id: str) -> EntryLife:
        """Return every record of an entry in the audit log, and the entry as it is now."""
        self._group.require_group()
        return self._group.entries.trace(entry_id)

    def verify(self) -> AuditVerdict:
        """Verify the audit log against its head and against what each group's database remembers."""
        anchors = []
        self._group.require_private("the audit log")
        for group, private in itertools.product(self._group.home.groups(), (True, False)):
            with self._group.as_scope(Scope(group, private=private)) as other:
                if other.has("entries"):
                    whose = f"group {group}" if private else f"the shared chats of group {group}"
                    anchors.append((whose, other.entries.anchor()))
        return self._group.entries.ledger.audit_log.verify(anchors)

    def audit_records(self, limit: Annotated[int, Meta(ge=1, le=1000)] = 100) -> list[Mapping[str, Any]]:
        """Return the last records of the audit log, newest first: of this group, or of all for the main group."""
        self._group.require_private("the audit log")
        own = self._group.scope.group
        found = self._group.entries.ledger.audit_log.last(limit)
        return [record for record in found if own in (MAIN_GROUP, record.get("group"))]

    # ---- shared with other groups ----

    def shared_recall(
        self,
        query: Query,
        *,
        types: Sequence[str] | None = None,
        token_budget: TokenBudget | None = None,
        format: RecallFormat = "brief",
    ) -> Recall:
        """Recall from what other groups have published and granted to this one."""
        from nanoclaw_memory.retrieval.recall import RecallRequest, shared_recall

        self._group.require_group()
        budget = self._group.settings.entries.recall_budget if token_budget is None else token_budget
        wanted = RecallRequest(
            query, None if types is None else tuple(types), token_budget=budget, format=format
        )
        shared, now = self._group.entries.shared, self._group.clock.now()
        return shared_recall(shared, now, self._group.scope, wanted)

    def publish(self, entry_id: str) -> Entry:
        """Copy a current entry to where groups with a grant can read it."""
        return self._group.entries.shared.publish(entry_id)

    def unpublish(self, entry_id: str) -> None:
        """Remove a published copy."""
        self._group.entries.shared.unpublish(entry_id)

    def grant(self, reader: str) -> None:
        """Allow another group to read what this one publishes."""
        self._group.entries.shared.grant(reader)

    def revoke(self, reader: str) -> None:
        """Revoke a grant; it takes effect with the reader's next question."""
        self._group.entries.shared.revoke(reader)

    def shares(self) -> list[Share]:
        """Return what this group publishes, and what it may read of others."""
        return self._group.entries.shared.shares()
