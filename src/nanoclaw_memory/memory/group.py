"""The composition root: build the services of a group for one scope, each on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, moment_of, stamp
from nanoclaw_memory.errors import (
    NanoClawError,
    NoMemory,
    NotFound,
    PathRefused,
    ProviderError,
    Refused,
    StoreError,
)
from nanoclaw_memory.memory.resources import ALL_DATABASES, NEVER_RESTORED, OF_BOTH, Resources
from nanoclaw_memory.memory.team_pages import COMMON, has_team, synchronise, synchronised, team_tables
from nanoclaw_memory.types import MAIN_GROUP, SHARED, Indexed, Scope
from nanoclaw_memory.workspace.paths import (
    PENDING_RESTORE,
    SHARED_FOLDERS,
    archive_path,
    day_in_path,
    locate,
    memory_files,
    of_shared_chats,
    refuse_other_groups,
    require_owner,
    within,
)

if TYPE_CHECKING:
    from nanoclaw_memory.conversations.service import Conversations
    from nanoclaw_memory.conversations.spool import SpooledExchange
    from nanoclaw_memory.entries.entries import Entries
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.graph.statements import StatementReader
    from nanoclaw_memory.host.host import Host
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.retrieval.exchange_search import ExchangeSearch
    from nanoclaw_memory.retrieval.service import Retrieval
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.exchanges import Exchanges
    from nanoclaw_memory.store.lessons import LessonTable
    from nanoclaw_memory.store.proposals import Proposals
    from nanoclaw_memory.store.sdk_items import SdkItems
    from nanoclaw_memory.store.turns import TurnTable
    from nanoclaw_memory.telemetry import Telemetry
    from nanoclaw_memory.turn.context import PluginContext
    from nanoclaw_memory.turn.lifecycle import TurnLifecycle
    from nanoclaw_memory.types import Exchange
    from nanoclaw_memory.upkeep.forget_stores import ForgetTargets
    from nanoclaw_memory.workspace.checkpoints import Checkpoints
    from nanoclaw_memory.workspace.listing import Seen

SPOOLED_AT_ONCE = 20  # exchanges that are archived before a question is answered
CONFIRM_WITHIN = timedelta(hours=12)  # between a person's words and an agent storing them


class Group:
    """The services of one group for one scope; plugins, upkeep, forget and doctor receive it."""

    def __init__(self, resources: Resources, scope: Scope, retrieval: Retrieval | None = None) -> None:
        self.resources = resources
        self.scope = resources.allowed(scope)
        self.home = resources.home
        self.workspace = self.home.workspace(scope.group)
        self.data = self.home.data(scope.group)
        self._retrieval = retrieval
        self._shared_chats: Group | None = None
        self._looked_at: set[str] = set()
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
        self.resources.close()

    def close(self) -> None:
        """Close what this scope started; the shared resources stay open.

        The services refer back to this object: a server has too many sessions to leave such cycles to the garbage
        collector.
        """
        self._closing.close()
        self._shared_chats = None
        for name in list(vars(self)):
            if isinstance(getattr(type(self), name, None), cached_property):
                delattr(self, name)  # rebuilt on the next access

    def in_session(self, session_id: str, project: str, client: str) -> Group:
        """Return the same group for a client's session in a project; it shares everything that is open."""
        scope = replace(self.scope, session_id=session_id, project=project, client=client)
        return Group(self.resources, scope, self.retrieval)

    def as_scope(self, scope: Scope) -> Group:
        """Open a group of this home for another scope; use it in a `with`."""
        return Group(self.resources.for_group(scope.group), scope)

    # ---- resources ----

    @property
    def configuration(self) -> Configuration:
        return self.resources.configuration

    @property
    def settings(self) -> Settings:
        return self.resources.settings

    @property
    def clock(self) -> Clock:
        return self.resources.clock

    @property
    def telemetry(self) -> Telemetry:
        return self.resources.telemetry

    @property
    def today(self) -> date:
        """Return the date in the user's time zone."""
        return self.clock.now().date()

    def moment(self) -> str:
        """Return the current moment in the stored format."""
        return stamp(self.clock.now())

    def has(self, name: str) -> bool:
        """Return whether a database exists for this scope."""
        return self.resources.has(self._file_of(name))

    def database(self, name: str) -> Database:
        """Return a database of this scope; private and shared scopes have different files."""
        return self.resources.database(self._file_of(name))

    def _file_of(self, name: str) -> str:
        if self.scope.private or name in OF_BOTH:  # a forgotten text is refused in both
            return name
        own = f"{SHARED}{name}"
        if name not in self._looked_at and not self.resources.has(own) and self.resources.has(name):
            self._looked_at.add(name)
            with suppress(StoreError):  # a file of an older release is split when it is opened
                self.resources.database(name).query("SELECT 1")
        return own

    def existing_databases(self) -> tuple[Database, ...]:
        """Return the group's existing databases that this scope may see."""
        own = (name for name in ALL_DATABASES if self.scope.private or name.startswith(SHARED))
        return tuple(self.resources.database(name) for name in own if self.resources.has(name))

    @property
    def shared_chats(self) -> Group | None:
        """Return the services of the group's shared chats, where a private scope reads them beside its own."""
        if self._shared_chats is None and self.scope.private and self._has_shared_chats():
            return self.open_shared_chats()
        return self._shared_chats

    def private_and_shared(self, database: str) -> list[Group]:
        """Return this group and its shared chats, without those that have no such database."""
        return [own for own in (self, self.shared_chats) if own is not None and own.has(database)]

    def open_shared_chats(self) -> Group:
        """Open the group's shared chats, even if nothing was said there yet."""
        self._shared_chats = Group(self.resources, replace(self.scope, private=False))
        self._closing.callback(self._shared_chats.close)
        return self._shared_chats

    def _has_shared_chats(self) -> bool:
        def look() -> bool:
            from nanoclaw_memory.store.write_count import has_shared

            known = (name for name in ALL_DATABASES if name.startswith(SHARED))
            of_server = any(map(self.resources.has, known)) if self.resources.store.url else False
            folders = (self.workspace / name for name in SHARED_FOLDERS)
            return of_server or has_shared(self.data) or any(folder.is_dir() for folder in folders)

        return self.resources.freshness.look("shared chats", look)

    # ---- services ----

    @cached_property
    def intake(self) -> Intake:
        """Return the gate that every incoming text passes once."""
        from nanoclaw_memory.intake.intake import Intake

        return Intake(
            data=self.data,
            database=lambda: self.database("forgotten"),
            listed=(lambda: self.has("forgotten")) if self.resources.store.url else None,
            redact=self.settings.privacy.redact_secrets,
            origin=self.scope.author,
            private=self.scope.private,
            record=self._record,
        )

    def _record(self, event: str, **fields: Any) -> None:
        self.telemetry.record(event, **fields)

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """Return facts, relations and aliases."""
        self.require_group()
        return self._graph()

    @cached_property
    def fresh_graph(self) -> KnowledgeGraph:
        """Return the graph; it reads changed files before it answers."""
        self.require_group()
        return self._graph(self.refreshed_graph, self._shared_graph)

    def _graph(
        self,
        refresh: Callable[[], AbstractContextManager[str | None]] = nullcontext,
        beside: Callable[[], KnowledgeGraph | None] | None = None,
    ) -> KnowledgeGraph:
        from nanoclaw_memory.graph.graph import KnowledgeGraph

        return KnowledgeGraph(
            self.database("facts"),
            self.settings,
            self.clock,
            self.scope,
            self.intake,
            refresh,
            self.retrieval.overtaken_facts,
            beside,
            self.require_own_file,
        )

    def _shared_graph(self) -> KnowledgeGraph | None:
        """Return the graph of the shared chats, if anything was stated there."""
        chats = self.shared_chats
        return chats.graph if chats is not None and chats.has("facts") else None

    def pages(self) -> list[Seen]:
        """Return the Markdown files for the index and graph of this scope: for a private one all but those of shared
        chats.
        """
        if self.scope.private:
            return self.resources.listing.private_pages()
        from nanoclaw_memory.retrieval.scanner import seen_files

        return list(seen_files(memory_files(self.home, self.scope, self.settings.privacy.shared_files)))

    def page_problems(self) -> tuple[str, ...]:
        """Return what prevents pages of the workspace from reaching the team."""
        return synchronise(self, self.scope.author).problems if has_team(self) else ()

    def page_table(self, relative: str) -> tuple[Database, str] | None:
        """Return the team's table that contains a page, and the page's path in it; None where pages are only files."""
        if not has_team(self):
            return None
        if relative.startswith(f"{COMMON}/"):
            return self.resources.common_pages(), relative.removeprefix(f"{COMMON}/")
        return self.resources.database("pages"), relative

    def team_pages(self) -> list[Database]:
        """Return the tables of the team's pages (the main group's include those of all groups), updated from the
        files.
        """
        if has_team(self):
            synchronise(self, self.scope.author)
        return team_tables(self)

    @contextmanager
    def refreshed_graph(self) -> Iterator[str]:
        """Read files that changed since the graph read them; yield what is still unread. The files are listed once."""
        with synchronised(self, writes=False), self.resources.listing.kept():
            yield self.resources.freshness.look(("graph", self.scope.private), self._refresh_graph)

    def catch_up(self) -> None:
        """Index what an answer brought while nobody waits; otherwise the next message would have to."""
        with self.refreshed_graph():
            self.retrieval.refresh(embed=self.resources.resident)
            if self.resources.resident:
                self.retrieval.load_vectors()

    def _refresh_graph(self) -> str:
        """Read changed files if there are few; return what is still unread."""
        from nanoclaw_memory.graph.refresh import Refresh

        if not self.workspace.is_dir():
            return ""
        files, stale = Refresh(self.graph, self.home, self.pages, self.resources.freshness).run()
        # In a group chat "my" could be anybody's.
        if self.scope.private and not self.resources.defers_graph:
            _, unread = self.statements.read()
            stale = stale or unread
        if files or stale:
            self.telemetry.record("graph refresh", files=files, stale=stale)
        return stale

    @property
    def statements(self) -> StatementReader:
        """Return the reader that turns conversations and entries into facts."""
        from nanoclaw_memory.graph.statements import StatementReader

        return StatementReader(self.graph, self.database, self.has)

    @cached_property
    def entries(self) -> Entries:
        """Typed entries."""
        from nanoclaw_memory.entries.entries import Entries
        from nanoclaw_memory.retrieval.entry_search import EntrySearch

        self.require_group()
        return Entries(
            self.database("entries"),
            self.home,
            self.scope,
            self.settings,
            self.clock,
            self.intake,
            reopen=self._reopen_entries,
            published=self.resources.published,
            publishers=lambda: self.resources.store.names(self.resources.store.published),
            finder=EntrySearch(lambda: self.retrieval, self.scope.project),
            resident=self._embedder_at_hand,
            judge=lambda: self.resources.judge,
        )

    def entries_of(self, entry_id: str) -> Entries:
        """Return the entries among which this one is: a private scope also finds those of shared chats."""
        chats = (own.entries for own in self.private_and_shared("entries") if own is not self)
        return next((own for own in chats if own.ledger.table.get(entry_id)), self.entries)

    def _reopen_entries(self) -> Database:
        """Open a second connection, for a thread that must not hold this one open."""
        return self.resources.store.open(self.database("entries").path, "entries", counted=True)

    def _embedder_at_hand(self) -> bool:
        """Return whether this process has loaded the local model anyway: storing an entry must not wait for that."""
        return self.settings.embeddings.provider == "local" and self.resources.embedder_used

    @property
    def proposals(self) -> Proposals:
        """Return the changes that only a person may make."""
        return self.entries.ledger.proposals

    @cached_property
    def exchanges(self) -> Exchanges:
        """Return the table of exchanges."""
        from nanoclaw_memory.store.exchanges import Exchanges

        return Exchanges(self.database("continuity"))

    @cached_property
    def turns(self) -> TurnTable:
        """Return what was measured and injected around model calls."""
        from nanoclaw_memory.store.turns import TurnTable

        return TurnTable(self.database("continuity"))

    @cached_property
    def lessons(self) -> LessonTable:
        """Return the table of lessons."""
        from nanoclaw_memory.store.lessons import LessonTable

        return LessonTable(self.database("facts"))

    @cached_property
    def sdk_items(self) -> SdkItems:
        """Return session histories and items of agents built with other SDKs."""
        from nanoclaw_memory.store.sdk_items import SdkItems

        self.require_group()
        return SdkItems(
            self.database("sdk"),
            self.clock,
            lambda value: self.intake.talk_value(value, "sdk items"),
            self._vectors_of,
        )

    def _vectors_of(self, texts: Sequence[str], question: bool) -> tuple[Any, str] | None:
        """Embed texts, or a question, and return the vectors with their model's identity; None if no model answers."""
        chain = self.resources.embedder
        if chain is None:
            return None
        try:
            made = chain.embed_query(texts[0], [chain.identity]) if question else chain.embed_documents(texts)
        except ProviderError as error:
            self.telemetry.record("sdk items not embedded", error=error.message)
            return None
        return made.vectors, made.identity.key

    @property
    def retrieval(self) -> Retrieval:
        """Return the search index with its sources and the domain documents."""
        if self._retrieval is None:
            from nanoclaw_memory.retrieval.service import Retrieval

            self._retrieval = Retrieval(
                self.home,
                self.scope,
                self.clock,
                self.configuration,
                self.database,
                self.has,
                self.intake,
                lambda: self.resources.embedder,
                lambda: self.resources.reranker,
                self._other_names,
                self.pages,
                self.resources.freshness,
                self.resources.vectors,
            )
            self.resources.closing.callback(self._retrieval.close)
        return self._retrieval

    def _other_names(self, question: str) -> list[str]:
        """Return aliases and former names of the entities that the question names, if there is a graph."""
        return self.graph.other_names(question) if self.has("facts") else []

    def index(self, rebuild: bool = False) -> Indexed:
        """Bring the search index up to date with everything it is built from."""
        self.require_group()
        with synchronised(self, writes=False):
            done = self.retrieval.run(rebuild)
        self.telemetry.record("index", files=done.files, chunks=done.chunks, embedded=done.embedded)
        return done

    @property
    def exchange_search(self) -> ExchangeSearch:
        """Return the search for exchanges."""
        from nanoclaw_memory.retrieval.exchange_search import ExchangeSearch

        return ExchangeSearch(self.retrieval, self.exchanges)

    @cached_property
    def plugin_context(self) -> PluginContext:
        """Return what turn plugins may use."""
        from nanoclaw_memory.turn.context import PluginContext

        return PluginContext(self)

    @cached_property
    def conversations(self) -> Conversations:
        """Return exchanges, sessions, transcripts, archives and the spool."""
        from nanoclaw_memory.conversations.service import Conversations

        self.require_group()
        return Conversations(
            home=self.home,
            scope=self.scope,
            clock=self.clock,
            exchanges=self.exchanges,
            shared_files=self.settings.privacy.shared_files,
            intake=self.intake,
            is_private=self._is_private_session,
        )

    def _is_private_session(self, session_id: str) -> bool:
        """Return whether anything in a session was said in private."""
        from nanoclaw_memory.store.exchanges import Exchanges

        known = self.resources.has("continuity")
        return known and Exchanges(self.resources.database("continuity")).last_id(session_id) > 0

    @cached_property
    def lifecycle(self) -> TurnLifecycle:
        """Return the turn pipeline of this scope."""
        from nanoclaw_memory.turn.lifecycle import TurnLifecycle

        made = TurnLifecycle(self.plugin_context, self.conversations, self.telemetry)
        self._closing.callback(made.close)
        return made

    # ---- entries of agents against what people said ----

    def source_in_session(self, content: str) -> str:
        """Return where recent messages contain the text that an agent stores: `said`, `pasted`, or empty for
        nowhere.
        """
        from nanoclaw_memory.entries.entries import source_in_messages

        found = self.exchanges.of_session(self.scope.session_id) if self.scope.session_id else []
        found = found or self.exchanges.recent(since=self._confirm_since())
        messages = [
            exchange.user_message for exchange in found if exchange.private and exchange.origin == "user"
        ]
        return source_in_messages(
            content, *self._split_quoted([*messages, *self.conversations.spool.unanswered_messages()])
        )

    def refuse_decided(self, text: str) -> None:
        """Refuse a text that a person rejected or that awaits review, here or in a shared chat, unless the owner
        writes it.
        """
        for own in self.private_and_shared("entries") if self.scope.author != "owner" else ():
            own.entries.ledger.refuse_decided(text)

    def hold_attack(self, text: str) -> str:
        """Hold an agent's or a stranger's line that reads like an attack; return the entry's id, empty for other
        lines.
        """
        from nanoclaw_memory.intake.suspicion import signs_of_attack

        if not signs_of_attack(text, self.scope.author):
            return ""
        from nanoclaw_memory.entries import rules

        draft = rules.draft(text, "instruction", now=self.clock.now(), reason="written for a log or page")
        stored = self.entries.store(draft, self.source_in_session)
        return stored.id if stored.status == "held" else ""  # a person has approved this very text

    def confirm_said(self, exchange: Exchange) -> None:
        """Confirm entries of agents that the person's message repeats; hold those that it only pastes."""
        if not (exchange.private and exchange.origin == "user" and self.has("entries")):
            return
        from nanoclaw_memory.store.entries import EntryTable  # imported here: a hook seldom needs more

        if EntryTable(self.database("entries")).suggested(self._confirm_since()):
            self.entries.confirm_said(
                *self._split_quoted([exchange.user_message]), since=self._confirm_since()
            )

    def _confirm_since(self) -> str:
        return stamp(self.clock.now() - CONFIRM_WITHIN)

    def _split_quoted(self, messages: Iterable[str]) -> tuple[list[str], list[str]]:
        """Split messages into what people wrote themselves and what they only quoted."""
        from nanoclaw_memory.intake.authorship import read

        found = [read(message, self.resources.judge) for message in messages]
        return [own_words.text for own_words in found], [
            own_words.rest for own_words in found if own_words.rest
        ]

    def drain_spool(self, limit: int = 50, wait: float = 10.0) -> int:
        """Archive spooled exchanges, each in its own session; return how many.

        Exchanges that another process has been archiving for more than `wait` seconds are left to it.
        """

        def record(spooled: SpooledExchange) -> None:
            scope = replace(
                self.scope, session_id=spooled.session, private=spooled.private, project=spooled.project
            )
            own = Group(self.resources, scope)
            try:
                own.lifecycle.after_turn(spooled.question, spooled.answer, at=spooled.at)
            except Refused as error:  # it will never be accepted, and others are queued behind it
                self.telemetry.record("exchange refused", error=error.message)
            finally:
                own.close()

        done = self.conversations.drain(record, limit, wait)
        chats = self.shared_chats if done < limit else None
        return done + (chats.drain_spool(limit - done, wait) if chats is not None else 0)

    def settle_spool(self) -> None:
        """Archive spooled exchanges before a question is answered; those that cannot be written stay spooled."""
        self.resources.freshness.look(("spool", self.scope.private), self._settle_spool)

    def _settle_spool(self) -> None:
        try:
            if self.drain_spool(SPOOLED_AT_ONCE):
                self.resources.freshness.forget()
        except (StoreError, OSError) as error:
            self.telemetry.record("drain failed", error=str(error))

    @cached_property
    def host(self) -> Host:
        """Return the operational state of all groups."""
        from nanoclaw_memory.host.host import Host

        host = Host.open(
            self.home.root,
            clock=self.clock,
            on_exchange=self._remember_exchange,
            intake=self._intake_of,
            store=self.resources.store,
        )
        self.resources.closing.callback(host.close)
        return host

    def _intake_of(self, group: str) -> Intake:
        from nanoclaw_memory.intake.intake import Intake

        return Intake.at(self.resources.store, self.home.data(group), record=self._record)

    def _remember_exchange(self, group: str, session_id: str, user: str, agent: str, at: str) -> None:
        """Record an exchange of a group's chat in that group's memory, as private as the chat is."""
        scope = self.host.scope(self.host.group(group), session_id)
        with self.as_scope(scope) as own:
            own.finish_restore()
            own.lifecycle.after_turn(user, agent, at=moment_of(at))

    @property
    def checkpoints(self) -> Checkpoints:
        """Return the group's checkpoints of Markdown and databases."""
        from nanoclaw_memory.store.snapshots import Snapshots
        from nanoclaw_memory.workspace.checkpoints import Checkpoints

        kept = tuple(name for name in ALL_DATABASES if name not in NEVER_RESTORED)
        return Checkpoints(
            self.workspace, Snapshots(kept, self.resources.database), self.clock, restored=self.forget_again
        )

    def finish_restore(self) -> None:
        """Finish a restore that was killed half-way; wait for one that is running."""
        if (self.workspace / PENDING_RESTORE).exists():
            from nanoclaw_memory.workspace.restore import finish

            finish(self.checkpoints)

    def forget_targets(self) -> ForgetTargets:
        """Return every store and file that can contain a text."""
        from nanoclaw_memory.upkeep.forget_stores import ForgetTargets

        self.require_workspace()
        return ForgetTargets(self)

    def forget_again(self) -> None:
        """Remove from a restored state what was forgotten since it was saved."""
        scope = Scope(self.scope.group)  # whichever process finishes it after a kill, it acts for the owner
        with self.as_scope(scope) as own:
            from nanoclaw_memory.upkeep.forget import ForgetRequest, Forgetting

            try:
                if own.intake.tombstones() is None:
                    return
                Forgetting(own.forget_targets(), ForgetRequest(again=True)).carry_out(
                    lambda pages: False, False
                )
            except (
                NanoClawError
            ) as error:  # its tombstone stays: doctor reports it, and the next forget completes it
                self.telemetry.record("restore", error=error.message)

    # ---- for upkeep ----

    def page(self, relative: str) -> str:
        """Return a page of the workspace: empty if it is missing, refused if it is a link to the outside."""
        from nanoclaw_memory.workspace.files import read_or_empty

        return read_or_empty(within(self.workspace / relative, self.workspace))

    def archived(self, relative: str) -> tuple[str, int, int]:
        """Return where lines of a daily log were moved to: the archive, its first and last line; 0 if nowhere."""
        from nanoclaw_memory.workspace.log import archived_lines

        day = day_in_path(relative)
        if day is None or not self.scope.private or of_shared_chats(relative):
            return "", 0, 0
        return archive_path(day), *archived_lines(self.page(archive_path(day)), day)

    def outdated(self, text: str, day: date) -> bool:
        """Return whether a line of that day states what the graph knows to be replaced or rejected."""
        return self.has("facts") and self.graph.outdated(text, day)

    # ---- permissions ----

    def is_off(self, directory: str) -> bool:
        """Return whether memory is switched off in a directory."""
        from nanoclaw_memory.project import is_inside

        off = self.settings.projects.off
        return bool(off) and is_inside(directory, off)

    def file(self, relative: str) -> tuple[str, Path]:
        """Return the name and path of a memory file, if this scope may see it."""
        return locate(self.home, self.scope, relative, self.settings.privacy.shared_files)

    def require_own_file(self, path: Path) -> None:
        """Refuse a file or folder that belongs to another group."""
        refuse_other_groups(self.home, self.scope, path)

    def require_private(self, what: str) -> None:
        """Refuse a shared scope."""
        if not self.scope.private:
            raise PathRefused(f"a shared scope does not see {what}", "ask in a private one: without --shared")

    def require_owner(self, what: str) -> None:
        """Refuse anybody but the owner in private."""
        require_owner(self.scope, what)

    def require_home(self) -> None:
        """Refuse a home that does not exist: a mistyped path must not become a second, empty memory."""
        if not self.home.exists():
            raise NoMemory(
                f"there is no memory at {self.home.root}",
                "create it: ncm init; or name another place with --home or NANOCLAW_HOME",
            )

    def require_main(self, what: str) -> None:
        """Refuse anybody but the main group in private: the whole home is concerned."""
        if self.scope.group == MAIN_GROUP and self.scope.private:
            return
        who = f"the group {self.scope.group!r}" if self.scope.private else "a shared scope"
        raise PathRefused(
            f"{who} may not {what}: only the main group administers, in private",
            "ask as the main group: without --group and --shared",
        )

    def require_group(self) -> None:
        """Refuse a group that `init` did not create: a mistyped name must not open a second memory."""
        if self.scope.group != MAIN_GROUP and not self.home.group_root(self.scope.group).is_dir():
            raise NotFound(
                f"there is no group {self.scope.group!r}",
                f"create it: nanoclaw-memory init --group {self.scope.group}",
            )

    def require_workspace(self) -> None:
        """Refuse a shared scope and a memory that does not exist: upkeep needs both."""
        self.require_private("upkeep")
        self.require_group()
        if not self.workspace.is_dir():
            raise NotFound(f"there is no memory at {self.home.root}", "create it: nanoclaw-memory init")


class Part:
    """A part of Memory: what one group's scope can do with one kind of its content."""

    def __init__(self, group: Group) -> None:
        self._group = group
