"""Memory, the facade: every face calls these methods and nothing below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nanoclaw_memory.clock import Clock, SystemClock, day_of, moment_of, zone
from nanoclaw_memory.errors import InvalidValue, NanoClawError, NotFound, PathRefused, Refused
from nanoclaw_memory.types import MAIN_GROUP, Scope
from nanoclaw_memory.workspace.paths import PENDING_RESTORE, Home, default_home, locate, log_path

if TYPE_CHECKING:
    import threading

    from nanoclaw_memory.entries.audit import TokenAudit
    from nanoclaw_memory.entries.entries import Entries
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.host.host import Host
    from nanoclaw_memory.host.tasks import Tasks
    from nanoclaw_memory.index.corpus import Corpora
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.providers.reranker import Reranker
    from nanoclaw_memory.providers.writer import Writer
    from nanoclaw_memory.search.front import SearchFront
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.migrate import Adopt
    from nanoclaw_memory.store.proposals import Proposals
    from nanoclaw_memory.store.sdk_items import SdkItems
    from nanoclaw_memory.store.sqlite import SqliteDatabase
    from nanoclaw_memory.telemetry import Telemetry
    from nanoclaw_memory.turn.conversation import Conversation
    from nanoclaw_memory.turn.learning import Learning
    from nanoclaw_memory.turn.spool import Spool
    from nanoclaw_memory.types import (
        Archived,
        Audit,
        AuditVerdict,
        Boot,
        Brief,
        BroughtIn,
        Checkpoint,
        Compared,
        Created,
        DatabaseCheck,
        Deleted,
        Entry,
        EntryLife,
        Exchange,
        Finding,
        Flush,
        Forgotten,
        ForgottenPage,
        Found,
        GraphAnswer,
        GraphHit,
        HeartbeatItem,
        Hit,
        Indexed,
        IndexStatus,
        Installed,
        JobRun,
        JobState,
        Lines,
        LogLine,
        PluginNote,
        Policy,
        PolicyHit,
        Project,
        Proposal,
        Recall,
        Recorded,
        Refreshed,
        Restored,
        Runbook,
        Session,
        SessionHit,
        Status,
        Stored,
        TaskRun,
        ToolCall,
        TranscriptFile,
        Turn,
        Upserted,
        Written,
    )
    from nanoclaw_memory.upkeep.forget_stores import Premises
    from nanoclaw_memory.upkeep.house import House
    from nanoclaw_memory.workspace.checkpoints import Checkpoints
    from nanoclaw_memory.workspace.notes import Notes


DATABASES = ("facts", "entries", "continuity", "index", "sdk")


class Memory:
    """The memory of one group, as one scope sees it. Everything is opened on first use."""

    def __init__(
        self,
        home: Path,
        scope: Scope,
        clock: Clock | None = None,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.home = Home(home)
        self.scope = scope
        self._given_clock = clock
        self._overrides = dict(overrides or {})
        self._directory = directory
        self._databases: dict[str, SqliteDatabase] = {}
        self.resident = False  # a server that lives on sets it: only then are turns worth loading a model
        self._lent = False
        self.home.group_root(scope.group)  # refuses a bad name at once

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        scope: Scope | None = None,
        *,
        clock: Clock | None = None,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> Memory:
        """Open a home (default `NANOCLAW_HOME` or ~/.nanoclaw); touches nothing until used.

        A restore that was killed half-way is finished first, and one that is running is waited for.
        """
        root = Path(home).expanduser() if home else default_home()
        memory = cls(root, scope or Scope(), clock, overrides, directory)
        if (memory.home.workspace(memory.scope.group) / PENDING_RESTORE).exists():
            from nanoclaw_memory.workspace.restore import finish

            finish(memory._checkpoints())
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the plugins, and close every database that was opened."""
        if "_conversation" in self.__dict__:
            self.__dict__.pop("_conversation").close()
        if self._lent:
            return
        if "_search" in self.__dict__:
            self.__dict__.pop("_search").close()
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    def for_session(self, session_id: str) -> Memory:
        """The same memory as another session sees it: shares what is open, and lives no longer than this one."""
        scope = replace(self.scope, session_id=session_id)
        other = Memory(self.home.root, scope, self._given_clock, self._overrides, self._directory)
        other._databases = self._databases
        other._lent = True
        for name in ("configuration", "clock", "telemetry", "embedder", "_search"):
            other.__dict__[name] = getattr(self, name)
        return other

    # ---- what everything stands on ----

    @cached_property
    def configuration(self) -> Configuration:
        from nanoclaw_memory.settings import load

        return load(self.home.root, self._overrides, directory=self._directory)

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @cached_property
    def clock(self) -> Clock:
        return self._given_clock or SystemClock(self.settings.user.timezone)

    @cached_property
    def telemetry(self) -> Telemetry:
        from nanoclaw_memory.telemetry import Telemetry

        own = self.settings.telemetry
        return Telemetry(self.home.logs / "telemetry.jsonl", self.clock, own.enabled, own.max_bytes)

    def today(self) -> date:
        """The date in the user's time zone."""
        return self.clock.now().date()

    def database(self, name: str) -> SqliteDatabase:
        """One of the group's databases: facts, continuity, entries or index."""
        if name not in self._databases:
            from nanoclaw_memory.store.sqlite import SqliteDatabase

            path = self.home.data(self.scope.group) / f"{name}.db"
            if self.scope.group != MAIN_GROUP and path.is_symlink():
                raise PathRefused(f"{path.name} of {self.scope.group} is a link", "put the file itself there")
            self._databases[name] = SqliteDatabase(path, name, _adopter(name), durable=name == "entries")
        return self._databases[name]

    @cached_property
    def embedder(self) -> Chain | None:
        """Who makes vectors; None when embeddings are off. Loads nothing before first use."""
        from nanoclaw_memory.providers.embedder import embedder_for

        return embedder_for(
            self.settings.embeddings, self.home.models, self.home.data(MAIN_GROUP), self.clock
        )

    @cached_property
    def reranker(self) -> Reranker:
        """Who reads the best hits again: as set, or the local cross-encoder when a search asks for one."""
        from nanoclaw_memory.providers.models import RERANKER, directory
        from nanoclaw_memory.providers.reranker import CrossEncoder, reranker_for

        own, data = self.settings, self.home.data(MAIN_GROUP)
        found = reranker_for(own.rerank, own.writer, self.home.models, data, self.clock)
        return found or CrossEncoder(directory(RERANKER, self.home.models))

    # ---- search ----

    @cached_property
    def _search(self) -> SearchFront:
        from nanoclaw_memory.search.front import SearchFront

        return SearchFront(
            self.home,
            self.scope,
            self.configuration,
            self.database,
            lambda: self.embedder,
            lambda: self.reranker,
            self._other_names,
        )

    def _other_names(self, question: str) -> list[str]:
        """Aliases and former names of whom the question names, when there is a graph."""
        if not (self.home.data(self.scope.group) / "facts.db").exists():
            return []
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.search.expansion import other_names

        try:
            return other_names(self.graph, question)
        except StoreError:  # a damaged graph is doctor's to report; search goes on without it
            return []

    def search(
        self,
        query: str = "",
        limit: int = 10,
        *,
        types: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        include_superseded: bool = False,
        corpus: str = "",
        fast: bool = False,
        rerank: bool | None = None,
        mmr: bool = False,
        explain: bool = False,
    ) -> Found:
        """Ranked hits over files and entries, best first; says aloud what could not take part.

        `types`, `tags` and `include_superseded` narrow it to entries; an empty query gives the recent ones.
        `corpus` names domain documents to search instead, or `all` for them and memory together. `fast` uses
        words only and loads no model; `rerank` unset does as the settings say; `mmr` prefers what differs.
        """
        from nanoclaw_memory.search.hybrid import Question

        self.require_group()
        again = self.settings.rerank.provider != "none" if rerank is None else rerank
        asked = Question(query, limit, self.today(), fast, explain, mmr, again and not fast)
        tags = tuple(tags)
        if types is not None or tags or include_superseded or not query.strip():
            found = self._search_entries(query, limit, types, tags, include_superseded, fast)
        elif self._has_entries() and corpus in ("", "all"):
            known = self._search_entries(query[:500], limit, fast=fast)
            found = self._search.search(asked, corpus, known.hits)
            found = replace(found, degraded=tuple(dict.fromkeys((*found.degraded, *known.degraded))))
        else:
            found = self._search.search(asked, corpus)
        self.telemetry.record("search", hits=len(found.hits), took_ms=found.took_ms)
        return found

    def index(
        self, rebuild: bool = False, progress: Callable[[str, int, int], None] | None = None
    ) -> Indexed:
        """Bring the search index up to date with the files."""
        self.require_group()
        done = self._search.run(rebuild, progress)
        done = replace(done, embedded=done.embedded + self._embed_entries())
        self.telemetry.record("index", files=done.files, chunks=done.chunks, embedded=done.embedded)
        return done

    def watch(self, stop: threading.Event) -> Iterator[Indexed]:
        """Index whenever files changed, until `stop`; gives what each run did."""
        from nanoclaw_memory.workspace.watch import changes

        self.require_group()
        folders = (self.home.workspace(self.scope.group), self.home.shared)
        for _ in changes(folders, stop):
            yield self.index()

    @property
    def corpora(self) -> Corpora:
        """Domain documents: add, all, reindex, remove."""
        self.require_group()
        return self._search.corpora

    def bench_embed(
        self, texts: int = 200, progress: Callable[[str, int, int], None] | None = None
    ) -> list[Compared]:
        """Keyword search and embedders compared on this memory's own chunks."""
        from nanoclaw_memory.search.compare import compare

        self.require_group()
        return compare(self._search.index, texts, progress)

    # ---- the knowledge graph ----

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """Facts, relations and aliases."""
        from nanoclaw_memory.graph.graph import KnowledgeGraph

        self.require_group()
        return KnowledgeGraph(self.database("facts"), self.settings, self.clock, self.scope)

    def graph_search(self, query: str, top_k: int = 6, as_of: str | None = None) -> GraphAnswer:
        """Facts and relations that answer a question, now or at a past date; the caller reinforces."""
        return self.graph.search(query, top_k, as_of)

    def graph_reinforce(self, hits: Sequence[GraphHit]) -> str:
        """Warm and wire what a graph search gave; gives why it could not, or nothing."""
        return self.graph.reinforce(hits)

    def fact_upsert(
        self, entity: str, key: str, value: str, category: str = "", importance: float = 0.5, **more: Any
    ) -> Upserted:
        """Say a fact; a single-valued key's old value is retired and kept as history."""
        return self.graph.upsert(entity, key, value, category, importance, **more)

    def relate(self, subject: str, predicate: str, object: str, **more: Any) -> Upserted:
        """Say that a subject stands in a relation to an object."""
        return self.graph.relate(subject, predicate, object, **more)

    def alias(self, alias: str, entity: str) -> bool:
        """Give an entity another name."""
        return self.graph.alias(alias, entity)

    # ---- session start ----

    def init(self) -> Created:
        """Create the home, or a group in it; never overwrites."""
        from nanoclaw_memory.workspace.starter import initialise

        return initialise(self.home, self.scope.group, self.today())

    def boot(self, project: str = "") -> Boot:
        """What an agent reads at session start, within the caps, privacy applied."""
        from nanoclaw_memory.workspace.boot import boot

        self.require_group()
        return boot(self.home, self.scope, self.settings, self.today(), project, self._boot_brief)

    def brief(self, include_provenance: bool = False) -> Brief:
        """What matters from the entries, within its limits; empty, and said, when it takes too long."""
        self.require_group()
        if not self._has_entries():  # a session's start must not create a database
            from nanoclaw_memory.clock import stamp
            from nanoclaw_memory.types import Brief

            return Brief("", (), stamp(self.clock.now()), 0, 0, 0)
        return self.entries.brief(include_provenance)

    def _boot_brief(self) -> str:
        pointer = "[MEMORY.md is not loaded whole: memory_search finds its lines, memory_get reads them]"
        return f"{self.brief().text}\n{pointer}".lstrip()

    # ---- entries ----

    @cached_property
    def entries(self) -> Entries:
        from nanoclaw_memory.entries.entries import Entries

        self.require_group()

        def resident() -> Chain | None:
            """The local model if this process uses it anyway: a store must not wait for one to load."""
            local = self.settings.embeddings.provider == "local"
            return self.embedder if local and "embedder" in self.__dict__ else None

        made = Entries(
            self.database("entries"),
            self.home,
            self.scope,
            self.settings,
            self.clock,
            reopen=self._open_entries,
            published=self._published,
            embedder=lambda: self.embedder,
            resident=resident,
        )
        made.room.forgotten = self.forgets
        return made

    def _open_entries(self) -> SqliteDatabase:
        """A second way in, for a thread that must not keep this one's connections."""
        from nanoclaw_memory.store.sqlite import SqliteDatabase

        return SqliteDatabase(self.home.data(self.scope.group) / "entries.db", "entries")

    def _published(self, group: str) -> SqliteDatabase:
        """What a group has published: a file of its own, outside every group's directory."""
        name = f"published/{group}"
        if name not in self._databases:
            from nanoclaw_memory.store.sqlite import SqliteDatabase

            path = self.home.root / "store" / "published" / f"{group}.db"
            self._databases[name] = SqliteDatabase(path, "entries")
        return self._databases[name]

    @property
    def proposals(self) -> Proposals:
        """Changes that only a person may make."""
        return self.entries.room.proposals

    def store(self, content: Any = "", type: Any = "", **fields: Any) -> Stored:
        """Store one typed entry; unknown fields are refused, provenance comes from the scope."""
        self.require_group()
        stored = self.entries.store({"content": content, "type": type, **fields})
        self.telemetry.record(
            "store", type=stored.type, deduplicated=stored.deduplicated, status=stored.status
        )
        return stored

    def recall(
        self,
        query: str,
        *,
        types: Iterable[str] | None = None,
        priority_min: str = "low",
        token_budget: int | None = None,
        include_context: bool = False,
        format: str = "brief",
        fast: bool = False,
    ) -> Recall:
        """Entries that answer, packed into a token budget; lines of files when no entry matches."""
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.search.hybrid import Question
        from nanoclaw_memory.search.recall import Wanted, recall

        self.require_group()
        budget = self.settings.entries.recall_budget if token_budget is None else token_budget
        kinds = None if types is None else tuple(types)
        wanted = Wanted(query, kinds, priority_min, budget, include_context, format, fast)

        def files(question: str) -> Found:
            return self._search.search(Question(question, 10, self.today(), fast))

        found = recall(self.entries, files, wanted)
        try:
            self.entries.note_use(entry.id for entry in found.entries if entry.type != "file")
        except StoreError as error:  # a busy or read-only store must not cost the answer
            self.telemetry.record("note_use failed", error=error.message)
        self.telemetry.record("recall", tokens=found.token_count, entries=len(found.entries))
        return found

    def delete(self, entry_id: str) -> Deleted:
        """Remove an entry for good; what it had replaced becomes current again."""
        deleted = self.entries.delete(entry_id)
        self.telemetry.record("delete", restored=len(deleted.restored))
        return deleted

    def reinforce(self, entry_id: str) -> Entry:
        """Mark an entry as still relevant."""
        return self.entries.reinforce(entry_id)

    def shared_recall(
        self,
        query: str,
        *,
        types: Iterable[str] | None = None,
        token_budget: int | None = None,
        format: str = "brief",
    ) -> Recall:
        """The same over what other groups have published and granted to this one."""
        from nanoclaw_memory.search.recall import Wanted, shared_recall

        self.require_group()
        budget = self.settings.entries.recall_budget if token_budget is None else token_budget
        kinds = None if types is None else tuple(types)
        wanted = Wanted(query, kinds, token_budget=budget, format=format)
        return shared_recall(self.entries.shared, self.scope.group, wanted)

    def index_status(self) -> IndexStatus:
        """Health and statistics of files, entries and what is always loaded."""
        self.require_group()
        return self._token_audit().status(self._search.index.chunks.count()[1])

    def audit(self, scope: str = "all", recommend: bool = True, fix: bool = False) -> Audit:
        """What memory costs and what to do about it; `fix` does the low-risk part, after a checkpoint."""
        self.require_group()
        work = self._token_audit()
        audit = work.run(scope, recommend or fix)
        if not fix or not any(advice.risk == "low" for advice in audit.recommendations):
            return audit
        name = f"before-audit-{self.clock.now():%Y%m%d-%H%M%S}"
        self.checkpoint(name, "before ncm audit --fix")
        return replace(work.fix(audit), checkpoint=name)

    def audit_verify(self) -> AuditVerdict:
        """Whether the audit log is whole, against its head and what each group's database remembers."""
        anchors = []
        for group in self.home.groups():
            if (self.home.data(group) / "entries.db").exists():
                with Memory(self.home.root, Scope(group), self.clock) as other:
                    anchors.append((f"group {group}", other.entries.anchor()))
        return self.entries.room.audit_log.verify(anchors)

    def audit_trace(self, entry_id: str) -> EntryLife:
        """Everything the audit log knows of an entry of this group, and the entry as it is now."""
        self.require_group()
        return self.entries.trace(entry_id)

    def _token_audit(self) -> TokenAudit:
        from nanoclaw_memory.entries.audit import TokenAudit
        from nanoclaw_memory.workspace.paths import memory_files

        shared = self.settings.privacy.shared_files
        return TokenAudit(self.entries, lambda: memory_files(self.home, self.scope, shared))

    def _search_entries(
        self,
        query: str,
        limit: int,
        types: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        include_superseded: bool = False,
        fast: bool = False,
    ) -> Found:
        import time

        from nanoclaw_memory.search.entry_hits import entry_hits
        from nanoclaw_memory.types import Found

        began = time.monotonic()
        known = self.entries.search(
            query,
            types=types,
            tags=tags,
            include_superseded=include_superseded,
            limit=min(limit, 100),
            fast=fast,
        )
        took = round((time.monotonic() - began) * 1000, 1)
        return Found(tuple(entry_hits(known.hits)), known.degraded, took)

    def fenced(self, hits: Iterable[Hit]) -> str:
        """Hits as text for an agent: one line each, fenced as data, with origin and age."""
        from nanoclaw_memory.search.recall import hits_text

        return hits_text(hits, self.today())

    def _embed_entries(self) -> int:
        from nanoclaw_memory.errors import ProviderError

        if self.embedder is None or not self._has_entries():
            return 0
        try:
            return self.entries.finder.embed(self.embedder)
        except ProviderError:  # the index has just said so of its own chunks
            return 0

    def _has_entries(self) -> bool:
        """Whether anything was ever stored: a search must not create a database."""
        return "entries" in self._databases or (self.home.data(self.scope.group) / "entries.db").exists()

    # ---- turns ----

    @cached_property
    def _conversation(self) -> Conversation:
        from nanoclaw_memory.turn.conversation import Conversation
        from nanoclaw_memory.turn.rooms import Rooms

        self.require_group()
        rooms = Rooms(
            self.home,
            self.scope,
            self.clock,
            self.settings,
            self.database,
            open_graph=lambda: self.graph,
            open_embedder=lambda: self.embedder,
            is_resident=lambda: self.resident,
        )
        return Conversation(rooms, self.telemetry)

    def before_turn(self, message: str) -> Turn:
        """The blocks to put before a model call, who gave none, and why."""
        return self._conversation.before_turn(message)

    def after_turn(
        self,
        user_message: str,
        agent_response: str,
        tool_calls: Sequence[ToolCall] = (),
        at: datetime | None = None,
    ) -> Recorded:
        """Archive an exchange, measure it, and learn from it."""
        return self._conversation.after_turn(user_message, agent_response, tool_calls, at)

    def report_tools(self, calls: Sequence[ToolCall]) -> None:
        """Note tool calls between two messages, so that a loop is seen."""
        self._conversation.report_tools(calls)

    def session_start(self) -> Turn:
        """Blocks for the start of a session, or for its going on after a compaction."""
        return self._conversation.session_start()

    def session_end(self) -> tuple[PluginNote, ...]:
        """Tell the plugins that the session is over, and refresh active-context.md; gives what failed."""
        from nanoclaw_memory.types import PluginNote

        notes = self._conversation.session_end()
        if not self.scope.private:  # the page is private, and so is what stands on it
            return notes
        try:
            self.refresh_active_context()
        except NanoClawError as error:
            notes = (*notes, PluginNote("active-context", error.message))
        return notes

    def sessions(self, limit: int = 50) -> list[Session]:
        """The sessions that this scope may see, newest first."""
        return self._conversation.sessions(limit)

    def session(self, session_id: str) -> list[Exchange]:
        """What was said in a session, oldest first."""
        return self._conversation.exchanges(session_id)

    def session_search(self, query: str, limit: int = 10) -> list[SessionHit]:
        """Where something was said: exchanges, and lines of archived conversations."""
        from nanoclaw_memory.types import SessionHit

        found = self._conversation.search(query, limit)
        if self.scope.private:
            files = self.search(query, limit * 3, fast=True).hits
            found += [
                SessionHit("", hit.day, hit.text, hit.score, path=hit.path, line=hit.start_line)
                for hit in files
                if hit.path.startswith("conversations/")
            ]
        return found[: limit * 2]

    @cached_property
    def lessons(self) -> Learning:
        """What corrections taught: lessons, detail, outcomes, add, retire, feedback."""
        from nanoclaw_memory.turn.learning import Learning

        return Learning(self._conversation.rooms)

    def embed_exchanges(self, limit: int = 256) -> int:
        """Give vectors to exchanges that have none (loads the embedder); gives how many were done."""
        return self._conversation.embed_pending(limit)

    def before_compaction(self, transcript: str = "") -> Archived | None:
        """Archive a transcript before the host shortens the window; its exchanges may be recalled from now on."""
        from nanoclaw_memory.types import Transcript
        from nanoclaw_memory.upkeep.flush import compacted

        written = self.archive(transcript) if transcript else None
        self._conversation.before_compaction(Transcript(self.scope.session_id, "archived", ()))
        compacted(self.home.data(self.scope.group), self.scope.session_id)
        return written

    def note(self, kind: str, text: str) -> None:
        """Spool what was asked (`prompt`) or answered (`answer`) in a millisecond; `drain` archives it."""
        self.require_group()
        self._spool.note(self.scope.session_id, self.scope.private, kind, text, self.clock.now())

    def drain(self, limit: int = 50) -> int:
        """Archive what hooks have spooled; gives how many exchanges."""
        from nanoclaw_memory.turn.spool import Spoken

        def archive(spoken: Spoken) -> None:
            scope = replace(self.scope, session_id=spoken.session, private=spoken.private)
            with Memory(self.home.root, scope, self._given_clock, self._overrides, self._directory) as own:
                own.after_turn(spoken.question, spoken.answer, at=spoken.at)

        return self._spool.drain(self.clock.now(), archive, limit)

    @property
    def _spool(self) -> Spool:
        from nanoclaw_memory.turn.spool import Spool

        return Spool(self.home.data(self.scope.group) / "spool")

    # ---- bringing memory in ----

    def entries_migrate(self, dry_run: bool = False) -> BroughtIn:
        """MEMORY.md and memory/*.md into typed entries; the files stay as they are."""
        from nanoclaw_memory.upkeep.importing import migrate_files
        from nanoclaw_memory.workspace.paths import memory_files

        self._require_private("memory files")
        self.require_group()
        files = memory_files(self.home, self.scope, ())
        return migrate_files(self.entries, files, dry_run)

    def import_export(self, kind: str, path: Path, dry_run: bool = False) -> BroughtIn:
        """What another memory exported, with the origin `import`."""
        from nanoclaw_memory.upkeep.importing import import_export

        self._require_private("imports")
        self.require_group()
        scope = replace(self.scope, origin="import")
        with Memory(self.home.root, scope, self._given_clock, self._overrides, self._directory) as own:
            return import_export(
                kind,
                path,
                own.entries,
                own.graph,
                self.home,
                self.scope.group,
                self.clock,
                dry_run,
                self.forgets,
            )

    # ---- forgetting ----

    def forget(
        self,
        *,
        id: str = "",
        entity: str = "",
        session: str = "",
        text: str = "",
        dry_run: bool = False,
        agreed: Callable[[Sequence[ForgottenPage]], bool] | None = None,
        checkpoints: bool = False,
    ) -> Forgotten:
        """Remove something for good, from every store and file, and keep it away from now on.

        `agreed` is shown what would leave Markdown pages; without its consent they stay as they are.
        """
        from nanoclaw_memory.upkeep.forget import Asked, Forgetting

        self._require_owner("forget")
        work = Forgetting(self._premises(), Asked(id, entity, session, text))
        if dry_run:
            return work.preview()
        done = work.carry_out(agreed or (lambda pages: False), checkpoints)
        self.telemetry.record("forget", removed=sum(done.removed.values()), pages=len(done.pages))
        return done

    def forget_allow(self, text: str) -> int:
        """Let a forgotten text come back in; gives how many tombstones were lifted."""
        from nanoclaw_memory.store.phrases import Phrases
        from nanoclaw_memory.store.tombstones import TombstoneTable

        self._require_owner("lift a tombstone")
        db = self.database("facts")
        with db.transaction():
            return TombstoneTable(db).allow(Phrases.asked(text) | Phrases.met([text]))

    def forgets(self, text: str) -> bool:
        """Whether a text is, or holds, one that a person asked to forget."""
        if not (self.home.data(self.scope.group) / "facts.db").exists():
            return False
        from nanoclaw_memory.store.tombstones import TombstoneTable

        return TombstoneTable(self.database("facts")).forgets(text)

    def _tombstones(self) -> list[tuple[Any, ...]]:
        if not (self.home.data(self.scope.group) / "facts.db").exists():
            return []
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.store.tombstones import TombstoneTable

        try:
            return TombstoneTable(self.database("facts")).all()
        except StoreError:  # damaged: a restore is what helps
            return []

    def _forget_again(self, tombstones: list[tuple[Any, ...]]) -> None:
        """A restored database knows less: put the tombstones up again, and take out what they keep away."""
        if not tombstones:
            return
        from nanoclaw_memory.store.tombstones import TombstoneTable
        from nanoclaw_memory.upkeep.forget import Asked, Forgetting

        db = self.database("facts")
        with db.transaction():
            TombstoneTable(db).carry(tombstones)
        Forgetting(self._premises(), Asked(again=True)).carry_out(lambda pages: False, checkpoints=False)

    def _premises(self) -> Premises:
        from nanoclaw_memory.upkeep.forget_files import Files
        from nanoclaw_memory.upkeep.forget_stores import Premises

        group, store = self.scope.group, self.home.root / "store"
        house = self._house
        corpora = self._search.corpora
        for name in corpora.names():
            corpora.index(name)
        return Premises(
            house,
            Files(self.home, group, self.entries.room.domains),
            self.database,
            self._opened_host.database if (store / "messages.db").exists() else None,
            self._published(group) if (store / "published" / f"{group}.db").exists() else None,
            corpora.opened,
        )

    def _require_owner(self, what: str) -> None:
        self._require_private(what)
        if self.scope.origin != "owner":
            raise Refused(f"only a person may {what}", "run it at the command line: ncm forget")

    # ---- agents built with other SDKs ----

    @property
    def notes(self) -> Notes:
        """The agent's own notes, by the commands of Anthropic's memory tool."""
        from nanoclaw_memory.workspace.notes import Notes

        self._require_private("notes")
        self.require_group()
        return Notes(self.home.workspace(self.scope.group) / "memory" / "notes", self._masked)

    @cached_property
    def sdk_items(self) -> SdkItems:
        """Session histories and items of agents built with other SDKs."""
        from nanoclaw_memory.store.sdk_items import SdkItems

        self.require_group()
        return SdkItems(self.database("sdk"), self.clock)

    # ---- lines ----

    def get(self, file: str, start_line: int | None = None, end_line: int | None = None) -> Lines:
        """Exact lines of a memory file; a missing file or range is empty with a note, never an error."""
        from nanoclaw_memory.types import Lines
        from nanoclaw_memory.workspace.files import read_text, split_lines

        start = 1 if start_line is None else start_line
        if start < 1 or (end_line is not None and end_line < start):
            raise InvalidValue(
                f"lines {start} to {'the end' if end_line is None else end_line} are no range",
                "lines count from 1: --start 1 --end 20",
            )
        self.require_group()
        relative, path = locate(self.home, self.scope, file, self.settings.privacy.shared_files)
        try:
            lines = split_lines(read_text(path))
        except FileNotFoundError:
            return Lines(relative, 0, 0, "", False, f"there is no {relative} yet")
        chosen = lines[start - 1 : end_line]
        if not chosen:
            return Lines(relative, 0, 0, "", True, f"{relative} has {len(lines):,} lines")
        return Lines(relative, start, start + len(chosen) - 1, "".join(chosen), True)

    def write(self, content: str, tag: str = "", importance: float | None = None) -> Written:
        """Append one line to today's log; on disk when this returns."""
        from nanoclaw_memory.types import Written
        from nanoclaw_memory.workspace import log
        from nanoclaw_memory.workspace.files import append_line

        self.require_group()
        if self.forgets(content):
            raise Refused(
                "a person asked to forget this", 'if it may come back: ncm forget --text "…" --allow'
            )
        text, redacted = self._masked(content)
        line = log.format_line(text, tag, importance)
        today = self.today()
        relative, path = locate(self.home, replace(self.scope, private=True), log_path(today), ())
        number = append_line(path, line, log.header(today))
        self.telemetry.record("write", chars=len(line), redacted=redacted)
        return Written(relative, number, redacted)

    def log(self, day: str | date | None = None) -> tuple[date, list[LogLine]]:
        """The entries of one day's log; today's without an argument."""
        from nanoclaw_memory.workspace import log

        wanted = _day(day) if day else self.today()
        return wanted, log.parse(self.get(log_path(wanted)).text)

    # ---- upkeep ----

    @cached_property
    def _house(self) -> House:
        from nanoclaw_memory.upkeep.house import House

        self._require_private("upkeep")
        self.require_group()
        if not self.home.workspace(self.scope.group).is_dir():
            raise NotFound(f"there is no memory at {self.home.root}", "create it: nanoclaw-memory init")
        return House(
            self.home,
            self.scope,
            self.settings,
            self.clock,
            open_graph=lambda: self.graph,
            open_entries=lambda: self.entries,
            open_database=self.database,
            open_writer=self._writer,
            drain=self._drain_all,
            index=self.index,
            stale_files=lambda: len((found := self._search.index.scan()).changed + found.removed),
            reindex=lambda: self.corpora.reindex(),
            has=lambda name: (self.home.data(self.scope.group) / f"{name}.db").exists(),
        )

    def _writer(self) -> Writer | None:
        from nanoclaw_memory.providers.writer import writer_for

        return writer_for(self.settings.writer, self.home.data(MAIN_GROUP), self.clock)

    def _drain_all(self) -> int:
        return sum(iter(lambda: self.drain(200), 0))

    def upkeep(self, job: str = "", dry_run: bool = False, due: bool = False) -> list[JobRun]:
        """Run all jobs, or one; `due` only those whose time has come; `dry_run` says what they would do."""
        from nanoclaw_memory.upkeep.jobs import JOBS, job_named
        from nanoclaw_memory.upkeep.scheduler import run

        runs = run(self._house, [job_named(job)] if job else JOBS, dry_run, due)
        for one in runs:
            if not one.skipped:
                self.telemetry.record("upkeep", job=one.name, changed=one.changed, error=one.error)
        return runs

    def upkeep_status(self) -> list[JobState]:
        """Every job: its schedule, its last run, and whether it is due."""
        from nanoclaw_memory.upkeep.scheduler import states

        return states(self._house)

    def review(self) -> list[Proposal]:
        """Every change that waits for a person: what makes room first, then the oldest."""
        from nanoclaw_memory.upkeep.review import open_proposals

        return open_proposals(self._house)

    def review_decide(self, proposal_id: str, accept: bool, text: str = "") -> Proposal:
        """Accept a proposal, in other words if `text` gives them, or reject it for good."""
        from nanoclaw_memory.upkeep.review import decide, write_page
        from nanoclaw_memory.upkeep.scheduler import undisturbed

        with undisturbed(self.home.data(self.scope.group)):
            decided = decide(self._house, proposal_id, accept, text)
            write_page(self._house)
        self.telemetry.record("review", kind=decided.kind, accepted=accept)
        return decided

    def flush_needed(self, context_tokens: int, transcript_bytes: int = 0) -> Flush:
        """Whether to ask the agent now to write down what should last; true once per compaction cycle."""
        from nanoclaw_memory.upkeep.flush import flush_needed

        return flush_needed(self._house, context_tokens, transcript_bytes)

    def refresh_active_context(self) -> Refreshed:
        """Bring active-context.md up to date with this session and the latest log; hand-written lines stay."""
        from nanoclaw_memory.upkeep.active_context import refresh

        return refresh(self._house)

    def heartbeat(self) -> list[HeartbeatItem]:
        """HEARTBEAT.md's checklist, with the state of what can be known."""
        from nanoclaw_memory.upkeep.heartbeat import heartbeat

        return heartbeat(self._house)

    def install_cron(self, remove: bool = False, systemd: bool = False) -> Installed:
        """Ask the machine to run upkeep every hour, or no longer."""
        from nanoclaw_memory.upkeep.crontab import install

        return install(self.home.root.absolute(), remove, systemd)

    # ---- health ----

    def doctor(self) -> list[Finding]:
        """The check-up of home, settings, files and databases."""
        from nanoclaw_memory.errors import SettingsError
        from nanoclaw_memory.types import Finding
        from nanoclaw_memory.upkeep.doctor import Patient, examine

        try:
            zone(self.settings.user.timezone)
        except SettingsError as error:  # nothing else can be examined without settings
            return [Finding("problem", error.message, error.hint)]
        patient = Patient(self.home, self.scope, self.configuration, self._existing_databases())
        return examine(patient, self._loops())

    def _loops(self) -> Iterator[Finding]:
        """The learning loops; none of a memory that is not there, or that this scope may not look into."""
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.types import Finding
        from nanoclaw_memory.upkeep.loops import findings

        if not self.scope.private or not self.home.workspace(self.scope.group).is_dir():
            return
        try:
            yield from findings(self._house)
        except StoreError as error:
            yield Finding("problem", error.message, error.hint)

    def status(self) -> Status:
        """What there is, at a glance; opens nothing."""
        from nanoclaw_memory.upkeep.status import status

        return status(self.home, self.scope, self.settings, self.clock)

    # ---- local models ----

    def models(self, check: bool = False) -> list[dict[str, str]]:
        """The local models and how they stand; with `check` every byte is verified."""
        from dataclasses import asdict

        from nanoclaw_memory.providers.models import states

        return [
            asdict(state) for state in states(self.home.models, self.settings.embeddings.model_path, check)
        ]

    def models_install(
        self,
        names: Iterable[str] = (),
        every: bool = False,
        force: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> list[dict[str, str]]:
        """Fetch and verify models, by default the embedder; does nothing for those that are there."""
        from dataclasses import asdict

        from nanoclaw_memory.providers.models import EMBEDDER, MODELS, install, model_named

        chosen = MODELS if every else tuple(map(model_named, names)) or (EMBEDDER,)
        return [asdict(install(model, self.home.models, progress, force)) for model in chosen]

    # ---- projects, runbooks, policies ----

    def projects(self) -> list[Project]:
        """The project files this scope may see, the group's own and the shared ones."""
        from nanoclaw_memory.workspace.projects import projects

        self.require_group()
        return projects(self.home, self.scope, self.settings.privacy.shared_files)

    def project(self, slug: str) -> list[Lines]:
        """A project's memory: the group's own file, then the shared one."""
        from nanoclaw_memory.workspace.projects import project_files

        found = project_files(self.home, self.scope, self.settings.privacy.shared_files, slug)
        return [self.get(project.path) for project in found]

    def project_new(self, slug: str, title: str = "") -> Project:
        """Create a project's file, shared by all groups; never overwrites."""
        from nanoclaw_memory.workspace.projects import new_project

        return new_project(self.home, slug, title)

    def runbooks(self) -> list[Runbook]:
        """The how-tos in memory/tools-*.md."""
        from nanoclaw_memory.workspace.runbooks import runbooks

        self.require_group()
        return runbooks(self.home, self.scope, self.settings.privacy.shared_files)

    def runbook(self, name: str) -> Lines:
        """One runbook's text."""
        from nanoclaw_memory.workspace.runbooks import runbook

        return self.get(runbook(self.home, self.scope, self.settings.privacy.shared_files, name).path)

    def policies(self) -> list[Policy]:
        """The gating policies, in the file's order."""
        from nanoclaw_memory.workspace import policies

        self.require_group()
        return policies.read(self._policies_file(self.scope))

    def policy_add(self, title: str, trigger: str, gate: str, reason: str = "", source: str = "") -> Policy:
        """Add a gating policy under the next number, which was never used before."""
        from nanoclaw_memory.workspace import policies

        self.require_group()
        texts = [self._masked(text)[0] for text in (title, trigger, gate, reason, source)]
        return policies.add(self._policies_file(replace(self.scope, private=True)), *texts)

    def policy_check(self, action: str) -> list[PolicyHit]:
        """Which policies a planned action triggers, and by which words."""
        from nanoclaw_memory.workspace import policies

        return policies.check(self.policies(), action)

    # ---- checkpoints ----

    @property
    def checkpoints(self) -> Checkpoints:
        """The group's checkpoints; they hold private memory, so a shared scope may not see them."""
        if not self.scope.private:
            raise PathRefused("checkpoints are private", "ask without --shared")
        self.require_group()
        return self._checkpoints()

    def checkpoint(self, name: str, reason: str = "") -> Checkpoint:
        """Save the group's files and databases under a name."""
        made = self.checkpoints.create(name, reason)
        self.telemetry.record("checkpoint", files=made.files, bytes=made.bytes)
        return made

    def checkpoint_restore(self, name: str) -> Restored:
        """Bring back a checkpoint, all or nothing; the present state is saved as another one first."""
        from nanoclaw_memory.workspace.restore import restore

        forgotten = self._tombstones()
        done = restore(self.checkpoints, name)
        self._forget_again(forgotten)
        self.telemetry.record("restore", files=done.replaced, removed=done.removed)
        return done

    def db_check(self, all_groups: bool = False) -> list[DatabaseCheck]:
        """The integrity of every database there is, of this group or of all; creates none."""
        from nanoclaw_memory.store.integrity import check, of_all_groups

        groups = self.home.groups() if all_groups else [self.scope.group]
        if all_groups and self.scope.group != MAIN_GROUP:
            raise PathRefused("only the main group may look at all groups", "leave out --all or --group")
        found: list[DatabaseCheck] = []
        for group in groups:
            with Memory(self.home.root, replace(self.scope, group=group), self.clock) as other:
                found += check(self.home.root, group, other._existing_databases())
        if self.scope.group == MAIN_GROUP:  # it administers what is of all groups
            found += check(self.home.root, MAIN_GROUP, of_all_groups(self.home.root))
        return found

    # ---- the host ----

    @cached_property
    def _opened_host(self) -> Host:
        from nanoclaw_memory.host.host import Host

        host = Host.open(self.home.root, clock=self.clock, on_exchange=self._remember_exchange)
        self._databases["the host's messages"] = host.database
        return host

    def _remember_exchange(self, group: str, session_id: str, user: str, agent: str, at: str) -> None:
        """What was said in a group's chat goes to that group's memory, as private as the chat is."""
        host = self._opened_host
        scope = replace(host.scope(host.group(group)), session_id=session_id)
        with Memory.open(self.home.root, scope, clock=self._given_clock, overrides=self._overrides) as own:
            own.after_turn(user, agent, at=moment_of(at))

    def host(self) -> Host:
        """The operational state of all groups; only the main group, in private, administers it."""
        self._require_private("the host's state")
        if self.scope.group != MAIN_GROUP:
            raise PathRefused(f"{self.scope.group} may not administer", "only the main group may")
        return self._opened_host

    @property
    def tasks(self) -> Tasks:
        """The scheduled tasks of this group; of all groups for the main one."""
        self._require_private("tasks")
        self.require_group()
        return self._opened_host.tasks(self.scope.group)

    def run_tasks(self, command: str, timeout: float = 600) -> list[TaskRun]:
        """Run what is due, each task as a command without a shell; gives the runs."""
        return self._opened_host.run_commands(self.tasks, command, timeout)

    def transcripts(self) -> list[TranscriptFile]:
        """The raw transcripts of this group's agent, newest first."""
        from nanoclaw_memory.host.sessions import transcripts

        self._require_private("transcripts")
        return transcripts(self.home, self.scope.group)

    def archives(self) -> list[Archived]:
        """The conversations archived in the workspace that this scope may see, oldest first."""
        from nanoclaw_memory.host.archive import archives
        from nanoclaw_memory.workspace.paths import visible

        shared = self.settings.privacy.shared_files
        return [one for one in archives(self.home, self.scope.group) if visible(self.scope, one.path, shared)]

    def archive(self, transcript: str) -> Archived | None:
        """Write what is new in a transcript (a file or a session id) to conversations/; None for nothing."""
        from nanoclaw_memory.host.sessions import archive_file

        self.require_group()
        return archive_file(self.home, self.scope.group, transcript, self.clock, self.forgets)

    # ---- settings ----

    def config_rows(self, prefix: str = "") -> list[dict[str, Any]]:
        """Every setting with its value and origin; credentials masked."""
        from nanoclaw_memory.settings import leaves

        return [
            {"key": leaf.path, "value": value, "from": origin, "about": leaf.description}
            for leaf in leaves()
            if leaf.path.startswith(prefix)
            for value, origin in [self.config_get(leaf.path)]
        ]

    def config_get(self, key: str) -> tuple[Any, str]:
        """A setting's value and where it comes from; credentials masked."""
        from nanoclaw_memory.settings import SECRET_KEYS

        value = self.configuration.value(key)
        if key.rpartition(".")[2] in SECRET_KEYS and value:
            value = "[set]"
        return value, self.configuration.origin(key)

    def config_set(self, key: str, value: str) -> Any:
        """Change one setting in the home's file, all or nothing."""
        import json

        from nanoclaw_memory.settings import read_file, with_value
        from nanoclaw_memory.workspace.files import locked, replace_text

        if key == "user.timezone":  # whether there is such a zone no type can say
            zone(value)
        with locked(self.home.root):
            tree = with_value(read_file(self.home.settings_file), key, value)
            replace_text(self.home.settings_file, json.dumps(tree, indent=2, ensure_ascii=False) + "\n")
        self.__dict__.pop("configuration", None)
        return self.config_get(key)[0]

    # ---- inside ----

    def _checkpoints(self) -> Checkpoints:
        from nanoclaw_memory.store.snapshots import Snapshots
        from nanoclaw_memory.workspace.checkpoints import Checkpoints

        derived = ("index",)
        kept = tuple(name for name in DATABASES if name not in derived)
        return Checkpoints(self.home.workspace(self.scope.group), Snapshots(kept, self.database), self.clock)

    def _masked(self, text: str) -> tuple[str, int]:
        from nanoclaw_memory import secrets

        return secrets.mask(text) if self.settings.privacy.redact_secrets else (text, 0)

    def _policies_file(self, scope: Scope) -> Path:
        from nanoclaw_memory.workspace.policies import POLICIES

        return locate(self.home, scope, POLICIES, self.settings.privacy.shared_files)[1]

    def _existing_databases(self) -> tuple[SqliteDatabase, ...]:
        folder = self.home.data(self.scope.group)
        return tuple(self.database(name) for name in DATABASES if (folder / f"{name}.db").exists())

    def _require_private(self, what: str) -> None:
        if not self.scope.private:
            raise PathRefused(f"a shared scope does not see {what}", "ask in a private one: without --shared")

    def require_group(self) -> None:
        """A group must have been made by `init`: a mistyped name must not open a second memory."""
        if self.scope.group != MAIN_GROUP and not self.home.group_root(self.scope.group).is_dir():
            raise NotFound(
                f"there is no group {self.scope.group!r}",
                f"create it: nanoclaw-memory init --group {self.scope.group}",
            )


def _day(day: str | date) -> date:
    if isinstance(day, date):
        return day
    try:
        return day_of(day)
    except ValueError:
        raise InvalidValue(f"{day!r} is no date", "write it as YYYY-MM-DD") from None


def _adopter(name: str) -> Adopt | None:
    """What takes over a database file of the older systems."""
    if name != "facts":
        return None
    from nanoclaw_memory.store.older import adopt

    return adopt
