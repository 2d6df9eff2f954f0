"""The front of the room: one group's index and corpora, searched as one scope sees them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import CorruptDatabase, InvalidValue, NotFound, StoreError
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.reranking import Reranking
from nanoclaw_memory.retrieval.searcher import Question, Searcher, merged
from nanoclaw_memory.retrieval.vectoring import Progress
from nanoclaw_memory.store.chunks import Chunks
from nanoclaw_memory.types import Found, Hit, Indexed, Scope
from nanoclaw_memory.workspace.paths import Home, memory_files, visible

if TYPE_CHECKING:
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.providers.reranker import Reranker
    from nanoclaw_memory.retrieval.corpus import Corpora
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.database import Database

MAX_QUESTION = 4_000
MAX_HITS = 100
ALL = "all"


class SearchFront(msgspec.Struct, dict=True):
    """Everything that `search` and `index` need, opened on first use."""

    home: Home
    scope: Scope
    configuration: Configuration
    database: Callable[[str], Database]
    intake: Intake
    embedder: Callable[[], Chain | None]
    reranker: Callable[[], Reranker | None]
    expand: Callable[[str], list[str]] | None = None
    _corpus_searchers: dict[str, Searcher] = msgspec.field(default_factory=dict)
    _trouble: dict[str, str] = msgspec.field(
        default_factory=dict
    )  # whose part of the last question could not be had

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    def search(self, question: Question, corpus: str = "", entries: Sequence[Hit] = ()) -> Found:
        """Hits over the group's files or corpora, with entry hits that the caller found merged in."""
        began = time.monotonic()
        _check(question)
        hits: list[Hit] = list(entries)
        degraded: list[str] = []
        if corpus in ("", ALL):
            found, said = self._search_files(question)
            hits, degraded = hits + found, degraded + said
        if corpus:
            for searcher in self._of_corpora(corpus):
                found, said = self._search_corpus(searcher, question, alone=corpus != ALL)
                hits, degraded = hits + found, degraded + said
        degraded += self._trouble.values()
        took = round((time.monotonic() - began) * 1000, 1)
        return Found(merged(hits, question.limit), tuple(dict.fromkeys(degraded)), took)

    def run(self, rebuild: bool = False, progress: Progress | None = None) -> Indexed:
        """Bring the index of the group's files up to date."""
        try:
            return self.index.run(rebuild, progress)
        except CorruptDatabase:
            self._start_anew()
            return self.index.run(rebuild, progress)

    def stale(self) -> int:
        """How many files changed or went since the index saw them."""
        found = self.index.scan()
        return len(found.changed) + len(found.removed)

    @cached_property
    def index(self) -> Index:
        """The index of the group's Markdown."""
        lock = self.home.data(self.scope.group) / "index.db-indexing"
        chunks = Chunks(self.database("index"))
        return Index(
            chunks, lock, self._files, self._chunking(), self.embedder, forget=self._without_forgotten
        )

    @cached_property
    def corpora(self) -> Corpora:
        """The group's domain documents."""
        from nanoclaw_memory.retrieval.corpus import Corpora

        folder = self.home.data(self.scope.group) / "corpora"
        return Corpora(folder, self._chunking(), self.embedder, {}, self._without_forgotten)

    @cached_property
    def searcher(self) -> Searcher:
        """Searches the group's files as this scope sees them."""
        shared = self.settings.privacy.shared_files
        seen = None if self.scope.private else (lambda path: visible(self.scope, path, shared))
        return self._searcher(self.index, seen)

    def close(self) -> None:
        """Close the corpora that were opened."""
        for database in self.__dict__["corpora"].opened.values() if "corpora" in self.__dict__ else ():
            database.close()

    def _search_files(self, question: Question) -> tuple[list[Hit], list[str]]:
        try:
            try:
                return self.searcher.search(question)
            except CorruptDatabase:
                self._start_anew()
                hits, degraded = self.searcher.search(question)
                return hits, ["index: the file was damaged and is built anew", *degraded]
        except StoreError as error:  # newer, unreadable, not to be removed: entries may still answer
            return [], [missing("index", error)]

    @staticmethod
    def _search_corpus(searcher: Searcher, question: Question, alone: bool) -> tuple[list[Hit], list[str]]:
        try:
            return searcher.search(question)
        except StoreError as error:
            if alone:
                raise
            return [], [missing(f"corpus {searcher.corpus}", error)]

    def _of_corpora(self, corpus: str) -> list[Searcher]:
        """The searchers of one corpus or all, as far as this scope may see them."""
        shared = self.settings.privacy.shared_files
        names = [name for name in self.corpora.names() if visible(self.scope, f"corpus/{name}", shared)]
        if corpus != ALL and corpus not in names:
            raise NotFound(f"there is no corpus {corpus!r}", f"corpora: {', '.join(names) or 'none yet'}")
        chosen = names if corpus == ALL else [corpus]
        for name in chosen:
            if name not in self._corpus_searchers:
                self._corpus_searchers[name] = self._searcher(self.corpora.index(name), None, name)
        return [self._corpus_searchers[name] for name in chosen]

    def _searcher(self, index: Index, seen: Callable[[str], bool] | None, corpus: str = "") -> Searcher:
        half_life = self.settings.memory.temporal_decay_half_life
        own = self.settings.rerank
        reranking = Reranking(self.reranker, own.candidates, own.timeout_ms / 1000, own.provider != "llm")
        return Searcher(index, half_life, seen, self._weights(), self._expanded, reranking, corpus)

    def _expanded(self, question: str) -> list[str]:
        """Other names of whom the question names; without a graph that serves, the question as it is."""
        self._trouble.pop("graph", None)
        try:
            return self.expand(question) if self.expand is not None else []
        except StoreError as error:
            self._trouble["graph"] = missing("graph", error)
            return []

    def _chunking(self) -> Chunking:
        own = self.settings.memory
        return Chunking(own.chunk_size, min(own.chunk_overlap, own.chunk_size // 2))

    def _files(self) -> Iterator[tuple[str, Path]]:
        """All Markdown of the group: the index is the group's, what a scope sees is decided in the query."""
        return memory_files(self.home, Scope(self.scope.group, private=True), ())

    def _without_forgotten(self, text: str) -> str:
        """A file's text without the lines that a person asked to forget."""
        return self.intake.without_forgotten(text)

    def _weights(self) -> tuple[float, float] | None:
        """The weights that somebody set; otherwise the embedder's own serve."""
        keys = ("memory.searchWeights.vector", "memory.searchWeights.bm25")
        if all(self.configuration.origin(key) == "default" for key in keys):
            return None
        weights = self.settings.memory.search_weights
        return weights.vector, weights.bm25

    def _start_anew(self) -> None:
        """Delete the index: everything in it is derived from files."""
        self.database("index").close()
        path = self.home.data(self.scope.group) / "index.db"
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            try:
                name.unlink(missing_ok=True)
            except OSError as error:
                told = f"{name.name} is damaged and cannot be removed: {error.strerror}"
                raise StoreError(told, f"remove it: rm -r {name}") from None
        self.__dict__.pop("index", None)
        self.__dict__.pop("searcher", None)


def missing(part: str, error: StoreError) -> str:
    """How an answer says that a part of memory could not be asked."""
    return f"{part}: {error.message}; for what helps: nanoclaw-memory doctor"


def _check(question: Question) -> None:
    if not question.text.strip():
        raise InvalidValue("the question is empty", 'for example: nanoclaw-memory search "database decision"')
    if len(question.text) > MAX_QUESTION:
        raise InvalidValue(
            f"the question has {len(question.text):,} characters, over the limit of {MAX_QUESTION:,}",
            "ask with a sentence or some words",
        )
    if not 1 <= question.limit <= MAX_HITS:
        raise InvalidValue(f"limit: {question.limit} is outside 1 to {MAX_HITS}", "for example 10")
