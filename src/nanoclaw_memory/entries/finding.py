"""Entries that answer a question: by words and, where a model is at hand, by meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from nanoclaw_memory.entries import rules
from nanoclaw_memory.entries.ledger import EntryLedger
from nanoclaw_memory.entries.lines import age_days, masked
from nanoclaw_memory.entries.rules import UNTRUSTED
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.store.entries import Filter
from nanoclaw_memory.store.keywords import spaced, terms_of
from nanoclaw_memory.text import words
from nanoclaw_memory.types import EntriesFound, Entry, EntryHit

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain

POOL = 100
BATCH = 64
ALIKE = 0.92
# The cosine at which a question and an entry begin to have to do with each other, and at which they do.
# The local model's cosines lie in a narrow band: unrelated texts reach .78.
_BANDS = {"local": (0.785, 0.87)}
_BAND = (0.30, 0.65)


class Finder:
    """Searches the entries of one group; filters come before limits."""

    def __init__(self, ledger: EntryLedger, embedder: Callable[[], Chain | None]) -> None:
        self._ledger = ledger
        self._embedder = embedder

    def recent(self, wanted: Filter, limit: int) -> EntriesFound:
        """The newest entries: what an empty question gets."""
        found, now = self._ledger.table.recent(wanted, limit), self._ledger.clock.now()
        return EntriesFound(tuple(as_hit(entry, 1.0, "recent", now) for entry in found))

    def search(self, query: str, wanted: Filter, limit: int, fast: bool) -> EntriesFound:
        """The best first; `fast` leaves the model alone."""
        matching = self._ledger.table.matching(query, wanted, POOL)
        entries = {entry.id: entry for entry, _ in matching}
        said = relevance(query, matching)
        meant: dict[str, float] = {}
        degraded: tuple[str, ...] = ()
        chain = None if fast else self._embedder()
        if chain is not None:
            try:
                found = self._by_meaning(chain, query, wanted)
                entries.update({entry.id: entry for entry, _ in found})
                meant = {entry.id: score for entry, score in found}
            except ProviderError as error:
                degraded = (f"entries by meaning: {error.message}",)
        weights = chain.weights if chain is not None and meant else (0.0, 1.0)
        scores = {key: _fused(said.get(key, 0.0), meant.get(key, 0.0), weights) for key in entries}
        best = sorted(entries, key=lambda key: (-scores[key], key))[:limit]
        now = self._ledger.clock.now()
        hits = [as_hit(entries[key], scores[key], _why(said.get(key), meant.get(key)), now) for key in best]
        return EntriesFound(tuple(hits), degraded)

    # ---- by meaning ----

    def embed(self, chain: Chain, most: int | None = None) -> int:
        """Give vectors to entries that lack them, at most `most`; says how many."""
        done = 0
        while most is None or done < most:
            size = BATCH if most is None else min(BATCH, most - done)
            missing = self._ledger.table.without_vector(chain.identity.key, size)
            if not missing:
                break
            vectors = chain.embed_documents([content for _, content in missing]).vectors
            rows = [(number, row.tobytes()) for (number, _), row in zip(missing, vectors, strict=True)]
            with self._ledger.db.transaction():
                self._ledger.table.set_vectors(chain.identity.key, rows)
            done += len(missing)
        return done

    def similar(self, chain: Chain, entry_id: str, entry_type: str, most: int = 3) -> list[str]:
        """The ids of entries of the type that the model calls alike.

        Only told, never merged: with the embedded model "prefers tea over coffee" and "prefers coffee over
        tea" are nearer to each other (.995) than most paraphrases.
        """
        self.embed(chain, BATCH)
        wanted = Filter(self._ledger.moment(), (entry_type,))
        own = self._ledger.table.vector(chain.identity.key, entry_id)
        if own is None:
            return []
        cosines = self._cosines(chain.identity.key, own, wanted)
        alike = sorted((n for n, score in cosines.items() if score >= ALIKE), key=lambda n: -cosines[n])
        found = self._ledger.table.by_number(alike[: most + 1])
        return [found[n].id for n in alike if n in found and found[n].id != entry_id][:most]

    def _by_meaning(self, chain: Chain, query: str, wanted: Filter) -> list[tuple[Entry, float]]:
        self.embed(chain, BATCH)
        present = self._ledger.table.identities()
        embedded = chain.embed_query(query, [one for one in chain.identities if one.key in present])
        low, high = _BANDS.get(embedded.identity.provider, _BAND)
        cosines = self._cosines(embedded.identity.key, embedded.vector.tobytes(), wanted)
        near = sorted((n for n, score in cosines.items() if score > low), key=lambda n: -cosines[n])[:POOL]
        found = self._ledger.table.by_number(near)
        return [(found[n], min((cosines[n] - low) / (high - low), 1.0)) for n in near if n in found]

    def _cosines(self, identity: str, vector: bytes, wanted: Filter) -> dict[int, float]:
        import numpy as np

        rows = self._ledger.table.vectors(identity, wanted)
        if not rows:
            return {}
        matrix = np.frombuffer(b"".join(raw for _, raw in rows), dtype=np.float32).reshape(len(rows), -1)
        asked = np.frombuffer(vector, dtype=np.float32)
        return dict(zip([number for number, _ in rows], (matrix @ asked).tolist(), strict=True))


def as_hit(entry: Entry, score: float, why: str, now: datetime) -> EntryHit:
    """An entry as search gives it: masked, with its age and how far to trust it."""
    return EntryHit(
        id=entry.id,
        type=entry.type,
        content=masked(entry.content),
        behavioral=entry.behavioral,
        tags=entry.tags,
        created_at=entry.provenance.timestamp,
        relevance_score=round(min(score, 1.0), 4),
        priority=entry.priority,
        status=entry.status,
        age_days=age_days(entry.provenance.timestamp, now.date(), now),
        untrusted=entry.provenance.origin in UNTRUSTED,
        provenance=entry.provenance,
        importance=round(rules.importance(entry, now), 4),
        reason=masked(entry.reason),
        suspicions=entry.suspicions,
        why=why,
    )


def relevance(query: str, matching: list[tuple[Entry, float]]) -> dict[str, float]:
    """0 to 1: how many of the question's words an entry holds, and how telling they are.

    bm25 alone says nothing in a small store: a word that every second entry holds weighs nothing there.
    """
    terms = terms_of(query)
    best = max((score for _, score in matching), default=0.0) or 1.0
    return {
        entry.id: _covered(terms, entry) * (0.6 + 0.4 * max(score, 0.0) / best) for entry, score in matching
    }


def _covered(terms: list[str], entry: Entry) -> float:
    text = spaced(" ".join((entry.content, *entry.tags, entry.reason)))
    held = set(words(text))
    joined = " ".join(words(text))
    hits = sum(1 for term in terms if term in held or term in joined or any(_akin(term, w) for w in held))
    return max(hits, 1) / max(len(terms), 1)


def _akin(term: str, word: str) -> bool:
    """Forms of one word, roughly as the stemmer sees it."""
    stem = max(4, min(len(term), len(word)) - 2)
    return len(term) >= 4 and abs(len(term) - len(word)) <= 4 and term[:stem] == word[:stem]


def _fused(said: float, meant: float, weights: tuple[float, float]) -> float:
    both = (weights[0] * meant + weights[1] * said) / (sum(weights) or 1.0)
    # What one of them is sure of must not sink because the other is silent.
    return max(both, 0.9 * said, 0.7 * meant)


def _why(said: float | None, meant: float | None) -> str:
    parts: Mapping[str, float | None] = {"keyword": said, "vector": meant}
    return ", ".join(f"{name} {value:.2f}" for name, value in parts.items() if value)
