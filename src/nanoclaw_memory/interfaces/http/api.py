"""The JSON API: an HTTP request becomes a call of an endpoint, its outcome a status and JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nanoclaw_memory.errors import (
    InvalidValue,
    NanoClawError,
    NotFound,
    PathRefused,
    ProviderError,
    Refused,
    StoreBusy,
)
from nanoclaw_memory.interfaces.http import openapi
from nanoclaw_memory.types import MAIN_GROUP, Scope

if TYPE_CHECKING:
    from starlette.datastructures import Headers, QueryParams

    from nanoclaw_memory.interfaces.http.operations import Endpoint
    from nanoclaw_memory.interfaces.http.pool import MemoryPool

PREFIX = "/api/v1"
SCOPE_ARGUMENTS = ("group", "session", "shared")


def routes(pool: MemoryPool, table: Iterable[Endpoint]) -> list[Route]:
    """Starlette's routes for every endpoint, and for the document that describes them."""
    endpoints = list(table)
    document = openapi.document(endpoints, PREFIX)

    async def described(request: Request) -> Response:
        return JSONResponse(document)

    made = [Route(f"{PREFIX}/openapi.json", described, methods=["GET"], name="openapi")]
    # Plain paths before those with names in them: /entries/render is no entry.
    for endpoint in sorted(endpoints, key=lambda one: len(one.in_path)):
        answer = _answer_of(pool, endpoint)
        made.append(Route(PREFIX + endpoint.path, answer, methods=[endpoint.method]))
    return made


def scope_of(query: QueryParams, headers: Headers, origin: str, session: str = "") -> Scope:
    """Who asks: the group, session and privacy that the query or the X-NanoClaw-* headers name."""
    found = {}
    for name in SCOPE_ARGUMENTS:
        said = {value for value in (query.get(name), headers.get(f"x-nanoclaw-{name}")) if value}
        if len(said) > 1:
            raise InvalidValue(f"{name} is given twice, and differently", "give it in the query or a header")
        found[name] = said.pop() if said else ""
    shared = found["shared"].lower()
    if shared not in ("", "0", "1", "false", "true"):
        raise InvalidValue(f"shared is {shared[:20]!r}", "give true or false")
    private = shared not in ("1", "true")
    return Scope(found["group"] or MAIN_GROUP, found["session"] or session, private, origin)


def told(error: NanoClawError) -> JSONResponse:
    """An error of ours as JSON under the status that fits."""
    body = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
    return JSONResponse({"ok": False, "error": body}, status_of(error))


def status_of(error: NanoClawError) -> int:
    """400 wrong, 403 not for this scope, 404 not there, 503 come again, 500 ours."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, PathRefused):
        return 403
    if isinstance(error, Refused):
        return 400
    return 503 if isinstance(error, StoreBusy | ProviderError) else 500


def _answer_of(pool: MemoryPool, endpoint: Endpoint) -> Any:
    lists = endpoint.lists()

    async def answer(request: Request) -> Response:
        try:
            scope = scope_of(request.query_params, request.headers, "owner")
            arguments = endpoint.check(await _arguments(request, endpoint, lists))
            result = await _outcome(pool, endpoint, scope, arguments)
        except NanoClawError as error:
            return told(error)
        except OSError as error:
            return told(NanoClawError(f"{error.strerror or error}", "check free disk space and permissions"))
        return JSONResponse({"ok": True, **result})

    return answer


async def _outcome(
    pool: MemoryPool, endpoint: Endpoint, scope: Scope, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    if endpoint.lasting:
        return await asyncio.to_thread(
            pool.run_exclusive, scope, lambda memory: endpoint.call(memory, arguments)
        )
    return await pool.run(scope, lambda memory: endpoint.call(memory, arguments))


async def _arguments(request: Request, endpoint: Endpoint, lists: frozenset[str]) -> dict[str, Any]:
    """What was given in the path, and in the query of a GET or the JSON body of the others."""
    given: dict[str, Any] = {}
    if endpoint.method in ("GET", "DELETE"):
        for name in request.query_params:
            if name not in SCOPE_ARGUMENTS or name in endpoint.arguments.model_fields:
                values = request.query_params.getlist(name)
                given[name] = values if name in lists else values[-1]
    else:
        given = _parsed(await request.body())
    return {**given, **request.path_params}


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidValue("the body is no JSON", 'for example: {"content": "…"}') from None
    if not isinstance(found, dict):
        raise InvalidValue("the body is no JSON object", 'for example: {"content": "…"}')
    return found
