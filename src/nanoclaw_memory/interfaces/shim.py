"""Forwards a hook or an MCP conversation to the home's server, or becomes the ordinary command.

Clients run it as `python -I -S shim.py [--home DIR] [--group NAME] [--session ID] [--shared] hook EVENT` or
`… mcp [--tools SET]`. It imports nothing of ours, and for a hook nothing beyond the interpreter's own C modules:
a hook costs milliseconds. What it does not understand, or the server does not answer, goes to
`python -m nanoclaw_memory` with the same arguments.
"""

# pathlib alone would double what a hook costs:
# ruff: noqa: PTH100, PTH108, PTH109, PTH110, PTH111, PTH116, PTH118, PTH120

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

LONGEST_PATH = 100  # bytes; Unix sockets take about 104
TIMEOUT = 2.5  # seconds for a hook; clients allow five
COMPACTION_TIMEOUT = 20.0  # archiving a transcript; clients allow thirty
COMPACTIONS = ("precompact", "precompress")
MAX_INPUT = 8_000_000
HANGS_SECONDS = 60  # for which a server that did not answer is left alone: it may have been stopped
INPUT_SECONDS = 1.5  # for the next bytes of a client that does not close its end
NO_HOOKS = "NANOCLAW_NO_HOOKS"
NO_SERVER = "NANOCLAW_NO_SERVER"
ASKED = "asked"  # its value when a server was asked and did not answer in time
ABSENT = "absent"  # and when none was reached
REMOTE_FILE = "remote.json"  # in a home that is connected to a server on another machine
CALLERS = (
    "NANOCLAW_HOME",
    "NANOCLAW_GROUP",
    "NANOCLAW_SESSION",
    NO_HOOKS,
    NO_SERVER,
)  # of one caller, no settings
_OPTIONS = {"--home": "home", "--group": "group", "--session": "session", "--tools": "argument"}


class Request:
    """A request to a server: the answer to a hook, or an MCP conversation."""

    def __init__(self) -> None:
        self.home = os.environ.get("NANOCLAW_HOME") or "~/.nanoclaw"
        self.group = os.environ.get("NANOCLAW_GROUP") or "main"
        self.session = os.environ.get("NANOCLAW_SESSION", "")
        self.project = os.environ.get("NANOCLAW_PROJECT", "")
        self.shared = False
        self.kind = ""  # hook or mcp
        self.argument = ""  # the hook's event, or the set of tools
        self.directory = _directory()  # for a project's settings

    def is_plain(self) -> bool:
        """Return whether it fits on the one line that a server reads first."""
        fields = self.argument + self.group + self.session
        return bool(self.argument) and "\n" not in fields and "\0" not in fields

    def words(self) -> list[str]:
        """Return the arguments of the equivalent ordinary command."""
        named = {
            "--home": self.home,
            "--group": self.group,
            "--session": self.session,
            "--tools": self.argument,
        }
        words = [word for name, value in named.items() if value for word in (name, value)]
        return [self.kind, *words, *(["--shared"] if self.shared else [])]

    def header(self) -> bytes:
        """Return the first line to the server: fields separated by NUL."""
        shared = "shared" if self.shared else ""
        fields = (self.kind, self.argument, self.group, self.session, shared, self.directory)
        return "\0".join(fields).encode("utf-8", "surrogateescape") + b"\n"


def _directory() -> str:
    """Return the working directory; empty when it was deleted or does not fit on a line."""
    try:
        found = os.getcwd()
    except OSError:
        return ""
    return "" if "\n" in found else found


def parse(arguments: list[str]) -> Request | None:
    """Parse the arguments; return None when only the ordinary command understands them."""
    request = Request()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--shared":
            request.shared = True
        elif name in _OPTIONS and (equals or words):
            setattr(request, _OPTIONS[name], value if equals else words.pop(0))
        elif word in ("hook", "mcp") and not request.kind:
            request.kind = word
        elif request.kind == "hook" and not request.argument and not word.startswith("-"):
            request.argument = word
        else:
            return None
    if request.kind == "mcp" and not request.argument:
        request.argument = "core"
    return request if request.kind and request.is_plain() else None


def event_key(name: str) -> str:
    """Return a hook's event without the spelling of one client: PreCompact, pre-compact and pre_compact are one."""
    return name.replace("-", "").replace("_", "").lower()


def socket_path(home: str) -> str:
    """Return the socket of a home's server: in the home, or in a directory of the user's own when that is too long."""
    root = os.path.realpath(os.path.expanduser(home))
    path = os.path.join(root, "ncm.sock")
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    from _blake2 import blake2b

    mark = blake2b(os.fsencode(root), digest_size=12).hexdigest()
    return f"/tmp/ncm-{os.getuid()}/{mark}.sock"  # noqa: S108 - the directory is checked to be ours alone


def _hangs(path: str) -> bool:
    """Return whether the server did not answer a moment ago: who waits for it once more waits in every hook."""
    import time

    try:
        noted = os.stat(path + ".hangs").st_mtime
        # A later socket is that of another server.
        return 0 <= time.time() - noted < HANGS_SECONDS and os.stat(path).st_mtime <= noted
    except OSError:
        return False


def _note_hanging(path: str) -> None:
    """Mark a server as one that does not answer, beside its socket."""
    try:
        os.close(os.open(path + ".hangs", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        os.utime(path + ".hangs")
    except OSError:  # every hook waits then
        return


def is_remote(home: str) -> bool:
    """Return whether a home is connected to a server on another machine."""
    return os.path.exists(os.path.join(os.path.expanduser(home), REMOTE_FILE))


def connect(request: Request) -> socket | None:
    """Connect to the server of the request's home; return None if there is none that may be used."""
    if os.environ.get(NO_SERVER) or has_settings_in_environment() or not request.is_plain():
        return None
    if request.project:
        return None  # a server takes the project from the directory
    import _socket

    path = socket_path(request.home)
    try:
        folder = os.stat(os.path.dirname(path))
        if os.lstat(path).st_uid != os.getuid() or folder.st_uid not in (os.getuid(), 0):
            return None  # another person's socket: that person would read what is sent
        if request.kind == "hook" and _hangs(path):
            return None
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(TIMEOUT)
        connection.connect(path)
    except OSError:
        return None
    return connection


def has_settings_in_environment() -> bool:
    """Return whether this process's environment contains settings, which a server would not see."""
    ours = [name for name in os.environ if name.startswith("NANOCLAW_")]
    return any(name not in CALLERS and not name.startswith("NANOCLAW_TEST_") for name in ours)


def ask(connection: socket, request: Request, raw: bytes) -> bytes | None:
    """Return the server's answer to a hook; None when it did not arrive completely in time."""
    import _socket

    if event_key(request.argument) in COMPACTIONS:
        connection.settimeout(COMPACTION_TIMEOUT)
    try:
        connection.sendall(request.header() + raw)
        connection.shutdown(_socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    except TimeoutError:
        _note_hanging(socket_path(request.home))
        return None
    except OSError:
        return None
    length, newline, answer = received.partition(b"\n")
    return answer if newline and length.isdigit() and int(length) == len(answer) else None


def has_input() -> bool:
    """Return whether a hook has anything to do: hooks are not switched off, and standard input is open."""
    return not os.environ.get(NO_HOOKS) and sys.stdin is not None


def read_input() -> bytes:
    """Read standard input up to its end, a byte more than the limit, or until no more comes."""
    import select

    raw = bytearray()
    try:
        handle = sys.stdin.fileno()
    except OSError:  # no file of the system's
        return sys.stdin.buffer.read(MAX_INPUT + 1)
    try:
        while len(raw) <= MAX_INPUT and select.select([handle], [], [], INPUT_SECONDS)[0]:
            part = os.read(handle, 1 << 20)
            if not part:
                break
            raw += part
    except OSError:  # a terminal that was closed
        return b""
    return bytes(raw)


def write_answer(answer: bytes) -> None:
    """Print a hook's answer if there is one; a closed output is no error."""
    rest = answer + b"\n" if answer else b""
    try:
        while rest:
            rest = rest[os.write(1, rest) :]
    except OSError:
        return


def command(arguments: list[str]) -> list[str]:
    """Return the ordinary command with these arguments; it imports nothing from the working directory."""
    return [sys.executable, "-P", "-m", "nanoclaw_memory", *arguments]


def main(arguments: list[str]) -> None:
    """Answer through the server, or become the ordinary command."""
    _forget_relative_paths()
    request = parse(arguments)
    if request is not None and request.kind == "hook" and not has_input():
        return
    connection = connect(request) if request is not None else None
    if request is not None and request.kind == "hook" and connection is None and _may_answer_here():
        _answer_here(arguments)
    elif request is None or connection is None:
        _become_command(arguments, os.environ.get(NO_SERVER) or ABSENT)
    elif request.kind == "mcp":
        relay(connection, request)
    else:
        raw = read_input()
        answer = ask(connection, request, raw)
        if answer is None:
            _restore_input(raw)
            _become_command(arguments, ASKED)
        else:
            write_answer(answer)


def relay(connection: socket, request: Request) -> None:
    """Relay an MCP conversation through the server; the command takes over if the server stops."""
    # Last on the path: our packages `http` and `mcp` must not hide others of that name.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import mcp_relay  # type: ignore[import-not-found]

    mcp_relay.Conversation(connection, request, command(request.words())).run()


def _forget_relative_paths() -> None:
    """Remove from PYTHONPATH what means the working directory, as `$PYTHONPATH:/more` does: it may be anybody's."""
    given = os.environ.get("PYTHONPATH")
    if not given:
        return
    kept = [path for path in given.split(os.pathsep) if path.startswith("/")]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        del os.environ["PYTHONPATH"]


def _may_answer_here() -> bool:
    """Return whether the ordinary command's process would be like this one: Python's search path was not changed."""
    return sys.flags.isolated == 1 and not any(name.startswith("PYTHONPATH") for name in os.environ)


def _answer_here(arguments: list[str]) -> None:
    """Run the ordinary command, `python -m nanoclaw_memory`, without starting Python a second time."""
    import site
    from importlib import import_module

    site.main()
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    os.environ[NO_SERVER] = os.environ.get(NO_SERVER) or ABSENT  # it was looked for a moment ago
    sys.argv[1:] = arguments
    import_module("nanoclaw_memory.__main__").main()


def _become_command(arguments: list[str], server: str) -> None:
    os.environ[NO_SERVER] = server  # there is none, or it was asked a moment ago
    os.execv(sys.executable, command(arguments))  # noqa: S606


def _restore_input(raw: bytes) -> None:
    """Make what was read standard input again, for the command that follows."""
    path = f"/tmp/.ncm-{os.getpid()}-{os.urandom(8).hex()}"  # noqa: S108 - created exclusively, gone at once
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    with open(handle, "wb", closefd=False) as stream:
        stream.write(raw)
    os.lseek(handle, 0, os.SEEK_SET)
    os.dup2(handle, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
