"""The connection of a thin client: the server, the token, and requests within a time limit."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, InvalidValue, NanoClawError
from nanoclaw_memory.interfaces.shim import REMOTE_FILE
from nanoclaw_memory.types import MAIN_GROUP, Scope

LOOPBACK = ("127.0.0.1", "localhost", "::1")
WAIT = 20.0  # seconds for an answer at the command line
AWAY_SECONDS = 30  # how long hooks skip a server that did not answer
MAX_ANSWER = 64_000_000
LEAST_WAIT = 0.15  # minimal seconds for a first response: the machine may be busy


class ServerAway(NanoClawError):
    """The server cannot be reached, or does not answer in time."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """The server that a home is connected to; `ca` is the certificate authority for it, else the system's."""

    url: str
    token: str
    ca: str = ""
    connect_ms: int = 300  # of a hook's time in total: then a server without a response is away


class Answer(msgspec.Struct, frozen=True):
    """The answer of a server."""

    status: int
    body: bytes
    skew: float = 0.0  # seconds that its clock is ahead of ours

    def json(self) -> dict[str, Any]:
        """Return the JSON object; an error of the server is raised as ours."""
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            found = {}
        if self.status < 400 and isinstance(found, dict):
            return found
        error = found.get("error", {}) if isinstance(found, dict) else {}
        problem = NanoClawError(
            str(error.get("message") or f"the server answered with status {self.status}"),
            str(error.get("hint") or "see: ncm doctor"),
        )
        problem.exit_code = 2 if 400 <= self.status < 500 else 1
        raise problem


def checked(url: str) -> str:
    """Return the address of a server: https, or plain http on this machine."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidValue(
            f"{url[:100]!r} is no address of a server", "for example: https://memory.example.org"
        )
    if parts.username or parts.password:
        raise InvalidValue("the address contains a password", "give the token with --token")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise InvalidValue(
            "plain http would show the token and your talk to everybody on the way", "give an https address"
        )
    return url.rstrip("/")


def load(home: Path) -> Remote | None:
    """Return what a home is connected to; None if it has a memory of its own."""
    path = home / REMOTE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Remote)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise FileProblem(
            f"{path} cannot be read: {error}", "connect again: ncm connect URL --token …"
        ) from None


def save(home: Path, remote: Remote) -> None:
    """Connect a home."""
    private.replace_json(home / REMOTE_FILE, remote)


class PendingRequest:
    """A request in its own thread: the resolution of a host name has no time limit."""

    def __init__(
        self,
        remote: Remote,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        wait: float = WAIT,
    ) -> None:
        self._remote = remote
        self._wait = wait
        self._outcome: list[Answer | Exception] = []
        self._alive, self._done = threading.Event(), threading.Event()
        given = (remote, method, path, body, headers or {}, wait, self._alive)
        threading.Thread(target=self._work, args=given, daemon=True).start()

    def _work(self, *given: Any) -> None:
        try:
            self._outcome.append(_request(*given))
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self._outcome.append(error)
        self._alive.set()
        self._done.set()

    def answer(self, spent: float = 0.0) -> Answer:
        """Return the answer. Raise ServerAway when the server cannot be reached, or does not answer in time.

        `spent` seconds of the time for a first response have passed already.
        """
        limit = max(self._remote.connect_ms / 1000 - spent, LEAST_WAIT)
        if not self._alive.wait(limit) or not self._done.wait(self._wait):
            raise ServerAway(f"{self._remote.url} does not answer", "ncm doctor says more")
        (found,) = self._outcome
        if isinstance(found, Answer):
            return found
        raise _away(self._remote, found) from found


def ask(remote: Remote, method: str, path: str, body: bytes = b"", wait: float = WAIT) -> Answer:
    """Return the server's answer; raise ServerAway without one."""
    return PendingRequest(remote, method, path, body, wait=wait).answer()


def _request(
    remote: Remote,
    method: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    wait: float,
    alive: threading.Event,
) -> Answer:
    parts = urlsplit(remote.url)
    own = {
        "Host": parts.netloc,
        "Authorization": f"Bearer {remote.token}",
        "Content-Type": "application/json",
    }
    own |= {"Content-Length": str(len(body)), "Accept-Encoding": "identity", "Connection": "close", **headers}
    lines = [f"{name}: {' '.join(value.split())}" for name, value in own.items()]
    head = "\r\n".join([f"{method} {parts.path}{path} HTTP/1.1", *lines, "", ""]).encode("latin-1")
    with _opened(parts.hostname or "", parts.port, remote) as opened:
        opened.sendall(head)
        stream = opened.makefile("rb")
        # A server may accept a connection while hanging: only its first bytes prove that it responds.
        refused = "Expect" in headers and not stream.peek(12).startswith(b"HTTP/1.1 100")
        opened.settimeout(wait)
        alive.set()
        opened.sendall(b"" if refused else body)
        from http.client import HTTPResponse  # only now: it costs a fifth of a hook's time

        peeked: Any = SimpleNamespace(makefile=lambda mode: stream)
        response = HTTPResponse(peeked, method=method)
        response.begin()
        return Answer(response.status, response.read(MAX_ANSWER), _skew(response.getheader("date", "")))


def _opened(host: str, port: int | None, remote: Remote) -> Any:
    """Open a connection to the server, encrypted if its address says so."""
    import socket

    secret = remote.url.startswith("https:")
    opened = socket.create_connection((host, port or (443 if secret else 80)), remote.connect_ms / 1000)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # headers and body are sent separately
    return _context(remote).wrap_socket(opened, server_hostname=host) if secret else opened


def _context(remote: Remote) -> Any:
    import ssl

    return ssl.create_default_context(cadata=remote.ca or None)


def _skew(date: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def _away(remote: Remote, error: Exception) -> ServerAway:
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return ServerAway(
            f"the certificate of {remote.url} is not valid: {error.verify_message}",
            "if no public authority signed it, name the certificate that did: ncm connect URL --ca FILE",
        )
    return ServerAway(f"{remote.url} cannot be reached: {error}", "ncm doctor says more")


def query_of(scope: Scope) -> str:
    """Return the scope as a query, within the limits of the token: headers cannot contain every name."""
    given = {
        "session": scope.session_id,
        "project": scope.project,
        "group": scope.group if scope.group != MAIN_GROUP else "",
        "shared": "" if scope.private else "true",
    }
    return urlencode({name: value for name, value in given.items() if value})


# ---- a server that did not answer is skipped for a while ----


def _mark(home: Path) -> Path:
    return home / "remote-away"


def is_away(home: Path) -> bool:
    """Return whether the server did not answer a moment ago."""
    try:
        return abs(time.time() - _mark(home).stat().st_mtime) < AWAY_SECONDS
    except OSError:
        return False


def note_away(home: Path, away: bool) -> None:
    """Remember whether the server answered."""
    with suppress(OSError):
        if away:
            os.close(os.open(_mark(home), os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(_mark(home))
        else:
            _mark(home).unlink(missing_ok=True)
