"""Types of search: passages, hits, corpora, results of an indexing run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Passage(msgspec.Struct, frozen=True):
    """A unit that retrieval returns (lines of a file, a turn, an entry, a fact), with its context."""

    start_line: int
    end_line: int
    text: str
    # section, item (of a page), turn (of a conversation), line (of a log), entry, fact, relation, lesson
    kind: str = "section"
    heading: str = ""
    day: str = ""
    speaker: str = ""
    importance: float | None = None
    # Fields of database rows:
    number: int = 0
    reference: str = ""  # an entry's id, or where a fact was read
    moment: str = ""
    session: str = ""
    project: str = ""
    origin: str = ""
    private: bool = False
    type: str = ""
    tags: str = ""  # one per line
    status: str = ""  # empty: current
    priority: int = 0
    expires: str = ""
    seen: str = ""  # for an undated passage of a file: the day by which it was written
    stood: bool = False  # an undated passage that its file had when first read: it may be older than anything

    @property
    def said(self) -> str:
        """Return the day on which it was said, or by which it was written."""
        return self.day or self.seen


class Newer(msgspec.Struct, frozen=True):
    """The statement that supersedes an older one on the same subject."""

    place: str
    day: str
    text: str = ""

    def after(self, mark: str) -> str:
        """Return the note that is appended to the older one."""
        where = f"{self.place} of {self.day}" if self.place else self.day
        return f"{mark}, {'by' if mark == 'superseded' else 'see'} {where}"

    def quoted(self, mark: str) -> str:
        """Return the same with the newer statement's words."""
        return f'{self.after(mark)}: "{self.text}"'

    def told(self, mark: str) -> str:
        """Return the same in few words, for a model that only needs the later statement."""
        return f'{mark}; {self.day}: "{self.text}"'


IN_SHARED_CHAT = "said in the shared chat"  # the mark in private for what only a shared chat said


class Hit(msgspec.Struct, frozen=True):
    """A search result of any kind; `score` is 0 to 1."""

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
    behavioral: bool = False
    created_at: str = ""
    origin: str = ""
    untrusted: bool = False
    unconfirmed: bool = False
    suspicions: tuple[str, ...] = ()
    # Where it is, for people: path and line, session, or id.
    place: str = ""
    session: str = ""
    project: str = ""
    # Its status: `superseded` by a newer statement, or merely `earlier` than one on the same subject.
    mark: str = ""
    newer: Newer | None = None
    seen: str = ""  # the day by which it was written, if `day` is unknown
    shared: bool = False  # said in a shared chat, shown in private

    @property
    def when(self) -> str:
        """Return when it was said."""
        return self.day or (f"by {self.seen}" if self.seen else "undated")

    @property
    def status(self) -> str:
        """Return its mark, with place and date of the newer statement."""
        mark = self.newer.after(self.mark) if self.newer else self.mark
        return "; ".join(filter(None, (IN_SHARED_CHAT if self.shared else "", mark)))


class Found(msgspec.Struct, frozen=True):
    """Hits, best first; `degraded` names what could not take part."""

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


class EmbeddingPrice(msgspec.Struct, frozen=True):
    """What a model would cost, in dollars."""

    name: str
    price: float  # per million tokens
    all: float
    waiting: float
    configured: bool = False


class EmbeddingCost(msgspec.Struct, frozen=True):
    """Texts of the index, their tokens, how many have no vector yet, and what each model would cost."""

    texts: int
    tokens: int
    waiting: int
    models: tuple[EmbeddingPrice, ...] = ()
