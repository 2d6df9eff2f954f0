"""PluginContext: what a plugin may reach, opened on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from nanoclaw_memory.clock import Clock
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.types import Scope
from nanoclaw_memory.workspace.paths import Home

if TYPE_CHECKING:
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.providers.embedder import Chain, Embedded
    from nanoclaw_memory.store.exchanges import Exchanges
    from nanoclaw_memory.store.lessons import Lessons
    from nanoclaw_memory.store.turns import TurnTable


E5_UNRELATED = 0.744  # of the local model, measured by bench/lessons.py


class PluginContext(msgspec.Struct, frozen=True, dict=True):
    """The scope, the settings and the stores of one memory."""

    home: Home
    scope: Scope
    clock: Clock
    settings: Settings
    intake: Intake
    database: Callable[[str], Database]
    open_graph: Callable[[], KnowledgeGraph]
    open_embedder: Callable[[], Chain | None]
    is_resident: Callable[[], bool]

    @cached_property
    def exchanges(self) -> Exchanges:
        from nanoclaw_memory.store.exchanges import Exchanges

        return Exchanges(self.database("continuity"))

    @cached_property
    def turns(self) -> TurnTable:
        from nanoclaw_memory.store.turns import TurnTable

        return TurnTable(self.database("continuity"))

    @cached_property
    def lessons(self) -> Lessons:
        from nanoclaw_memory.store.lessons import Lessons

        return Lessons(self.database("facts"))

    @cached_property
    def graph(self) -> KnowledgeGraph:
        return self.open_graph()

    @property
    def embedder(self) -> Chain | None:
        """The embedder, where it costs nothing to start: a cold process does not load the local model."""
        if self.settings.embeddings.provider == "local" and not self.is_resident():
            return None
        return self.open_embedder()

    def asked(self, message: str, deadline: float) -> Embedded | None:
        """The message's vector, made once a turn; None where vectors take no part. May be a ProviderError."""
        chain = self.embedder
        if chain is None:
            return None
        if message not in self._asked:
            made = chain.embed_query(message, deadline=deadline)
            self._asked.clear()
            self._asked[message] = made
        return self._asked[message]

    def unrelated(self, asked: Embedded) -> float | None:
        """The cosine that texts have with a message whatever they are about; None while it cannot be told."""
        identity = asked.identity.key
        if identity.startswith("local/e5-"):
            return E5_UNRELATED
        return self.exchanges.unrelated(identity, asked.vector)

    @cached_property
    def _asked(self) -> dict[str, Embedded]:
        return {}

    @property
    def without_embedder(self) -> str:
        """Why vectors take no part, in words."""
        if self.settings.embeddings.provider == "none":
            return "vectors are off (embeddings.provider is none): answered from words"
        return "a cold process does not load the embedding model: answered from words"

    def settings_of(self, plugin: str) -> Mapping[str, Any]:
        """The settings of a third-party plugin."""
        return self.settings.plugins.third_party.get(plugin, {})
