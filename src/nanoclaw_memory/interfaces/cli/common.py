"""What every command shares: lazy loading, global options before or after it, one way to print."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.shim import Request
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

F = TypeVar("F", bound=Callable[..., Any])


class Caller(msgspec.Struct):
    """The global options of one call."""

    home: str | None = None  # Memory falls back to NANOCLAW_HOME
    group: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_GROUP") or "main")
    shared: bool = False
    json: bool = False
    session: str = msgspec.field(default_factory=lambda: os.environ.get("NANOCLAW_SESSION", ""))
    overrides: dict[str, str] = msgspec.field(default_factory=dict)
    origin: str = "owner"  # a face for agents says so; no option does

    def memory(self, new: bool = False) -> Memory:
        """The memory these options name; only with `new` may it be one that is not there yet."""
        from nanoclaw_memory.types import Scope

        memory = self.memory_as(Scope(self.group, self.session, not self.shared, self.origin))
        if not new:
            memory.admin.require_home()
        return memory

    def memory_as(self, scope: Scope) -> Memory:
        """The memory of these options' home, as another scope sees it."""
        from nanoclaw_memory.memory import Memory

        return Memory.open(self.home, scope, overrides=self.overrides, directory=Path.cwd())

    def options(self) -> list[str]:
        """The options that name this home and scope to another process."""
        named = {"--home": self.home, "--group": self.group, "--session": self.session}
        words = [word for name, value in named.items() if value for word in (name, value)]
        return [*words, "--shared"] if self.shared else words

    def request(self, kind: str, argument: str) -> Request:
        """What the home's server is asked on behalf of these options."""
        from nanoclaw_memory.interfaces import shim

        request = shim.Request()
        request.home = self.home or request.home
        request.group, request.session, request.shared = self.group, self.session, self.shared
        request.kind, request.argument = kind, argument
        return request

    def show(self, result: Any, text: str) -> None:
        """Print the result as JSON, or as text for a person."""
        if self.json:
            click.echo(json.dumps({"ok": True, **plain(result)}, ensure_ascii=False, default=str))
        elif text:
            click.echo(text.rstrip("\n"))


pass_caller = click.make_pass_decorator(Caller, ensure=True)


def plain(result: Any) -> Any:
    """Structs, and what contains them, as JSON values."""
    return msgspec.to_builtins(result, enc_hook=str, str_keys=True)


def global_options() -> list[click.Parameter]:
    """--home, --group, --shared, --session, --set and --json, for the group and for every command."""
    return [
        click.Option(
            ["--home"],
            metavar="DIR",
            help="Where memory lives; default NANOCLAW_HOME, else ~/.nanoclaw.",
            **_kept("home"),
        ),
        click.Option(
            ["--group"],
            metavar="NAME",
            help="Whose memory; default NANOCLAW_GROUP, else main.",
            **_kept("group"),
        ),
        click.Option(
            ["--shared"],
            is_flag=True,
            help="Ask as a shared chat: private memory stays hidden.",
            **_kept("shared"),
        ),
        click.Option(
            ["--session"],
            metavar="ID",
            help="The session that asks; default NANOCLAW_SESSION.",
            **_kept("session"),
        ),
        click.Option(
            ["--set"],
            metavar="KEY=VALUE",
            multiple=True,
            help="A setting for this call.",
            **_kept("overrides"),
        ),
        click.Option(["--json"], is_flag=True, help="Print JSON.", **_kept("json")),
    ]


def _kept(name: str) -> dict[str, Any]:
    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
        if value in (None, False, ()):
            return
        caller = context.find_root().ensure_object(Caller)
        if name == "overrides":
            caller.overrides.update(_pair(text) for text in value)
        else:
            setattr(caller, name, value)

    return {"callback": keep, "expose_value": False, "default": None}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE, such as memory.chunkSize=300")
    return key, value


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *global_options()]


class Group(click.Group):
    """A command with commands below it."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *global_options()]


def command(name: str, **settings: Any) -> Callable[[F], Command]:
    """Declare a top-level command."""
    return click.command(name, cls=Command, **settings)


def group(name: str, **settings: Any) -> Callable[[F], Group]:
    """Declare a command with commands below it."""
    return click.group(name, cls=Group, **settings)


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
        found = (value for value in vars(module).values() if isinstance(value, click.Command))
        return next(command for command in found if command.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])


def report_error(kind: str, message: str, hint: str, code: int, as_json: bool) -> int:
    """Say what went wrong and what helps; gives the exit code."""
    if as_json:
        error = {"type": kind, "message": message, "hint": hint}
        click.echo(json.dumps({"ok": False, "error": error}, ensure_ascii=False))
    else:
        click.echo(f"ncm: {message}", err=True)
        if hint:
            click.echo(f"  {hint}", err=True)
    return code


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


def bar(done: int, total: int, label: str) -> None:
    """A progress line on standard error, only for a person at a terminal."""
    if not sys.stderr.isatty():
        return
    share = done / total if total else 1.0
    filled = int(share * 30)
    end = "\n" if done >= total else ""
    sys.stderr.write(f"\r{label} [{'#' * filled}{'.' * (30 - filled)}] {done:,}/{total:,}{end}")
    sys.stderr.flush()
