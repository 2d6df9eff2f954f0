"""What a turn plugin may use: scope, settings, stores, graph, and the message's vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanoclaw_memory.clock import Clock
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.providers.embedder import Chain, Embedded
    from nanoclaw_memory.settings import Settings
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.exchanges import Exchanges
    from nanoclaw_memory.store.lessons import LessonTable
    from nanoclaw_memory.store.turns import TurnTable
    from nanoclaw_memory.types import Scope
    from nanoclaw_memory.workspace.paths import Home

E5_UNRELATED = 0.744  # of the local model, measured by bench/lessons.py


class PluginContext:
    """One group as plugins see it; everything is opened on first use."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.home: Home = group.home
        self.scope: Scope = group.scope
        self.clock: Clock = group.clock
        self.settings: Settings = group.settings
        self.intake: Intake = group.intake
        self._embedded: dict[str, Embedded] = {}

    @property
    def exchanges(self) -> Exchanges:
        return self._group.exchanges

    @property
    def turns(self) -> TurnTable:
        return self._group.turns

    @property
    def lessons(self) -> LessonTable:
        return self._group.lessons

    @property
    def graph(self) -> KnowledgeGraph:
        return self._group.graph

    def database(self, name: str) -> Database:
        """One of the group's databases."""
        return self._group.database(name)

    def settings_of(self, plugin: str) -> Mapping[str, Any]:
        """The settings of a third-party plugin."""
        return self.settings.plugins.third_party.get(plugin, {})

    # ---- vectors ----

    @property
    def embedder(self) -> Chain | None:
        """The embedder, where it costs nothing to start: a cold process does not load the local model."""
        if self.settings.embeddings.provider == "local" and not self._group.resources.resident:
            return None
        return self._group.resources.embedder

    @property
    def any_embedder(self) -> Chain | None:
        """The embedder, also where it must be loaded first."""
        return self._group.resources.embedder

    def query_embedding(self, message: str, deadline: float) -> Embedded | None:
        """The message's vector, made once a turn; None where vectors take no part. May raise a ProviderError."""
        chain = self.embedder
        if chain is None:
            return None
        if message not in self._embedded:
            self._embedded = {message: chain.embed_query(message, deadline=deadline)}
        return self._embedded[message]

    def unrelated(self, query: Embedded) -> float | None:
        """The cosine that texts have with a message whatever they are about; None while it is unknown."""
        identity = query.identity.key
        if identity.startswith("local/e5-"):
            return E5_UNRELATED
        return self.exchanges.unrelated(identity, query.vector)

    @property
    def without_embedder(self) -> str:
        """Why vectors take no part, in words."""
        if self.settings.embeddings.provider == "none":
            return "vectors are off (embeddings.provider is none): answered from words"
        return "a cold process does not load the embedding model: answered from words"
