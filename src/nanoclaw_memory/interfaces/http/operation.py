"""An operation of the JSON API: its arguments and result are derived from the method that it calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.memory.parts import PARTS, Memory
from nanoclaw_memory.types import arguments

Limit = Annotated[int, Meta(ge=1, le=500, description="How many of the list")]
Offset = Annotated[int, Meta(ge=0, description="How many of the list to leave out")]
PAGE = 50

Call = Callable[..., Any]
_WHERE = {part.__name__: where for part, where in PARTS.items()}


class Operation(msgspec.Struct, frozen=True, dict=True):
    """A method and path, and the method of Memory or of a part that it calls.

    Arguments are the method's own, without callbacks: `{id}` in the path is its first one, `renamed` have another
    name here, `fixed` are always passed, `omitted` never. The result is merged into the JSON answer, or put under
    `key`, or converted by `shape` together with the arguments. A list that is `paged` has at most `most` items.
    """

    method: str
    path: str
    name: str
    call: Call
    lasting: bool = False
    paged: bool = False
    most: int = 10_000
    key: str = ""
    shape: Callable[[Any, Mapping[str, Any]], Any] | None = None
    renamed: Mapping[str, str] = {}
    fixed: Mapping[str, Any] = {}
    omitted: Sequence[str] = ()

    @property
    def where(self) -> str:
        """Return the part of Memory that has the method; empty for Memory itself, and for a function of our own."""
        return _WHERE.get(self.call.__qualname__.partition(".")[0], "")

    @property
    def in_path(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def hints(self) -> dict[str, Any]:
        # A hook needs no types of arguments: the modules of the methods do not import them.
        return get_type_hints(self.call, localns=vars(arguments), include_extras=True)

    @cached_property
    def names(self) -> dict[str, inspect.Parameter]:
        """Return the method's parameters in a request, by their names there."""
        parameters = list(inspect.signature(self.call).parameters.values())[1:]
        renamed = dict(self.renamed)
        if "id" in self.in_path:
            renamed[parameters[0].name] = "id"
        hidden = {*self.omitted, *self.fixed, *(("limit",) if self.paged else ())}
        return {
            renamed.get(parameter.name, parameter.name): parameter
            for parameter in parameters
            if parameter.name not in hidden and not _is_callback(self.hints[parameter.name])
        }

    @cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """Return a Struct of the arguments in a request."""
        fields: list[Any] = []
        for name, parameter in self.names.items():
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
            fields.append((name, self.hints[parameter.name], *default))
        if self.paged:
            fields += [("limit", Limit, PAGE), ("offset", Offset, 0)]
        return msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=True)

    @cached_property
    def lists(self) -> frozenset[str]:
        """Return the arguments that may occur several times in a query."""
        return frozenset(
            name for name, parameter in self.names.items() if _has_list(self.hints[parameter.name])
        )

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with their types, or raise an error that names the wrong one; null means omitted."""
        present = {name: value for name, value in given.items() if value is not None}
        try:
            checked = msgspec.convert(present, self.arguments, strict=False, dec_hook=_decode)
        except msgspec.ValidationError as error:
            known = "; ".join(sorted(self.arguments.__struct_fields__)) or "no arguments"
            raise InvalidValue(_problem(str(error)), f"takes: {known}") from None
        return {name: _aware(getattr(checked, name)) for name in present}

    def run(self, memory: Memory, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON result of the call with checked arguments."""
        given = {self.names[name].name: value for name, value in arguments.items() if name in self.names}
        if self.paged and "limit" in self.hints:
            given["limit"] = self.most
        found = self.call(attrgetter(self.where)(memory) if self.where else memory, **given, **self.fixed)
        if self.paged:
            return _page(found, arguments.get("limit", PAGE), arguments.get("offset", 0))
        if self.shape:
            found = self.shape(found, arguments)
        result: dict[str, Any] = plain({self.key: found} if self.key else found)
        return result


def plain(result: Any) -> Any:
    """Return structs, and what contains them, as JSON values."""
    return msgspec.to_builtins(result, enc_hook=str, str_keys=True)


def _page(found: Sequence[Any], limit: int, offset: int) -> dict[str, Any]:
    more = offset + limit if offset + limit < len(found) else None
    return {"items": plain(list(found[offset : offset + limit])), "total": len(found), "next_offset": more}


def _is_callback(hint: Any) -> bool:
    return get_origin(hint) is Callable or any(_is_callback(part) for part in get_args(hint))


def _has_list(hint: Any) -> bool:
    return get_origin(hint) in (list, Sequence) or any(_has_list(part) for part in get_args(hint))


def _decode(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"expected a {kind.__name__.lower()}")


def _aware(value: Any) -> Any:
    """Return a moment with a zone; without one it is UTC, as everywhere in memory."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


_PLAINER = (
    (
        r"Expected `str` matching regex '\^\(\|?(.*)\)\$'",
        lambda found: f"is not one of {found[1].replace('|', ', ')}",
    ),
    ("Invalid RFC3339 encoded datetime", "is no moment, such as 2026-02-23T12:00:00Z"),
    ("Invalid RFC3339 encoded date", "is no date, such as 2026-02-23"),
)


def _problem(message: str) -> str:
    """Return a validator's message in plainer words, with the argument first."""
    for pattern, words in _PLAINER:
        message = re.sub(pattern, words, message)
    if found := re.fullmatch(r"(.*) - at `\$\.?(.*)`", message, re.DOTALL):
        return f"{found[2] or 'arguments'}: {found[1]}"
    if found := re.search(r"(missing|unknown).* field `(.+)`", message):
        return f"{found[2]}: {'is missing' if found[1] == 'missing' else 'is no argument'}"
    return message
