"""Embed what an index contains, in batches, with each model of the chain; old vectors serve until then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.progress import report
from nanoclaw_memory.retrieval.prepare import embedded_text
from nanoclaw_memory.store.passages import NewPassage, Passages
from nanoclaw_memory.types import Passage

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain, Embedder
    from nanoclaw_memory.store.vectors import VectorCache

BATCH = 64
PACKED = 320 * BATCH  # texts after which vectors are packed into the file
_ANSWERING = "answering"


def answering(chunks: Passages) -> str:
    """Return the key of the model whose vectors last covered the whole index; empty before that."""
    return chunks.meta(_ANSWERING) or ""


class Vectoring(msgspec.Struct):
    """Embed one index with one chain; `said` collects the problems."""

    passages: Passages
    chain: Chain
    cache: VectorCache
    deadline: float | None = None
    said: list[str] = msgspec.field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Return whether the first model has a vector of every chunk, as of the last run."""
        return self._complete(self.chain.members[0])

    @property
    def replacing(self) -> str:
        """Return the key of the model in use while the configured one is not yet complete, or nothing."""
        old = answering(self.passages)
        return "" if old == self.chain.identity.key else old

    def fill(self, fallbacks: bool, most: int = -1) -> int:
        """Embed at most so many passages without a vector; return how many.

        A fallback without vectors of its own could not answer, so a full run embeds with those too.
        """
        done, last = 0, self.passages.last_id()  # later passages are left to the next run
        whole: list[str] = []
        for member in self.chain.members if fallbacks else self.chain.members[:1]:
            if self._complete(member):
                whole.append(member.identity.key)
                continue
            waiting = self.passages.pending(member.identity.key, most)
            embedded = self._fill(member, waiting)
            done += embedded
            if embedded == len(waiting) and embedded != most:
                whole.append(member.identity.key)
            elif embedded:  # in the order of passages: none before the last of these is missing
                self.passages.set_covered(member.identity.key, min(waiting[embedded - 1][1], last - 1))
        self._record_complete(whole, last)
        return done

    def ahead(self, new: Iterable[NewPassage]) -> int:
        """Embed texts before they are stored, so that they are never without vectors."""
        member, done = self.chain.members[0], 0
        batch: dict[bytes, Passage] = {}
        for one in new:
            batch.setdefault(one.fingerprint, one.passage)
            if len(batch) == BATCH:
                done += self._embed_missing(member, batch)
                batch = {}
            if self.said:
                return done
        return done + self._embed_missing(member, batch)

    def prune(self) -> None:
        """Drop vectors that belong to no chunk and no configured model."""
        self.passages.prune_vectors([identity.key for identity in self.chain.identities])

    def pack(self) -> None:
        """Move the first model's vectors to a file if there are many."""
        self.cache.pack(self.passages, self.chain.identity.key, self.chain.identity.dimensions)

    def _fill(self, member: Embedder, waiting: Sequence[tuple[bytes, int]]) -> int:
        for start in range(0, len(waiting), BATCH):
            report("embeddings", start, len(waiting))
            batch = waiting[start : start + BATCH]
            stored = self.passages.search.load(chunk for _, chunk in batch)
            if not self._embed(member, {print_: stored[chunk].passage for print_, chunk in batch}):
                return start
            if start % PACKED == PACKED - BATCH and member is self.chain.members[0]:
                self.passages.set_covered(member.identity.key, batch[-1][1])
                self.pack()  # otherwise the database would have to hold them all
        report("embeddings", len(waiting), len(waiting))
        return len(waiting)

    def _embed_missing(self, member: Embedder, batch: dict[bytes, Passage]) -> int:
        missing = self.passages.without_vector(member.identity.key, list(batch))
        if not missing or not self._embed(member, {print_: batch[print_] for print_ in missing}):
            return 0
        return len(missing)

    def _embed(self, member: Embedder, batch: dict[bytes, Passage]) -> bool:
        from nanoclaw_memory.store.vectors import coded

        if known := self.cache.known(self.passages, member.identity.key, batch):
            self.passages.put_vectors(member.identity.key, known)
            had = {one.fingerprint for one in known}
            batch = {print_: passage for print_, passage in batch.items() if print_ not in had}
        if not batch:
            return True
        try:
            vectors = member.embed_documents(
                [embedded_text(chunk) for chunk in batch.values()], self.deadline
            )
        except ProviderError as error:
            self.said.append(f"vectors: {error.message}" + (f"; {error.hint}" if error.hint else ""))
            return False
        self.passages.put_vectors(member.identity.key, coded(list(batch), vectors))
        return True

    def _complete(self, member: Embedder) -> bool:
        return self.passages.covered(member.identity.key) >= self.passages.last_id()

    def _record_complete(self, whole: Sequence[str], last: int) -> None:
        """Record which model covers everything; a complete first model replaces the one before it."""
        for key in whole:
            if self.passages.covered(key) < last:
                self.passages.set_covered(key, last)
        first = self.chain.identity.key
        if first in whole and answering(self.passages) != first:
            self.passages.set_meta(_ANSWERING, first)
            self.prune()
