"""Typed entries: store, find, delete, reinforce, approve; every change is audited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from nanoclaw_memory import statements
from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.admission import PASTED, Admission
from nanoclaw_memory.entries.audit_log import GENESIS, Link
from nanoclaw_memory.entries.brief import BriefLimits, BriefReader, within_time, write_brief
from nanoclaw_memory.entries.domains import domain_path
from nanoclaw_memory.entries.ledger import EntryLedger, held_key
from nanoclaw_memory.entries.lines import as_hit, masked
from nanoclaw_memory.entries.rules import EntryDraft
from nanoclaw_memory.entries.shared import SharedEntries
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import PRIORITIES, EntryTable, Filter
from nanoclaw_memory.text import fingerprint, sentences
from nanoclaw_memory.types import (
    FOREIGN,
    Brief,
    Deleted,
    EntriesFound,
    Entry,
    EntryLife,
    Newer,
    Scope,
    Stored,
)
from nanoclaw_memory.workspace.paths import Home

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

MAX_QUERY = 500
MAX_LIMIT = 100
_SHOWN = ("active", "held")
_LINK = ("seq", "prev", "hash")  # fields of an audit record
_EVERY = ("active", "held", "superseded", "archived", "expired")


class EntryFinder(Protocol):
    """The interface of the search index for finding entries by words and meaning."""

    def search(self, query: str, wanted: Filter, limit: int, fast: bool) -> EntriesFound:
        """Return matching entries, best first; `fast` uses no model."""

    def similar(self, entry_id: str, wanted: Filter) -> tuple[str, ...]:
        """Return the ids of entries that the model calls similar."""

    def superseded(self) -> tuple[str, ...]:
        """Return the ids of entries that a later statement of any kind supersedes."""

    def overtaken(self, ids: Sequence[str]) -> Mapping[str, tuple[str, Newer]]:
        """Return which of these entries a later statement supersedes: the mark, and that statement."""


class Entries:
    """The typed entries of one group, as one scope sees them."""

    def __init__(
        self,
        db: Database,
        home: Home,
        scope: Scope,
        settings: Settings,
        clock: Clock,
        intake: Intake,
        *,
        reopen: Callable[[], Database],
        published: Callable[[str], Database],
        publishers: Callable[[], list[str]],
        finder: EntryFinder,
        resident: Callable[[], bool],
        judge: Callable[[], Judge | None],
    ) -> None:
        self.ledger = EntryLedger(db, home, scope, settings, clock, intake)
        self.shared = SharedEntries(self.ledger, publishers, published)
        self._finder = finder
        self._reopen = reopen
        self._resident = resident
        self.admission = Admission(self.ledger, judge)

    # ---- store ----

    def store(self, draft: EntryDraft, find_source: Callable[[str], str] = lambda content: "") -> Stored:
        """Mask, deduplicate, supersede and write one checked entry; its provenance comes from the scope."""
        stored = self.admission.admit(draft, find_source=find_source)
        if stored.deduplicated or stored.status != "active" or not self._resident():
            return stored
        alike = Filter(self.ledger.moment(), (stored.type,))
        return replace(stored, similar=self._finder.similar(stored.id, alike))

    def knows(self, entry_type: str, content: str) -> bool:
        """Return whether this text was ever stored as this type; an import must not restore old ones."""
        return self.ledger.table.has_text(entry_type, statements.text_key(content))

    # ---- find ----

    def search(
        self,
        query: str = "",
        *,
        types: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        include_superseded: bool = False,
        priority_min: str = "low",
        limit: int = 20,
        fast: bool = True,
    ) -> EntriesFound:
        """Return matching entries, best first; an empty query returns the most recent ones."""
        query = check_query(query)
        rules.whole("limit", limit, 1, MAX_LIMIT)
        wanted = replace(
            self.ledger.filter(types),
            tags=rules.checked_tags(list(tags)),
            statuses=(*_SHOWN, "superseded") if include_superseded else _SHOWN,
            priority_min=rules.choice("priority_min", priority_min, PRIORITIES),
        )
        if not query.strip():
            found, now = self.ledger.table.recent(wanted, limit), self.ledger.clock.now()
            return EntriesFound(tuple(as_hit(entry, 1.0, "recent", now) for entry in found))
        return self._finder.search(query, wanted, limit, fast)

    def related(self, ids: Sequence[str]) -> list[Entry]:
        """Return those of these entries that are current and visible to this scope."""
        return [self._shown(entry) for entry in self.ledger.table.those(ids, self.ledger.filter())]

    def listed(
        self,
        types: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        status: str = "active",
        limit: int = 100,
    ) -> list[Entry]:
        """Return entries as stored, newest first; `status` is all, active, held, superseded, archived or expired."""
        statuses = _EVERY if status == "all" else (rules.choice("status", status, _EVERY),)
        wanted = replace(self.ledger.filter(types), tags=rules.checked_tags(list(tags)), statuses=statuses)
        return [self._shown(entry) for entry in self.ledger.table.recent(wanted, limit)]

    def get(self, entry_id: str) -> Entry:
        """Return one entry, whatever its status."""
        return self._shown(self.ledger.entry(entry_id))

    def chain(self, entry: Entry, depth: int = 20) -> list[Entry]:
        """Return the entry and those it replaced, newest first; bounded in case of corrupt data."""
        found, seen = [entry], {entry.id}
        while len(found) < depth:
            before = [old for old in self.ledger.table.predecessors(found[-1].id) if old.id not in seen]
            if not before:
                break
            found.append(before[-1])
            seen.add(before[-1].id)
        return found

    def brief(self, include_provenance: bool = False) -> Brief:
        """Return the most important entries for a session's start; empty, with a note, if that takes too long."""
        own = self.ledger.settings.entries
        limits = BriefLimits(own.max_brief_entries, own.max_brief_chars, own.max_brief_tokens)
        others = FOREIGN if self.ledger.scope.private else ()
        wanted = replace(self.ledger.filter(), without=self._finder.superseded(), without_authors=others)

        def work(later: Mapping[str, tuple[str, Newer]]) -> Brief:
            reader = BriefReader(
                self.ledger.clock.now(), self.ledger.scope.project, include_provenance, later
            )
            with closing(self._reopen()) as db:  # the thread's own connection, closed with it
                return write_brief(EntryTable(db), wanted, limits, reader)

        brief = within_time(lambda: work({}), own.brief_timeout_ms / 1000)
        if brief and (later := self._finder.overtaken([brief_entry.id for brief_entry in brief.entries])):
            brief = within_time(lambda: work(later), own.brief_timeout_ms / 1000)
        if brief is None:
            note = f"brief: not ready within {own.brief_timeout_ms / 1000:g} s; memory_recall still answers"
            return Brief(degraded=(note,))
        return brief

    # ---- change ----

    def delete(self, entry_id: str) -> Deleted:
        """Delete an entry permanently; the entry that it had replaced becomes current again."""
        with self.ledger.db.transaction():
            self.ledger.require_right_to_delete(self.ledger.entry(entry_id))
            self.ledger.spend("delete")
        return self.remove(entry_id, "delete")

    def remove(self, entry_id: str, event: str) -> Deleted:
        """Delete an entry without a limit, under an event of the audit log: what `undo` removes may be imported
        again.
        """
        with self.ledger.db.transaction():
            entry = self.ledger.entry(entry_id)
            before = self.ledger.table.predecessors(entry.id)
            restored = [] if entry.superseded_by else before
            if entry.superseded_by:
                self.ledger.table.relink(entry.id, entry.superseded_by)
            for old in restored:
                self.ledger.table.restore(old.id, self.ledger.moment())
            self.ledger.table.delete(entry.id)
            for kind in ("held", "suggestion"):
                self.ledger.proposals.withdraw(kind, held_key(entry.type, entry.content))
            back = tuple(old.id for old in restored)
            self.ledger.audit(
                event, entry.id, type=entry.type, text=fingerprint(entry.content), restored=back
            )
        notes = self.ledger.changed(gone=[entry], come=[self.ledger.entry(old) for old in back])
        return Deleted(entry.id, True, back, tuple(notes))

    def reinforce(self, entry_id: str) -> Entry:
        """Mark an entry as still relevant: its importance is reset and fades more slowly."""
        with self.ledger.db.transaction():
            entry = self.ledger.entry(entry_id)
            if entry.status != "active":
                raise InvalidValue(f"id: {entry.id} is {entry.status}", "only current entries are reinforced")
            self.ledger.table.reinforce(entry.id, self.ledger.moment())
            self.ledger.audit("reinforce", entry.id)
        return self.get(entry_id)

    def note_use(self, ids: Iterable[str]) -> None:
        """Record, to the hour, that recall returned these entries."""
        an_hour_ago = stamp(self.ledger.clock.now() - timedelta(hours=1))
        with self.ledger.db.transaction():
            self.ledger.table.touch(ids, self.ledger.moment(), an_hour_ago)

    def approve(self, entry_id: str) -> Entry:
        """Approve an entry that is held, suggested or from others; the entry that it replaces is superseded now.

        Only a person's request may call this.
        """
        superseded: list[Entry] = []
        with self.ledger.db.transaction():
            entry = self._waiting(entry_id)
            now = self.ledger.moment()
            approved = replace(entry, status="active", suspicions=(), confirmed="approved", updated_at=now)
            self.ledger.table.change(approved, statements.text_key(entry.content))
            target = self.ledger.table.get(entry.supersedes) if entry.supersedes else None
            if target and target.status == "active":
                self.ledger.supersede(target, entry.id)
                superseded.append(target)
            self._close_proposal(entry, accepted=True)
            self.ledger.audit("approve", entry.id, why=list(entry.suspicions))
        approved = self.get(entry_id)
        self.ledger.changed(gone=superseded, come=[approved])
        return approved

    def reject(self, entry_id: str) -> Entry:
        """Reject a held or suggested entry: it is archived, and the same text is refused from now on."""
        with self.ledger.db.transaction():
            entry = self._waiting(entry_id)
            self.ledger.table.set_status(entry.id, "archived", self.ledger.moment())
            self._close_proposal(entry, accepted=False)
            self.ledger.audit("reject", entry.id, why=list(entry.suspicions))
        self.ledger.changed(gone=[entry] if entry.status == "active" else [])
        return self.get(entry_id)

    def confirm_said(self, own: Sequence[str], foreign: Sequence[str], since: str) -> None:
        """Confirm recent entries of agents that the person said; hold those found in a text that they pasted."""
        held: list[Entry] = []
        for entry in self.ledger.table.suggested(since):
            where = source_in_messages(entry.content, own, foreign)
            if not where:
                continue
            with self.ledger.db.transaction():
                self.ledger.proposals.withdraw("suggestion", held_key(entry.type, entry.content))
                if where == "said":
                    entry = replace(entry, confirmed="said")
                else:
                    entry = replace(entry, status="held", suspicions=(PASTED,))
                    held.append(entry)
                    self.ledger.propose(entry)
                self.ledger.table.change(entry, statements.text_key(entry.content))
                self.ledger.audit("confirm" if where == "said" else "hold", entry.id)
        self.ledger.changed(gone=held)

    def archive(self, entry_id: str) -> Entry:
        """Remove an entry from brief, search and recall without deleting it."""
        with self.ledger.db.transaction():
            entry = self.ledger.entry(entry_id)
            self.archive_now(entry)
        self.ledger.changed(gone=[entry])
        return self.get(entry_id)

    def archive_now(self, entry: Entry) -> None:
        """Archive only the row, inside a transaction."""
        if entry.status not in _SHOWN:
            raise InvalidValue(f"id: {entry.id} is {entry.status} already", "see: ncm entries show")
        self.ledger.table.set_status(entry.id, "archived", self.ledger.moment())
        self.ledger.audit("archive", entry.id)

    def anchor(self) -> Link:
        """Return the last line that this group wrote to the audit log."""
        rows = self.ledger.db.query("SELECT seq, hash FROM audit_anchor")
        return Link(int(rows[0][0]), str(rows[0][1])) if rows else Link(0, GENESIS)

    def trace(self, entry_id: str) -> EntryLife:
        """Return every audited change of an entry and of those that replaced it."""
        scope = self.ledger.scope
        records = [
            # The numbers must not reveal to a shared scope how many entries there are.
            record if scope.private else {key: record[key] for key in record if key not in _LINK}
            for record in self.ledger.audit_log.records()
            if record.get("group") == scope.group
            and (scope.private or record.get("shared"))
            and entry_id in (record.get("id"), record.get("by"), record.get("supersedes"))
        ]
        entry = self.ledger.table.get(entry_id)
        if entry is not None and not self.ledger.sees_entry(entry):
            entry = None
        wordings = self.ledger.table.merges_of(entry_id) if entry else []
        return EntryLife(tuple(records), self._shown(entry) if entry else None, tuple(wordings))

    def render(self) -> tuple[list[str], list[str]]:
        """Rewrite all domain files; return those written, and notes about those that a person edited."""
        written, left = [], []
        for kind in self.ledger.visible_types():
            if self.ledger.domains.read(kind) or self.ledger.table.count(
                Filter(self.ledger.moment(), (kind,))
            ):
                note = self.ledger.domains.render(kind)
                left.append(note) if note else written.append(domain_path(kind))
        return written, left

    # ---- inside ----

    def _shown(self, entry: Entry) -> Entry:
        """Return the entry for display: credentials masked again, and expired even if no upkeep has recorded that
        yet.
        """
        over = (
            entry.status == "active" and entry.expires is not None and entry.expires <= self.ledger.moment()
        )
        status = "expired" if over else entry.status
        return replace(entry, content=masked(entry.content), reason=masked(entry.reason), status=status)

    def _waiting(self, entry_id: str) -> Entry:
        entry = self.ledger.entry(entry_id)
        open_ = entry.status == "active" and (entry.unconfirmed or entry.author in FOREIGN)
        if entry.status != "held" and not open_:
            raise InvalidValue(f"id: {entry.id} is {entry.status}, not held", "see: ncm review")
        return entry

    def _close_proposal(self, entry: Entry, accepted: bool) -> None:
        kind = "held" if entry.status == "held" else "suggestion"
        proposal = self.ledger.proposals.find(kind, held_key(entry.type, entry.content))
        if proposal is not None and proposal.status == "open":
            self.ledger.proposals.decide(proposal.id, accepted, self.ledger.moment())


def source_in_messages(content: str, own: Iterable[str], foreign: Iterable[str]) -> str:
    """Return where an entry's words were found: `said` by the person, in what they `pasted`, or nowhere.

    A message with a question confirms nothing: the statement may be what it asks about.
    """
    told = (sentence for text in own if "?" not in text for sentence in sentences(text))
    if any(statements.reports(content, sentence) for sentence in told):
        return "said"
    return "pasted" if any(statements.echoes(content, text) for text in foreign) else ""


def check_query(query: Any) -> str:
    """Return a query as text of at most 500 characters."""
    if not isinstance(query, str) or len(query) > MAX_QUERY:
        raise InvalidValue(f"query: more than {MAX_QUERY} characters, or no text", "ask in a sentence")
    return query.replace("\x00", " ")
