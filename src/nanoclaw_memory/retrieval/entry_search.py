"""Search entries: those that answer a question, and those that may say the same as another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from nanoclaw_memory.entries.lines import as_hit
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.providers.calibration import calibration
from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.retrieval.service import Retrieval
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.entries import PRIORITIES, EntryTable, Filter
from nanoclaw_memory.store.passage_search import PassageFilter
from nanoclaw_memory.types import EntriesFound, EntryHit, Newer

SOURCE = ("entries",)
MOST_ALIKE = 3


def entries_of(db: Database, found: Iterable[Candidate], now: datetime) -> dict[int, EntryHit]:
    """Return the entries among ranked passages as they are stored now, by number."""
    by_number = {one.stored.passage.number: one for one in found if one.stored.passage.kind == "entry"}
    entries = EntryTable(db).by_number(list(by_number))
    return {
        number: as_hit(entry, by_number[number].score, _why(by_number[number]), now)
        for number, entry in entries.items()
    }


def _why(candidate: Candidate) -> str:
    parts = {"keyword": candidate.parts.get("keyword", 0.0), "vector": candidate.parts.get("cosine", 0.0)}
    return ", ".join(f"{name} {value:.2f}" for name, value in parts.items() if value > 0)


class EntrySearch:
    """Search entries only."""

    def __init__(self, retrieval: Callable[[], Retrieval], project: str) -> None:
        self._open = retrieval
        self._project = project

    def search(self, query: str, wanted: Filter, limit: int, fast: bool) -> EntriesFound:
        """Return the matching entries, best first; `fast` uses no model."""
        retrieval = self._open()
        retrieval.database("entries").query("SELECT 1 FROM entries LIMIT 1")  # damage is an error here
        now = retrieval.clock.now()
        chosen = self._filter(retrieval, wanted)
        question = Question(query, limit, now.date(), fast, wanted=chosen, project=self._project)
        ranking = retrieval.rank(question)
        entries = entries_of(retrieval.database("entries"), ranking.found, now)
        hits = [entries[number] for one in ranking.found if (number := one.stored.passage.number) in entries]
        return EntriesFound(tuple(hits), tuple(ranking.degraded))

    def similar(self, entry_id: str, wanted: Filter) -> tuple[str, ...]:
        """Return the ids of entries that the model calls alike.

        They are only reported, never merged: with the embedded model "prefers tea over coffee" and "prefers coffee
        over tea" are nearer to each other (.995) than most paraphrases.
        """
        retrieval = self._open()
        retrieval.refresh(SOURCE, embed=True)
        found = retrieval.searcher.candidates.nearest_to(entry_id, self._filter(retrieval, wanted))
        least = calibration(found.identity).duplicate
        alike = [name for name, cosine in found.cosines if cosine >= least and name != entry_id]
        return tuple(alike[:MOST_ALIKE])

    def superseded(self) -> tuple[str, ...]:
        """Return the ids of entries that a later statement supersedes, as far as the index knows."""
        try:
            return self._open().superseded_entries()
        except StoreError:  # a session starts without the index too
            return ()

    def overtaken(self, ids: Sequence[str]) -> dict[str, tuple[str, Newer]]:
        """Return which of these entries a later statement supersedes; none if there is no index yet."""
        return self._open().overtaken_entries(ids)

    @staticmethod
    def _filter(retrieval: Retrieval, wanted: Filter) -> PassageFilter:
        statuses = tuple("" if status == "active" else status for status in wanted.statuses)
        return replace(
            retrieval.filter(SOURCE),
            types=wanted.types,
            statuses=statuses,
            now=wanted.now,
            tags=wanted.tags,
            lowest_priority=PRIORITIES.index(wanted.priority_min),
        )
