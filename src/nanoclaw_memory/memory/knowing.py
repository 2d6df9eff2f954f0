"""What is known: the knowledge graph, in step with the files that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nanoclaw_memory.memory.files import Files

if TYPE_CHECKING:
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.types import GraphAnswer, GraphHit, Upserted


class Knowing(Files):
    """What is known: the knowledge graph, in step with the files that it reads."""

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """Facts, relations and aliases."""
        from nanoclaw_memory.graph.graph import KnowledgeGraph

        self.require_group()
        return KnowledgeGraph(self.database("facts"), self.settings, self.clock, self.scope, self.intake)

    def graph_search(self, query: str, top_k: int = 6, as_of: str | None = None) -> GraphAnswer:
        """Facts and relations that answer a question, now or at a past date; the caller reinforces."""
        stale = self._refresh_graph()
        answer = self.graph.search(query, top_k, as_of)
        return replace(answer, degraded=(stale,)) if stale else answer

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

    # ---- in step with the files ----

    def _refresh_graph(self) -> str:
        """Read files that changed since the graph did, if they are few; gives what is still unread, or nothing."""
        from nanoclaw_memory.graph.graph import KnowledgeGraph
        from nanoclaw_memory.graph.refresh import Refresh

        if not self.home.workspace(self.scope.group).is_dir():
            return ""
        # Files are read as their owner sees them, whoever asks: what each may see is decided by the file's path.
        own = replace(self.scope, private=True, session_id="")
        graph = KnowledgeGraph(self.database("facts"), self.settings, self.clock, own, self.intake)
        files, stale = Refresh(graph, self.home).run()
        if files or stale:
            self.telemetry.record("graph refresh", files=files, stale=stale)
        return stale
