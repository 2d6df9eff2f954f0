"""The opening of an MCP conversation: a client's first questions are answered from a file, and imports follow.

Importing the server takes most of a second of CPU; a client that waits for it sends its first request without tools.
"""

from __future__ import annotations

import _thread
import json
import os
from _queue import Empty, SimpleQueue
from pathlib import Path

from nanoclaw_memory.interfaces import shim
from nanoclaw_memory.interfaces.mcp.texts import chosen_tools
from nanoclaw_memory.interfaces.mcp_relay import lines_of, message_of, write_all

TYPE_CHECKING = False  # typing would cost as much as json
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nanoclaw_memory.interfaces.shim import Request
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

LISTING = (
    Path(__file__).parent / "listing.json"
)  # written by `make docs`: the server's answers, in both generations of the protocol
IDLE_SECONDS = 1.0  # after the first answer; then imports delay nobody
_META, _VERSION = "_meta", "io.modelcontextprotocol/protocolVersion"


def run(request: Request, overrides: Mapping[str, str] | None = None) -> None:
    """Serve one client over standard input and output: through the home's server, or here."""
    chosen_tools(request.argument)
    if shim.is_remote(request.home):
        from nanoclaw_memory.interfaces.remote.mcp import relay

        return relay(request)
    connection = None if overrides else shim.connect(request)
    if connection is not None:
        return shim.relay(connection, request)
    opening = Opening(request.argument, listed=not overrides and not may_be_off(request.home))
    opening.start()
    if first := opening.first():
        from nanoclaw_memory.interfaces.mcp.server import serve_rest

        serve_rest(_memory(request, overrides), request.argument, opening, first)
    return None


def _memory(request: Request, overrides: Mapping[str, str] | None) -> Memory:
    from nanoclaw_memory.memory import Memory

    return Memory.open(request.home, scope_of(request), overrides=overrides, directory=Path.cwd())


def scope_of(request: Request) -> Scope:
    """Return the scope of a conversation: its own session unless one is named, in the project of the directory."""
    import uuid

    from nanoclaw_memory.project import project_of, slug_of
    from nanoclaw_memory.types import Scope

    session = request.session or f"mcp-{uuid.uuid4()}"
    project = slug_of(request.project) if request.project else project_of(str(Path.cwd()))
    return Scope(request.group, session, not request.shared, "agent", project, "mcp")


class Opening:
    """Read a client's lines; those that the listing does not answer wait in `lines` for the server, the end as b""."""

    def __init__(self, tools: str, listed: bool = True) -> None:
        self.lines: SimpleQueue[bytes] = SimpleQueue()
        # requests that the server also gets, though their answers are sent
        self.answered: set[object] = set()
        self._listing: dict[str, Any] = json.loads(LISTING.read_bytes()) if listed else {}
        self._tools = chosen_tools(tools)
        self._kept: list[bytes] = []
        self._in_session = False
        self._has_begun = False
        self._lock = _thread.allocate_lock()
        self._begun = _thread.allocate_lock()  # locked until the first line is handled
        self._begun.acquire()
        self._wire = os.dup(1)
        os.dup2(2, 1)  # nothing printed may get between the messages

    def start(self) -> None:
        """Start reading, in a thread."""
        _thread.start_new_thread(self._read, ())

    def first(self) -> bytes:
        """Return the first line for the server; b"" when there is none. Meanwhile modules are imported."""
        with self._begun:
            try:
                return self.lines.get(timeout=IDLE_SECONDS)
            except Empty:
                import nanoclaw_memory.interfaces.mcp.server  # noqa: F401
        return self.lines.get()

    def send(self, raw: bytes) -> None:
        """Send a line to the client; one that has disconnected misses nothing."""
        with self._lock:
            try:
                write_all(self._wire, raw)
            except OSError:
                return

    def _read(self) -> None:
        for line in lines_of(lambda: os.read(0, 65536), halves=True):
            message = message_of(line)
            answer = self._answer(message)
            if answer is not None:
                self.send(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            opens = message.get("method") in ("initialize", "notifications/initialized")
            if opens and (answer is not None or self._in_session):
                self._kept.append(line)  # the server needs it only when it is called
            elif answer is None:
                for kept in (*self._kept, line):
                    self.lines.put(kept)
                self._kept.clear()
            self._begin()
        self.lines.put(b"")
        self._begin()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._begun.release()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a question of the listing; None for everything else."""
        method, given = message.get("method"), message.get("params") or {}
        if not isinstance(message.get("id"), int | str) or not isinstance(method, str):
            return None
        if not isinstance(given, dict) or "cursor" in given:
            return None
        result = self._results(method, given).get(method)
        if result is None:
            return None
        if method == "initialize":
            self._in_session = True
            self.answered.add(message["id"])
            result = {**result, "protocolVersion": given["protocolVersion"]}
        elif method == "tools/list":
            result = {**result, "tools": [tool for tool in result["tools"] if tool["name"] in self._tools]}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _results(self, method: object, given: dict[str, Any]) -> dict[Any, Any]:
        """Return what is listed for a request's generation of the protocol."""
        meta = given.get(_META)
        version = meta.get(_VERSION) if isinstance(meta, dict) else None
        if version is not None:
            return self._listing.get("stateless", {}) if version == self._listing.get("version") else {}
        if method == "initialize" and given.get("protocolVersion") not in self._listing.get("versions", ()):
            return {}
        return self._listing.get("sessions", {}) if method == "initialize" or self._in_session else {}


def may_be_off(home: str) -> bool:
    """Return whether settings could switch memory off somewhere: then the server itself must check."""
    if any(name.startswith("NANOCLAW_PROJECTS") for name in os.environ):
        return True
    try:
        return '"off"' in (Path(home).expanduser() / "nanoclaw.json").read_text("utf-8", "replace")
    except OSError:
        return False
