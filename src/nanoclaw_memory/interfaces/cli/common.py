"""Shared by all commands: the caller's options, the memory that these name, and one way to print."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec

from nanoclaw_memory.clock import local_minute
from nanoclaw_memory.interfaces.cli import GLOBAL_OPTIONS, PROGRESS, NamedGroup, as_called
from nanoclaw_memory.interfaces.shim import is_remote
from nanoclaw_memory.rendering import inert_lines, json_text, visible

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.shim import Request
    from nanoclaw_memory.memory import Memory

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Caller(msgspec.Struct):
    """The global options of one call."""

    home: str | None = None  # Memory falls back to NANOCLAW_HOME
    group: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_GROUP") or "main")
    shared: bool = False
    json: bool = False
    session: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_SESSION", ""))
    project: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_PROJECT", ""))
    overrides: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def root(self) -> Path:
        """Return the home that these options name."""
        return Path(self.home or os.environ.get("NANOCLAW_HOME") or "~/.nanoclaw").expanduser()

    def memory(self, new: bool = False, group: str = "") -> Memory:
        """Open the memory that these options name, or another group's; only with `new` may the home be missing."""
        from nanoclaw_memory.memory import Memory
        from nanoclaw_memory.project import project_of
        from nanoclaw_memory.types import Scope

        directory = Path.cwd()
        project = self.project or project_of(str(directory))
        scope = Scope(group or self.group, self.session, not self.shared, project=project)
        if is_remote(str(self.root)):
            from nanoclaw_memory.interfaces.remote.memory import RemoteMemory

            return cast("Memory", RemoteMemory(self.root, scope))
        memory = Memory.open(self.home, scope, overrides=self.overrides, directory=directory)
        if not new:
            memory.group.require_home()
        return memory

    def request(self, kind: str, argument: str) -> Request:
        """Return a request to the home's server with these options."""
        from nanoclaw_memory.interfaces import shim

        request = shim.Request()
        request.home = self.home or request.home
        request.group, request.session, request.shared = self.group, self.session, self.shared
        request.project = self.project
        request.kind, request.argument = kind, argument
        return request

    def show(self, output: Output) -> None:
        """Print the result as JSON, or as text and notes for a person; a failure ends with exit code 1."""
        PROGRESS.clear()
        if self.json:
            result = msgspec.to_builtins(output.result, enc_hook=str, str_keys=True)
            click.echo(json_text({"ok": True, **result}))
        else:
            text = output.text if isinstance(output.text, str) else "\n".join(map(_item, output.text))
            if output.exact and not (sys.stdout and sys.stdout.isatty()):
                click.echo(text, nl=False, color=True)  # a colour sequence in a file is part of it
            elif text := text or as_called(output.empty):
                click.echo((visible if output.fenced else inert_lines)(text.rstrip("\n")))
            for note in filter(None, output.notes):
                click.echo(_item(as_called(note)), err=True)
        if output.failed:
            raise click.exceptions.Exit(1)


class Output(msgspec.Struct, frozen=True):
    """What a command prints."""

    result: Any  # a struct or a dict: the JSON object
    text: str | Iterable[str] = ""  # for a person, on standard output; several are items of a list
    empty: str = ""  # the text when there is none
    notes: Iterable[str] = ()  # for a person, on standard error
    failed: bool = False
    fenced: bool = False  # recalled text between our own marks, escaped before
    exact: bool = False  # a person's own file: written to a pipe byte for byte


def answer_as_served(memory: Memory) -> None:
    """Answer as the home's server does, with the models, if a server is running."""
    root = memory.home.root
    if (root / "serve.lock").exists() and not is_remote(str(root)):
        from nanoclaw_memory.interfaces.http.claim import address_of

        own = memory.group.resources
        # Loaded before a turn's time limit starts, as in a server.
        own.resident = address_of(root) is not None and own.warm()


def _item(text: str) -> str:
    """Return an item of a list: only its first line begins at the line's start."""
    return re.sub(r"\n(?=\S)", "\n    ", inert_lines(text))


def listing(key: str, found: Sequence[T], line: Callable[[T], str], empty: str) -> Output:
    """Return a list under its key, a line per item."""
    return Output({key: found}, map(line, found), empty)


def clock_of(memory: Memory) -> Callable[[str], str]:
    """Return how to show stored moments: to the minute, in the person's time zone."""
    zone = None if is_remote(str(memory.home.root)) else memory.clock.now().tzinfo
    return lambda moment: local_minute(moment, zone)


def noted(problems: Iterable[str]) -> list[str]:
    """Return problems that did not stop a command, as notes."""
    return [f"note: {problem}" for problem in problems if problem]


def fields(value: object, *names: str) -> dict[str, Any]:
    """Return the named attributes, for JSON with only some of a struct's fields."""
    return {name: getattr(value, name) for name in names}


def caller_of(context: click.Context) -> Caller:
    """Return the global options of a command."""
    return context.find_root().ensure_object(Caller)


class Command(click.Command):
    """A command with the global options; its function gets the caller."""

    callback: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {option for param in self.params for option in param.opts}
        self.params += [option for option in GLOBAL_OPTIONS if own.isdisjoint(option.opts)]

    def get_help(self, ctx: click.Context) -> str:
        return as_called(super().get_help(ctx), general=True)

    def invoke(self, ctx: click.Context) -> Any:
        return ctx.invoke(self.callback, caller_of(ctx), **ctx.params)


class MemoryCommand(Command):
    """A command whose function gets the memory, and returns what to print; `new`: the home may be missing."""

    def __init__(self, *args: Any, new: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.new = new

    def invoke(self, ctx: click.Context) -> Any:
        with caller_of(ctx).memory(self.new) as memory:
            output = ctx.invoke(self.callback, memory, **ctx.params)
        caller_of(ctx).show(output)


class CommandGroup(NamedGroup):
    """A command with commands below it."""

    command_class = MemoryCommand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *GLOBAL_OPTIONS]


def command(name: str, cls: type[Command] = MemoryCommand, **settings: Any) -> Callable[[F], Command]:
    """Declare a top-level command."""
    return click.command(name, cls=cls, **settings)


def group(name: str, **settings: Any) -> Callable[[F], CommandGroup]:
    """Declare a command with commands below it."""
    return click.group(name, cls=CommandGroup, **settings)


def limit_option(*names: str, most: int, default: int, help: str) -> Callable[[F], F]:
    """Declare an option for the number of results, from 1 to `most`."""
    return click.option(
        *names, "limit", type=click.IntRange(1, most), default=default, show_default=True, help=help
    )


def given_text(text: str) -> str:
    """Return the text of an argument; for `-`, that of standard input."""
    if text != "-":
        return text
    from nanoclaw_memory.errors import InvalidValue

    if sys.stdin is None:
        raise InvalidValue("standard input is closed", "give the text itself, or pipe it in")
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidValue("standard input is not UTF-8 text", "convert it first: iconv -t utf-8") from None


def at_terminal() -> bool:
    """Return whether a person can be asked: both input and output are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
