"""The context of a turn plugin: scope, settings, stores, graph and search."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanoclaw_memory.clock import Clock
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.providers.judge import Judge
    from nanoclaw_memory.retrieval.exchange_search import ExchangeSearch
    from nanoclaw_memory.retrieval.service import Retrieval
    from nanoclaw_memory.settings import Settings
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.exchanges import Exchanges
    from nanoclaw_memory.store.lessons import LessonTable
    from nanoclaw_memory.store.turns import TurnTable
    from nanoclaw_memory.turn.recaller import Recaller
    from nanoclaw_memory.turn.worker import PluginThread
    from nanoclaw_memory.types import Exchange, Scope
    from nanoclaw_memory.workspace.paths import Home


class PluginContext:
    """One group as plugins see it; everything is opened on first use."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.home: Home = group.home
        self.scope: Scope = group.scope
        self.clock: Clock = group.clock
        self.settings: Settings = group.settings
        self.intake: Intake = group.intake
        self._needs: dict[str, float] = {}

    @property
    def own_project(self) -> str | None:
        """Return the project whose exchanges a session is limited to (it may be none); None if projects are not
        separated.
        """
        return self.scope.project if self.settings.projects.enabled else None

    @property
    def exchanges(self) -> Exchanges:
        return self._group.exchanges

    def confirm_said(self, exchange: Exchange) -> None:
        """Compare entries that agents stored recently with the person's words."""
        self._group.confirm_said(exchange)

    @property
    def turns(self) -> TurnTable:
        return self._group.turns

    @property
    def lessons(self) -> LessonTable:
        return self._group.lessons

    @property
    def retrieval(self) -> Retrieval:
        """Return the search index over everything."""
        return self._group.retrieval

    @property
    def shared_retrieval(self) -> Retrieval | None:
        """Return the index of what shared chats said, for a private scope."""
        chats = self._group.shared_chats
        return chats.retrieval if chats is not None else None

    @property
    def exchange_search(self) -> ExchangeSearch:
        """Return the search for exchanges."""
        return self._group.exchange_search

    @property
    def graph(self) -> KnowledgeGraph:
        return self._group.graph

    def database(self, name: str) -> Database:
        """Return one of the group's databases."""
        return self._group.database(name)

    @property
    def plugin_thread(self) -> PluginThread:
        """Return the thread in which plugins run; the sessions of a process share it and its connections."""
        return self._group.resources.plugin_thread

    def settings_of(self, plugin: str) -> Mapping[str, Any]:
        """Return the settings of a third-party plugin."""
        return self.settings.plugins.third_party.get(plugin, {})

    def new_turn(self) -> None:
        """Discard what was recalled for the last message: memory may have changed since."""
        self.__dict__.pop("recaller", None)
        self._needs.clear()

    @cached_property
    def recaller(self) -> Recaller:
        """Return the recall that all plugins of a turn share."""
        from nanoclaw_memory.turn.recaller import Recaller

        return Recaller(self)

    # ---- models ----

    @property
    def embedder(self) -> Chain | None:
        """Return the embedder, if it costs nothing to start: a cold process does not load the local model."""
        if self.settings.embeddings.provider == "local" and not self._group.resources.resident:
            return None
        return self._group.resources.embedder

    @property
    def judge(self) -> Judge | None:
        """Return the judge, if it may be loaded: never before a message in a cold process."""
        return self._group.resources.judge

    def need(self, message: str) -> float:
        """Return how probable it is that a message needs memory, according to the judge or the scorer trained on it."""
        if message not in self._needs:
            self._needs[message] = self._need(message)
        return self._needs[message]

    def _need(self, message: str) -> float:
        if (judge := self.judge) is not None:
            return judge.probability("needs", message)
        from nanoclaw_memory.providers import scorer

        return scorer.probability("needs", message)

    @property
    def without_embedder(self) -> str:
        """Return why vectors take no part, as a sentence."""
        if self.settings.embeddings.provider == "none":
            return "vectors are off (embeddings.provider is none): answered from words"
        return "a cold process does not load the embedding model: answered from words"
