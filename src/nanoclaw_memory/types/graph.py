"""Types of the graph: fact, relation, alias, answer."""

from __future__ import annotations

from typing import Any

import msgspec

from nanoclaw_memory.types.search import IN_SHARED_CHAT, Newer
from nanoclaw_memory.types.turn import FOREIGN, stated_by

MAX_PROBLEMS = 20


class Fact(msgspec.Struct, frozen=True):
    """Entity, key and value, with activation, validity and source."""

    id: int
    entity: str
    key: str
    value: str
    category: str = "fact"
    source: str = ""
    importance: float = 0.5
    activation: float = 1.0
    access_count: int = 0
    last_accessed: str = ""
    permanent: bool = False
    created_at: str = ""
    valid_from: str = ""
    valid_to: str = ""
    superseded_by: int | None = None
    origin: str = "owner"
    project: str = ""  # the project in which it was stated; a value of one project replaces none of another

    @property
    def text(self) -> str:
        return f"{self.entity}.{self.key} = {self.value}"


class EntityCount(msgspec.Struct, frozen=True):
    """An entity with the number of its facts and relations."""

    entity: str
    facts: int
    relations: int


class Relation(msgspec.Struct, frozen=True):
    """Subject, predicate and object."""

    id: int
    subject: str
    predicate: str
    object: str
    source: str = ""
    activation: float = 1.0
    access_count: int = 0
    last_accessed: str = ""
    created_at: str = ""
    valid_from: str = ""
    valid_to: str = ""
    superseded_by: int | None = None
    origin: str = "owner"
    project: str = ""  # the project in which it was stated; a value of one project replaces none of another

    @property
    def value(self) -> str:
        """Return what it states about the subject, as a fact's value."""
        return self.object

    @property
    def text(self) -> str:
        if self.predicate in ("→", "↔"):  # an arrow without a predicate means only that
            return f"{self.subject} {self.predicate} {self.object}"
        return f"{self.subject} → {self.predicate} → {self.object}"


class Alias(msgspec.Struct, frozen=True):
    """Another name of an entity."""

    alias: str
    entity: str
    origin: str = "owner"


class GraphHit(msgspec.Struct, frozen=True):
    """A fact or relation that answers, with its score and the reason."""

    item: Fact | Relation
    score: int
    phase: int
    why: str
    combined: float = 0.0
    linked: bool = False
    context: bool = False  # another fact of an entity that an earlier hit answered
    mark: str = ""  # superseded or earlier: there is a newer statement on the same subject
    newer: Newer | None = None
    shared: bool = False  # said in a shared chat, shown in private
    elsewhere: str = ""  # the other project in which it was said
    since: str = ""  # the day from which it holds, in the person's time zone

    @property
    def untrusted(self) -> bool:
        """Return whether it comes from an origin that the owner does not trust."""
        return self.item.origin in FOREIGN

    @property
    def kind(self) -> str:
        return "fact" if isinstance(self.item, Fact) else "relation"

    @property
    def tier(self) -> str:
        return tier(self.item.activation)

    @property
    def text(self) -> str:
        return self.item.text

    @property
    def when(self) -> str:
        """Return since when it holds, who stated it, and the later statement on the same subject."""
        return self._when(self.newer.quoted(self.mark) if self.newer else "")

    def _when(self, newer: str) -> str:
        day = self.since or (self.item.valid_from or self.item.created_at)[:10]
        since = f"since {day}" if day else ""  # an alias has no day
        said = IN_SHARED_CHAT if self.shared else stated_by(self.item.origin)
        place = f"project {self.elsewhere}" if self.elsewhere else ""
        return "; ".join(filter(None, (since, place, said, newer)))

    @property
    def dated(self) -> str:
        """Return the text with its date."""
        return f"{self.text} ({self.when})" if self.when else self.text

    @property
    def told(self) -> str:
        """Return the text with its date, after the later statement on its subject."""
        if self.newer is None or not self.newer.text:
            return self.dated
        return f'"{self.newer.text}" ({self.newer.day}); {self.mark}: {self.text} ({self._when("")})'


def tier(activation: float) -> str:
    """Return Hot above 2, Warm from 1, Cool below."""
    return "Hot" if activation > 2.0 else "Warm" if activation >= 1.0 else "Cool"


class GraphAnswer(msgspec.Struct, frozen=True):
    """What the graph knows about a question, best first; linked facts come last."""

    hits: tuple[GraphHit, ...]
    entities: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    took_ms: float = 0.0
    degraded: tuple[str, ...] = ()  # what could not take part: changed files that were not read yet


class GraphTable(msgspec.Struct, frozen=True):
    """The answer to a graph query; an entity or relation in a row is an object."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False  # there are more rows
    notes: tuple[str, ...] = ()  # why nothing was found: names that the graph does not know
    took_ms: float = 0.0
    degraded: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Return the table as text, a header and a line per row; empty without rows."""
        return [" | ".join(map(_cell, row)) for row in (self.columns, *self.rows)] if self.rows else []


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        if "from" in value:
            return f"{value['from']} → {value['type']} → {value['to']}"
        known = value.get("properties", value)
        facts = ", ".join(f"{key}: {_cell(one)}" for key, one in known.items())
        return " ".join(
            filter(None, (value.get("name") if known is not value else "", facts and f"{{{facts}}}"))
        )
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_cell, value))}]"
    return "null" if value is None else str(value)


class Upserted(msgspec.Struct, frozen=True):
    """The result of a write to the graph."""

    id: int
    retired: tuple[int, ...] = ()
    created: bool = True
    redacted: int = 0
    value: str = ""  # as stored: credentials masked


class Imported(msgspec.Struct, frozen=True):
    """The result of an import; `problems` lists the first lines that were refused, and why."""

    facts: int = 0
    relations: int = 0
    aliases: int = 0
    known: int = 0
    skipped: int = 0
    retired: int = 0  # older values that new ones replaced
    redacted: int = 0  # credentials that were masked
    problems: tuple[str, ...] = ()

    def without(self, problem: str) -> Imported:
        """Return the same with one more skipped line."""
        return msgspec.structs.replace(
            self, skipped=self.skipped + 1, problems=(*self.problems, problem)[:MAX_PROBLEMS]
        )


class Ingested(msgspec.Struct, frozen=True):
    """What ingesting a file changed in the graph; `skipped` were rejected before or refused.

    A file that cannot be read has a `problem`, and changes nothing.
    """

    path: str
    added: int = 0
    kept: int = 0
    retired: int = 0
    skipped: int = 0
    problem: str = ""
