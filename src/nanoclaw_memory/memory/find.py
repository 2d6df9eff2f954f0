"""What is found: entries, search, recall, boot and brief."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nanoclaw_memory.memory.knowing import Knowing
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    import threading

    from nanoclaw_memory.entries.audit import TokenAudit
    from nanoclaw_memory.entries.entries import Entries
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.retrieval.corpus import Corpora
    from nanoclaw_memory.retrieval.service import SearchFront
    from nanoclaw_memory.store.proposals import Proposals
    from nanoclaw_memory.store.sqlite import SqliteDatabase
    from nanoclaw_memory.types import (
        Audit,
        AuditVerdict,
        Boot,
        Brief,
        Compared,
        Deleted,
        Entry,
        EntryLife,
        Found,
        Hit,
        Indexed,
        IndexStatus,
        Recall,
        Stored,
    )


class Finding(Knowing):
    """What is found: entries, search, recall, boot and brief."""

    # ---- search ----

    @cached_property
    def _search(self) -> SearchFront:
        from nanoclaw_memory.retrieval.service import SearchFront

        return SearchFront(
            self.home,
            self.scope,
            self.configuration,
            self.database,
            self.intake,
            lambda: self.embedder,
            lambda: self.reranker,
            self._other_names,
        )

    def _other_names(self, question: str) -> list[str]:
        """Aliases and former names of whom the question names, when there is a graph."""
        if not (self.home.data(self.scope.group) / "facts.db").exists():
            return []
        from nanoclaw_memory.retrieval.expansion import other_names

        return other_names(self.graph, question)

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
        from nanoclaw_memory.retrieval.searcher import Question

        self.require_group()
        again = self.settings.rerank.provider != "none" if rerank is None else rerank
        asked = Question(query, limit, self.today(), fast, explain, mmr, again and not fast)
        tags = tuple(tags)
        if types is not None or tags or include_superseded or not query.strip():
            found = self._search_entries(query, limit, types, tags, include_superseded, fast)
        elif self._has_entries() and corpus in ("", "all"):
            known = self._entries_if_sound(query[:500], limit, fast)
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
        done = self._embed_also(done, "entries", self._embed_entries)
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
        self._require_private("where domain documents come from")
        self.require_group()
        return self._search.corpora

    def bench_embed(
        self, texts: int = 200, progress: Callable[[str, int, int], None] | None = None
    ) -> list[Compared]:
        """Keyword search and embedders compared on this memory's own chunks."""
        from nanoclaw_memory.retrieval.compare import compare

        self.require_group()
        return compare(self._search.index, texts, progress)

    # ---- session start ----

    def boot(self, project: str = "") -> Boot:
        """What an agent reads at session start, within the caps, privacy applied."""
        from nanoclaw_memory.workspace.boot import boot

        self.require_group()
        return boot(self.home, self.scope, self.settings, self.today(), project, lambda: self.brief().text)

    def brief(self, include_provenance: bool = False) -> Brief:
        """What matters from the entries, within its limits; empty, and said, when it takes too long."""
        self.require_group()
        if not self._has_entries():  # a session's start must not create a database
            return self._no_brief()
        from nanoclaw_memory.errors import StoreError

        try:
            return self.entries.brief(include_provenance)
        except StoreError as error:  # a session starts with what is sound
            from nanoclaw_memory.retrieval.service import missing

            return self._no_brief(missing("entries", error))

    def _no_brief(self, *why: str) -> Brief:
        from nanoclaw_memory.clock import stamp
        from nanoclaw_memory.types import Brief

        return Brief("", (), stamp(self.clock.now()), 0, 0, 0, why)

    # ---- entries ----

    @cached_property
    def entries(self) -> Entries:
        from nanoclaw_memory.entries.entries import Entries

        self.require_group()

        def resident() -> Chain | None:
            """The local model if this process uses it anyway: a store must not wait for one to load."""
            local = self.settings.embeddings.provider == "local"
            return self.embedder if local and "embedder" in self.__dict__ else None

        return Entries(
            self.database("entries"),
            self.home,
            self.scope,
            self.settings,
            self.clock,
            self.intake,
            reopen=self._open_entries,
            published=self._published,
            embedder=lambda: self.embedder,
            resident=resident,
        )

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
        return self.entries.ledger.proposals

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
        from nanoclaw_memory.retrieval.recall import Wanted, recall
        from nanoclaw_memory.retrieval.searcher import Question

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
        from nanoclaw_memory.retrieval.recall import Wanted, shared_recall

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
                with type(self)(self.home.root, Scope(group), self.clock) as other:
                    anchors.append((f"group {group}", other.entries.anchor()))
        return self.entries.ledger.audit_log.verify(anchors)

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

        from nanoclaw_memory.retrieval.entry_hits import entry_hits
        from nanoclaw_memory.types import Found

        began = time.monotonic()
        known = self.entries.search(
            query,
            types=types,
            tags=tags,
            include_superseded=include_superseded,
            limit=limit,
            fast=fast,
        )
        took = round((time.monotonic() - began) * 1000, 1)
        return Found(tuple(entry_hits(known.hits)), known.degraded, took)

    def _entries_if_sound(self, query: str, limit: int, fast: bool) -> Found:
        """Entries for a search over files too: where their database cannot serve, the files still answer."""
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.retrieval.service import missing
        from nanoclaw_memory.types import Found

        try:
            return self._search_entries(query, limit, fast=fast)
        except StoreError as error:
            return Found((), (missing("entries", error),))

    def _embed_also(self, done: Indexed, part: str, embed: Callable[[], int]) -> Indexed:
        """What an indexing run did, and the vectors that `embed` makes of another part of memory."""
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.retrieval.service import missing

        try:
            return replace(done, embedded=done.embedded + embed())
        except StoreError as error:
            return replace(done, degraded=(*done.degraded, missing(part, error)))

    def fenced(self, hits: Iterable[Hit]) -> str:
        """Hits as text for an agent: one line each, fenced as data, with origin and age."""
        from nanoclaw_memory.retrieval.recall import hits_text

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
