"""The JSON API: an HTTP request becomes a call of an operation, its outcome a status and JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nanoclaw_memory.errors import (
    Conflict,
    InvalidValue,
    NanoClawError,
    NotFound,
    PathRefused,
    ProviderError,
    Refused,
    ServerBusy,
    StoreBusy,
)
from nanoclaw_memory.interfaces.http import openapi
from nanoclaw_memory.interfaces.http.auth import HOLDER, OWNER, SafeJSON, error_response
from nanoclaw_memory.interfaces.http.operations import AGENT_OPERATIONS
from nanoclaw_memory.interfaces.http.readers import OPERATIONS as READ_ELSEWHERE
from nanoclaw_memory.interfaces.http.readers import ReaderAnswer, ReaderQuestion
from nanoclaw_memory.types import MAIN_GROUP, Scope

if TYPE_CHECKING:
    from starlette.datastructures import Headers, QueryParams

    from nanoclaw_memory.interfaces.http.operation import Operation
    from nanoclaw_memory.interfaces.http.pool import MemoryPool
    from nanoclaw_memory.interfaces.http.tokens import AgentToken
    from nanoclaw_memory.memory import Memory

PREFIX = "/api/v1"
RETRY_SECONDS = 1
SCOPE_ARGUMENTS = ("group", "session", "shared", "project")


def routes(pool: MemoryPool, operations: Sequence[Operation]) -> list[Route]:
    """Return Starlette's routes for every operation, and for the document that describes them."""
    document = openapi.document(operations, PREFIX)

    async def describe(request: Request) -> Response:
        return JSONResponse(document)

    made = [Route(f"{PREFIX}/openapi.json", describe, methods=["GET"], name="openapi")]
    # Literal paths before those with parameters: /entries/render is no entry.
    for operation in sorted(operations, key=lambda one: len(one.in_path)):
        handler = _handler(pool, operation)
        made.append(Route(PREFIX + operation.path, handler, methods=[operation.method]))
    return made


def scope_of(query: QueryParams, headers: Headers, token: AgentToken, session: str = "") -> Scope:
    """Return the scope that the query or the X-NanoClaw-* headers name, within the limits of the token."""
    known = {f"x-nanoclaw-{name}" for name in (*SCOPE_ARGUMENTS, "tools")}
    if odd := [name for name in headers if name.startswith("x-nanoclaw") and name not in known]:
        raise InvalidValue(f"{odd[0][:40]} is no header of ours", f"one of: {', '.join(sorted(known))}")
    given = {name: {*query.getlist(name), *headers.getlist(f"x-nanoclaw-{name}")} for name in SCOPE_ARGUMENTS}
    shared = {value.lower() for value in given.pop("shared")}
    if wrong := shared - {"0", "1", "false", "true"}:
        raise InvalidValue(f"shared is {wrong.pop()[:20]!r}", "give true or false")
    for name, values in given.items():
        if len(values) > 1:
            raise InvalidValue(f"{name} is given twice, and differently", "give it in the query or a header")
    if given["group"] == {""}:  # an unset variable must not mean the main group
        raise InvalidValue("group is empty", "name a group, or leave it out for the token's own")
    group, given_session, project = (values.pop() if values else "" for values in given.values())
    if token.group and group not in ("", token.group):
        raise PathRefused(
            "this token is bound to another group", f"leave the group out, or give {token.group}"
        )
    if token.shared and shared & {"0", "false"}:
        raise PathRefused("this token is bound to the shared scope", "leave shared out, or give true")
    # If both name it, the stricter counts.
    private = not token.shared and not shared & {"1", "true"}
    named = given_session or session
    return Scope(group or token.group or MAIN_GROUP, named, private, token.origin, project, token.id)


def failure(error: NanoClawError) -> JSONResponse:
    """Return an error of ours as JSON with the matching status."""
    status = status_of(error)
    headers = {"retry-after": str(RETRY_SECONDS)} if status == 503 else None
    return error_response(status, type(error).__name__, error.message, error.hint, headers)


def status_of(error: NanoClawError) -> int:
    """Return 400 invalid, 403 not for this scope, 404 not found, 409 changed since, 503 busy, 500 our failure."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, PathRefused):
        return 403
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, Refused):
        return 400
    return 503 if isinstance(error, StoreBusy | ProviderError | ServerBusy) else 500


def _handler(pool: MemoryPool, operation: Operation) -> Any:
    async def handle(request: Request) -> Response:
        try:
            token: AgentToken = request.scope[HOLDER]
            if token is not OWNER and operation.name not in AGENT_OPERATIONS:
                told = (
                    f"{request.method} {request.url.path} is for the owner: an agent's token may not use it"
                )
                raise PathRefused(told, "ask the owner to do it")
            scope = scope_of(request.query_params, request.headers, token)
            given = await _request_arguments(request, operation)
            arguments = operation.check(given)

            def work(memory: Memory) -> Response:
                return answer(operation, memory, arguments)

            if operation.lasting:
                return await asyncio.to_thread(pool.run_exclusive, scope, work)
            if operation.method != "GET":
                return await pool.run(scope, work)
            if operation.name not in READ_ELSEWHERE or (
                "fast" in operation.names and not arguments.get("fast")
            ):
                return await pool.run(scope, work, asked_at=time.monotonic())
            asked = ReaderQuestion(scope, operation.name, given, time.monotonic())
            return await asyncio.wrap_future(pool.submit_reading(asked, work, _response))
        except NanoClawError as error:
            return failure(error)

    return handle


def answer(operation: Operation, memory: Memory, arguments: Mapping[str, Any]) -> Response:
    """Return the result of an operation, or its error, as JSON."""
    try:
        return SafeJSON({"ok": True, **operation.run(memory, arguments)})
    except NanoClawError as error:
        return failure(error)
    except OSError as error:
        problem = NanoClawError(f"{error.strerror or error}", "check free disk space and permissions")
        return failure(problem)


def _response(answered: ReaderAnswer) -> Response:
    return Response(answered.body, answered.status, media_type=SafeJSON.media_type)


async def _request_arguments(request: Request, operation: Operation) -> dict[str, Any]:
    """Return the arguments in the path, and in the query of a GET or the JSON body of the others."""
    given: dict[str, Any] = {}
    if operation.method in ("GET", "DELETE"):
        for name in request.query_params:
            if name not in SCOPE_ARGUMENTS or name in operation.names:
                values = request.query_params.getlist(name)
                given[name] = values if name in operation.lists else values[-1]
    else:
        if unknown := set(request.query_params) - set(SCOPE_ARGUMENTS):
            raise InvalidValue(f"{unknown.pop()[:40]}: is no argument", "arguments go into the JSON body")
        given = _parsed(await request.body())
    return {**given, **request.path_params}


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidValue(
            "the body contains half of a character", "send text as UTF-8, not cut in an emoji"
        ) from None
    except (ValueError, RecursionError):
        raise InvalidValue("the body is no JSON", 'for example: {"content": "…"}') from None
    if not isinstance(found, dict):
        raise InvalidValue("the body is no JSON object", 'for example: {"content": "…"}')
    return found
