"""The memory of a server on another machine, for commands: each method call is a request of its operation."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode

import msgspec

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.http.operation import PAGE, Operation, plain
from nanoclaw_memory.interfaces.http.operations import AGENT_OPERATIONS, OPERATIONS
from nanoclaw_memory.interfaces.remote.client import findings
from nanoclaw_memory.interfaces.remote.connection import ask, load, query_of
from nanoclaw_memory.types import Finding, LogLine, Scope

_NAMED = {"graph_search": "graph.search"}  # operations whose name differs from the method's


def _called(operation: Operation) -> str:
    name = operation.call.__name__
    return _NAMED.get(operation.name, f"{operation.where}.{name}" if operation.where else name)


CALLS = {_called(one): one for one in OPERATIONS if one.name in AGENT_OPERATIONS}


class RemoteHome(msgspec.Struct, frozen=True):
    """The home of a thin client: it has no memory."""

    root: Path

    def exists(self) -> bool:
        """Return True: the memory exists on the server."""
        return True


class RemoteMemory:
    """What a token allows at a server; everything else is done on the server's machine."""

    def __init__(self, home: Path, scope: Scope) -> None:
        self.home = RemoteHome(home)
        self.scope = scope

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close nothing."""

    def doctor(self, fix: bool = False) -> list[Finding]:
        """Return the findings of a check of the connection."""
        return list(findings(self.home.root))

    def log(self, day: date | None = None) -> tuple[date, list[LogLine]]:
        """Return the entries of one day's log, by default today's."""
        return day or datetime.now().date(), RemoteCall(self, "_log")(day)

    def __getattr__(self, name: str) -> RemoteCall:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteCall(self, name)


class RemoteCall:
    """A part of the memory, or a method of it."""

    def __init__(self, memory: RemoteMemory, name: str) -> None:
        self._memory = memory
        self._name = name

    def __getattr__(self, name: str) -> RemoteCall:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteCall(self._memory, f"{self._name}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Any:
        if self._name == "graph.reinforce":
            return ""  # remote look-ups warm nothing
        operation = CALLS.get(self._name)
        remote = load(self._memory.home.root)
        if operation is None or remote is None:
            raise Refused(
                "this home is a thin client, and this is done on the server's machine",
                f"run it there{f' ({remote.url})' if remote else ''}; here: ncm connect --remove",
            )
        arguments = _on_the_wire(operation, given, named)
        path, query = operation.path, query_of(self._memory.scope)
        for name in operation.in_path:
            path = path.replace(f"{{{name}}}", quote(str(arguments.pop(name)), safe=""))
        body = b""
        if operation.method in ("GET", "DELETE"):
            if operation.paged:
                arguments.setdefault("limit", 500)
            query = "&".join(filter(None, (query, urlencode(arguments, doseq=True))))
        else:
            body = msgspec.json.encode(arguments)
        answer = ask(remote, operation.method, f"/api/v1{path}?{query}", body)
        return _result(operation, {key: value for key, value in answer.json().items() if key != "ok"})


def _on_the_wire(operation: Operation, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by their names in the request, without defaults."""
    bound = inspect.signature(operation.call).bind_partial(None, *given, **named).arguments
    found = {}
    for name, parameter in operation.names.items():
        value = bound.get(parameter.name, parameter.default)
        if parameter.name in bound and value is not None and value != parameter.default:
            sent = plain(value)
            found[name] = str(sent).lower() if isinstance(sent, bool) and operation.method == "GET" else sent
    limit = bound.get("limit")
    return {**found, "limit": min(int(limit), 500)} if operation.paged and limit and limit != PAGE else found


def _result(operation: Operation, answer: dict[str, Any]) -> Any:
    """Return the method's result, restored from the JSON."""
    wanted = operation.hints.get("return")
    if operation.paged:
        found: Any = answer["items"]
    elif operation.key:
        found = answer[operation.key]
    elif operation.name == "entry":
        found = [answer["entry"], *answer["replaced"]]
    elif operation.shape is not None and isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        found = {key: value for key, value in answer.items() if key in wanted.__struct_fields__}
    elif operation.name == "report_tools":
        return None
    else:
        found = answer
    return _restored(wanted, found)


def _restored(wanted: Any, value: Any) -> Any:
    """Return a value of this type from JSON. msgspec converts everything but a choice between two structs."""
    parts, outer = get_args(wanted), get_origin(wanted)
    structs = [one for one in (wanted, *parts) if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if structs and isinstance(value, dict):
        kind = max(structs, key=lambda one: len(value.keys() & set(one.__struct_fields__)))
        hints = get_type_hints(kind)
        return kind(**{name: _restored(hints[name], one) for name, one in value.items() if name in hints})
    if outer in (Union, UnionType) and value is not None:
        lists = [part for part in parts if get_origin(part) in (list, tuple, Sequence)]
        plain_ones = [part for part in parts if part is not type(None) and part not in lists]
        return _restored((lists if isinstance(value, list) else plain_ones)[0], value)
    if parts and isinstance(value, list):
        made = [_restored(parts[0], one) for one in value]
        return tuple(made) if outer is tuple else made
    return msgspec.convert(value, wanted, strict=False, dec_hook=_decode)


def _decode(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError
