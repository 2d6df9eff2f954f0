"""The resources that every scope of one group shares in this process: settings, clock, databases, models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, SystemClock
from nanoclaw_memory.errors import NanoClawError, PathRefused, SettingsError
from nanoclaw_memory.freshness import Freshness
from nanoclaw_memory.types import MAIN_GROUP, SHARED, CacheSize, Scope
from nanoclaw_memory.workspace.listing import PageListing
from nanoclaw_memory.workspace.paths import Home, check_slug

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.providers.judge import Judge
    from nanoclaw_memory.providers.reranker import Reranker
    from nanoclaw_memory.providers.writer import Writer
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.migrate import Adopt
    from nanoclaw_memory.store.opening import Store
    from nanoclaw_memory.store.vectors import VectorCache
    from nanoclaw_memory.telemetry import Telemetry
    from nanoclaw_memory.turn.worker import PluginThread

DATABASES = ("facts", "entries", "continuity", "index", "sdk")
# Databases that private and shared scopes have in common. Only a team's home on a server has `pages`.
OF_BOTH = ("forgotten", "pages")
ALL_DATABASES = (*DATABASES, *OF_BOTH, *(f"{SHARED}{name}" for name in DATABASES))
# The index is derived, tombstones must survive the restore of a checkpoint, and pages are files.
NEVER_RESTORED = ("index", f"{SHARED}index", *OF_BOTH)


class Login(msgspec.Struct, frozen=True):
    """A login role of PostgreSQL; one of shared chats cannot read the pages."""

    name: str
    password: str
    shared: bool


class Resources:
    """The settings, clock, databases and models of one group in this process."""

    def __init__(
        self,
        home: Path,
        group: str,
        clock: Clock | None = None,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.home = Home(home)
        self.group = group
        self.resident = (
            False  # set by a long-lived server: only there is loading a model for turns worthwhile
        )
        self.defers_graph = (
            False  # set by a prompt's hook in its own process: the graph reads conversations later
        )
        # how long to wait for another writer; a hook sets it before anything is opened
        self.wait_ms: int | None = None
        self.embedder_used = False
        self._embedder: Chain | None = None
        self._judging = False  # set after an answer and in upkeep, when nobody waits for a model
        self.login: Login | None = None  # the role with which a server queries its database
        self.given_clock = clock
        self.overrides = dict(overrides or {})
        self.directory = directory
        self.closing = ExitStack()
        self.showing_pages = False  # inside a call that has synchronised the team's pages
        self.deleting_pages = False  # inside a call that may delete whole folders of them
        self.pages_away_until = 0.0
        self.pages_seen = 0.0  # when the files were last compared with the team's
        self.freshness = Freshness()
        self._configuration: Configuration | None = None
        self.settings_mistake = ""  # why the last valid or the readable settings are used, not the file's
        self._databases: dict[str, Database] = {}
        self.home.group_root(group)  # refuses an invalid name at once
        self.listing = PageListing(self.home, group)

    def for_group(self, group: str) -> Resources:
        """Open the resources of another group of the same home; the caller closes them."""
        made = Resources(self.home.root, group, self.given_clock, self.overrides, self.directory)
        made._judging = self._judging or self.resident
        made.wait_ms, made.login = self.wait_ms, self.login
        if self.settings_mistake:
            made.use(self.configuration, self.settings_mistake)
        return made

    def close(self) -> None:
        """Close everything that was opened."""
        self.closing.close()
        self._databases.clear()

    @property
    def configuration(self) -> Configuration:
        """Return the settings with where each value comes from; read once."""
        if self._configuration is None:
            from nanoclaw_memory.settings import load

            self._configuration = load(self.home.root, self.overrides, directory=self.directory)
        return self._configuration

    def use(self, configuration: Configuration, mistake: str) -> None:
        """Use other settings while the files have this mistake: the last valid ones, or what can be read of them."""
        self._configuration, self.settings_mistake = configuration, mistake

    def reload(self) -> None:
        """Discard the settings; their next use reads them again."""
        self._configuration, self.settings_mistake = None, ""

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @cached_property
    def clock(self) -> Clock:
        return self.given_clock or SystemClock(self.settings.user.timezone)

    @cached_property
    def telemetry(self) -> Telemetry:
        from nanoclaw_memory.telemetry import Telemetry

        own = self.settings.telemetry
        return Telemetry(self.home.logs / "telemetry.jsonl", self.clock, own.enabled, own.max_bytes)

    def allowed(self, scope: Scope) -> Scope:
        """Validate a scope; drop its project where projects are switched off."""
        if not scope.project:
            return scope
        check_slug(scope.project)
        try:
            enabled = self.settings.projects.enabled
        except SettingsError:  # reported by whoever uses the settings
            enabled = True
        return scope if enabled else replace(scope, project="")

    def has(self, name: str) -> bool:
        """Return whether the group has a database, even a lost one: asking must not create it."""
        if self.store.url:
            return self.database(name).exists()
        opened = self._databases.get(name)
        path = opened.path if opened else self.home.data(self.group) / f"{name}.db"
        return self.freshness.look(path.name, lambda: self.store.has(path))

    @cached_property
    def store(self) -> Store:
        """Return where the databases are, with the role of the caller."""
        if self.login is None or not self._own_store.url:
            return self._own_store
        made = self._own_store.for_role(self.login.name, self.login.password)
        self.closing.callback(made.disconnect)
        return made

    @cached_property
    def _own_store(self) -> Store:
        """Return where the databases are, according to the settings."""
        from nanoclaw_memory.store.opening import Store

        return Store(self.home.root, self.settings.store.url, self.wait_ms)

    @property
    def _pages_store(self) -> Store:
        """Return where the pages are: a role of shared chats cannot read them, but their files show them all."""
        return self._own_store if self.login is not None and self.login.shared else self.store

    def database(self, name: str) -> Database:
        """Return one of the group's databases (see ALL_DATABASES), opened once."""
        if name not in self._databases:
            path = self.home.data(self.group) / f"{name}.db"
            if self.group != MAIN_GROUP and path.is_symlink():
                raise PathRefused(f"{path.name} of {self.group} is a link", "put the file itself there")
            kind = name.removeprefix(SHARED)
            if self.store is not self._own_store:  # a role may not migrate a schema
                self._own_store.open(path, kind).query("SELECT 1")
            store = self._pages_store if name == "pages" else self.store
            self._keep(name, _open(store, path, kind))
        return self._databases[name]

    def published(self, group: str) -> Database:
        """Return the database of what a group has published; it is outside every group's own."""
        name = f"published/{group}"
        if name not in self._databases:
            self._keep(name, self.store.open(self.store.published / f"{group}.db", "entries"))
        return self._databases[name]

    def common_pages(self) -> Database:
        """Return the database of the team's pages that all groups read."""
        if "common" not in self._databases:
            self._keep("common", self._pages_store.open(self.store.common_pages, "pages"))
        return self._databases["common"]

    def _keep(self, name: str, database: Database) -> None:
        self._databases[name] = database
        self.closing.callback(database.close)

    @cached_property
    def vectors(self) -> VectorCache:
        """Return the vectors that are kept in memory between questions; a server's threads share one cache."""
        from nanoclaw_memory.store.vectors import VectorCache

        return VectorCache(self.settings.memory.cache_bytes)

    def caches(self) -> tuple[CacheSize, ...]:
        """Return the size of every cache of this process; loads nothing."""
        from nanoclaw_memory.caches import taken
        from nanoclaw_memory.providers.embedder import QUESTION_BYTES

        kept, asked = self.vectors, self._embedder.asked.nbytes if self._embedder else 0
        most = min(self.settings.memory.cache_bytes, QUESTION_BYTES)
        return (
            CacheSize("vectors", kept.nbytes, kept.most),
            CacheSize("questions", asked, most),
            CacheSize("words and texts", *taken()),
        )

    @property
    def embedder(self) -> Chain | None:
        """Return the configured embedders, or None when embeddings are off. Loads nothing before first use."""
        if not self.embedder_used:
            from nanoclaw_memory.providers.embedder import embedder_for

            data, most = self.home.data(MAIN_GROUP), self.settings.memory.cache_bytes
            self.embedder = embedder_for(self.settings.embeddings, self.home.models, data, self.clock, most)
        return self._embedder

    @embedder.setter
    def embedder(self, chain: Chain | None) -> None:
        """Set the embedder; a server shares one among all its threads."""
        self._embedder, self.embedder_used = chain, True

    @property
    def embeds_here(self) -> bool:
        """Return whether the local embedder is installed: its vectors cost only CPU time."""
        from nanoclaw_memory.providers import models

        own = self.settings.embeddings
        if own.provider != "local":
            return False
        return models.installed(*models.embedder(self.home.models, own.model, own.model_path))

    @property
    def judge(self) -> Judge | None:
        """Return the judge where a model may be loaded (in a server, after an answer, in upkeep); None if off or
        damaged.
        """
        if not (self.resident or self._judging) or not self.settings.judge.enabled:
            return None
        from nanoclaw_memory.providers.judge import shared_judge

        return shared_judge()[0]

    def warm(self) -> bool:
        """Load the models that turns use, so that no turn waits for them; return False if the local embedder is
        missing.
        """
        if self.settings.embeddings.provider == "local" and self.embedder is not None:
            try:
                self.embedder.embed_query("warm")
            except NanoClawError:
                return False  # not installed, as `ncm doctor` reports
        if self.settings.judge.enabled:
            from nanoclaw_memory.providers.judge import shared_judge

            shared_judge()
        return True

    @contextmanager
    def judging(self) -> Iterator[None]:
        """Allow the judge to be loaded, since nobody waits; also for groups opened meanwhile."""
        before, self._judging = self._judging, True
        try:
            yield
        finally:
            self._judging = before

    @cached_property
    def plugin_thread(self) -> PluginThread:
        """Return the thread in which the plugins of all sessions run."""
        from nanoclaw_memory.turn.worker import PluginThread

        made = PluginThread()
        self.closing.callback(made.close)
        return made

    @cached_property
    def reranker(self) -> Reranker:
        """Return the configured reranker, or the local cross-encoder when a search asks for one."""
        from nanoclaw_memory.providers.models import RERANKER, directory
        from nanoclaw_memory.providers.reranker import CrossEncoder, reranker_for

        own, data = self.settings, self.home.data(MAIN_GROUP)
        found = reranker_for(own.rerank, own.writer, self.home.models, data, self.clock)
        return found or CrossEncoder(directory(RERANKER, self.home.models))

    @cached_property
    def writer(self) -> Writer | None:
        """Return the configured language model, or None."""
        from nanoclaw_memory.providers.writer import writer_for

        return writer_for(self.settings.writer, self.home.data(MAIN_GROUP), self.clock)


def _open(store: Store, path: Path, name: str) -> Database:
    """Open a group's database of this name; files of older releases are migrated."""
    if store.url:
        return store.open(path, name)
    if name in ("facts", "continuity"):
        return store.open(path, name, _migration(path, name), counted=True)
    if name == "forgotten":
        from nanoclaw_memory.store.tombstones import forgotten_database

        return forgotten_database(path.parent)
    return store.open(path, name, durable=name == "entries", counted=name != "index")


def _migration(path: Path, name: str) -> Adopt:
    """Return the migration of a file of an older system or release, which also moves the rows of shared chats out of
    it.
    """

    def prepare(connection: Any, version: int) -> Callable[[Any], None] | None:
        # Imported here: a file of the current release never needs it.
        from nanoclaw_memory.store import legacy

        return legacy.adopter(path.parent, name)(connection, version)

    return prepare
