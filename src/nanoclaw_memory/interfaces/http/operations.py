"""The route table: each endpoint is a function of Memory whose signature is its schema."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.memory import Memory

Work = Callable[..., Any]

Limit = Annotated[int, Field(ge=1, le=500, description="How many of the list")]
Offset = Annotated[int, Field(ge=0, description="How many of the list to leave out")]


class Endpoint(msgspec.Struct, frozen=True):
    """One method of one path: what it takes, what it calls, whether it may last or gives a list."""

    method: str
    path: str
    work: Work
    arguments: type[BaseModel]
    lasting: bool
    listed: bool

    @property
    def about(self) -> str:
        return inspect.getdoc(self.work) or ""

    @property
    def in_path(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)(?::path)?}", self.path))

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, or an error that names the wrong one."""
        try:
            model = self.arguments.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"])) or "body"
            told = "; ".join(sorted(self.arguments.model_fields)) or "no arguments"
            raise InvalidValue(f"{name}: {first['msg']}", f"takes: {told}") from None
        return {name: getattr(model, name) for name in model.model_fields_set}

    def call(self, memory: Memory, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON result; a list is cut into pages."""
        given = dict(arguments)
        if not self.listed:
            result = plain(self.work(memory, **given))
            return result if isinstance(result, dict) else {"result": result}
        limit, offset = given.pop("limit", 50), given.pop("offset", 0)
        whole: Sequence[Any] = self.work(memory, **given)
        page = list(whole[offset : offset + limit])
        more = offset + limit if offset + limit < len(whole) else None
        return {"items": plain(page), "total": len(whole), "next_offset": more}

    def lists(self) -> frozenset[str]:
        """The arguments that may be given several times in a query."""
        hints = get_type_hints(self.work)
        return frozenset(name for name, hint in hints.items() if _holds_list(hint))


TABLE: list[Endpoint] = []


def route(method: str, path: str, *, lasting: bool = False, listed: bool = False) -> Callable[[Work], Work]:
    """Register an endpoint below /api/v1."""

    def register(work: Work) -> Work:
        TABLE.append(Endpoint(method, path, work, _model(work, listed), lasting, listed))
        return work

    return register


def _model(work: Work, listed: bool) -> type[BaseModel]:
    hints = get_type_hints(work, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(work).parameters.items())[1:]:
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[name] = (hints[name], default)
    if listed:
        fields |= {"limit": (Limit, 50), "offset": (Offset, 0)}
    made: type[BaseModel] = create_model(
        work.__name__, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields
    )
    return made


def _holds_list(hint: Any) -> bool:
    return get_origin(hint) is list or any(_holds_list(part) for part in get_args(hint))


def plain(result: Any) -> Any:
    """Structs, and what contains them, as JSON values."""
    return msgspec.to_builtins(result, enc_hook=str, str_keys=True)
