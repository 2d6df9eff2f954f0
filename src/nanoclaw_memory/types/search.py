"""Nouns of search: chunks, hits, corpora, what an indexing run did."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Chunk(msgspec.Struct, frozen=True):
    """Lines of a file that are found together, and the headings above them."""

    start_line: int
    end_line: int
    text: str
    grain: str = "section"  # section, turn (of a conversation), line (of a log)
    heading: str = ""
    day: str = ""
    speaker: str = ""
    importance: float | None = None


class Hit(msgspec.Struct, frozen=True):
    """Something that search found: lines of a file, or an entry; `score` is 0 to 1."""

    kind: str  # chunk, entry
    path: str
    start_line: int
    end_line: int
    text: str
    score: float
    why: str = ""
    id: str = ""
    heading: str = ""
    day: str = ""
    speaker: str = ""
    corpus: str = ""
    type: str = ""
    tags: tuple[str, ...] = ()
    parts: Mapping[str, float] = msgspec.field(
        default_factory=dict
    )  # every component of the score, with explain
    # Of entries only:
    behavioral: bool = False
    created_at: str = ""
    origin: str = ""
    untrusted: bool = False
    suspicions: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """Hits, best first, and in `degraded` what could not take part."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0


class Skipped(msgspec.Struct, frozen=True):
    """A file that is not in the index, and why."""

    path: str
    reason: str


class Compared(msgspec.Struct, frozen=True):
    """How well one way of searching finds a chunk by one of its own sentences."""

    name: str
    recall_1: float
    recall_5: float
    mrr: float
    query_ms: float
    note: str = ""


class Corpus(msgspec.Struct, frozen=True):
    """A named collection of domain documents."""

    name: str
    sources: tuple[str, ...]
    files: int
    chunks: int
    skipped: tuple[Skipped, ...] = ()


class Indexed(msgspec.Struct, frozen=True):
    """What an indexing run found and did."""

    files: int
    chunks: int
    added: int
    removed: int
    embedded: int
    pending: int = 0
    skipped: tuple[Skipped, ...] = ()
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0
    announced: tuple[str, ...] = ()  # why so much had to be done: another model, another chunk size
