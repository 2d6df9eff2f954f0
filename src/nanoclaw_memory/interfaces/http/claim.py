"""The claim on a home: one server at a time, its address for everybody else, and which server gives way to which."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import private
from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import FileProblem, NanoClawError
from nanoclaw_memory.interfaces.shim import socket_path

FILE = "serve.lock"
PROBE_SECONDS = 0.1  # somebody who only asks for the address holds the lock for less
GIVE_WAY_SECONDS = 25.0  # a server that stops answers its open requests first


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running server is reached, and until when."""

    pid: int
    home: str
    socket: str
    url: str = ""
    token_file: str = ""
    version: str = ""
    self_started: bool = False  # by a client's session, not by a person or a service
    idle_minutes: float = 0  # after which it ends; 0: never
    ends_at: str = ""  # unless it is used again


class AlreadyRunning(NanoClawError):
    """Another process serves this home."""


class HomeClaim:
    """The lock of the home's only server; it ends with the process, however it ends."""

    def __init__(self, lock: IO[str]) -> None:
        self._lock = lock

    def record(self, address: ServerAddress) -> None:
        """Publish the address."""
        self.withdraw()
        self._lock.write(msgspec.json.encode(address).decode())
        self._lock.flush()

    def withdraw(self) -> None:
        """Withdraw the address: the server is stopping, and another may wait for its place."""
        self._lock.seek(0)
        self._lock.truncate()

    def note_use(self, seconds_ago: float) -> None:
        """Note when the server was last used, as the file's time."""
        used = time.time() - seconds_ago
        with suppress(OSError):
            os.utime(self._lock.fileno(), (used, used))


@contextmanager
def claimed(home: Path, self_started: bool) -> Iterator[HomeClaim]:
    """Claim the home for this process; a self-started server gives way to any other."""
    try:
        lock = open(home / FILE, "a+", encoding="utf-8", opener=private.opener)  # noqa: SIM115 - below
    except OSError as error:
        message = f"{home} cannot be served: {error.strerror}"
        raise FileProblem(message, f"a server needs to write there: chmod u+w {home}") from None
    with lock:
        _take(lock, home, self_started)
        os.fchmod(lock.fileno(), 0o600)
        claim = HomeClaim(lock)
        claim.withdraw()  # what a killed one left
        try:
            yield claim
        finally:
            with suppress(OSError):
                claim.withdraw()


def _take(lock: IO[str], home: Path, self_started: bool) -> None:
    """Wait for a server that is starting or stopping; end a self-started one, unless this is one too."""
    until, ended = time.monotonic() + GIVE_WAY_SECONDS, 0
    while not private.lock_within(lock, PROBE_SECONDS):
        lock.seek(0)
        holder = _parsed(lock.read())
        late = time.monotonic() > until
        if holder is not None and (late or self_started or not holder.self_started):
            where = holder.url or holder.socket
            raise AlreadyRunning(
                f"{home} is served already by process {holder.pid} at {where}",
                f"to stop it: kill {holder.pid}",
            )
        if late:
            raise AlreadyRunning(f"{home} is being served already", "it is just starting or stopping")
        if holder is not None and holder.pid != ended and _end(holder, home):
            ended = holder.pid


def address_of(home: Path) -> ServerAddress | None:
    """Return where the home is served now; None when it is not."""
    import fcntl

    with suppress(OSError), (home / FILE).open(encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found, used = _parsed(lock.read()), os.fstat(lock.fileno()).st_mtime
            if found is None or not found.idle_minutes:
                return found
            ends = datetime.fromtimestamp(used, UTC) + timedelta(minutes=found.idle_minutes)
            return replace(found, ends_at=stamp(ends))
    return None


def end_self_started(home: Path) -> bool:
    """End the server that a session started; return whether there was one."""
    found = address_of(home)
    return found is not None and found.self_started and _end(found, home)


def _end(server: ServerAddress, home: Path) -> bool:
    """Ask a server to end; return False if it runs elsewhere, where its number may be another process's here."""
    try:
        os.kill(_listener(home) or server.pid, signal.SIGTERM)
    except OSError:
        return False
    return True


def _listener(home: Path) -> int:
    """Return the process that listens on a home's socket, as this system counts it; 0 where it does not say."""
    if sys.platform != "linux":
        return 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PROBE_SECONDS)
        connection.connect(socket_path(str(home)))
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process: int = struct.unpack("3i", raw)[0]
    if not process:
        raise ProcessLookupError
    return process


def _parsed(recorded: str) -> ServerAddress | None:
    try:
        return msgspec.json.decode(recorded, type=ServerAddress)
    except msgspec.MsgspecError:
        return None
