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


def bridge(connection: socket, request: Request) -> None:
    """Carry an MCP conversation between standard input and output and the server, until either ends it."""
    import _socket
    import _thread

    connection.settimeout(None)
    connection.sendall(request.header())

    def upwards() -> None:
        try:
            while part := os.read(0, 65536):
                connection.sendall(part)
            connection.shutdown(_socket.SHUT_WR)
        except OSError:
            return  # the server is gone; the other direction ends too

    _thread.start_new_thread(upwards, ())
    try:
        while part := connection.recv(65536):
            write_all(part)
    except OSError:
        return


def read_all(limit: int = MAX_INPUT) -> bytes:
    """Standard input, or a byte more than the limit."""
    parts, size = [], 0
    while size <= limit and (part := os.read(0, min(65536, limit + 1 - size))):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def write_all(raw: bytes) -> None:
    """Everything to standard output."""
    while raw:
        raw = raw[os.write(1, raw) :]


def main(arguments: list[str]) -> None:
    """Answer through the server, or become the ordinary command."""
    request = parse(arguments)
    if request is not None and request.kind == "hook" and os.environ.get(NO_HOOKS):
        return
    connection = connect(request.home) if request is not None else None
    if request is None or connection is None:
        _become_the_command(arguments)
    elif request.kind == "mcp":
        bridge(connection, request)
    else:
        raw = read_all()
        answer = ask(connection, request, raw)
        if answer is None:
            _put_back(raw)
            _become_the_command(arguments)
        elif answer:
            write_all(answer + b"\n")


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
