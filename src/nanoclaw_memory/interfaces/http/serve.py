"""One process for a home: socket, HTTP, watchers, upkeep; started by a person, stopped cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, NanoClawError, NotFound
from nanoclaw_memory.interfaces.http import auth
from nanoclaw_memory.interfaces.http import socket_server as door
from nanoclaw_memory.interfaces.http.background import Chores
from nanoclaw_memory.interfaces.http.pool import Resident

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 7717
GRACE_SECONDS = 10
MOST_REQUESTS = 2_000  # open connections count too: a thousand idle ones must not keep others out
MOST_FILES = 8192


class Options(msgspec.Struct, frozen=True):
    """What the server does besides listening on its socket; port 0 takes any that is free."""

    http: bool = True
    port: int = DEFAULT_PORT
    watch: bool = True
    upkeep: bool = True


class Place(msgspec.Struct, frozen=True):
    """Where a running server is."""

    pid: int
    home: str
    socket: str
    url: str = ""
    token_file: str = ""


class AlreadyRunning(NanoClawError):
    """Another process serves this home."""


def serve(home: Path, options: Options, announce: Callable[[Place], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is told when and where it listens."""
    if not home.is_dir():
        raise NotFound(f"there is no home at {home}", "create it: nanoclaw-memory init")
    with _claimed(home) as note:
        web = _bound(options.port) if options.http else None
        token = auth.token_of(home) if options.http else ""
        listening, path = door.listen(home)
        port = web.getsockname()[1] if web else 0
        url = f"http://{LOOPBACK}:{port}" if web else ""
        place = Place(os.getpid(), str(home), str(path), url, str(home / "token") if web else "")
        note(place)
        _allow_files()
        _calm_allocator()
        resident = Resident(home)
        try:
            asyncio.run(_run(resident, options, place, listening, web, token, announce))
        finally:
            path.unlink(missing_ok=True)
            resident.close()


async def _run(
    resident: Resident,
    options: Options,
    place: Place,
    listening: socket.socket,
    web: socket.socket | None,
    token: str,
    announce: Callable[[Place], None],
) -> None:
    import anyio.to_thread

    from nanoclaw_memory.interfaces.http.mcp_proxy import servers

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # Tools of the SDK wait in threads for their room; the default of forty would be a queue.
    anyio.to_thread.current_default_thread_limiter().total_tokens = 200
    tools = servers(resident)
    entrance = door.Door(resident, tools)
    chores = Chores(resident, options.watch, options.upkeep)
    waiting: set[asyncio.Task[Any]] = {asyncio.create_task(stop.wait())}
    server = None
    if web is not None:
        from nanoclaw_memory.interfaces.http.app import application

        server = _web_server(application(resident, tools, token, web.getsockname()[1]))
        waiting.add(asyncio.create_task(server.serve(sockets=[web])))
        while not server.started and not any(task.done() for task in waiting):
            await asyncio.sleep(0.01)
    await entrance.open(listening)
    chores.start()
    announce(place)
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    Path(place.socket).unlink(missing_ok=True)  # from now on hooks help themselves
    chores.stop()
    if server is not None:
        server.should_exit = True
    await entrance.close()
    stop.set()
    await asyncio.gather(*waiting)
    await asyncio.to_thread(chores.join, GRACE_SECONDS)


def _web_server(app: ASGIApp) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Signals are ours: they end the socket and the chores too."""
            yield

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=MOST_REQUESTS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Server(config)


@contextmanager
def _claimed(home: Path) -> Iterator[Callable[[Place], None]]:
    """Be the home's only server; the claim dies with the process, however it dies."""
    import fcntl

    try:
        claim = open(home / "serve.lock", "a+", encoding="utf-8", opener=private.opener)  # noqa: SIM115 - below
    except OSError as error:
        told = f"{home} cannot be served: {error.strerror}"
        raise FileProblem(told, f"a server needs to write there: chmod u+w {home}") from None
    with claim as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            raise _running(handle.read(), home) from None

        def note(place: Place) -> None:
            handle.seek(0)
            handle.truncate()
            handle.write(json.dumps(msgspec.to_builtins(place)))
            handle.flush()

        os.fchmod(handle.fileno(), 0o600)
        try:
            yield note
        finally:
            with suppress(OSError):
                handle.truncate(0)


def _running(noted: str, home: Path) -> AlreadyRunning:
    try:
        place = Place(**json.loads(noted))
    except (ValueError, TypeError):
        return AlreadyRunning(f"{home} is being served already", "it is just starting or stopping")
    where = place.url or place.socket
    return AlreadyRunning(
        f"{home} is served already by process {place.pid} at {where}", f"to stop it: kill {place.pid}"
    )


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise NanoClawError(
            f"port {port} cannot be had: {error}", "choose another: ncm serve --port 7718"
        ) from None
    return listening


def _allow_files() -> None:
    """Many connections are many files; take as many as the machine lets us."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _calm_allocator() -> None:
    """Keep the C library from giving threads that come and go heaps of their own, which it never takes back."""
    import ctypes

    arena_max = -8  # glibc's M_ARENA_MAX
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(arena_max, 1)
