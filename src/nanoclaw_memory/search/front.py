"""The front of the room: one group's index, searched as one scope sees it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import CorruptDatabase, InvalidValue
from nanoclaw_memory.index.chunker import Chunking
from nanoclaw_memory.index.indexer import Index, Progress
from nanoclaw_memory.search.hybrid import Question, Searcher, merged
from nanoclaw_memory.store.chunks import Chunks
from nanoclaw_memory.types import Found, Hit, Indexed, Scope
from nanoclaw_memory.workspace.paths import Home, memory_files, visible

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.database import Database

MAX_QUESTION = 4_000
MAX_HITS = 200


@dataclass
class SearchFront:
    """Everything that `search` and `index` need, opened on first use."""

    home: Home
    scope: Scope
    configuration: Configuration
    database: Callable[[str], Database]
    embedder: Callable[[], Chain | None]
    expand: Callable[[str], list[str]] | None = None

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    def search(
        self,
        question: str,
        limit: int,
        today: date,
        fast: bool = False,
        explain: bool = False,
        entries: Sequence[Hit] = (),
    ) -> Found:
        """Hits over the group's files, with entry hits that the caller found merged in."""
        began = time.monotonic()
        asked = Question(_checked(question), _checked_limit(limit), today, fast, explain)
        try:
            hits, degraded = self.searcher.search(asked)
        except CorruptDatabase:
            self._start_anew()
            hits, degraded = self.searcher.search(asked)
            degraded = ["index: the file was damaged and is being built anew", *degraded]
        return Found(
            merged(hits, entries, limit),
            tuple(dict.fromkeys(degraded)),
            round((time.monotonic() - began) * 1000, 1),
        )

    def run(self, rebuild: bool = False, progress: Progress | None = None) -> Indexed:
        """Bring the index up to date."""
        try:
            return self.index.run(rebuild, progress)
        except CorruptDatabase:
            self._start_anew()
            return self.index.run(rebuild, progress)

    @cached_property
    def index(self) -> Index:
        """The index of the group's Markdown."""
        own = self.settings.memory
        lock = self.home.data(self.scope.group) / "index.db-indexing"
        chunking = Chunking(own.chunk_size, min(own.chunk_overlap, own.chunk_size // 2))
        return Index(Chunks(self.database("index")), lock, self._files, chunking, self.embedder)

    @cached_property
    def searcher(self) -> Searcher:
        """Searches the index as this scope sees it."""
        shared = self.settings.privacy.shared_files
        seen = None if self.scope.private else (lambda path: visible(self.scope, path, shared))
        half_life = self.settings.memory.temporal_decay_half_life
        return Searcher(self.index, half_life, seen, self._weights(), self.expand)

    def _files(self) -> Iterator[tuple[str, Path]]:
        """All Markdown of the group: the index is the group's, what a scope sees is decided in the query."""
        everything = Scope(self.scope.group, private=True)
        for relative, path in memory_files(self.home, everything, ()):
            if not relative.startswith("memory/domains/"):  # these are entries, which are searched themselves
                yield relative, path

    def _weights(self) -> tuple[float, float] | None:
        """The weights that somebody set; otherwise the embedder's own serve."""
        keys = ("memory.searchWeights.vector", "memory.searchWeights.bm25")
        if all(self.configuration.origin(key) == "default" for key in keys):
            return None
        weights = self.settings.memory.search_weights
        return weights.vector, weights.bm25

    def _start_anew(self) -> None:
        """Delete the index: everything in it is derived from files."""
        database = self.database("index")
        database.close()
        path = self.home.data(self.scope.group) / "index.db"
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            name.unlink(missing_ok=True)
        self.__dict__.pop("index", None)
        self.__dict__.pop("searcher", None)


def _checked(question: str) -> str:
    if not question.strip():
        raise InvalidValue("the question is empty", 'for example: nanoclaw-memory search "database decision"')
    if len(question) > MAX_QUESTION:
        raise InvalidValue(
            f"the question has {len(question):,} characters, over the limit of {MAX_QUESTION:,}",
            "ask with a sentence or some words",
        )
    return question


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_HITS:
        raise InvalidValue(f"{limit} hits cannot be given", f"ask for 1 to {MAX_HITS}")
    return limit
