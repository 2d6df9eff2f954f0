"""Nouns of search: chunks, hits, corpora, what an indexing run did."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Passage(msgspec.Struct, frozen=True):
    """What is found as one: lines of a file, a turn, an entry, a fact; and what it stands under."""

    start_line: int
    end_line: int
    text: str
    kind: str = "section"  # section, turn (of a conversation), line (of a log), entry, fact, relation, lesson
    heading: str = ""
    day: str = ""
    speaker: str = ""
    importance: float | None = None
    # Of rows of databases:
    number: int = 0
    reference: str = ""  # an entry's id; where a fact was read
    moment: str = ""
    session: str = ""
    project: str = ""
    origin: str = ""
    private: bool = False
    type: str = ""
    tags: str = ""  # each on a line of its own
    status: str = ""  # empty: current
    priority: int = 0
    expires: str = ""


class Hit(msgspec.Struct, frozen=True):
    """Something that search found, of whatever kind; `score` is 0 to 1."""

    kind: str  # chunk (lines of a file), entry, exchange, fact, relation, lesson
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
    # Where it is, for people: path and line, session, or id.
    place: str = ""
    session: str = ""
    project: str = ""


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
