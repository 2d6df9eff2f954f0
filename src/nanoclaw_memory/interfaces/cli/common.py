"""What every command shares: lazy loading, global options before or after it, one way to print."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.shim import Request
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Caller(msgspec.Struct):
    """The global options of one call."""

    home: str | None = None  # Memory falls back to NANOCLAW_HOME
    group: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_GROUP") or "main")
    shared: bool = False
    json: bool = False
    session: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_SESSION", ""))
    overrides: dict[str, str] = msgspec.field(default_factory=dict)
    origin: str = "owner"  # `ncm mcp` sets it to "agent"; no option does

    def memory(self, new: bool = False) -> Memory:
        """Open the memory that these options name; only with `new` may it be missing."""
        from nanoclaw_memory.types import Scope

        memory = self.memory_as(Scope(self.group, self.session, not self.shared, self.origin))
        if not new:
            memory.admin.require_home()
        return memory

    def memory_as(self, scope: Scope) -> Memory:
        """Open the memory of these options' home as another scope sees it."""
        from nanoclaw_memory.memory import Memory

        return Memory.open(self.home, scope, overrides=self.overrides, directory=Path.cwd())

    def options(self) -> list[str]:
        """The options that name this home and scope to another process."""
        named = {"--home": self.home, "--group": self.group, "--session": self.session}
        words = [word for name, value in named.items() if value for word in (name, value)]
        return [*words, "--shared"] if self.shared else words

    def request(self, kind: str, argument: str) -> Request:
        """A request to the home's server with these options."""
        from nanoclaw_memory.interfaces import shim

        request = shim.Request()
        request.home = self.home or request.home
        request.group, request.session, request.shared = self.group, self.session, self.shared
        request.kind, request.argument = kind, argument
        return request

    def show(self, output: Output) -> None:
        """Print the result as JSON, or as text and notes for a person; a failure ends with exit code 1."""
        if self.json:
            click.echo(json.dumps({"ok": True, **plain(output.result)}, ensure_ascii=False, default=str))
        else:
            text = output.text if isinstance(output.text, str) else "\n".join(output.text)
            if text := text or output.empty:
                click.echo(text.rstrip("\n"))
            for note in filter(None, output.notes):
                click.echo(note, err=True)
        if output.failed:
            raise click.exceptions.Exit(1)


class Output(msgspec.Struct, frozen=True):
    """What a command prints."""

    result: Any  # a struct or a dict: the JSON object
    text: str | Iterable[str] = ""  # for a person, on standard output; several are lines
    empty: str = ""  # the text when there is none
    notes: Iterable[str] = ()  # for a person, on standard error
    failed: bool = False


def listing(key: str, found: Sequence[T], line: Callable[[T], str], empty: str) -> Output:
    """A list under its key, a line for each."""
    return Output({key: found}, map(line, found), empty)


def noted(problems: Iterable[str]) -> list[str]:
    """Problems that did not stop a command, as notes."""
    return [f"note: {problem}" for problem in problems if problem]


def fields(value: object, *names: str) -> dict[str, Any]:
    """The named attributes, for JSON that has only some of a struct's."""
    return {name: getattr(value, name) for name in names}


def plain(result: Any) -> Any:
    """Structs, and what contains them, as JSON values."""
    return msgspec.to_builtins(result, enc_hook=str, str_keys=True)


def caller_of(context: click.Context) -> Caller:
    """The global options that a command was called with."""
    return context.find_root().ensure_object(Caller)


@cache
def global_options() -> tuple[click.Parameter, ...]:
    """--home, --group, --shared, --session, --set and --json, for the root and for every command."""
    return (
        _option("--home", metavar="DIR", help="Where memory lives; default NANOCLAW_HOME, else ~/.nanoclaw."),
        _option("--group", metavar="NAME", help="Whose memory; default NANOCLAW_GROUP, else main."),
        _option("--shared", is_flag=True, help="Ask as a shared chat: private memory stays hidden."),
        _option("--session", metavar="ID", help="The session that asks; default NANOCLAW_SESSION."),
        _option("--set", metavar="KEY=VALUE", multiple=True, help="A setting for this call."),
        _option("--json", is_flag=True, help="Print JSON."),
    )


def _option(flag: str, **settings: Any) -> click.Option:
    """An option whose value goes into the caller's field of that name."""
    field = {"--set": "overrides"}.get(flag, flag[2:])

    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
        if value in (None, False, ()):
            return
        if field == "overrides":
            caller_of(context).overrides.update(_pair(text) for text in value)
        else:
            setattr(caller_of(context), field, value)

    return click.Option([flag], callback=keep, expose_value=False, default=None, **settings)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE, such as memory.chunkSize=300")
    return key, value


class Command(click.Command):
    """A command with the global options; its function gets the caller."""

    callback: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *global_options()]

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


class CommandGroup(click.Group):
    """A command with commands below it."""

    command_class = MemoryCommand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *global_options()]


def command(name: str, cls: type[Command] = MemoryCommand, **settings: Any) -> Callable[[F], Command]:
    """Declare a top-level command."""
    return click.command(name, cls=cls, **settings)


def group(name: str, **settings: Any) -> Callable[[F], CommandGroup]:
    """Declare a command with commands below it."""
    return click.group(name, cls=CommandGroup, **settings)


class LazyGroup(click.Group):
    """Lists commands from a table and imports a module only to run its command."""

    def __init__(self, *args: Any, commands_table: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = commands_table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"nanoclaw_memory.interfaces.cli.{self.table[cmd_name][0]}")
        variable = {"import": "import_"}.get(cmd_name, cmd_name.replace("-", "_"))
        found: click.Command = getattr(module, variable)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])


def report_error(kind: str, message: str, hint: str, code: int, as_json: bool) -> int:
    """Report what went wrong and what helps; returns the exit code."""
    if as_json:
        error = {"type": kind, "message": message, "hint": hint}
        click.echo(json.dumps({"ok": False, "error": error}, ensure_ascii=False))
    else:
        click.echo(f"ncm: {message}", err=True)
        if hint:
            click.echo(f"  {hint}", err=True)
    return code


def limit_option(*names: str, most: int, default: int, help: str) -> Callable[[F], F]:
    """Declare how many results are wanted, from 1 to `most`."""
    return click.option(
        *names, "limit", type=click.IntRange(1, most), default=default, show_default=True, help=help
    )


def given_text(text: str) -> str:
    """The text of an argument; of `-`, what comes on standard input."""
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
    """Whether a person can be asked: they type here and see what is printed."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
