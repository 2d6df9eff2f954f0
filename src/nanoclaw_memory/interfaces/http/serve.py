"""The server process of a home: socket, HTTP, watchers, upkeep; started by a person, stopped cleanly."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, NanoClawError, NotFound
from nanoclaw_memory.interfaces.http import auth
from nanoclaw_memory.interfaces.http.background import BackgroundWork
from nanoclaw_memory.interfaces.http.connections import WebServer, raise_file_limit
from nanoclaw_memory.interfaces.http.pool import MAX_FILES, MemoryPool, ScopedMemory, collect_less
from nanoclaw_memory.interfaces.http.socket_server import SocketServer, listen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.memory import Memory

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 7717
GRACE_SECONDS = 10
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


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running server is reached."""

    pid: int
    home: str
    socket: str
    url: str = ""
    token_file: str = ""


class AlreadyRunning(NanoClawError):
    """Another process serves this home."""


def serve(home: Path, options: ServeOptions, announce: Callable[[ServerAddress], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called once the server listens."""
    if not home.is_dir():
        raise NotFound(f"there is no home at {home}", "create it: nanoclaw-memory init")
    _require_certificate(options)
    with _locked(home) as record:
        http = _bound(options.bind, options.port) if options.http else None
        token = auth.token_of(home) if http else ""
        listening, path = listen(home)
        address = ServerAddress(
            pid=os.getpid(),
            home=str(home),
            socket=str(path),
            url=f"{'https' if options.tls else 'http'}://{LOOPBACK}:{http.getsockname()[1]}" if http else "",
            token_file=str(home / "token") if http else "",
        )
        record(address)
        # Before the MCP SDK does it: its handler imports modules while it logs, which fails without free files.
        logging.basicConfig(format="ncm serve: %(message)s")
        _limit_allocator()
        collect_less()
        pool = MemoryPool(home, raise_file_limit(MAX_FILES))
        try:
            server = _Server(pool, options, http, token)
            asyncio.run(server.run(listening, lambda: announce(address)))
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
        self, pool: MemoryPool, options: ServeOptions, http: socket.socket | None, token: str
    ) -> None:
        self._pool = pool
        self._options = options
        self._http = http
        self._token = token
        self._background = BackgroundWork(pool, options.watch, options.upkeep)

    async def run(self, listening: socket.socket, announce: Callable[[], None]) -> None:
        """Serve until a signal comes, then let open requests finish."""
        import anyio.to_thread

        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        # Tools of the SDK wait in threads for their worker; the default of forty would be a queue.
        anyio.to_thread.current_default_thread_limiter().total_tokens = 200
        tools = mcp_servers(self._pool)
        running: set[asyncio.Task[Any]] = {asyncio.create_task(stop.wait())}
        web = await self._start_http(tools, running)
        sockets = SocketServer(self._pool, tools)
        await sockets.open(listening)
        self._background.start()
        announce()
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        Path(listening.getsockname()).unlink(missing_ok=True)  # from now on hooks answer by themselves
        self._background.stop()
        if web is not None:
            web.should_exit = True
        await sockets.close()
        stop.set()
        await asyncio.gather(*running)
        await asyncio.to_thread(self._background.join, GRACE_SECONDS)

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


def address_of(home: Path) -> ServerAddress | None:
    """Return where the home is served now; None when it is not."""
    import fcntl

    with suppress(OSError, msgspec.MsgspecError), (home / "serve.lock").open(encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return msgspec.json.decode(handle.read(), type=ServerAddress)
    return None


@contextmanager
def _locked(home: Path) -> Iterator[Callable[[ServerAddress], None]]:
    """Take the lock of the home's only server; it ends with the process, however it ends."""

    try:
        lock = open(home / "serve.lock", "a+", encoding="utf-8", opener=private.opener)  # noqa: SIM115 - below
    except OSError as error:
        message = f"{home} cannot be served: {error.strerror}"
        raise FileProblem(message, f"a server needs to write there: chmod u+w {home}") from None
    with lock as handle:
        if not private.lock_within(handle, 0):
            handle.seek(0)
            raise _already_running(handle.read(), home)

        def record(address: ServerAddress) -> None:
            handle.seek(0)
            handle.truncate()
            handle.write(msgspec.json.encode(address).decode())
            handle.flush()

        os.fchmod(handle.fileno(), 0o600)
        try:
            yield record
        finally:
            with suppress(OSError):
                handle.truncate(0)


def _already_running(recorded: str, home: Path) -> AlreadyRunning:
    try:
        found = msgspec.json.decode(recorded, type=ServerAddress)
    except msgspec.MsgspecError:
        return AlreadyRunning(f"{home} is being served already", "it is just starting or stopping")
    where = found.url or found.socket
    return AlreadyRunning(
        f"{home} is served already by process {found.pid} at {where}", f"to stop it: kill {found.pid}"
    )


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
