"""Relay an MCP conversation between standard input and output and a server on another machine."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.mcp.opening import scope_of
from nanoclaw_memory.interfaces.mcp_relay import failed, lines_of, message_of, write_all
from nanoclaw_memory.interfaces.remote.connection import PendingRequest, Remote, load, query_of

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.shim import Request

WAIT = 60.0  # seconds for one call


def relay(request: Request) -> None:
    """Send every line to the server, and its answer back; a call without an answer gets an error."""
    home = Path(request.home).expanduser()
    remote = load(home)
    if remote is None:
        return
    conversation = _Conversation(remote, f"/mcp?tools={request.argument}&{query_of(scope_of(request))}")
    for line in lines_of(lambda: os.read(0, 65536), halves=True):
        conversation.take(line)
    conversation.end()


class _Conversation:
    """The lines of one client, each a separate request: the server keeps nothing between them."""

    def __init__(self, remote: Remote, path: str) -> None:
        self._remote = remote
        self._path = path
        self._version = ""  # on which both sides have agreed
        self._lock = threading.Lock()
        self._calls: list[threading.Thread] = []

    def take(self, line: bytes) -> None:
        """Send one line; only the opening is waited for."""
        message = message_of(line)
        call = threading.Thread(target=self._send, args=(line, message), daemon=True)
        call.start()
        if message.get("method") == "initialize":
            call.join()
        self._calls = [thread for thread in (*self._calls, call) if thread.is_alive()]

    def end(self) -> None:
        """Wait for the outstanding answers."""
        for call in self._calls:
            call.join(WAIT)

    def _send(self, line: bytes, message: dict[str, Any]) -> None:
        headers = {"Accept": "application/json, text/event-stream"}
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        elif message.get("method") and message.get("method") != "initialize":
            params = message.get("params")
            meta = params.get("_meta", {}) if isinstance(params, dict) else {}
            version = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
            headers |= (
                {"MCP-Protocol-Version": str(version), "Mcp-Method": str(message["method"])}
                if version
                else {}
            )
            if version and isinstance(params, dict) and isinstance(params.get("name"), str):
                headers["Mcp-Name"] = params["name"]
        try:
            answer = PendingRequest(self._remote, "POST", self._path, line.strip(), headers, WAIT).answer()
            body = answer.body.strip()
            if answer.status >= 400 and not message_of(body).get("jsonrpc"):
                answer.json()
        except NanoClawError as error:
            why = f"{error.message}. {error.hint}"
            body = failed(message["id"], why).strip() if "id" in message else b""
        if message.get("method") == "initialize":
            result = message_of(body).get("result")
            self._version = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""
        if body:
            with self._lock:
                write_all(1, body.replace(b"\n", b" ") + b"\n")
