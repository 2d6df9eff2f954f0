"""The page as routes: access, the screen that answers, and the headers of every answer."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
from functools import cache
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from nanoclaw_memory.errors import NanoClawError, NotFound, PathRefused
from nanoclaw_memory.interfaces.http.api import status_of
from nanoclaw_memory.interfaces.web.screen import Redirection, Screen, ScreenData, WebRequest
from nanoclaw_memory.interfaces.web.screens import SCREENS
from nanoclaw_memory.interfaces.web.sessions import SESSION_SECONDS, PageSessions, csrf_token
from nanoclaw_memory.interfaces.web.templates import HERE, environment, language_of
from nanoclaw_memory.types import MAIN_GROUP, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope as AsgiScope

    from nanoclaw_memory.interfaces.http.pool import MemoryPool
    from nanoclaw_memory.memory import Memory

SESSION = "nanoclaw.session"  # the key of an ASGI scope under which the guard stores the session of a cookie
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with `no-referrer` a browser sends its forms with the origin `null`
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
MIN_COMPRESSED = 1000


class Page:
    """The page of one home on one port."""

    def __init__(self, pool: MemoryPool, port: int) -> None:
        self._pool = pool
        self._sessions = PageSessions(pool.home)
        self._cookie = f"ncm_{port}"  # a browser sends cookies to every port of a host

    def routes(self) -> list[Route]:
        """Return Starlette's routes: assets, login and logout, and every screen for the main group and the others."""
        made = [
            Route("/static/{name:path}", _static, methods=["GET"]),
            Route("/open/{link}", self._open, methods=["GET"]),
            Route("/leave", self._leave, methods=["POST"]),
        ]
        for screen in SCREENS:
            for base in ("", "/g/{group}"):
                made.append(Route(base + screen.path or "/", self._handler(screen), methods=[screen.method]))
        return made

    # ---- access ----

    def refusal(self, scope: AsgiScope, headers: Mapping[bytes, bytes]) -> Response | None:
        """Return why a request without a token is refused; otherwise store its session in the scope."""
        path = scope["path"]
        if path.startswith(("/static/", "/open/")) and scope["method"] in SAFE_METHODS:
            return None
        session = self._session_cookie(headers)
        language = language_of(headers.get(b"accept-language", b"").decode("latin-1"))
        if not session or not self._sessions.is_valid(session):
            return _error(
                401, "The page is not open here, or its session has ended.", "run: ncm web", language
            )
        if scope["method"] not in SAFE_METHODS and not _same_origin(headers):
            return _error(403, "The browser did not say that this page asks.", "reload the page", language)
        scope[SESSION] = session
        return None

    def _session_cookie(self, headers: Mapping[bytes, bytes]) -> str:
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return ""
        return cookies[self._cookie].value if self._cookie in cookies else ""

    async def _open(self, request: Request) -> Response:
        session = self._sessions.redeem(request.path_params["link"])
        if session is None:
            language = language_of(request.headers.get("accept-language", ""))
            return _error(401, "This link was used already, or is too old.", "run: ncm web", language)
        answer = RedirectResponse("/", 303, headers=HEADERS)
        answer.set_cookie(
            self._cookie, session, max_age=SESSION_SECONDS, path="/", httponly=True, samesite="strict"
        )
        return answer

    async def _leave(self, request: Request) -> Response:
        session = request.scope.get(SESSION, "")
        asked = await _web_request(request)
        if not session or not _is_genuine(asked, session):
            return _error(403, "The form is not of this page.", "reload the page", asked.language)
        self._sessions.end(session)
        return _error(401, "You have left the page.", "run: ncm web", asked.language)

    # ---- screens ----

    def _handler(self, screen: Screen) -> Any:
        async def handle(request: Request) -> Response:
            asked = await _web_request(request)
            try:
                session = _session_of(request)
                if request.method not in SAFE_METHODS and not _is_genuine(asked, session):
                    raise PathRefused("The form is not of this page.", "reload the page")
                scope = Scope(request.path_params.get("group", MAIN_GROUP), "", True, "owner")

                def work(memory: Memory) -> Response:
                    return _answer(memory, screen, asked, session, request)

                if screen.lasting:
                    return await asyncio.to_thread(self._pool.run_exclusive, scope, work)
                return await self._pool.run(scope, work)
            except NanoClawError as error:
                return _error(status_of(error), error.message, error.hint, asked.language)
            except OSError as error:
                hint = "check free disk space and permissions"
                return _error(500, f"{error.strerror or error}", hint, asked.language)

        return handle


def _session_of(request: Request) -> str:
    shared = {*request.query_params.getlist("shared"), *request.headers.getlist("x-nanoclaw-shared")}
    if SESSION not in request.scope or shared:
        raise PathRefused("A token or a shared scope does not open the page.", "run: ncm web")
    session: str = request.scope[SESSION]
    return session


def _answer(memory: Memory, screen: Screen, asked: WebRequest, session: str, request: Request) -> Response:
    """Return a screen's result as a response; runs in the memory's own thread."""
    memory.group.require_home()
    if memory.scope.group not in memory.home.groups():
        raise NotFound(f"there is no group {memory.scope.group}", "see Groups and tasks")
    answer = screen.answer(memory, asked)
    group = request.path_params.get("group", "")
    base = f"/g/{group}" if group else ""
    if isinstance(answer, Redirection):
        query = urlencode(
            {name: value for name, value in (("done", answer.note), ("undo", answer.undo)) if value}
        )
        mark = "&" if "?" in answer.path else "?"
        place = base + (answer.path or "/") + (mark + query if query else "")
        return RedirectResponse(place, 303, headers=HEADERS)
    if isinstance(answer, ScreenData):
        return JSONResponse(answer.data, headers={**HEADERS, "cache-control": "no-store"})
    common = {
        "base": base,
        "group": memory.scope.group,
        "here": request.url.path.removeprefix(base) or "/",
        "csrf": csrf_token(session),
        "now": memory.clock.now(),
        "done": asked.text("done"),
        "undo": asked.text("undo"),
        "request": asked,
    }
    return _html(answer.template, {**common, **answer.values}, asked.language, answer.status, request)


async def _web_request(request: Request) -> WebRequest:
    values: dict[str, list[str]] = {name: request.query_params.getlist(name) for name in request.query_params}
    if request.method not in SAFE_METHODS:
        body = (await request.body()).decode("utf-8", "replace")
        values |= parse_qs(body, keep_blank_values=True, max_num_fields=2000)
    values |= {name: [str(value)] for name, value in request.path_params.items()}
    return WebRequest(values, language_of(request.headers.get("accept-language", "")))


def _is_genuine(asked: WebRequest, session: str) -> bool:
    return hmac.compare_digest(asked.text("csrf").encode(), csrf_token(session).encode())


def _same_origin(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a browser named its own origin: a cookie alone proves nothing; foreign origins were refused
    before.
    """
    return b"origin" in headers or headers.get(b"sec-fetch-site") == b"same-origin"


# ---- responses ----


def _html(
    template: str, values: Mapping[str, Any], language: str, status: int = 200, request: Request | None = None
) -> Response:
    text = (
        environment(language)
        .get_template(template)
        .render({"language": language, "asset": asset, "quote": quote, **values})
    )
    headers = {**HEADERS, "cache-control": "no-store", "vary": "accept-encoding, accept-language"}
    raw = text.encode("utf-8", "replace")
    if request and "gzip" in request.headers.get("accept-encoding", "") and len(raw) > MIN_COMPRESSED:
        raw, headers["content-encoding"] = gzip.compress(raw, 5), "gzip"
    return Response(raw, status, headers, "text/html; charset=utf-8")


def _error(status: int, message: str, hint: str, language: str = "en") -> Response:
    return _html("error.html", {"status": status, "message": message, "hint": hint}, language, status)


def error(request: Request, status: int, message: str) -> Response:
    """Return an error page, for paths without a screen."""
    return _error(status, message, "", language_of(request.headers.get("accept-language", "")))


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    found = assets().get(name)
    if found is None:
        return _error(404, "there is no such file", "")
    kind, raw, packed = found
    headers = {**HEADERS, "cache-control": "max-age=31536000, immutable", "vary": "accept-encoding"}
    if packed and "gzip" in request.headers.get("accept-encoding", ""):
        raw, headers["content-encoding"] = packed, "gzip"
    return Response(raw, 200, headers, kind)


@cache
def assets() -> Mapping[str, tuple[str, bytes, bytes]]:
    """Return the page's own files by name: kind, bytes, compressed bytes."""
    folder = HERE / "static"
    found = [path for path in sorted(folder.rglob("*")) if path.suffix in KINDS]
    return {
        path.relative_to(folder).as_posix(): (KINDS[path.suffix], raw, gzip.compress(raw, 9))
        for path in found
        for raw in [path.read_bytes()]
    }


@cache
def asset(name: str) -> str:
    """Return the address of one of our files; it changes with the file."""
    return f"/static/{name}?{hashlib.sha256(assets()[name][1]).hexdigest()[:12]}"
