"""Search one group's index and corpora for one scope."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import CorruptDatabase, InvalidValue, NotFound, StoreError
from nanoclaw_memory.freshness import Freshness
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.currency import NAMED, SURE
from nanoclaw_memory.retrieval.hits import hits_of, newer_of
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.reranking import Reranking
from nanoclaw_memory.retrieval.searcher import GateResult, Question, Ranking, Searcher
from nanoclaw_memory.retrieval.sources import RowReader, missing
from nanoclaw_memory.retrieval.statement_pairs import changes_measure
from nanoclaw_memory.retrieval.value_changes import says_change
from nanoclaw_memory.retrieval.value_kinds import may_end_fact
from nanoclaw_memory.store.currency import SUPERSEDED
from nanoclaw_memory.store.passage_search import CURRENT, PassageFilter
from nanoclaw_memory.store.passages import FILES, Passages
from nanoclaw_memory.types import FOREIGN, Found, Hit, Indexed, Newer, Scope
from nanoclaw_memory.workspace.listing import Seen
from nanoclaw_memory.workspace.paths import Home, is_of_others, of_shared_chats, visible

if TYPE_CHECKING:
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.providers.reranker import Reranker
    from nanoclaw_memory.retrieval.candidates import Pool
    from nanoclaw_memory.retrieval.corpus import Corpora
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.vectors import VectorCache
    from nanoclaw_memory.types import EntryHit

T = TypeVar("T")
MAX_QUESTION = 4_000
MAX_HITS = 100
ALL = "all"


class Retrieval(msgspec.Struct, dict=True):
    """The index of a group with its sources, opened on first use."""

    home: Home
    scope: Scope
    clock: Clock
    configuration: Configuration
    database: Callable[[str], Database]
    has: Callable[[str], bool]
    intake: Intake
    embedder: Callable[[], Chain | None]
    reranker: Callable[[], Reranker | None]
    expand: Callable[[str], list[str]]
    pages: Callable[[], list[Seen]]  # all Markdown of the group: the query decides what a scope sees
    freshness: Freshness
    vectors: VectorCache
    _corpus_searchers: dict[str, Searcher] = msgspec.field(default_factory=dict)
    _unasked: dict[str, str] = msgspec.field(default_factory=dict)  # parts that failed last time

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    # ---- searching ----

    def search(self, question: Question, corpus: str = "") -> Found:
        """Return hits over the group's memory or its corpora, best first."""
        began = time.monotonic()
        check(question)
        hits: list[Hit] = []
        degraded: list[str] = []
        if corpus in ("", ALL):
            if question.wanted is None:
                question = replace(question, wanted=self.filter())
            ranking, entries = self.find(question)
            hits = hits_of(ranking.found, question.text, entries, "", question.explain)
            degraded = ranking.degraded
            question = replace(question, names_known=ranking.evidence.known_names > 0)
        if corpus:
            for name, searcher in self._of_corpora(corpus):
                found, said = self._search_corpus(name, searcher, question, alone=corpus != ALL)
                hits, degraded = hits + found, degraded + said
        degraded += self._unasked.values()
        best = sorted(hits, key=lambda hit: -hit.score)[: question.limit]
        took = round((time.monotonic() - began) * 1000, 1)
        return Found(tuple(best), tuple(dict.fromkeys(degraded)), took)

    def find(self, question: Question) -> tuple[Ranking, dict[int, EntryHit]]:
        """Return what answers a question, and the entries in it by number, as they are stored now."""
        ranking = self.rank(question)
        if all(one.stored.passage.kind != "entry" for one in ranking.found):
            return ranking, {}
        from nanoclaw_memory.retrieval.entry_search import entries_of

        try:
            return ranking, entries_of(self.database("entries"), ranking.found, self.clock.now())
        except StoreError as error:
            ranking.degraded.append(missing("entries", error))
            return ranking, {}

    def rank(self, question: Question, gated: bool = True) -> Ranking:
        """Return ranked passages, none if the index cannot be read. `gated` returns only what answers."""
        ask = Searcher.search if gated else Searcher.rank
        try:
            found, healed = self._healing(lambda: ask(self.searcher, question))
            said = ["index: the file was damaged and is built anew"] if healed else []
            return replace(found, degraded=[*said, *found.degraded])
        except StoreError as error:  # written by a newer release, unreadable, or not removable
            found = ask(self._without_file(), replace(question, fast=True))
            return replace(found, degraded=[missing("index", error), *found.degraded])

    def consider(self, question: Question, need: float) -> GateResult:
        """Return what may help with a message; nothing if the index cannot be read."""
        return self._healing(lambda: self.searcher.consider(question, need))[0]

    def _without_file(self) -> Searcher:
        """Return a searcher over a temporary index in memory, because the file cannot be used."""
        from nanoclaw_memory.store.sqlite import in_memory

        return self._searcher(self._index(Passages(in_memory("index"))))

    def cosines(
        self, message: str, source: str, deadline: float | None, fresh: bool = False
    ) -> tuple[dict[int, float], Pool]:
        """Return the similarity of a message to the rows of a source; nothing if the model is not available.

        `fresh` means that changes were indexed a moment ago.
        """
        if not fresh:
            self.index.refresh(embed=True, sources=(source,))
        return self.searcher.candidates.cosines(message, source, deadline)

    def overtaken(
        self, source: str, numbers: Sequence[int], fresh: bool = False, least_sure: float = SURE
    ) -> dict[int, tuple[str, Newer]]:
        """Return which rows of a source a later statement supersedes, pasted ones excepted: the mark, and that
        statement.
        """
        return self._overtaken(lambda: self.index.passages.ids(source, numbers), fresh, least_sure)

    def overtaken_facts(
        self, numbers: Sequence[int], read: Iterable[tuple[str, str, str, str]]
    ) -> tuple[dict[int, tuple[str, Newer]], dict[tuple[str, str, str, str], tuple[str, Newer]]]:
        """Return the same for facts, and for values by their source text and key if the newer statement may have
        another one.
        """
        passages, pairs = self.index.passages, list(read)
        facts = self._overtaken(lambda: passages.ids("facts", numbers), asked=self._key_of_fact)
        attributes: dict[str, list[str]] = {}
        for source, entity, key, _ in pairs:
            attributes.setdefault(source, []).append(f"{entity} {key}")
        origin_of: dict[int, str] = {}

        def stated() -> dict[int, str]:
            origin_of.update({one: source for source in attributes for one in passages.of_origin(source)})
            return origin_of

        def asked(older: int) -> Sequence[str]:
            return attributes.get(origin_of.get(older, ""), ())

        certain = self._overtaken(stated, fresh=True, least_sure=SURE, asked=asked)
        origins = self._overtaken(stated, fresh=True, asked=asked) | certain
        return facts, {
            (source, entity, key, value): origins[source]
            for source, entity, key, value in pairs
            if source in origins
            and may_end_fact(entity, key, value, origins[source][1].text, source in certain)
        }

    def _key_of_fact(self, number: int) -> Sequence[str]:
        known = self.index.currency.load([number]).get(number)
        return [known.passage.text.partition(": ")[0]] if known else []

    def overtaken_entries(self, ids: Sequence[str]) -> dict[str, tuple[str, Newer]]:
        """Return the same for entries; does not build the index."""
        if not ids or not self.has("index"):
            return {}
        self.refresh(("entries",))
        referred = self.index.passages.search.referred
        return self._overtaken(lambda: {referred(one): one for one in ids}, fresh=True, least_sure=SURE)

    def overtaken_line(self, path: str, line: int, least_sure: float = NAMED) -> tuple[str, Newer] | None:
        """Return the mark and the later statement that supersedes one on a line of a file, if any."""
        rows = self._overtaken(
            lambda: dict.fromkeys(self.index.passages.at(path, line), line), least_sure=least_sure
        )
        return rows.get(line)

    def given_up(self, path: str, line: int) -> tuple[str, Newer] | None:
        """Return the same if the later statement is certainly on the same subject, and says that it changed."""
        later = self.overtaken_line(path, line, SURE)
        if later is None or later[0] == SUPERSEDED or says_change(later[1].text):
            return later
        known = self.index.currency.load(self.index.passages.at(path, line)).values()
        return later if any(changes_measure(one.passage.text, later[1].text) for one in known) else None

    def overtaken_passages(self, ids: Iterable[int]) -> dict[int, tuple[str, Newer]]:
        """Return what supersedes passages of any kind that were found a moment ago."""
        return self._overtaken(lambda: {one: one for one in ids}, fresh=True)

    def generation(self) -> int:
        """Return the number of the index's last change; 0 if there is no readable index."""
        try:
            return self.index.passages.generation() if self.has("index") else 0
        except StoreError:
            return 0

    def superseded_entries(self) -> tuple[str, ...]:
        """Return the ids of entries that a later statement supersedes; does not build the index."""
        return self.index.currency.table.superseded_entries() if self.has("index") else ()

    def _overtaken(
        self,
        rows: Callable[[], dict[int, T]],
        fresh: bool = False,
        least_sure: float = NAMED,
        asked: Callable[[int], Collection[str]] = lambda _: (),
    ) -> dict[T, tuple[str, Newer]]:
        if not fresh:
            self.refresh()
        try:
            ids = rows()
            if not ids:
                return {}
            visible = self.index.passages.search.selection(self.filter())
            later = [row for row in self.index.currency.of(ids, visible) if row.sure >= least_sure]
            known = self.index.currency.newest(
                self.index.currency.on_what_is_asked(later, asked, typed=True), visible
            )
        except StoreError:  # others answer without the index
            return {}
        return {
            ids[older]: (row.kind, newer_of(newer))
            for older, (row, newer) in known.items()
            if newer.passage.origin not in FOREIGN or not newer.passage.private
        }

    def filter(self, sources: tuple[str, ...] | None = None, noise: bool = False) -> PassageFilter:
        """Return the filter for some sources; `noise` are exchanges that only ask for memory."""
        statuses = (*CURRENT, "noise") if noise else CURRENT
        return PassageFilter(sources, statuses=statuses, now=stamp(self.clock.now()))

    def filter_for(self, scope: Scope) -> PassageFilter:
        """Return the filter for a scope: in a shared scope's index a private one sees only what was said in shared
        chats.
        """
        wanted = self.filter()
        if scope.private == self.scope.private:
            return wanted
        self.refresh()  # new exchanges were said there too
        try:
            known = self.index.passages.documents()
        except StoreError:
            known = []  # reported by the search itself
        said = tuple(number for number, source, name in known if source != FILES or of_shared_chats(name))
        return replace(wanted, documents=said)

    def for_turn(self, session: str, after: int) -> PassageFilter:
        """Return the filter before a model call: no lessons, nothing held, nothing that is still in the window."""
        return replace(self.filter(), left_out=("lessons",), statuses=("",), session=session, after=after)

    def refresh(self, sources: tuple[str, ...] | None = None, embed: bool = False) -> None:
        """Index what changed; by words unless `embed`. What cannot be read is reported by the next search."""
        try:
            self._healing(lambda: self.index.refresh(embed, sources, quiet=True))
        except StoreError:
            return

    def load_vectors(self) -> None:
        """Read new vectors, so that the next question need not."""
        with suppress(StoreError):  # reported by that question
            self.searcher.candidates.load_vectors()

    # ---- indexing ----

    def run(self, rebuild: bool = False) -> Indexed:
        """Update the index of the group's memory."""
        self.heal()
        return self._healing(lambda: self.index.run(rebuild))[0]

    def heal(self) -> None:
        """Rebuild a damaged index; checks all of it."""
        if self._is_damaged():
            self._start_anew()

    def stale(self) -> int:
        """Return how many files changed or were deleted since they were indexed."""
        found = self.index.scan()
        return len(found.changed) + len(found.removed)

    def embed(self, most: int) -> int:
        """Embed at most so many passages that have no vector; return how many."""
        return self.index.embed(most)

    @cached_property
    def index(self) -> Index:
        """Return the index of the group's memory."""
        return self._index(Passages(self.database("index")))

    def _index(self, passages: Passages) -> Index:
        rows = RowReader(passages, self.database, self.has, self._chunking(), self.clock.now().tzinfo)
        return Index(
            passages,
            Path(f"{self.database('index').path}-indexing"),
            self.pages,
            self._chunking(),
            self.embedder,
            forget=self._without_forgotten,
            rows=rows,
            today=lambda: self.clock.now().date(),
            freshness=self.freshness,
            vectors=self.vectors,
        )

    @cached_property
    def corpora(self) -> Corpora:
        """Return the group's domain documents."""
        from nanoclaw_memory.retrieval.corpus import Corpora

        folder = self.home.data(self.scope.group) / "corpora"
        return Corpora(
            folder,
            self._chunking(),
            self.embedder,
            {},
            self._without_forgotten,
            lambda path: is_of_others(self.home, replace(self.scope, private=True), path),
        )

    @cached_property
    def searcher(self) -> Searcher:
        """Return the searcher of the group's index."""
        return self._searcher(self.index)

    def close(self) -> None:
        """Close the corpora that were opened."""
        for database in self.__dict__["corpora"].opened.values() if "corpora" in self.__dict__ else ():
            database.close()

    # ---- inside ----

    def _search_corpus(
        self, name: str, searcher: Searcher, question: Question, alone: bool
    ) -> tuple[list[Hit], list[str]]:
        try:
            ranking = searcher.search(replace(question, wanted=None))
        except StoreError as error:
            if alone:
                raise
            return [], [missing(f"corpus {name}", error)]
        return hits_of(ranking.found, question.text, {}, name, question.explain), ranking.degraded

    def _of_corpora(self, corpus: str) -> list[tuple[str, Searcher]]:
        """Return the searchers of one corpus or all, as far as this scope may see them."""
        shared = self.settings.privacy.shared_files
        names = [name for name in self.corpora.names() if visible(self.scope, f"corpus/{name}", shared)]
        if corpus != ALL and corpus not in names:
            raise NotFound(f"there is no corpus {corpus!r}", f"corpora: {', '.join(names) or 'none yet'}")
        chosen = names if corpus == ALL else [corpus]
        for name in chosen:
            if name not in self._corpus_searchers:
                self._corpus_searchers[name] = self._searcher(self.corpora.index(name))
        return [(name, self._corpus_searchers[name]) for name in chosen]

    def _searcher(self, index: Index) -> Searcher:
        half_life = self.settings.memory.temporal_decay_half_life
        own = self.settings.rerank
        reranking = Reranking(self.reranker, own.candidates, own.timeout_ms / 1000, own.provider != "llm")
        zone = self.clock.now().tzinfo
        return Searcher(index, half_life, self._weights(), self._expanded, reranking, zone)

    def _expanded(self, question: str) -> list[str]:
        """Return other names of entities in the question; none if the graph does not answer."""
        self._unasked.pop("graph", None)
        try:
            return self.expand(question)
        except StoreError as error:
            self._unasked["graph"] = missing("graph", error)
            return []

    def _chunking(self) -> Chunking:
        own = self.settings.memory
        return Chunking(own.chunk_size, min(own.chunk_overlap, own.chunk_size // 2))

    def _without_forgotten(self, text: str) -> str:
        """Return a file's text without the lines that a person asked to forget."""
        return self.intake.without_forgotten(text)

    def _weights(self) -> tuple[float, float] | None:
        """Return the configured weights; None means the embedder's own."""
        keys = ("memory.searchWeights.vector", "memory.searchWeights.bm25")
        if all(self.configuration.origin(key) == "default" for key in keys):
            return None
        weights = self.settings.memory.search_weights
        return weights.vector, weights.bm25

    def _healing(self, act: Callable[[], T]) -> tuple[T, bool]:
        """Run an operation on the index; rebuild a damaged one and repeat it. Return the result and whether it was
        rebuilt.
        """
        self.database("index").leave_replaced()
        try:
            return act(), False
        except CorruptDatabase:
            pass
        # values that nobody wrote there, unless it is a bug of ours
        except (LookupError, TypeError, ValueError):
            if not self._is_damaged():
                raise
        self._start_anew()
        return act(), True

    def _is_damaged(self) -> bool:
        try:
            return bool(self.index.passages.database.check())
        except CorruptDatabase:
            return True

    def _start_anew(self) -> None:
        """Delete the index: everything in it is derived; another thread or process may have done so already."""
        database = self.database("index")
        with database.held():
            if not database.leave_replaced():
                try:
                    database.discard()
                except OSError as error:
                    problem = f"{database.path.name} is damaged and cannot be removed: {error.strerror}"
                    raise StoreError(problem, f"remove it: rm -r {database.path}") from None
        self.__dict__.pop("index", None)
        self.__dict__.pop("searcher", None)


def check(question: Question) -> None:
    """Refuse a question that is empty, too long, or asks for too much."""
    if not question.text.strip():
        raise InvalidValue("the question is empty", 'for example: nanoclaw-memory search "database decision"')
    if len(question.text) > MAX_QUESTION:
        raise InvalidValue(
            f"the question has {len(question.text):,} characters, over the limit of {MAX_QUESTION:,}",
            "ask with a sentence or some words",
        )
    if not 1 <= question.limit <= MAX_HITS:
        raise InvalidValue(f"limit: {question.limit} is outside 1 to {MAX_HITS}", "for example 10")
