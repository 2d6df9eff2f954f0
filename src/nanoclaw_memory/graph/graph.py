"""KnowledgeGraph: search and change the facts and relations of one group."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta
from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, end_of, local_day, stamp, start_of
from nanoclaw_memory.errors import InvalidValue, NotFound, PathRefused, Refused
from nanoclaw_memory.graph.activation import Activation
from nanoclaw_memory.graph.entities import Resolver
from nanoclaw_memory.graph.lookup import Lookup
from nanoclaw_memory.store.facts import FactTable, StatementRow, View, has_foreign
from nanoclaw_memory.store.names import NameTable, fold, slot_of
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.types import (
    FOREIGN,
    Alias,
    EntityCount,
    Fact,
    GraphAnswer,
    GraphHit,
    GraphTable,
    Imported,
    Ingested,
    Newer,
    Relation,
    Scope,
    Upserted,
    trust,
)

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from nanoclaw_memory.graph.ingest import Ingest
    from nanoclaw_memory.graph.statements import Statement
    from nanoclaw_memory.graph.triples import Triple
    from nanoclaw_memory.graph.view import Neighbourhood
    from nanoclaw_memory.graph.writer import GraphWriter, Origin
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.settings import Settings
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.types.arguments import DrawingForm, Fraction, Query, Tier
    from nanoclaw_memory.workspace.paths import Home
MAX_TOP_K = 100
MAX_ROWS = 200
MOST_NAMES = 8
UNTRUSTED = "some of it is untrusted: stated by a shared chat, an import, a tool or the web"
TIERS = {"hot": (2.0000001, 1e300), "warm": (1.0, 2.0), "cool": (0.0, 0.9999999), "": (0.0, 1e300)}

LaterStatements: TypeAlias = tuple[
    Mapping[int, tuple[str, Newer]], Mapping[tuple[str, str, str, str], tuple[str, Newer]]
]


class KnowledgeGraph:
    """The facts, relations and aliases of one group, as one scope sees them."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        clock: Clock,
        scope: Scope,
        intake: Intake,
        refresh: Callable[[], AbstractContextManager[str | None]] = nullcontext,
        overtaken: Callable[[Sequence[int], Iterable[tuple[str, str, str, str]]], LaterStatements]
        | None = None,
        beside: Callable[[], KnowledgeGraph | None] | None = None,
        check_file: Callable[[Path], None] = lambda path: None,
    ) -> None:
        self.db = db
        self._check_file = check_file  # refuses a file that is not for this group
        self._beside = beside  # the graph of the shared chats, whose answers follow ours
        # Returns later statements on the same subject, by id of a fact and by the source of facts and relations.
        self._overtaken = overtaken
        self._refresh = refresh  # reads changed files before an answer; yields what is still unread
        self.settings = settings
        self.clock = clock
        self.scope = scope
        self.intake = intake
        self.facts = FactTable(db)
        self.relations = RelationTable(db)
        self.names = NameTable(db, scope.private)
        self.trusted_names = NameTable(db, scope.private, trusted=True)
        self.activation = Activation(self.facts, self.relations, clock)

    # ---- search ----

    def search(
        self,
        query: str,
        top_k: int = 6,
        as_of: str | None = None,
        named_only: bool = False,
        asking: str | None = None,
    ) -> GraphAnswer:
        """Search facts and relations, now or at a past date; change nothing.

        With `named_only` the answer is empty when the query names no entity; this is faster than a keyword search.
        `asking` is the part of the query that asks, requests or plans, if not all of it does.
        """
        if not 1 <= top_k <= MAX_TOP_K:
            raise InvalidValue(f"top_k: {top_k} is outside 1 to {MAX_TOP_K}", "for example -k 6")
        with self._refresh() as stale:
            begun = time.perf_counter()
            answer = self._answer(query, top_k, self.view(as_of), named_only, asking)
            hits = answer.hits if as_of else self._marked(answer.hits)
            hits += self._shared_chat_hits(query, top_k - len(hits), as_of, named_only, asking)
            hits = tuple(map(self._dated, hits))
            took_ms = (time.perf_counter() - begun) * 1000
        return replace(answer, hits=hits, took_ms=took_ms, degraded=(stale,) if stale else ())

    def _answer(
        self, query: str, top_k: int, view: View, named_only: bool, asking: str | None
    ) -> GraphAnswer:
        """Search what the owner trusts as if there were nothing else, then append what others state."""
        if not has_foreign(self.db):
            return self._lookup(self.names).search(query, top_k, view, named_only, asking)
        trusted = self._lookup(self.trusted_names)
        own = trusted.search(query, top_k, replace(view, trust="own"), named_only, asking)
        foreign = replace(view, trust="foreign")
        others = self._lookup(self.names).search(query, top_k, foreign, named_only, asking)
        found = [*own.hits, *others.hits]
        # With few places, answers precede other facts about the same entity.
        direct = sorted(
            (hit for hit in found if not hit.linked), key=lambda hit: hit.phase != 1 or hit.context
        )
        hits = [hit for hit in found if hit.linked or hit in direct[:top_k]]
        return GraphAnswer(
            tuple(sorted(hits, key=lambda hit: hit.untrusted)),
            tuple(dict.fromkeys(own.entities + others.entities)),
            own.ambiguous if own.entities else others.ambiguous,
        )

    def _marked(self, hits: tuple[GraphHit, ...]) -> tuple[GraphHit, ...]:
        """Mark the hits that a later statement outside the graph supersedes."""
        facts = [hit.item.id for hit in hits if hit.kind == "fact"]
        read = {_stated_in(hit) for hit in hits if hit.item.source}
        ask = self._overtaken if facts or read else None
        later, origins = ask(facts, read) if ask else ({}, {})

        def marked(hit: GraphHit) -> GraphHit:
            found = later.get(hit.item.id) if hit.kind == "fact" else None
            found = found or origins.get(_stated_in(hit))
            return replace(hit, mark=found[0], newer=found[1]) if found else hit

        return tuple(map(marked, hits))

    def _dated(self, hit: GraphHit) -> GraphHit:
        since = hit.item.valid_from or hit.item.created_at
        return replace(hit, since=local_day(since, self.clock.now().tzinfo))

    def _shared_chat_hits(
        self, query: str, left: int, as_of: str | None, named_only: bool, asking: str | None
    ) -> tuple[GraphHit, ...]:
        """Return what shared chats say, after all private hits and marked."""
        beside = self._beside() if self._beside is not None and left > 0 else None
        if beside is None:
            return ()
        found = beside.search(query, left, as_of, named_only, asking).hits
        return tuple(replace(hit, shared=True) for hit in found)

    def query(
        self, query: Query, as_of: str | None = None, limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    ) -> GraphTable:
        """Answer a read-only openCypher query over the facts and relations of now or of a past date."""
        from nanoclaw_memory.graph.query import QueryRunner

        with self._refresh() as stale:
            begun = time.perf_counter()
            names, view = self.trusted_names, self.view(as_of)

            def answer(view: View) -> GraphTable:
                return QueryRunner(self.facts, self.relations, names, view, names.merged()).run(query, limit)

            table = answer(view)
            if self.scope.private and has_foreign(self.db):
                own = answer(replace(view, trust="own"))
                table = table if own.rows == table.rows else replace(table, notes=(*table.notes, UNTRUSTED))
            took_ms = (time.perf_counter() - begun) * 1000
        return replace(table, took_ms=took_ms, degraded=(stale,) if stale else ())

    def reinforce(self, hits: Sequence[GraphHit]) -> str:
        """Warm and link the hits of a search; return why it failed, or an empty text. Never raises."""
        hits = [hit for hit in hits if not hit.shared]
        bump = self.settings.plugins.entries.graph_memory.activation_bump
        return self.activation.reinforce(hits, bump, self.settings.graph.linked_bump)

    def history(self, entity: str, key: str = "") -> list[Fact]:
        """Return every past and current value of an entity's key or of all its keys, oldest first; others'
        statements last.
        """
        with self._refresh():
            rows = self.facts.line(self._meanings(entity), slot_of(key) if key else "", self.scope.private)
        return sorted((row.item for row in rows), key=lambda fact: fact.origin in FOREIGN)

    def changes(self, since: str, until: str = "") -> list[Fact]:
        """Return the facts that became valid or ended between two days, both included; `until` defaults to now."""
        now = self.clock.now()
        end = end_of(until, now) if until else stamp(now + timedelta(seconds=1))
        return [row.item for row in self.facts.changed(start_of(since, now), end, self.scope.private)]

    def aliases(self, entity: str) -> list[Alias]:
        """Return the other names of an entity."""
        return [alias for name in self._meanings(entity) for alias in self.names.aliases(name)]

    def relations_of(self, entity: str, predicate: str = "") -> list[Relation]:
        """Return every relation that an entity ever had to others, and those that others have to it now."""
        names, slot = self._meanings(entity), slot_of(predicate) if predicate else ""
        own = self.relations.line(names, slot, self.scope.private)
        to_it = [row for row in self.relations.of(names, self.view()) if not slot or row.slot == slot]
        found = {row.item.id: row.item for row in (*own, *to_it)}
        return sorted(found.values(), key=lambda relation: relation.origin in FOREIGN)

    def entities(
        self,
        limit: Annotated[int, Meta(ge=1, le=10_000)] = 50,
        start: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0,
    ) -> list[EntityCount]:
        """Return the entities with the number of their facts and relations, those with the most first."""
        with self._refresh():
            return self.facts.entities(self.view(), limit, start)

    def top(self, tier: Tier = "", limit: int = 20) -> list[Fact]:
        """Return the hottest facts, of one tier or of all."""
        if tier.casefold() not in TIERS:
            raise InvalidValue(f"there is no tier {tier!r}", "use hot, warm or cool")
        low, high = TIERS[tier.casefold()]
        with self._refresh():
            return [row.item for row in self.facts.top(self.view(), low, high, limit)]

    def view(self, as_of: str | None = None) -> View:
        """Return what this scope may see, now or at a date (until its end)."""
        now = self.clock.now()
        at = end_of(as_of, now) if as_of else stamp(now)
        return View(at, self.scope.private, past=bool(as_of), project=self.scope.project)

    # ---- changes ----

    def upsert(
        self,
        entity: str,
        key: str,
        value: str,
        category: str = "",
        importance: Fraction = 0.5,
        permanent: bool = False,
        add: bool = False,
        valid_from: str = "",
        project: str = "",
    ) -> Upserted:
        """Store a fact; credentials in it are masked if the settings say so.

        It belongs to `project`, whose values only values of the same project replace. The owner's facts have no
        project unless it is named.
        """
        from nanoclaw_memory.graph.writer import NewFact

        new = NewFact(
            entity=entity,
            key=key,
            value=value,
            category=category,
            importance=importance,
            permanent=permanent,
            add=add,
            valid_from=self._start(valid_from),
        )
        return self.writer.upsert(new, self._stated_in(project))

    def relate(
        self,
        subject: str,
        predicate: str,
        object: str,
        replace: bool = False,
        valid_from: str = "",
        project: str = "",
    ) -> Upserted:
        """Store a relation between a subject and an object; credentials are masked as in a fact."""
        from nanoclaw_memory.graph.writer import NewRelation

        start = self._start(valid_from)
        new = NewRelation(
            subject=subject, predicate=predicate, object=object, replace=replace, valid_from=start
        )
        return self.writer.relate(new, self._stated_in(project))

    def alias(self, alias: str, entity: str) -> bool:
        """Add another name of an entity; return False if it had it already."""
        return self.writer.alias(alias, entity, self._origin)

    def reject(self, entity: str, key: str, value: str, reason: str = "") -> list[int]:
        """Delete a wrong value, restore the one before, and refuse it when files are read again."""
        self._require_trusted("reject a value")
        return self.writer.reject(entity, key, value, reason)

    def unreject(self, entity: str, key: str, value: str) -> bool:
        """Allow a rejected value again."""
        self._require_trusted("lift a rejection")
        return self.writer.unreject(entity, key, value)

    def remove(self, entity: str, key: str = "", value: str = "", purge: bool = False) -> list[int]:
        """Retire facts, which stay as history, or with `purge` delete them."""
        with self.db.transaction():
            rows = [
                row
                for row in self.facts.line(
                    self._meanings(entity), slot_of(key) if key else "", self.scope.private
                )
                if (purge or not row.item.valid_to) and (not value or row.item.value == value)
            ]
            removed = self._remove(self.facts, rows, purge)
        if not removed:
            raise NotFound(
                f"there is no such fact of {entity!r}", f'look: nanoclaw-memory graph history "{entity}"'
            )
        return removed

    def unrelate(self, subject: str, predicate: str, object: str, purge: bool = False) -> list[int]:
        """Retire a relation, or with `purge` delete it."""
        with self.db.transaction():
            history = self.relations.line(self._meanings(subject), slot_of(predicate), self.scope.private)
            objects = self._meanings(object)
            rows = [r for r in history if (purge or not r.item.valid_to) and r.names[1] in objects]
            removed = self._remove(self.relations, rows, purge)
        if not removed:
            raise NotFound(
                f"there is no relation {subject} → {predicate} → {object}",
                f'look: nanoclaw-memory graph show "{subject}"',
            )
        return removed

    def _remove(
        self, table: FactTable | RelationTable, rows: Sequence[StatementRow[Any]], purge: bool
    ) -> list[int]:
        rows = [row for row in rows if trust(row.item.origin) >= trust(self.scope.author)]
        for row in rows:
            if purge:
                table.delete(row.item.id)
            else:
                table.retire(row.item.id, stamp(self.clock.now()), None)
        self.names.prune(name for row in rows for name in row.names)
        return [row.item.id for row in rows]

    def unalias(self, alias: str, entity: str = "") -> int:
        """Remove an alias."""
        with self.db.transaction():
            foreign = self.scope.author in FOREIGN
            gone = self.names.remove_alias(fold(alias), fold(entity) if entity else "", foreign)
        if not gone:
            raise NotFound(f"there is no alias {alias!r}", "look: nanoclaw-memory graph export")
        return gone

    def outdated(self, text: str, day: date) -> bool:
        """Return whether a line of that day states a value that was replaced or rejected since."""
        return self.writer.outdated(text, start_of(day.isoformat(), self.clock.now()))

    def cool(self) -> tuple[int, int]:
        """Cool every fact once for each calendar day since the last time; return facts and days."""
        return self.activation.cool(self.settings.graph.cooling)

    # ---- files ----

    def ingest(self, path: str, text: str, moment: str = "") -> Ingested:
        """Read a memory file: new triples are stored, missing ones retired; reading twice changes nothing.

        `path` is the path in the workspace; facts of a daily log are valid from its day, others from `moment`.
        """
        return self._ingest.file(path, text, moment)

    def take_in(self, statement: Statement) -> Ingested:
        """Read what a person said or an agent stored, as a file is read."""
        return self._ingest.statement(statement)

    def ingest_note(self, path: str, text: str, triples: list[Triple], moment: str) -> Ingested:
        """Read a note of a vault with known triples; without triples, its former statements are retired."""
        return self._ingest.note(path, text, triples, moment)

    def statements_in(self, source: str) -> list[str]:
        """Return the exchanges or entries from which the graph has read something."""
        return self._ingest.mentions.paths(f"{source}/")

    def items_stated_in(self, paths: Iterable[str]) -> dict[str, set[int]]:
        """Return the ids of the facts and relations that exchanges or entries state."""
        return self._ingest.items_of(paths)

    def items_on_lines(self, path: str, text: str, lines: Collection[int]) -> dict[str, set[int]]:
        """Return the ids of the facts and relations that a file states on these lines, counted from 0."""
        return self._ingest.items_on(path, text, lines)

    def seed(self, home: Home, again: bool = False) -> list[Ingested]:
        """Read USER.md, IDENTITY.md, MEMORY.md, TOOLS.md and the pages below memory/.

        `again` also reads the logs, and retires what an older version read and this one does not.
        """
        return self._ingest.seed(home, self.scope, again)

    def ingest_rows(
        self,
        facts: Sequence[Mapping[str, Any]] = (),
        relations: Sequence[Mapping[str, Any]] = (),
        aliases: Sequence[Mapping[str, Any]] = (),
    ) -> Imported:
        """Store facts, relations and aliases at once, as `upsert`, `relate` and `alias` do; bad rows are reported."""
        from nanoclaw_memory.graph.transfer import caller_rows, import_rows

        rows = list(caller_rows(facts, relations, aliases))
        if not 1 <= len(rows) <= MAX_ROWS:
            raise InvalidValue(f"{len(rows)} rows were given", f"give 1 to {MAX_ROWS} facts and relations")
        return import_rows(self.writer, enumerate(rows, 1), self._origin, "")

    def import_file(self, path: Path) -> Imported:
        """Import JSONL, CSV, an MCP memory.jsonl or another facts.db."""
        from nanoclaw_memory.graph.transfer import import_rows, read_rows

        self._require_private("import")
        self._check_file(path)
        by = self.scope.author if self.scope.author in FOREIGN else "import"
        return import_rows(self.writer, read_rows(path), replace(self._origin, by=by), f"import {path.name}")

    def export(self, form: str = "jsonl") -> Iterator[str]:
        """Yield the whole graph, line by line."""
        from nanoclaw_memory.graph import transfer

        if form not in transfer.FORMS:
            raise InvalidValue(f"format {form!r} is not known", f"use {', '.join(transfer.FORMS)}")
        return transfer.FORMS[form](
            transfer.rows_of(self.facts, self.relations, self.names, self.scope.private)
        )

    def drawn(
        self, entity: str, depth: Annotated[int, Meta(ge=1, le=4)] = 1, form: DrawingForm = "tree"
    ) -> dict[str, Any]:
        """Return the neighbourhood of an entity as tree, mermaid or dot text, and as plain data."""
        from nanoclaw_memory.graph import view

        forms = {"tree": view.as_tree, "mermaid": view.as_mermaid, "dot": view.as_dot, "json": view.as_json}
        if form not in forms:
            raise InvalidValue(f"format {form!r} is not known", f"use {', '.join(forms)}")
        around = self.show(entity, depth)
        return {**view.as_data(around), "text": forms[form](around)}

    def show(self, entity: str, depth: int = 1, as_of: str | None = None) -> Neighbourhood:
        """Return the neighbourhood of an entity, now or at a past date."""
        from nanoclaw_memory.graph.view import MAX_DEPTH, neighbourhood

        if not 0 <= depth <= MAX_DEPTH:
            raise InvalidValue(f"depth {depth} is outside 0 to {MAX_DEPTH}", "for example --depth 2")
        with self._refresh():
            names = self._meanings(entity)
        known = [name for name in names if name in self._known(names)]
        if not known:
            raise NotFound(f"nothing is known of {entity!r}", "look: nanoclaw-memory graph search")
        own = self.names.meanings(known[:1])[known[0]].ends[0] if self.scope.private else known[0]
        start = [own, *(name for name in names if name != own)]
        return neighbourhood(self.facts, self.relations, self.names, start, depth, self.view(as_of))

    # ---- inside ----

    def other_names(self, question: str) -> list[str]:
        """Return aliases and former names of the entities that a question names."""
        user = self.settings.user
        # A guessed name must not bring in others.
        named = Resolver(self.trusted_names, user.entity, user.agent_entity).read_exactly(question)
        found: dict[str, None] = {}
        for name in named:
            for entity in () if name.ambiguous else name.entities:
                found.setdefault(entity)
                found |= dict.fromkeys(alias.alias for alias in self.trusted_names.aliases(entity))
                called = (fact for fact in self.history(entity, "name") if fact.origin not in FOREIGN)
                found |= dict.fromkeys(fact.value for fact in called)
        return list(found)[:MOST_NAMES]

    @cached_property
    def writer(self) -> GraphWriter:
        """Return the writer; loaded on first use, because most processes only search."""
        from nanoclaw_memory.graph.writer import GraphWriter

        own = self.settings.graph
        return GraphWriter(self.facts, self.relations, self.names, own, self.clock, self.intake)

    @cached_property
    def _ingest(self) -> Ingest:
        from nanoclaw_memory.graph.ingest import Ingest

        return Ingest(self.writer, self.settings)

    def _lookup(self, names: NameTable) -> Lookup:
        user = self.settings.user
        resolver = Resolver(names, user.entity, user.agent_entity)
        weights = self.settings.plugins.entries.graph_memory
        return Lookup(self.facts, self.relations, names, resolver, weights)

    def _start(self, valid_from: str) -> str:
        return start_of(valid_from, self.clock.now()) if valid_from else ""

    @property
    def _origin(self) -> Origin:
        """Return the provenance of a statement: from the scope, never from arguments."""
        from nanoclaw_memory.graph.writer import Origin

        own = self.scope
        source = f"session {own.session_id}" if own.session_id else "direct"
        # The owner's statements apply to every project: a directory is only where they happen to be.
        project = "" if own.origin == "owner" else own.project
        return Origin(source, shared=not own.private, sees_all=own.private, by=own.author, project=project)

    def _stated_in(self, project: str) -> Origin:
        return replace(self._origin, project=project) if project else self._origin

    def _require_private(self, what: str) -> None:
        """Refuse a shared scope what affects more than its own statements."""
        if not self.scope.private:
            raise PathRefused(f"a shared scope may not {what}", "ask in private: without --shared")

    def _require_trusted(self, what: str) -> None:
        """Also refuse everybody who may only add statements beside what is known."""
        self._require_private(what)
        if self.scope.author in FOREIGN:
            raise Refused(f"what comes from {self.scope.author} may not {what}", "run it at the command line")

    def _known(self, names: list[str]) -> set[str]:
        """Return the known names; for a shared scope only those with a fact or relation that it sees."""
        if self.scope.private:
            return set(self.names.known(names))
        view = self.view()
        seen = {row.names[0] for row in self.facts.of(names, view)}
        return seen.union(*(row.names for row in self.relations.of(names, view)))

    def _meanings(self, entity: str) -> list[str]:
        """Return the folded names that an entity's name or alias may mean."""
        name = fold(entity)
        if not name:
            raise InvalidValue("the entity is empty", 'name it: nanoclaw-memory graph history "Keystone"')
        table = self.trusted_names if self.trusted_names.known([name]) else self.names
        return list(table.meanings([name])[name].names)


def _stated_in(hit: GraphHit) -> tuple[str, str, str, str]:
    """Return the source of a hit, its subject, its key and its value."""
    item = hit.item
    if isinstance(item, Relation):
        return item.source, item.subject, item.predicate, item.value
    return item.source, item.entity, item.key, item.value
