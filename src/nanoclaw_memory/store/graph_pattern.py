"""Parts of a parsed graph query: patterns of entities and relations, values, conditions, columns."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec


class NodePattern(msgspec.Struct, frozen=True):
    """An entity in a pattern: `(person:Person {name: "Ada"})`."""

    variable: str = ""
    labels: tuple[str, ...] = ()
    properties: tuple[tuple[str, Any], ...] = ()


class EdgePattern(msgspec.Struct, frozen=True):
    """A relation in a pattern: `-[r:OWNS|MANAGES*1..3]->`; `direction` is `>`, `<` or `-`."""

    variable: str = ""
    types: tuple[str, ...] = ()
    low: int = 1
    high: int = 1
    direction: str = "-"

    @property
    def ways(self) -> list[tuple[str, ...]]:
        """Return every sequence of directions that it allows."""
        steps = "><" if self.direction == "-" else self.direction
        return [way for length in range(self.low, self.high + 1) for way in product(steps, repeat=length)]


class PathPattern(msgspec.Struct, frozen=True):
    """Entities with the relations between them."""

    nodes: tuple[NodePattern, ...]
    edges: tuple[EdgePattern, ...] = ()


class Literal(msgspec.Struct, frozen=True):
    """A text, number, truth value, null or list of these."""

    value: Any


class Variable(msgspec.Struct, frozen=True):
    """An entity or relation that the pattern has named."""

    name: str


class Property(msgspec.Struct, frozen=True):
    """A property: `variable.key`."""

    variable: str
    key: str


class FunctionCall(msgspec.Struct, frozen=True):
    """A function of one argument; None is `*`."""

    name: str
    argument: Any
    distinct: bool = False


class Comparison(msgspec.Struct, frozen=True):
    """Two values compared."""

    operator: str
    left: Any
    right: Any


class Logic(msgspec.Struct, frozen=True):
    """AND, OR, XOR or NOT of conditions; IS NULL of a value; EXISTS of a pattern."""

    operator: str
    parts: tuple[Any, ...]


class Column(msgspec.Struct, frozen=True):
    """A value to return, and the name of its column."""

    value: Any
    name: str

    @property
    def counts(self) -> bool:
        return isinstance(self.value, FunctionCall) and self.value.name == "count"


class GraphQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed query: one group of paths per MATCH."""

    matches: tuple[tuple[PathPattern, ...], ...]
    where: Any = None
    columns: tuple[Column, ...]
    distinct: bool = False
    order: tuple[tuple[Any, bool], ...] = ()  # with whether it descends
    skip: int = 0
    limit: int | None = None
