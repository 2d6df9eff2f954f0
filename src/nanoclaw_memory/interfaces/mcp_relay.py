"""Relay an MCP conversation between standard input and output and the home's server; imports nothing of ours."""

from __future__ import annotations

import _thread
import json
import os

TYPE_CHECKING = False  # typing would cost as much as json
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Iterator

    from nanoclaw_memory.interfaces.shim import Request


STOPPED = "the memory server stopped before it answered; check whether it was done, then ask again"


class Conversation:
    """Relay an MCP client's lines to the server, and to a process of our own after the server has ended.

    The opening of the conversation is stored to be sent again. A call that the server received and did not answer is
    answered with an error, because it may have been carried out.
    """

    def __init__(self, connection: socket, request: Request, command: list[str]) -> None:
        self._server = connection
        self._request = request
        self._command = command
        self._send: Callable[[bytes], object] = connection.sendall
        self._end: Callable[[], object] = lambda: connection.shutdown(1)
        self._opening: list[bytes] = []
        self._unanswered: dict[object, bytes] = {}
        self._unsent: list[bytes] = []
        self._ended = False
        self._lock = _thread.allocate_lock()

    def run(self) -> None:
        """Relay lines both ways until the client closes its side."""
        self._server.settimeout(None)
        self._server.sendall(self._request.header())
        _thread.start_new_thread(self._relay_calls, ())
        self._relay_answers(lambda: self._server.recv(65536))
        if not self._ended:
            answers = self._start_process()
            self._relay_answers(lambda: os.read(answers, 65536))

    def _relay_calls(self) -> None:
        for line in lines_of(lambda: os.read(0, 65536)):
            message = message_of(line)
            with self._lock:
                if message.get("method") in ("initialize", "notifications/initialized"):
                    self._opening.append(line)
                if "id" in message and "method" in message:
                    self._unanswered[message["id"]] = line
                try:
                    self._send(line)
                except OSError:
                    self._unsent.append(line)  # the process that follows gets it
        with self._lock:
            self._ended = True
            try:
                self._end()
            except OSError:
                return  # the server has ended already

    def _relay_answers(self, read: Callable[[], bytes]) -> None:
        for line in lines_of(read):
            message = message_of(line)
            if "id" in message and "method" not in message:
                with self._lock:
                    self._unanswered.pop(message["id"], None)
            write_all(1, line)

    def _start_process(self) -> int:
        """Start our own process in the server's place; return the descriptor of its answers."""
        import subprocess

        environment = {**os.environ, "NANOCLAW_NO_SERVER": "1"}
        child = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert child.stdin
        assert child.stdout
        into, answers = child.stdin.fileno(), child.stdout.fileno()
        with self._lock:
            for line in self._opening:
                write_all(into, line)
            if self._opening and self._opening[0] not in self._unanswered.values():
                next(lines_of(lambda: os.read(answers, 1)), b"")  # the client already has this answer
            for key, line in list(self._unanswered.items()):
                if line not in self._unsent and line not in self._opening:
                    del self._unanswered[key]
                    write_all(1, failed(key, STOPPED))
            for line in self._unsent:
                if line not in self._opening:
                    write_all(into, line)
            self._send, self._end = (lambda line: write_all(into, line)), child.stdin.close
            if self._ended:
                self._end()
        return answers


def message_of(line: bytes) -> dict[str, object]:
    """Return a line's JSON object; empty when it is no message of JSON-RPC."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and not isinstance(found.get("id"), dict | list) else {}


def failed(key: object, why: str) -> bytes:
    """Return the error for a call that the server did not answer."""
    error = {"jsonrpc": "2.0", "id": key, "error": {"code": -32000, "message": why}}
    return json.dumps(error).encode() + b"\n"


def lines_of(read: Callable[[], bytes], halves: bool = False) -> Iterator[bytes]:
    """Yield whole lines until the end; half a line at the end is dropped unless `halves` count."""
    rest = b""
    while True:
        try:
            part = read()
        except OSError:
            return
        if not part:
            if rest and halves:
                yield rest + b"\n"
            return
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)


def write_all(handle: int, raw: bytes) -> None:
    """Write every byte."""
    while raw:
        raw = raw[os.write(handle, raw) :]
