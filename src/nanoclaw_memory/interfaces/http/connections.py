"""HTTP connections that cannot hold the server: a time limit for clients that wait, and room for new ones."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nanoclaw_memory.errors import ServerBusy
from nanoclaw_memory.interfaces.http.api import failure

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

WAIT_SECONDS = 10  # for the headers of a request, and for a client that does not read its answer
GRACE_SECONDS = 10
MAX_CONNECTIONS = 512
MAX_AHEAD = 1024 * 1024  # bytes of further requests that a client may send before it has its answer


class HttpConnection(H11Protocol):
    """One connection; while it waits for its client, it is the first to be closed when there are too many."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._moved_at = self.loop.time()
        self._unsent = 0
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if len(self.conn.trailing_data[0]) > MAX_AHEAD:  # uvicorn reads on while a request waits for its body
            self.transport.abort()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being read or answered."""
        # Before the first request there is none, whatever its type says.
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    def check(self, now: float) -> None:
        """Close the connection if its client has neither sent a request nor read for too long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent or (self.is_busy and not self.flow.write_paused):
            self._moved_at = now
        self._unsent = unsent
        if now - self._moved_at > WAIT_SECONDS:
            self.transport.abort()

    def _make_room(self) -> None:
        """Close the connection that has waited longest, of this peer if it has more than its half."""
        most = self.limit_concurrency or MAX_CONNECTIONS
        others = [one for one in self.connections if isinstance(one, HttpConnection) and one is not self]
        own = [one for one in others if one.client and self.client and one.client[0] == self.client[0]]
        crowd = own if len(own) >= most // 2 else others if len(others) >= most - 1 else []
        waiting = [one for one in crowd if not one.is_busy]
        if waiting:
            oldest = min(waiting, key=lambda one: one._moved_at)
            self.connections.discard(oldest)  # it is lost only later, and many may be accepted at once
            oldest.transport.abort()
        elif crowd:
            self.app, self.limit_concurrency = _refuse, None  # uvicorn's own 503 says not when to ask again


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 503, and close: all connections are being answered."""
    busy = failure(ServerBusy("too many connections are being answered", "ask again in a second"))
    busy.headers["connection"] = "close"
    await busy(scope, receive, send)


class WebServer(uvicorn.Server):
    """The HTTP server, with every connection checked once a second."""

    def __init__(self, app: ASGIApp, files: int, tls: tuple[str, str] | None = None) -> None:
        certificate, key = tls or (None, None)
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            http=HttpConnection,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            limit_concurrency=connection_limit(files),
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(config)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, HttpConnection):
                    connection.check(now)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: they end the socket and the background work too."""
        yield


def raise_file_limit(most: int) -> int:
    """Allow as many open files as the machine does: each connection is one. Returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def connection_limit(files: int) -> int:
    """How many connections may be open at a time: databases need most of the files."""
    return min(MAX_CONNECTIONS, files // 4)
