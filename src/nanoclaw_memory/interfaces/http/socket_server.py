"""The door on the unix socket: hooks and MCP conversations of the same user on the same machine."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from nanoclaw_memory.errors import FileProblem, NanoClawError
from nanoclaw_memory.interfaces import hooks
from nanoclaw_memory.interfaces.http.mcp_proxy import ASKER
from nanoclaw_memory.interfaces.shim import LONGEST_PATH, MAX_INPUT, socket_path
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.mcpserver import MCPServer

    from nanoclaw_memory.interfaces.http.pool import Resident, Room

HEADER_SECONDS = 5
GRACE_SECONDS = 10


class Visitor(msgspec.Struct, frozen=True):
    """Who came in and for what, as the first line says."""

    kind: str
    what: str
    scope: Scope
    directory: Path | None

    @classmethod
    def read(cls, line: bytes) -> Visitor | None:
        """The visitor, or None when the line is not of our shim."""
        fields = line.rstrip(b"\n").decode("utf-8", "surrogateescape").split("\0")
        if not line.endswith(b"\n") or len(fields) != 6:
            return None
        kind, what, group, session, shared, folder = fields
        scope = Scope(group, session[:200], not shared, "agent")
        return cls(kind, what, scope, Path(folder) if folder else None)


class Door:
    """Serves every connection until it is closed."""

    def __init__(self, resident: Resident, servers: Mapping[str, MCPServer]) -> None:
        self._resident = resident
        self._servers = servers
        self._closing = asyncio.Event()
        self._visits: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, listening: socket.socket) -> None:
        """Let visitors in."""
        self._server = await asyncio.start_unix_server(self._visit, sock=listening, limit=MAX_INPUT + 1024)

    async def close(self) -> None:
        """Let nobody in any more, let those inside finish, and see them off."""
        if self._server is not None:
            self._server.close()
        self._closing.set()
        if self._visits:
            _, late = await asyncio.wait(self._visits, timeout=GRACE_SECONDS)
            for visit in late:
                visit.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._visits.add(task)
        try:
            if _is_same_user(writer.get_extra_info("socket")):
                await self._welcome(reader, writer)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the visitor went away, or said nothing we know; it goes on without us
        finally:
            self._visits.discard(task)
            writer.close()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = Visitor.read(await asyncio.wait_for(reader.readline(), HEADER_SECONDS))
        if visitor is None:
            return
        if visitor.kind == "hook":
            await self._hook(visitor, reader, writer)
        elif visitor.kind == "mcp" and visitor.what in self._servers:
            await self._converse(visitor, reader, writer)

    # ---- hooks ----

    async def _hook(
        self, visitor: Visitor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        raw = await asyncio.wait_for(_read(reader, MAX_INPUT), HEADER_SECONDS)

        def answer(room: Room) -> bytes:
            return hooks.answer(
                visitor.what, raw, lambda own: nullcontext(room.session(own.session_id)), visitor.scope
            )

        try:
            body = await asyncio.wrap_future(self._resident.enter(visitor.scope, answer, visitor.directory))
        except NanoClawError:
            body = b""  # a hook fails open
        writer.write(b"%d\n%b" % (len(body), body))
        await writer.drain()
        writer.close()
        if hooks.kind_of(visitor.what) == "answer":
            await asyncio.to_thread(self._archive, visitor.scope)

    def _archive(self, scope: Scope) -> None:
        """Make exchanges of what was spooled now, so that the next prompt need not."""
        try:
            self._resident.alone(scope, lambda memory: memory.drain())
        except NanoClawError:
            return  # it stays in the spool, for the next one who has time

    # ---- MCP ----

    async def _converse(
        self, visitor: Visitor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from mcp.server.stdio import stdio_server

        session = visitor.scope.session_id or f"mcp-{uuid.uuid4()}"
        ASKER.set((Scope(visitor.scope.group, session, visitor.scope.private, "agent"), visitor.directory))
        server = self._servers[visitor.what]._lowlevel_server
        lines, sink = cast(Any, self._lines(reader)), cast(Any, _Sink(writer))
        async with stdio_server(lines, sink) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def _lines(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """The visitor's lines, until it has no more or we close and nothing is being worked on."""
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            while True:
                line = asyncio.ensure_future(reader.readline())
                await asyncio.wait({line, closing}, return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    await self._resident.settled(GRACE_SECONDS)
                    return
                if not line.result():
                    return
                yield line.result()
        finally:
            closing.cancel()


class _Sink:
    """Standard output, as the SDK sees it, on a socket."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self._writer.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        await self._writer.drain()


def listen(home: Path) -> tuple[socket.socket, Path]:
    """A listening socket of the home, for its user alone; what a dead server left behind is replaced.

    Only whoever holds the home's lock may call this: nobody is listening there then.
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
    """All that comes, or a byte more than the limit."""
    parts, size = [], 0
    while size <= limit and (part := await reader.read(65536)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)[: limit + 1]
