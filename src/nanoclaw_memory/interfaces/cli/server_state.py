"""The state of the home's server, for `status` and `doctor`: whether it runs, who started it, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory import __version__
from nanoclaw_memory.errors import SettingsError
from nanoclaw_memory.interfaces.cli.common import clock_of
from nanoclaw_memory.interfaces.shim import is_remote
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Finding


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a server answers this home's clients, who started it, and when it ends."""

    running: bool
    autostart: bool  # whether a session starts one
    pid: int = 0
    socket: str = ""
    url: str = ""
    version: str = ""
    self_started: bool = False
    idle_minutes: float = 0
    ends_at: str = ""  # unless it is used again


def server_of(memory: Memory) -> ServerState | None:
    """Return the state of the home's server; None where it is not this scope's or this machine's."""
    from nanoclaw_memory.interfaces.http.claim import address_of

    if is_remote(str(memory.home.root)) or not memory.scope.private or not memory.home.exists():
        return None
    autostart = False
    with suppress(
        SettingsError
    ):  # reported by whoever needs the settings; no session starts a server meanwhile
        autostart = memory.settings.server.autostart
    found = address_of(memory.home.root)
    if found is None:
        return ServerState(running=False, autostart=autostart)
    own = {name: value for name, value in asdict(found).items() if name not in ("home", "token_file")}
    return ServerState(running=True, autostart=autostart, **own)


def server_text(server: ServerState, memory: Memory) -> str:
    """Describe the state in a line."""
    if not server.running:
        return "none; a client's next session starts one" if server.autostart else "none"
    by = ", started by a client's session" if server.self_started else ""
    ends = f"; without a client it ends at {clock_of(memory)(server.ends_at)}" if server.ends_at else ""
    return f"runs as process {server.pid}{by}{ends}"


def check_server(memory: Memory, server: ServerState) -> Iterator[Finding]:
    """Report whether a server answers hooks, until when, and whether the service that should run it does."""
    from nanoclaw_memory.interfaces.install.service import service_of

    start = "nanoclaw-memory serve --install"
    if server.running and server.version != __version__:
        other = f"the server runs as process {server.pid}, version {server.version or 'unknown'}, not {__version__}"
        again = (
            "a client's next session replaces it" if server.self_started else f"restart it: kill {server.pid}"
        )
        yield Finding("warning", other, again)
    elif server.running:
        where = server.url or server.socket
        yield Finding("ok", f"the server {server_text(server, memory)}, {where}", "nothing to do")
    elif service_of(memory.home.root).path.exists():
        yield Finding("warning", "the service is installed and does not run", start)
    elif server.autostart:
        yield Finding("ok", "no server runs now; a client's next session starts one", "nothing to do")
    else:
        yield Finding("note", "no server runs: hooks take longer and search by words only", start)
