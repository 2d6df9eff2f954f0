"""The server process of a home: socket, HTTP, watchers, upkeep; stopped cleanly, by a signal or when it is idle."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

import nanoclaw_memory
from nanoclaw_memory import __version__
from nanoclaw_memory.errors import FileProblem, NanoClawError, NotFound
from nanoclaw_memory.interfaces.http import auth
from nanoclaw_memory.interfaces.http.background import BackgroundWork
from nanoclaw_memory.interfaces.http.claim import HomeClaim, ServerAddress, claimed
from nanoclaw_memory.interfaces.http.connections import WebServer, raise_file_limit
from nanoclaw_memory.interfaces.http.pool import MAX_FILES, MemoryPool, ScopedMemory, collect_less
from nanoclaw_memory.interfaces.http.socket_server import SocketServer, listen
from nanoclaw_memory.interfaces.install import launcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.memory import Memory

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 7717
GRACE_SECONDS = 10
USE_NOTED_SECONDS = 30.0
LARGE_BLOCK = 256 * 1024  # larger blocks are returned to the system as soon as they are free


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the server; port 0 takes any that is free."""

    http: bool = True
    port: int = DEFAULT_PORT
    watch: bool = True
    upkeep: bool = True
    bind: str = LOOPBACK  # in a container all addresses: its host decides which are reachable
    hosts: tuple[str, ...] = ()  # names by which agents on other machines reach it
    tls: tuple[str, str] | None = None  # certificate and key
    idle_minutes: float = 0  # end after so many without a client; 0: never
    self_started: bool = False  # by a client's session: it gives way to any other, and to a newer program


def serve(home: Path, options: ServeOptions, announce: Callable[[ServerAddress], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called once the server listens."""
    if not home.is_dir():
        raise NotFound(f"there is no home at {home}", "create it: nanoclaw-memory init")
    _require_certificate(options)
    with claimed(home, options.self_started) as claim:
        http = _bound(options.bind, options.port) if options.http else None
        token = auth.token_of(home) if http else ""
        listening, path = listen(home)
        address = ServerAddress(
            pid=os.getpid(),
            home=str(home),
            socket=str(path),
            url=f"{'https' if options.tls else 'http'}://{LOOPBACK}:{http.getsockname()[1]}" if http else "",
            token_file=str(home / "token") if http else "",
            version=__version__,
            self_started=options.self_started,
            idle_minutes=options.idle_minutes,
        )
        if options.self_started:
            os.chdir(home)  # not in a project, whose folder may go
        # Before the MCP SDK does it: its handler imports modules while it logs, which fails without free files.
        logging.basicConfig(format="ncm serve: %(message)s")
        _limit_allocator()
        collect_less()
        pool = MemoryPool(home, raise_file_limit(MAX_FILES))
        try:
            server = _Server(pool, options, http, token, claim)
            asyncio.run(server.run(listening, address, announce))
        finally:
            path.unlink(missing_ok=True)
            pool.close()


def _require_certificate(options: ServeOptions) -> None:
    import ssl

    try:
        if options.tls:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*options.tls)
    except (OSError, ssl.SSLError) as error:
        raise FileProblem(
            f"the certificate cannot be used: {error}", "give PEM files: --tls-cert FILE --tls-key FILE"
        ) from None


class _Server:
    """The parts of a running server, started and stopped together."""

    def __init__(
        self,
        pool: MemoryPool,
        options: ServeOptions,
        http: socket.socket | None,
        token: str,
        claim: HomeClaim,
    ) -> None:
        self._pool = pool
        self._options = options
        self._http = http
        self._token = token
        self._claim = claim
        self._background = BackgroundWork(pool, options.watch, options.upkeep)

    async def run(
        self, listening: socket.socket, address: ServerAddress, announce: Callable[[ServerAddress], None]
    ) -> None:
        """Serve until a signal comes or nobody asks any more, then let open requests finish."""
        import anyio.to_thread

        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        # Tools of the SDK wait in threads for their worker; the default of forty would be a queue.
        anyio.to_thread.current_default_thread_limiter().total_tokens = 200
        tools = mcp_servers(self._pool)
        running: set[asyncio.Task[Any]] = {asyncio.create_task(stop.wait())}
        web = await self._start_http(tools, running)
        sockets = SocketServer(self._pool, tools, self._retirement(stop))
        await sockets.open(listening)
        self._background.start()
        self._pool.used_at = time.monotonic()  # nobody could ask before
        self._claim.record(address)
        announce(address)
        if self._options.idle_minutes:
            running.add(asyncio.create_task(self._wait_until_idle(sockets, stop, address)))
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        self._claim.withdraw()
        Path(listening.getsockname()).unlink(missing_ok=True)  # from now on hooks answer by themselves
        self._background.stop()
        if web is not None:
            web.should_exit = True
        await sockets.close()
        stop.set()
        await asyncio.gather(*running)
        await asyncio.to_thread(self._background.join, GRACE_SECONDS)

    async def _wait_until_idle(
        self, sockets: SocketServer, stop: asyncio.Event, address: ServerAddress
    ) -> None:
        """Return once nobody has been connected or asked for the idle minutes, which the settings may change."""
        noted = float("-inf")
        while not stop.is_set():
            minutes = (
                self._pool.settings.idle_minutes()
                if self._options.self_started
                else self._options.idle_minutes
            )
            if minutes != address.idle_minutes:
                address = replace(address, idle_minutes=minutes)
                self._claim.record(address)
            left = minutes * 60 - sockets.idle_seconds()
            if left <= 0:
                return
            if (now := time.monotonic()) - noted >= USE_NOTED_SECONDS:
                self._claim.note_use(sockets.idle_seconds())
                noted = now
            await sockets.until_used(min(left, USE_NOTED_SECONDS))

    def _retirement(self, stop: asyncio.Event) -> Callable[[], bool]:
        """Return what a session's start asks: whether the program was replaced, so that this server stops."""
        started_as = _program(self._pool.home)

        def retire() -> bool:
            if not self._options.self_started or _program(self._pool.home) == started_as:
                return False
            self._claim.withdraw()  # the new program's server may wait for its place
            stop.set()
            return True

        return retire

    async def _start_http(
        self, tools: Mapping[str, MCPServer], running: set[asyncio.Task[Any]]
    ) -> WebServer | None:
        """Start the HTTP server; return None when only the socket is served."""
        if self._http is None:
            return None
        from nanoclaw_memory.interfaces.http.app import application

        port, own = self._http.getsockname()[1], self._options
        app = application(self._pool, tools, self._token, port, own.hosts)
        server = WebServer(app, self._pool.files, own.tls)
        running.add(asyncio.create_task(server.serve(sockets=[self._http])))
        while not server.started and not any(task.done() for task in running):
            await asyncio.sleep(0.01)  # uvicorn has no event for it
        return server


def _program(home: Path) -> tuple[object, ...]:
    """Return what identifies the program that clients run: an upgrade replaces its file, a move its launcher."""
    try:
        found = Path(nanoclaw_memory.__file__).stat()
    except OSError:
        return ()
    script = launcher.path_in(home)
    return found.st_ino, found.st_mtime_ns, script.read_bytes() if script.exists() else b""


def _bound(address: str, port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY only if the protocol is named; without it a kept-alive answer takes 44 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise NanoClawError(
            f"port {port} of {address} cannot be had: {error}", "choose another: ncm serve --port 7718"
        ) from None
    return listening


def _limit_allocator() -> None:
    """Make the C library return free memory to the system.

    It would create a heap per thread, and take ever larger blocks from a heap that it cannot return.
    """
    import ctypes

    arena_max, mmap_threshold, trim_threshold = -8, -3, -1  # glibc's names for its options
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(arena_max, 1)
        library.mallopt(mmap_threshold, LARGE_BLOCK)
        library.mallopt(trim_threshold, LARGE_BLOCK)


def mcp_servers(pool: MemoryPool) -> dict[str, MCPServer]:
    """Return the MCP server of each set of tools."""
    from nanoclaw_memory.interfaces.mcp.server import build_server

    memory = cast("Memory", ScopedMemory(pool))
    return {tools: build_server(memory, tools) for tools in ("core", "all", "none")}
