"""The commands that install writes into clients, and how they are recognised in a client's files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

SERVER = "nanoclaw-memory"
LAUNCHER = "nanoclaw-client"
_GUARD = ["2>/dev/null", "||", "true"]
# Forms of earlier releases.
_SHIMS = ("/nanoclaw_memory/interfaces/shim.py", "/nanoclaw_memory/faces/shim.py")
_BY_HAND = ("ncm", "nanoclaw-memory")


class Target(msgspec.Struct, frozen=True):
    """The memory that a client's commands name."""

    home: str = ""  # empty: the usual one
    group: str = "main"
    shared: bool = False

    @classmethod
    def of(cls, home: Path, group: str = "main", shared: bool = False) -> Target:
        """Return the memory of a home's group; the usual home is not named, because it may move with the person."""
        usual = home.resolve() == (Path.home() / ".nanoclaw").resolve()
        return cls("" if usual else str(home.resolve()), group, shared)

    @property
    def options(self) -> list[str]:
        """Return the options that name it."""
        home = ["--home", self.home] if self.home else []
        group = ["--group", self.group] if self.group != "main" else []
        return [*home, *group, *(["--shared"] if self.shared else [])]

    def __str__(self) -> str:
        parts = [self.home or "~/.nanoclaw", f"group {self.group}", "shared" if self.shared else ""]
        return ", ".join(filter(None, parts))


class Call(msgspec.Struct, frozen=True):
    """A command in a client's file that runs this program."""

    target: Target
    form: str  # launcher: as we write it; shim: as earlier releases did; hand: a person's own

    @property
    def is_ours(self) -> bool:
        """Return whether install wrote it: only then may it be changed."""
        return self.form != "hand"

    def serves(self, target: Target) -> bool:
        """Return whether it is for this memory; what a person's own call does not name comes from the environment."""
        return self.target.home in ("", target.home) and self.target.group in ("main", target.group)


class Commands(msgspec.Struct, frozen=True):
    """How a client calls us: the launcher, and the memory that it is for."""

    launcher: str
    target: Target

    @property
    def words(self) -> list[str]:
        """Return the launcher and the options that name the memory."""
        return [self.launcher, *self.target.options]

    def server(self, **more: Any) -> dict[str, Any]:
        """Return an MCP server as most clients declare it."""
        return {**more, "command": self.launcher, "args": [*self.target.options, "mcp"]}

    def hook(self, event: str) -> str:
        """Return a shell command that succeeds even when the launcher is missing: a failing hook blocks a client."""
        return " ".join([shlex.join([*self.words, "hook", event]), *_GUARD])


def call_of_server(entry: Any) -> Call | None:
    """Return the call in a server's declaration, with its arguments separate or in one list."""
    if not isinstance(entry, dict):
        return None
    command, arguments = entry.get("command"), entry.get("args") or []
    words = [command] if isinstance(command, str) else command
    if not isinstance(words, list) or not isinstance(arguments, list):
        return None
    return call_of([*words, *arguments])


def call_of_plugin(entry: Any) -> Call | None:
    """Return the call in the settings of our plugin."""
    settings = entry.get("config") if isinstance(entry, dict) else None
    words = settings.get("command") if isinstance(settings, dict) else None
    return call_of([*words, "hook", "stop"]) if isinstance(words, list) else None


def call_of_hook(command: Any) -> Call | None:
    """Return the call in a hook's shell command; None for any other command, even one that includes a call of ours."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return None
    return call_of(words[:-3] if words[-3:] == _GUARD else words)


def call_of(words: Sequence[Any]) -> Call | None:
    """Parse a call from all of these words; return None when they are no call of ours."""
    if not words or not all(isinstance(word, str) for word in words):
        return None
    if words[0].endswith(f"/bin/{LAUNCHER}"):
        form, rest = "launcher", list(words[1:])
    elif list(words[1:3]) == ["-I", "-S"] and len(words) > 3 and words[3].endswith(_SHIMS):
        form, rest = "shim", list(words[4:])
    elif words[0].rpartition("/")[2] in _BY_HAND:
        form, rest = "hand", list(words[1:])
    else:
        return None
    target = _target(rest)
    return Call(target, form) if target and _is_verb(rest) else None


def _target(rest: list[str]) -> Target | None:
    """Remove the leading options and return the memory that they name."""
    given = {"--home": "", "--group": "main"}
    shared = False
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--shared":
            shared = True
        elif name in given and (equals or rest):
            given[name] = value if equals else rest.pop(0)
        else:
            return None
    home = Path(given["--home"]).expanduser() if given["--home"] else Path.home() / ".nanoclaw"
    return Target.of(home, given["--group"], shared)


def _is_verb(rest: list[str]) -> bool:
    return rest[:1] == ["mcp"] or (rest[:1] == ["hook"] and len(rest) == 2)
