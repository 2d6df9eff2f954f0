"""Shared by all operations on entries: tables, audit log, domain files, access, and limits per session (stores, …)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from nanoclaw_memory import statements
from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.audit_log import AuditLog
from nanoclaw_memory.entries.domains import DomainFiles, domain_path
from nanoclaw_memory.entries.rules import TYPES
from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound, PathRefused, Refused, StoreError
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.intake.suspicion import folded
from nanoclaw_memory.rendering import item_line
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import EntryTable, Filter
from nanoclaw_memory.store.proposals import Proposals
from nanoclaw_memory.store.table import insertion
from nanoclaw_memory.text import one_line, plural
from nanoclaw_memory.types import FOREIGN, ORIGINS, Entry, Proposal, Provenance, Scope
from nanoclaw_memory.workspace.paths import Home, visible

MAX_SESSION = 200


class EntryLedger:
    """The entries of one group as one scope may see and change them."""

    def __init__(
        self, db: Database, home: Home, scope: Scope, settings: Settings, clock: Clock, intake: Intake
    ) -> None:
        rules.choice("origin", scope.origin, ORIGINS)
        self.db = db
        self.table = EntryTable(db)
        self.proposals = Proposals(db)
        self.intake = intake
        self.domains = DomainFiles(self.table, self.proposals, home.workspace(scope.group), clock, intake)
        self.home = home
        # A session's name comes from outside: one line of bounded length.
        self.scope = replace(scope, session_id=one_line(scope.session_id)[:MAX_SESSION])
        self.audit_log = AuditLog(home.logs, self.scope, clock)
        self.settings = settings
        self.clock = clock
        self.on_change: Callable[[Sequence[Entry], Sequence[Entry]], None] = lambda gone, come: None

    def moment(self) -> str:
        """Return the current moment in the stored format."""
        return stamp(self.clock.now())

    def provenance(self, source: str = "") -> Provenance:
        """Return the provenance of a new entry: from the scope, never from arguments."""
        return Provenance(
            session_id=self.scope.session_id,
            group=self.scope.group,
            timestamp=self.moment(),
            origin=self.scope.author,
            source=source,
            project=self.scope.project,
            private=self.scope.private,
        )

    # ---- what the scope may see and do ----

    def sees(self, entry_type: str) -> bool:
        """Return whether the scope may see the type's domain file: the same rule as for the file itself."""
        return visible(self.scope, domain_path(entry_type), self.settings.privacy.shared_files)

    def sees_entry(self, entry: Entry) -> bool:
        """Return whether the scope may see an entry: its type is visible, or a shared scope stored it."""
        return not entry.provenance.private or self.sees(entry.type)

    def visible_types(self) -> tuple[str, ...]:
        return tuple(kind for kind in TYPES if self.sees(kind))

    def filter(self, types: Iterable[str] | None = None) -> Filter:
        """Return the filter for current, visible entries of the requested types; unknown types are refused."""
        chosen = TYPES if types is None else tuple(rules.choice("type", kind, TYPES) for kind in types)
        return Filter(self.moment(), chosen, open_types=None if self.scope.private else self.visible_types())

    def entry(self, entry_id: Any, field: str = "id") -> Entry:
        """Return an entry of this group as stored, or raise an error that names the field."""
        entry = self.table.get(entry_id) if isinstance(entry_id, str) else None
        if entry is None or not self.sees_entry(entry):
            raise NotFound(
                f"{field}: there is no entry {str(entry_id)[:80]} in this group", "see: ncm entries list"
            )
        return entry

    def require_right_to_delete(self, entry: Entry) -> None:
        """Refuse to delete what somebody more trusted stored; foreign origins may delete only their own entries."""
        by, stored_by = self.scope.author, entry.provenance.origin
        allowed = self.scope.origin == "owner" or by == stored_by
        if not allowed and (by in FOREIGN or ORIGINS.index(stored_by) < ORIGINS.index(by)):
            raise Refused(
                f"id: the {stored_by} stored it",
                f"the person may delete it (ncm entries delete {entry.id}); or store what you suggest instead",
            )

    def spend(self, kind: str) -> None:
        """Count one more store, supersede or delete of this session and client, or refuse it; in the transaction.

        The limits bound what one injected session can do, and a client within an hour, whatever session it names. A
        person at the command line without a session is not limited; agents that name no session share one counter per
        day.
        """
        own, now = self.settings.entries, self.clock.now()
        limit = {
            "store": own.stores_per_session,
            "supersede": own.supersedes_per_session,
            "delete": own.deletes_per_session,
        }[kind]
        session, client = self.scope.session_id, self.scope.client
        if not session and self.scope.origin != "owner":
            session = f"({self.scope.origin} without a session on {now.date().isoformat()})"
        counters = {"session": session, "client": client and f"(client {client} in {now:%Y-%m-%d %H})"}
        for name, counter in counters.items():
            if counter and not self._counted(counter, kind, limit):
                later = "the next session" if name == "session" else "the next hour"
                raise Refused(
                    f"this {name} has used its {plural(limit, kind)}",
                    f"wait for {later}, or let the person do it at the command line",
                )

    def _counted(self, counter: str, kind: str, limit: int) -> bool:
        """Count one more; return False if the limit is reached."""
        return bool(
            self.db.update(
                "INSERT INTO session_counts (session_id, kind, count) SELECT :counter, :kind, 1 WHERE :limit > 0 "
                "ON CONFLICT (session_id, kind) DO UPDATE SET count = session_counts.count + 1 "
                "WHERE session_counts.count < :limit",
                {"counter": counter, "kind": kind, "limit": limit},
            )
        )

    # ---- used by every change ----

    def audit(self, event: str, entry_id: str, **details: Any) -> None:
        """Append to the audit log before the commit: it may contain a change that failed, but never misses one."""
        link = self.audit_log.append(event, entry_id, **details)
        row = {"id": 1, "seq": link.seq, "hash": link.hash}
        self.db.execute(insertion("audit_anchor", row, ["id"]), row)

    def propose(self, entry: Entry) -> None:
        """Propose a held entry, or an agent's suggestion, to a person; in a transaction."""
        by, held = entry.provenance, entry.status == "held"
        where = "every session" if by.private else "the shared chat"
        effect = f"stands in the brief of {where} as a {'suggestion' if entry.behavioral else 'fact'}"
        effect += f", in place of {entry.supersedes}" if entry.supersedes else ""
        self.proposals.propose(
            "held" if held else "suggestion",
            {"id": entry.id},
            why="; ".join(entry.suspicions)
            or "an agent stored it; nobody was found to have said it in that session",
            key=held_key(entry.type, entry.content),
            moment=by.timestamp,
            source=f"session {by.session_id or 'none'}, {by.origin}",
            diff=f"+ [{entry.type}] {item_line(entry.content)}",
            origin=by.origin,
            effect=effect if held else "counts as the person's own words",
            text=folded(entry.content),
        )

    def offered(self, entry_type: str, content: str) -> list[Proposal]:
        """Return the proposals, open or decided, for this text as this type."""
        key = held_key(entry_type, content)
        return [one for kind in ("held", "suggestion") if (one := self.proposals.find(kind, key))]

    def refuse_decided(self, content: str, entry_type: str = "", why: str = "") -> None:
        """Refuse what a person rejected or has not decided yet, whatever its type, from everybody but the owner.

        An open suggestion is in the brief: its agent may store it again as the same type, and log it.
        """
        same = self.offered(entry_type, content) if entry_type else []
        if any(proposal.status == "accepted" for proposal in same):
            return
        known = {proposal.id for proposal in same}
        found = same if self.scope.author == "owner" else [*same, *self.proposals.of_text(folded(content))]
        for proposal in found:
            waits = proposal.status == "open" and (
                proposal.kind == "held" or (entry_type and proposal.id not in known)
            )
            if waits or proposal.status == "rejected":
                state = "was stored before and waits in review" if waits else "was rejected in review"
                raise Refused(f"content: this {state}{why}", "see: ncm review")

    def supersede(self, target: Entry, successor: str) -> None:
        """Retire an entry in favour of another; the first of two racing sessions wins."""
        if not self.table.supersede(target.id, successor, self.moment()):
            raise InvalidValue(f"supersedes: {target.id} is no longer current", "see: ncm entries show")
        self.audit("supersede", target.id, by=successor)

    def changed(self, gone: Sequence[Entry] = (), come: Sequence[Entry] = ()) -> list[str]:
        """Update domain files and published copies after a commit.

        Domain files are derived, so a failure to write one is a note, not an error.
        """
        self.on_change(gone, come)
        notes: list[str] = []
        if not self.scope.private:  # domain files contain private memory
            return notes
        for kind in dict.fromkeys(entry.type for entry in (*gone, *come)):
            left = [entry.id for entry in gone if entry.type == kind]
            new = [entry for entry in come if entry.type == kind]
            try:
                note = self.domains.update(kind, left, new)
            except (FileProblem, PathRefused, StoreError) as error:
                note = f"{domain_path(kind)} was not written: {error.message}"
            if note:
                notes.append(note)
        return notes


def held_key(entry_type: str, content: str) -> str:
    """Return the key under which an entry is proposed for review, once."""
    return f"{entry_type}\n{statements.normal(content)}"
