"""The HTTP application on loopback: the JSON API, MCP at /mcp, /healthz and the page, behind one guard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nanoclaw_memory import __version__
from nanoclaw_memory.errors import InvalidValue, NanoClawError
from nanoclaw_memory.interfaces import hooks
from nanoclaw_memory.interfaces.http.api import PREFIX, SCOPE_ARGUMENTS, failure, routes, scope_of
from nanoclaw_memory.interfaces.http.auth import HOLDER, METRICS, Guard, error_response, is_api
from nanoclaw_memory.interfaces.http.metrics import Metrics
from nanoclaw_memory.interfaces.http.operations import OPERATIONS
from nanoclaw_memory.interfaces.http.pool import CURRENT_SCOPE
from nanoclaw_memory.interfaces.web.app import Page
from nanoclaw_memory.interfaces.web.app import error as page_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp.server.mcpserver import MCPServer
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from nanoclaw_memory.interfaces.http.pool import MemoryPool, MemoryWorker
    from nanoclaw_memory.interfaces.http.tokens import AgentToken


def application(
    pool: MemoryPool,
    servers: Mapping[str, MCPServer],
    token: str,
    port: int,
    names: Collection[str] = (),
) -> ASGIApp:
    """Return everything that is served over HTTP; `names` are those by which agents on other machines reach it."""
    agents = {tools: _agent_app(server) for tools, server in servers.items()}
    page = Page(pool, port)
    metrics = Metrics(pool)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for server in servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    app = Starlette(
        routes=[
            Route("/healthz", _healthz, methods=["GET"]),
            Route(METRICS, metrics.page, methods=["GET"]),
            Route(f"{PREFIX}/hooks/{{event}}", _HookRoute(pool).answer, methods=["POST"]),
            *routes(pool, OPERATIONS),
            # No GET: a stateless server has nothing to send by itself, and its stream would never end.
            Route("/mcp", _McpApp(agents), methods=["POST", "DELETE"]),
            *page.routes(),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _plain_error, 500: _bug},
    )
    return metrics.counted(Guard(app, pool, token, port, page, names))


def _agent_app(server: MCPServer) -> ASGIApp:
    # Stateless: every request names its own scope, and a restart of ours costs a client nothing.
    return server.streamable_http_app(stateless_http=True, json_response=True)


class _HookRoute:
    """Answer hooks of agents on other machines, which have no socket of this home."""

    def __init__(self, pool: MemoryPool) -> None:
        self._pool = pool

    async def answer(self, request: Request) -> Response:
        token: AgentToken = request.scope[HOLDER]
        raw, event = await request.body(), request.path_params["event"]
        try:
            scope = scope_of(request.query_params, request.headers, token)

            def work(worker: MemoryWorker) -> bytes:
                return hooks.answer(event, raw, worker.opened, scope, remote=True)

            body = await asyncio.wrap_future(self._pool.submit_to_worker(scope, work))
        except NanoClawError as error:
            return failure(error)
        return Response(body, media_type="application/json")


class _McpApp:
    """Choose the set of tools and the scope of a request to /mcp."""

    def __init__(self, agents: Mapping[str, ASGIApp]) -> None:
        self._agents = agents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query, headers = QueryParams(scope["query_string"]), Headers(scope=scope)
        tools = query.get("tools") or headers.get("x-nanoclaw-tools") or "core"
        try:
            if tools not in self._agents:
                raise InvalidValue(f"there is no set of tools {tools[:40]!r}", "give core or all")
            if unknown := set(query) - {"tools", *SCOPE_ARGUMENTS}:
                raise InvalidValue(f"{unknown.pop()[:40]}: is no argument", "see docs/mcp.md")
            # Limits apply per session; a client without one shares a session per day with others of its token.
            token: AgentToken = scope[HOLDER]
            today = f"mcp-{token.id or 'http'}-{datetime.now():%Y-%m-%d}"
            asking = scope_of(query, headers, token, today)
            if asking.origin == "owner":  # what comes through MCP is an agent's, whoever supplied the token
                asking = replace(asking, origin="agent", client="http")
        except NanoClawError as error:
            await failure(error)(scope, receive, send)
            return
        CURRENT_SCOPE.set((asking, None))
        await self._agents[tools](scope, receive, send)


async def _healthz(request: Request) -> Response:
    return JSONResponse({"ok": True, "version": __version__})


async def _plain_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if not is_api(request.url.path) and "authorization" not in request.headers:
        return page_error(request, error.status_code, error.detail)
    kind = {404: "NotFound", 405: "WrongMethod"}.get(error.status_code, "Refused")
    hint = "see: GET /api/v1/openapi.json"
    return error_response(error.status_code, kind, error.detail, hint, error.headers)


async def _bug(request: Request, error: Exception) -> Response:
    if not is_api(request.url.path):
        return page_error(request, 500, "something failed inside; the server's log says more")
    return error_response(500, "InternalError", "something failed inside", "the server's log says more")
