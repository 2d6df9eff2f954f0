"""Authentication: loopback names only, no foreign pages, a bearer token of the owner or an agent, small bodies."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.interfaces.http.tokens import AgentToken, bound_to
from nanoclaw_memory.rendering import json_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from nanoclaw_memory.interfaces.http.pool import MemoryPool
    from nanoclaw_memory.interfaces.web.app import Page

MAX_BODY = 4 * 1024 * 1024
BODY_SECONDS = 30
OPEN_PATHS = frozenset({"/healthz"})
METRICS = "/metrics"
OWNER = AgentToken(id="", group="", shared=False, origin="owner")  # the token in the home's file `token`
HOLDER = "nanoclaw.holder"  # the key of an ASGI scope under which the guard stores the token's owner
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def is_api(path: str) -> bool:
    """Return whether a path is for programs; all others belong to the page."""
    return path in OPEN_PATHS or path in ("/mcp", METRICS) or path.startswith(("/api/", "/mcp/"))


def token_of(home: Path) -> str:
    """Return the home's token, created on first use; nobody else on the machine may read it."""
    path = home / "token"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        raise FileProblem(f"{path} cannot be written: {error.strerror}", "check its permissions") from None
    else:
        with os.fdopen(handle, "w") as stream:
            stream.write(secrets.token_urlsafe(32) + "\n")
    if path.stat().st_mode & 0o077:
        raise FileProblem(f"others may read {path}", f"run: rm {path}; a new one is made at the next start")
    token = path.read_text().strip()
    if len(token) < 20:
        raise FileProblem(f"{path} contains no token", f"run: rm {path}; a new one is made at the next start")
    return token


class Guard:
    """Refuse foreign hosts and pages, wrong tokens and large bodies; pass the rest on with its body read."""

    def __init__(
        self, app: ASGIApp, pool: MemoryPool, token: str, port: int, page: Page, names: Collection[str] = ()
    ) -> None:
        self.app = app
        self._pool = pool
        self._names = {name.lower().encode() for name in names}  # under which other machines reach it
        self._page = page
        self._home = pool.home
        self._token = token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in _HOSTS}
        if port == 80:
            self._hosts |= {name.encode() for name in _HOSTS}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        once = sum(name == b"authorization" for name, _ in scope["headers"]) < 2
        holder = self._holder(headers) if once else None  # with two tokens it is unknown which is meant
        refusal = self._refused(scope, headers, holder)
        has_body = b"content-length" in headers or b"transfer-encoding" in headers
        unread = refusal is not None or scope["path"] in OPEN_PATHS or not has_body
        try:
            body = b"" if unread else await asyncio.wait_for(_body(receive, headers), BODY_SECONDS)
        except TimeoutError:
            body, refusal = b"", _refusal(408, "Timeout", f"the body did not come within {BODY_SECONDS} s")
        if body is None:
            await _discard(receive)
            refusal = _refusal(413, "TooLarge", f"the body is over {MAX_BODY:,} bytes")
        if refusal is not None:
            await refusal(scope, receive, send)
        else:
            await self.app({**scope, HOLDER: holder}, _replayed(body or b"", receive), send)

    def _holder(self, headers: dict[bytes, bytes]) -> AgentToken | None:
        """Return the owner of the token: OWNER, an agent's, or None for an invalid one."""
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        if hmac.compare_digest(given.strip(), self._token):
            return OWNER
        found = bound_to(self._home, text := given.strip().decode("latin-1"))
        if found is not None and found.role:
            self._pool.logins[found.id] = text
        return found

    def _refused(
        self, scope: Scope, headers: dict[bytes, bytes], holder: AgentToken | None
    ) -> Response | None:
        path = scope["path"]
        if _name(headers.get(b"host", b"")) in self._names:
            return self._refused_elsewhere(path, headers, holder)
        if headers.get(b"host", b"") not in self._hosts:
            return _refusal(421, "ForeignHost", "this server answers to 127.0.0.1 and localhost only")
        if headers.get(b"origin", b"http://" + headers[b"host"]) not in self._origins:
            return _refusal(403, "ForeignOrigin", "a page of another origin may not ask")
        if b"authorization" not in headers and not is_api(path):
            return self._page.refusal(scope, headers)
        if holder is None and path not in OPEN_PATHS:
            return _refusal(401, "Unauthorized", "give a token of the home: Authorization: Bearer …")
        return None

    def _refused_elsewhere(
        self, path: str, headers: dict[bytes, bytes], holder: AgentToken | None
    ) -> Response | None:
        """Restrict other machines to what agents may do: no page, nothing for the owner's token, no browsers."""
        if b"origin" in headers or not is_api(path):
            return _refusal(403, "ForeignOrigin", "the page is for this machine alone")
        if path in OPEN_PATHS:
            return None
        if holder is None:
            return _refusal(401, "Unauthorized", "give an agent's token: Authorization: Bearer …")
        if holder is OWNER:
            told = "the owner's token counts on the server's machine alone; make one: ncm token new"
            return _refusal(403, "PathRefused", told)
        return None


def _name(host: bytes) -> bytes:
    """Return a Host header without its port."""
    return host.lower() if host.endswith(b"]") else host.lower().rpartition(b":")[0] or host.lower()


async def _body(receive: Receive, headers: dict[bytes, bytes]) -> bytes | None:
    """Return the whole body; None when it is too large."""
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > MAX_BODY:
        return None
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
        more = message.get("more_body", False)
    return b"".join(parts)


async def _discard(receive: Receive) -> None:
    """Read the rest of a body that is too large: a client that is still sending would not read the refusal."""
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS / 6):
            while size < 4 * MAX_BODY:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


class SafeJSON(JSONResponse):
    """JSON without raw hidden characters, for readers at a terminal."""

    def render(self, content: Any) -> bytes:
        return json_text(content, (",", ":")).encode()


def error_response(
    status: int, kind: str, message: str, hint: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error in the form that every client gets."""
    error = {"type": kind, "message": message, "hint": hint}
    return SafeJSON({"ok": False, "error": error}, status, headers)


def _refusal(status: int, kind: str, message: str) -> JSONResponse:
    headers = {"connection": "close"} | ({"www-authenticate": "Bearer"} if status == 401 else {})
    return error_response(status, kind, message, "see docs/http.md", headers)
