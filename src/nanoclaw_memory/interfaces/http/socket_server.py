"""The server on the unix socket: hooks and MCP conversations of the same user on the same machine."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from nanoclaw_memory.errors import FileProblem, NanoClawError
from nanoclaw_memory.interfaces import hooks
from nanoclaw_memory.interfaces.http.connections import connection_limit
from nanoclaw_memory.interfaces.http.pool import CURRENT_SCOPE
from nanoclaw_memory.interfaces.mcp.stream import McpStream
from nanoclaw_memory.interfaces.shim import LONGEST_PATH, MAX_INPUT, socket_path
from nanoclaw_memory.project import project_of
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.interfaces.http.pool import MemoryPool, MemoryWorker
    from nanoclaw_memory.memory import Memory

HEADER_SECONDS = 5
GRACE_SECONDS = 10


class SocketRequest(msgspec.Struct, frozen=True):
    """The first line of a connection: the kind, its argument, the scope and the directory."""

    kind: str
    argument: str
    scope: Scope
    directory: Path | None

    @classmethod
    def parse(cls, line: bytes) -> SocketRequest | None:
        """Parse a request; return None when the line is not the shim's."""
        fields = line.rstrip(b"\n").decode("utf-8", "surrogateescape").split("\0")
        if not line.endswith(b"\n") or len(fields) != 6:
            return None
        kind, argument, group, session, shared, directory = fields
        scope = Scope(group, session[:200], not shared, "agent")
        return cls(kind, argument, scope, Path(directory) if directory else None)


class SocketServer:
    """Serve every connection until it is closed."""

    def __init__(
        self, pool: MemoryPool, servers: Mapping[str, MCPServer], retire: Callable[[], bool]
    ) -> None:
        self._pool = pool
        self._servers = servers
        self._retire = retire
        self._closing = asyncio.Event()
        self._used = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, listening: socket.socket) -> None:
        """Start accepting."""
        self._server = await asyncio.start_unix_server(
            self._connected, sock=listening, limit=MAX_INPUT + 1024
        )

    def idle_seconds(self) -> float:
        """Return how long nobody has been connected, here or by HTTP."""
        return 0.0 if self._connections else time.monotonic() - self._pool.used_at

    async def until_used(self, seconds: float) -> None:
        """Wait until a connection ends, at most so long."""
        self._used.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._used.wait(), seconds)

    async def close(self) -> None:
        """Stop accepting, wait for open requests, then cancel those that last too long."""
        if self._server is not None:
            self._server.close()
        self._closing.set()
        self._used.set()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=GRACE_SECONDS)
            for connection in late:
                connection.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._connections.add(task)
        try:
            crowded = len(self._connections) > connection_limit(self._pool.files)
            if not crowded and _is_same_user(writer.get_extra_info("socket")):
                await self._handle(reader, writer)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client disconnected or sent nothing valid; it continues without us
        finally:
            self._connections.discard(task)
            self._pool.used_at = time.monotonic()
            self._used.set()
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = SocketRequest.parse(await asyncio.wait_for(reader.readline(), HEADER_SECONDS))
        if request is None:
            return
        if request.kind == "hook":
            await self._answer_hook(request, reader, writer)
        elif request.kind == "mcp" and request.argument in self._servers:
            await self._serve_mcp(request, reader, writer)

    async def _answer_hook(
        self, request: SocketRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if hooks.kind_of(request.argument) == "start" and self._retire():
            return  # the client answers by itself with the new program, and starts its server
        raw = await asyncio.wait_for(_read(reader, MAX_INPUT), HEADER_SECONDS)

        def answer(worker: MemoryWorker) -> bytes:
            where = str(request.directory or "")
            return hooks.answer(request.argument, raw, worker.opened, request.scope, where)

        try:
            future = self._pool.submit_to_worker(request.scope, answer, request.directory)
            body = await asyncio.wrap_future(future)
        except NanoClawError:
            body = b""  # a hook fails open
        writer.write(b"%d\n%b" % (len(body), body))
        await asyncio.wait_for(writer.drain(), HEADER_SECONDS)
        writer.close()
        if hooks.kind_of(request.argument) == "answer":
            await asyncio.to_thread(self._archive, request.scope)

    def _archive(self, scope: Scope) -> None:
        """Archive spooled exchanges and index them now, so that the next prompt need not."""

        def archive(memory: Memory) -> None:
            with memory.group.resources.judging():  # nobody waits: corrections are judged at once
                memory.conversations.drain()
            memory.group.catch_up()

        with suppress(NanoClawError):  # they stay in the spool for the next round
            self._pool.run_exclusive(scope, archive)

    async def _serve_mcp(
        self, request: SocketRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        session = request.scope.session_id or f"mcp-{uuid.uuid4()}"
        project = project_of(str(request.directory or ""))
        scope = Scope(request.scope.group, session, request.scope.private, "agent", project, "mcp")
        CURRENT_SCOPE.set((scope, request.directory))
        where = str(request.directory or "")
        asked = self._pool.submit(scope, lambda memory: memory.group.is_off(where), request.directory)
        off = await asyncio.wrap_future(asked)
        stream = McpStream(lambda: self._line(reader, stream), lambda raw: _sent(writer, raw))
        try:
            await stream.serve(self._servers["none" if off else request.argument])
        except* OSError:  # the client disconnected with answers under way
            pass

    async def _line(self, reader: asyncio.StreamReader, stream: McpStream) -> bytes:
        """Return the next line of a client; none when the server closes."""
        line, closing = asyncio.ensure_future(reader.readline()), asyncio.ensure_future(self._closing.wait())
        await asyncio.wait({line, closing}, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        if line.done():
            return line.result()
        line.cancel()
        stream.grace = GRACE_SECONDS
        return b""


async def _sent(writer: asyncio.StreamWriter, raw: bytes) -> None:
    writer.write(raw)
    await writer.drain()


def listen(home: Path) -> tuple[socket.socket, Path]:
    """Return a listening socket of the home, for its user alone; that of a dead server is replaced.

    Only the process that has the home's lock may call this: no other listens there then.
    """
    path = Path(socket_path(str(home)))
    if path.parent != home.resolve():
        _own_folder(path.parent)
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError as error:
        listening.close()
        raise FileProblem(f"{path} cannot be made: {error.strerror}", "check the directory") from None
    finally:
        os.umask(before)
    return listening, path


def _own_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise FileProblem(
            f"{folder} is not yours alone, and the home's path is too long for a socket in it",
            f"remove {folder}, or use a home with a path under {LONGEST_PATH - 9} bytes",
        )


def _is_same_user(connection: Any) -> bool:
    if sys.platform != "linux":
        return True  # the socket's mode keeps others out
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", raw)[1] == os.getuid())


async def _read(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end, or a byte more than the limit."""
    parts, size = [], 0
    while size <= limit and (part := await reader.read(65536)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)[: limit + 1]
