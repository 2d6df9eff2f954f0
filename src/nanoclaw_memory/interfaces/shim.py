"""The short way in: a hook or an MCP client through a resident server's socket, else the ordinary command.

Clients run it as `python -I -S shim.py [--home DIR] [--group NAME] [--session ID] [--shared] hook EVENT` or
`… mcp [--tools SET]`. It imports nothing beyond the interpreter's own C modules, so that a hook costs
milliseconds. Whatever it does not understand, or a server does not answer, goes to `python -m nanoclaw_memory`
with the same arguments.
"""

# pathlib alone would double what a hook costs:
# ruff: noqa: PTH108, PTH109, PTH111, PTH116, PTH118, PTH120

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Iterator

LONGEST_PATH = 100  # bytes; Unix sockets take about 104
PATIENCE = 2.5  # seconds for a hook; clients give five
LONG_PATIENCE = 20.0  # for archiving a transcript; clients give thirty
MAX_INPUT = 8_000_000
NO_HOOKS = "NANOCLAW_NO_HOOKS"
NO_SERVER = "NANOCLAW_NO_SERVER"
_KNOWN = ("NANOCLAW_HOME", "NANOCLAW_GROUP", "NANOCLAW_SESSION", NO_HOOKS)


class Request:
    """What is asked of a server: a hook's answer, or a conversation in MCP."""

    def __init__(self) -> None:
        self.home = os.environ.get("NANOCLAW_HOME") or "~/.nanoclaw"
        self.group = os.environ.get("NANOCLAW_GROUP") or "main"
        self.session = os.environ.get("NANOCLAW_SESSION", "")
        self.shared = False
        self.kind = ""
        self.what = ""  # the hook's event, or the set of tools

    def is_plain(self) -> bool:
        """Whether it fits on the one line that a server reads first."""
        told = self.what + self.group + self.session
        return bool(self.what) and "\n" not in told and "\0" not in told

    def header(self) -> bytes:
        """The first line of a conversation: fields parted by NUL."""
        shared = "shared" if self.shared else ""
        fields = (self.kind, self.what, self.group, self.session, shared, _folder())
        return "\0".join(fields).encode("utf-8", "surrogateescape") + b"\n"


def _folder() -> str:
    """Where we are called, for a project's settings; empty when that place is gone or cannot be told."""
    try:
        found = os.getcwd()
    except OSError:
        return ""
    return "" if "\n" in found else found


def parse(arguments: list[str]) -> Request | None:
    """The request, or None when anything in it is for the ordinary command alone."""
    request = Request()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--shared":
            request.shared = True
        elif name in ("--home", "--group", "--session", "--tools"):
            if not equals and not words:
                return None
            _take(request, name, value if equals else words.pop(0))
        elif word in ("hook", "mcp") and not request.kind:
            request.kind = word
        elif request.kind == "hook" and not request.what and not word.startswith("-"):
            request.what = word
        else:
            return None
    if request.kind == "mcp" and not request.what:
        request.what = "core"
    return request if request.kind and request.is_plain() else None


def _take(request: Request, name: str, value: str) -> None:
    if name == "--home":
        request.home = value
    elif name == "--group":
        request.group = value
    elif name == "--session":
        request.session = value
    else:
        request.what = value


def socket_path(home: str) -> str:
    """Where a home's server listens: in the home, or in a directory of the user's own when that is too long."""
    root = os.path.realpath(os.path.expanduser(home))
    path = os.path.join(root, "ncm.sock")
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    from _blake2 import blake2b

    mark = blake2b(os.fsencode(root), digest_size=12).hexdigest()
    return f"/tmp/ncm-{os.getuid()}/{mark}.sock"  # noqa: S108 - the directory is checked to be ours alone


def connect(home: str) -> socket | None:
    """A connection to the home's server, if there is one and it is ours."""
    if os.environ.get(NO_SERVER) or _set_by_environment():
        return None
    import _socket

    path = socket_path(home)
    try:
        folder = os.stat(os.path.dirname(path))
        if os.lstat(path).st_uid != os.getuid() or folder.st_uid not in (os.getuid(), 0):
            return None  # another person's socket: it would read what is said
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(PATIENCE)
        connection.connect(path)
    except OSError:
        return None
    return connection


def _set_by_environment() -> bool:
    """Settings in this process's environment, which a server does not see."""
    ours = [name for name in os.environ if name.startswith("NANOCLAW_")]
    return any(name not in _KNOWN and not name.startswith("NANOCLAW_TEST_") for name in ours)


def ask(connection: socket, request: Request, raw: bytes) -> bytes | None:
    """A hook's answer from the server; None when it gave none, or not all of it."""
    import _socket

    long = "comp" in request.what.lower()
    connection.settimeout(LONG_PATIENCE if long else PATIENCE)
    try:
        connection.sendall(request.header() + raw)
        connection.shutdown(_socket.SHUT_WR)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    except OSError:
        return None
    length, newline, answer = b"".join(parts).partition(b"\n")
    return answer if newline and length.isdigit() and int(length) == len(answer) else None


class Conversation:
    """An MCP client's conversation: with the server, and when that dies with a process of our own.

    What opened the conversation is kept to be said again; calls that the server took and did not answer are
    answered with an error, for they may have been done.
    """

    def __init__(self, connection: socket, request: Request, command: list[str]) -> None:
        import _thread

        self._server: socket | None = connection
        self._request = request
        self._command = command
        self._child = -1  # what our own process reads
        self._opening: list[bytes] = []
        self._open_calls: dict[object, bytes] = {}
        self._unsent: list[bytes] = []
        self._ended = False
        self._lock = _thread.allocate_lock()
        self._parse = _json_reader()

    def run(self) -> None:
        """Carry lines both ways until the client has no more."""
        import _thread

        server = self._server
        assert server is not None
        server.settimeout(None)
        server.sendall(self._request.header())
        _thread.start_new_thread(self._upwards, ())
        self._down(lambda: server.recv(65536))
        if self._ended:
            return
        answers = self._go_on_alone()
        self._down(lambda: os.read(answers, 65536))

    def _upwards(self) -> None:
        for line in _lines(lambda: os.read(0, 65536)):
            with self._lock:
                self._note(line)
                self._send(line)
        with self._lock:
            self._ended = True
            self._close_upwards()

    def _down(self, read: Callable[[], bytes]) -> None:
        for line in _lines(read):
            told = self._parse(line)
            if "id" in told and "method" not in told:
                with self._lock:
                    self._open_calls.pop(told["id"], None)
            write_all(line)

    def _note(self, line: bytes) -> None:
        told = self._parse(line)
        if told.get("method") in ("initialize", "notifications/initialized"):
            self._opening.append(line)
        if "id" in told and "method" in told:
            self._open_calls[told["id"]] = line

    def _send(self, line: bytes) -> None:
        try:
            if self._child >= 0:
                _write(self._child, line)
            elif self._server is not None:
                self._server.sendall(line)
            else:
                self._unsent.append(line)
        except OSError:
            self._unsent.append(line)  # it was not taken, so it may be given to another

    def _close_upwards(self) -> None:
        import _socket

        try:
            if self._child >= 0:
                os.close(self._child)
            elif self._server is not None:
                self._server.shutdown(_socket.SHUT_WR)
        except OSError:
            return  # it is gone already

    def _go_on_alone(self) -> int:
        """Start our own process in the server's place; gives what its answers are read from."""
        reading, self_writes = os.pipe()
        answers, child_writes = os.pipe()
        moves = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, child_writes, 1)]
        environment = {**os.environ, NO_SERVER: "1"}
        os.posix_spawn(self._command[0], self._command, environment, file_actions=moves)
        os.close(reading)
        os.close(child_writes)
        with self._lock:
            self._server = None
            unsent = [line for line in self._unsent if line not in self._opening]
            lost = {key: line for key, line in self._open_calls.items() if line not in self._unsent}
            for line in self._opening:
                _write(self_writes, line)
            if self._opening and self._parse(self._opening[0]).get("id") not in self._open_calls:
                next(_lines(lambda: os.read(answers, 1)), b"")  # the client has had this answer
            for key, line in lost.items():
                if line not in self._opening:
                    write_all(_stopped(key))
                    self._open_calls.pop(key)
            for line in unsent:
                _write(self_writes, line)
            self._child, self._unsent = self_writes, []
            if self._ended:
                os.close(self_writes)
        return answers


def _json_reader() -> Callable[[bytes], dict[str, object]]:
    """A reader of JSON objects by the interpreter's C scanner alone: the json package would cost as much as all."""
    from _json import make_scanner

    class Plain:
        strict = False
        object_hook = object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float
        memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own, emptied by it

    scan = make_scanner(Plain())  # type: ignore[arg-type]

    def read(line: bytes) -> dict[str, object]:
        try:
            told = scan(line.decode("utf-8", "replace").strip(), 0)[0]
        except (ValueError, StopIteration, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    return read


def _stopped(key: object) -> bytes:
    """The answer to a call that the server took with it."""
    shown = (
        str(key) if isinstance(key, int) else '"' + str(key).replace("\\", "\\\\").replace('"', '\\"') + '"'
    )
    told = "the memory server stopped before it answered; look whether it was done, then ask again"
    return f'{{"jsonrpc":"2.0","id":{shown},"error":{{"code":-32000,"message":"{told}"}}}}\n'.encode()


def _lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Whole lines of what is read, until there is no more; half a line at the end is dropped."""
    rest = b""
    while True:
        try:
            part = read()
        except OSError:
            return
        if not part:
            return
        rest += part
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield line + b"\n"


def _write(handle: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(handle, raw) :]


def bridge(connection: socket, request: Request, arguments: list[str]) -> None:
    """Carry an MCP conversation between standard input and output and the server."""
    Conversation(connection, request, [sys.executable, "-m", "nanoclaw_memory", *arguments]).run()


def read_all(limit: int = MAX_INPUT) -> bytes:
    """Standard input, or a byte more than the limit."""
    parts, size = [], 0
    try:
        while size <= limit and (part := os.read(0, min(65536, limit + 1 - size))):
            parts.append(part)
            size += len(part)
    except OSError:  # a terminal that went away, a directory in its place: what was read is all there is
        pass
    return b"".join(parts)


def hears() -> bool:
    """Whether a hook has anything to do: it is not silenced, and somebody speaks to it."""
    return not os.environ.get(NO_HOOKS) and sys.stdin is not None


def write_all(raw: bytes) -> None:
    """Everything to standard output."""
    _write(1, raw)


def say(answer: bytes) -> None:
    """A hook's answer; where nobody can take it, it is lost without a word."""
    try:
        write_all(answer + b"\n")
    except OSError:
        return


def main(arguments: list[str]) -> None:
    """Answer through the server, or become the ordinary command."""
    request = parse(arguments)
    if request is not None and request.kind == "hook" and not hears():
        return
    connection = connect(request.home) if request is not None else None
    if request is None or connection is None:
        _become_the_command(arguments)
    elif request.kind == "mcp":
        bridge(connection, request, arguments)
    else:
        raw = read_all()
        answer = ask(connection, request, raw)
        if answer is None:
            _put_back(raw)
            _become_the_command(arguments)
        elif answer:
            say(answer)


def _become_the_command(arguments: list[str]) -> None:
    os.environ[NO_SERVER] = "1"  # it has just been asked
    os.execv(sys.executable, [sys.executable, "-m", "nanoclaw_memory", *arguments])  # noqa: S606


def _put_back(raw: bytes) -> None:
    """Make what was read standard input again, for the command that follows."""
    path = f"/tmp/.ncm-{os.getpid()}-{os.urandom(8).hex()}"  # noqa: S108 - created exclusively, gone at once
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    os.write(handle, raw)
    os.lseek(handle, 0, os.SEEK_SET)
    os.dup2(handle, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
