"""Graph memory (order 5): inject facts about the entities that the message names; cache answers for the next hooks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.intake.secret_values import lacks_its_value
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.gate import is_conceivable
from nanoclaw_memory.retrieval.ongoing import asking_part
from nanoclaw_memory.store.facts import all_current, generation
from nanoclaw_memory.store.turns import CachedAnswer
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.types import GraphHit

MAX_LINE = 400
_LATER = regex(r'(?<=^• )".*" \(\d{4}-\d\d-\d\d\); (?:earlier|superseded): ')
MATCHED = (1, 2)  # search phases that match a named entity


class GraphMemory(Plugin):
    """Look up the entities of a message; inject facts only if one was matched."""

    name = "graph-memory"

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.own = context.settings.plugins.entries.graph_memory
        self.order = self.own.order
        self.timeout_ms = self.own.timeout_ms

    def before_turn(self, message: str, moment: Moment) -> Answer:
        recaller = self.context.recaller
        recaller.facts_told = frozenset()
        # The answer depends on the project and the settings.
        asked = (" ".join(message.split()), moment.scope.project, self.own, self.context.settings.user)
        question = fingerprint(repr(asked))
        facts = self.context.database("facts")
        seen = generation(facts)
        kept = self._cached(question, self._with_index(seen), moment)
        if kept is not None and all_current(facts, kept.facts, kept.relations):
            if not kept.lines:
                return Silence("no entity of the graph is named")
            recaller.facts_told = _injected_facts(kept)
            return Draft(
                blocks.GRAPH_MEMORY,
                tuple(kept.lines),
                hits=len(kept.lines),
                reasons=kept.reasons,
                statements=_statements(kept.lines),
                then=lambda: self.context.turns.touch_answer(
                    question, moment.scope.private, stamp(moment.now)
                ),
            )
        asking = asking_part(message) if is_conceivable(self.context.need(message), message) else ""
        answer = self.context.graph.search(message, self.own.max_results, named_only=True, asking=asking)
        seen = self._with_index(seen)  # the search may have refreshed the index
        hits = self._chosen(answer.hits)
        found = CachedAnswer(
            tuple(f"• {_line(hit)}" for hit in hits),
            tuple(hit.item.id for hit in hits if hit.kind == "fact"),
            tuple(hit.item.id for hit in hits if hit.kind == "relation"),
            tuple(f"score {hit.score}: {hit.why}" for hit in hits),
        )
        nearly = tuple(
            f"{_line(hit)} (score {hit.score}: {hit.why})" for hit in answer.hits if hit not in hits
        )
        if not hits:
            return Silence("no entity of the graph is named", nearly=nearly)
        recaller.facts_told = _injected_facts(found)
        notes = tuple(f"{name} may mean several entities" for name in answer.ambiguous)

        def learn() -> None:
            self.context.graph.reinforce(hits)
            self._keep(question, seen, found, moment)

        return Draft(
            blocks.GRAPH_MEMORY,
            found.lines,
            hits=len(hits),
            notes=notes,
            then=learn,
            reasons=found.reasons,
            statements=_statements(found.lines),
            nearly=nearly,
        )

    def _chosen(self, hits: Sequence[GraphHit]) -> list[GraphHit]:
        """Return at most maxResults hits and the facts linked to them; none when no entity was matched."""
        hits = [hit for hit in hits if not lacks_its_value(hit.text)]
        if not any(hit.phase in MATCHED for hit in hits):
            return []
        direct = [hit for hit in hits if not hit.linked and hit.score >= self.own.min_score]
        linked = [hit for hit in hits if hit.linked]
        return direct[: self.own.max_results] + linked[: self.own.co_occurrence_limit]

    def _with_index(self, seen: str) -> str:
        """Return a cache state for graph and index together: a newer statement in the index may mark a fact."""
        return f"{seen} {self.context.retrieval.generation()}"

    def _cached(self, question: str, seen: str, moment: Moment) -> CachedAnswer | None:
        if not self.own.cache_size or not self.own.cache_ttl:
            return None
        since = stamp(moment.now - timedelta(milliseconds=self.own.cache_ttl))
        try:
            return self.context.turns.cached_answer(question, moment.scope.private, seen, since)
        except StoreError:  # the cache is in another database; the facts answer without it
            return None

    def _keep(self, question: str, seen: str, found: CachedAnswer, moment: Moment) -> None:
        if self.own.cache_size and self.own.cache_ttl:
            at = stamp(moment.now)
            self.context.turns.keep_answer(
                question, moment.scope.private, seen, found, at, self.own.cache_size
            )


def _statements(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the statements of lines, without their dates and without later statements before them."""
    return tuple(_LATER.sub("", line).partition(" (since ")[0] for line in lines)


def _injected_facts(answer: CachedAnswer) -> frozenset[tuple[str, int]]:
    facts = {("fact", number) for number in answer.facts}
    return frozenset(facts | {("relation", number) for number in answer.relations})


def _line(hit: GraphHit) -> str:
    text = hit.told if len(hit.told) <= MAX_LINE else hit.told[:MAX_LINE] + "…"
    return f"{text} [linked]" if hit.linked else text
