"""Parse graph queries: a read-only subset of openCypher that cannot express writing or opening a file."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from lark import Lark, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.store.graph_pattern import (
    Column,
    Comparison,
    EdgePattern,
    FunctionCall,
    GraphQuery,
    Literal,
    Logic,
    NodePattern,
    PathPattern,
    Property,
    Variable,
)
from nanoclaw_memory.store.graph_query import MAX_HOPS

if TYPE_CHECKING:
    from lark import Token

MAX_QUERY = 10_000
_GRAMMAR = r"""
start: match+ _RETURN distinct? (star | column ("," column)*) order? skip? limit? ";"?
match: _MATCH path ("," path)* (_WHERE condition)?
distinct: _DISTINCT
star: "*"
column: value (_AS name)?
order: _ORDER _BY sorted ("," sorted)*
sorted: value (_ASC | descending)?
descending: _DESC
skip: _SKIP NUMBER
limit: _LIMIT NUMBER

path: node (edge node)*
node: "(" name? labels? map? ")"
labels: (":" name)+
map: "{" (pair ("," pair)*)? "}"
pair: name ":" literal
edge: "<-" detail? "-" -> incoming
    | "-" detail? "->" -> outgoing
    | "-" detail? "-" -> either
detail: "[" name? types? range? "]"
types: ":" name ("|" ":"? name)*
range: "*" (NUMBER | NUMBER? between NUMBER?)?
between: ".."

?condition: exclusive (_OR exclusive)* -> disjunction
?exclusive: conjunction (_XOR conjunction)* -> exclusion
?conjunction: negation (_AND negation)* -> conjunction
?negation: _NOT negation -> negation
    | test
?test: value OPERATOR value -> comparison
    | value "=" value -> equality
    | value "<" value -> less
    | value _STARTS _WITH value -> starts
    | value _ENDS _WITH value -> ends
    | value _CONTAINS value -> contains
    | value _IN list -> member
    | value _IS _NULL -> missing
    | value _IS _NOT _NULL -> present
    | "(" condition ")"
    | path -> exists
    | name labels -> labelled
?value: literal
    | name -> variable
    | name "." name -> property
    | name "(" (distinct? value | star) ")" -> call
literal: TEXT -> text
    | NUMBER -> number
    | _TRUE -> true
    | _FALSE -> false
    | _NULL -> null
list: "[" (literal ("," literal)*)? "]"
name: NAME | QUOTED

OPERATOR: "<>" | "<=" | ">=" | ">"
NAME: /[^\W\d]\w*/
QUOTED: /`[^`]+`/
TEXT: /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/s
NUMBER: /-?\d+(?:\.\d+)?/
COMMENT: /\/\/[^\n]*/
%ignore /\s+/
%ignore COMMENT
"""
_WORDS = "AND AS ASC BY CONTAINS DESC DISTINCT ENDS FALSE IN IS LIMIT MATCH NOT NULL OR ORDER RETURN SKIP STARTS TRUE"
_WORDS += " WHERE WITH XOR"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_WRITING = re.compile(
    r"\b(CREATE|MERGE|SET|DELETE|DETACH|REMOVE|DROP|LOAD|CALL|FOREACH|USE|COPY|EXPORT|IMPORT|ATTACH)\b", re.I
)


@lru_cache(maxsize=256)
def parse(text: str) -> GraphQuery:
    """Parse a query; text outside of the grammar is refused with its position."""
    if len(text) > MAX_QUERY:
        raise InvalidValue(
            f"the query has {len(text):,} characters, over {MAX_QUERY:,}", "ask for less at once"
        )
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except UnexpectedInput as error:
        raise _not_understood(text, error) from None
    except VisitError as error:
        raise error.orig_exc from None


@cache
def _parser() -> Lark:
    words = "\n".join(f"_{word}.2: /{word}\\b/i" for word in _WORDS.split())
    return Lark(_GRAMMAR + words, parser="lalr", transformer=_CypherReader(), maybe_placeholders=False)


def _not_understood(text: str, error: UnexpectedInput) -> InvalidValue:
    ended = getattr(getattr(error, "token", None), "type", "") == "$END"
    place: int = len(text) if ended else getattr(error, "pos_in_stream", 0)
    at = f"at {text[place : place + 20]!r}" if text[place:].strip() else "at its end"
    if writing := _WRITING.match(text, place):
        hint = "a query only reads; graph add and graph relate store"
        return InvalidValue(f"{writing[1].upper()} is not part of a query", hint)
    hint = 'MATCH (a)-[:OWNS]->(b) WHERE b.port = "3000" RETURN a.name, count(*) ORDER BY a.name LIMIT 10'
    return InvalidValue(f"the query is not understood {at}", f"for example: {hint}")


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1:-1], flags=re.S)


def _of(kind: type, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(part for part in parts if isinstance(part, kind))


class _Labels(tuple[str, ...]):
    """Labels of an entity, or types of a relation."""


class _Span(tuple[int, int]):
    """The minimal and maximal number of relations."""


@v_args(inline=True)
class _CypherReader(Transformer):  # type: ignore[type-arg]
    """Build the query bottom up; each method is named after its rule."""

    def start(self, *parts: Any) -> GraphQuery:
        matches = _of(dict, parts)
        found = [part["match"] for part in matches if "match" in part]
        rest = {
            key: value for part in matches for key, value in part.items() if key not in ("match", "where")
        }
        conditions = tuple(part["where"] for part in matches if part.get("where") is not None)
        where = Logic("AND", conditions) if len(conditions) > 1 else next(iter(conditions), None)
        columns = _of(Column, parts)
        if rest.pop("star", False):
            paths = [path for match in found for path in match]
            parts_of = [part for path in paths for part in (*path.nodes, *path.edges)]
            names = dict.fromkeys(part.variable for part in parts_of if part.variable)
            columns = tuple(Column(Variable(name), name) for name in names)
        if not columns:
            raise InvalidValue("nothing is returned", "name something in the pattern: MATCH (a) RETURN a")
        return GraphQuery(matches=tuple(found), where=where, columns=columns, **rest)

    def match(self, *parts: Any) -> dict[str, Any]:
        paths = _of(PathPattern, parts)
        return {"match": paths, "where": parts[-1] if len(parts) > len(paths) else None}

    def distinct(self) -> dict[str, Any]:
        return {"distinct": True}

    def star(self) -> dict[str, Any]:
        return {"star": True}

    def column(self, value: Any, name: str = "") -> Column:
        return Column(value, name or _title(value))

    def order(self, *keys: Any) -> dict[str, Any]:
        return {"order": keys}

    def sorted(self, value: Any, descending: bool = False) -> tuple[Any, bool]:
        return value, descending

    def descending(self) -> bool:
        return True

    def skip(self, number: Token) -> dict[str, Any]:
        return {"skip": _whole(number)}

    def limit(self, number: Token) -> dict[str, Any]:
        return {"limit": _whole(number)}

    # ---- patterns ----

    def path(self, *parts: Any) -> PathPattern:
        return PathPattern(parts[::2], parts[1::2])

    def node(self, *parts: Any) -> NodePattern:
        (labels, *_), (properties, *_) = (*_of(_Labels, parts), ()), (*_of(dict, parts), {})
        name = next((part for part in parts if type(part) is str), "")
        return NodePattern(name, tuple(labels), tuple(properties.items()))

    def labels(self, *names: str) -> _Labels:
        return _Labels(names)

    types = labels

    def map(self, *pairs: tuple[str, Any]) -> dict[str, Any]:
        return dict(pairs)

    def pair(self, key: str, literal: Literal) -> tuple[str, Any]:
        return key, literal.value

    def incoming(self, detail: EdgePattern = EdgePattern()) -> EdgePattern:  # noqa: B008
        return _directed(detail, "<")

    def outgoing(self, detail: EdgePattern = EdgePattern()) -> EdgePattern:  # noqa: B008
        return _directed(detail, ">")

    def either(self, detail: EdgePattern = EdgePattern()) -> EdgePattern:  # noqa: B008
        return _directed(detail, "-")

    def detail(self, *parts: Any) -> EdgePattern:
        name = next((part for part in parts if type(part) is str), "")
        (types, *_), (span, *_) = (*_of(_Labels, parts), ()), (*_of(_Span, parts), None)
        if span and name:
            raise InvalidValue(
                f"{name} would be several relations", "name only the entities: -[:KNOWS*1..2]->"
            )
        low, high = span or (1, 1)
        return EdgePattern(name, tuple(types), low, high)

    def range(self, *parts: Any) -> _Span:
        if None not in parts:
            low = high = _whole(parts[0]) if parts else 0
            low, high = (low, high) if parts else (1, MAX_HOPS)
        else:
            middle = parts.index(None)
            low = _whole(parts[0]) if middle else 1
            high = _whole(parts[-1]) if middle < len(parts) - 1 else MAX_HOPS
        if not 1 <= low <= high <= MAX_HOPS:
            raise InvalidValue(f"*{low}..{high} is outside 1 to {MAX_HOPS}", f"for example *1..{MAX_HOPS}")
        return _Span((low, high))

    def between(self) -> None:
        return None

    # ---- conditions ----

    def disjunction(self, *parts: Any) -> Any:
        return Logic("OR", parts) if len(parts) > 1 else parts[0]

    def conjunction(self, *parts: Any) -> Any:
        return Logic("AND", parts) if len(parts) > 1 else parts[0]

    def exclusion(self, first: Any, *parts: Any) -> Any:
        for part in parts:
            first = Logic("XOR", (first, part))
        return first

    def negation(self, part: Any) -> Logic:
        return Logic("NOT", (part,))

    def comparison(self, left: Any, operator: Token, right: Any) -> Comparison:
        return Comparison(str(operator), left, right)

    def equality(self, left: Any, right: Any) -> Comparison:
        return Comparison("=", left, right)

    def less(self, left: Any, right: Any) -> Comparison:
        return Comparison("<", left, right)

    def starts(self, left: Any, right: Any) -> Comparison:
        return Comparison("STARTS WITH", left, right)

    def ends(self, left: Any, right: Any) -> Comparison:
        return Comparison("ENDS WITH", left, right)

    def contains(self, left: Any, right: Any) -> Comparison:
        return Comparison("CONTAINS", left, right)

    def member(self, left: Any, right: Literal) -> Comparison:
        return Comparison("IN", left, right)

    def missing(self, value: Any) -> Logic:
        return Logic("IS NULL", (value,))

    def present(self, value: Any) -> Logic:
        return Logic("NOT", (Logic("IS NULL", (value,)),))

    def exists(self, path: PathPattern) -> Logic:
        return Logic("EXISTS", (path,))

    def labelled(self, name: str, labels: _Labels) -> Logic:
        return Logic("EXISTS", (PathPattern((NodePattern(name, tuple(labels)),)),))

    # ---- values ----

    def variable(self, name: str) -> Variable:
        return Variable(name)

    def property(self, variable: str, key: str) -> Property:
        return Property(variable, key)

    def call(self, name: str, *parts: Any) -> FunctionCall:
        argument = None if parts == ({"star": True},) else parts[-1]
        return FunctionCall(name.casefold(), argument, parts[0] == {"distinct": True})

    def text(self, token: Token) -> Literal:
        return Literal(_unquoted(token))

    def number(self, token: Token) -> Literal:
        return Literal(float(token) if "." in token else int(token))

    def true(self) -> Literal:
        return Literal(True)

    def false(self) -> Literal:
        return Literal(False)

    def null(self) -> Literal:
        return Literal(None)

    def list(self, *literals: Literal) -> Literal:
        return Literal(tuple(literal.value for literal in literals))

    def name(self, token: Token) -> str:
        return str(token).strip("`")


def _directed(edge: EdgePattern, direction: str) -> EdgePattern:
    return EdgePattern(edge.variable, edge.types, edge.low, edge.high, direction)


def _whole(number: Token) -> int:
    if not number.isdecimal():
        raise InvalidValue(f"{number} is no whole number", "for example LIMIT 10")
    return int(number)


def _title(value: Any) -> str:
    """Return the name of a column without AS: its text."""
    if isinstance(value, Property):
        return f"{value.variable}.{value.key}"
    if isinstance(value, FunctionCall):
        inner = "*" if value.argument is None else _title(value.argument)
        return f"{value.name}({'DISTINCT ' * value.distinct}{inner})"
    return value.name if isinstance(value, Variable) else str(value.value)
