"""The command line: `nanoclaw-memory` and its short form `ncm`."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import re
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import click

# name -> (module, description); the module is imported only when the command runs.
COMMANDS = {
    "init": ("setup", "Create a home, or a group in it."),
    "write": ("workspace", "Append a line to today's log."),
    "log": ("workspace", "Show the entries of a day's log."),
    "boot": ("workspace", "Print what an agent reads at session start."),
    "get": ("workspace", "Print lines of a memory file."),
    "project": ("projects", "What a project's agents must know: list, new, show, note, share, close."),
    "projects": ("projects", "List the projects."),
    "agents": ("projects", "The roster of agents: list, add."),
    "off": ("admin", "Switch memory off in a repository."),
    "on": ("admin", "Switch it on again."),
    "runbook": ("projects", "How-tos: list, show."),
    "policy": ("workspace", "Rules before risky actions: add, list, check."),
    "checkpoint": ("workspace", "Save the state before risk, compare, restore."),
    "migrate-store": ("admin", "Move the whole home to PostgreSQL, or back to files."),
    "mirror": ("workspace", "Work on a team's pages as files in a folder of your own."),
    "db": ("admin", "Check the database files."),
    "status": ("admin", "Show what there is, at a glance."),
    "doctor": ("admin", "Check everything and name the command that helps."),
    "models": ("admin", "Fetch and check the models that run on this machine."),
    "index": ("search", "Bring the search index up to date."),
    "search": ("search", "Find lines in memory."),
    "watch": ("search", "Keep the index up to date while files change."),
    "corpus": ("search", "Domain documents: add, list, reindex, remove."),
    "bench": ("search", "Compare embedders on your own notes; estimate what they cost."),
    "eval": ("search", "Ask your own questions, and see what was lost."),
    "graph": ("graph", "Facts and relations: search, add, relate, history, import, show, …"),
    "entries": ("entries", "Store, list, show and delete typed entries."),
    "recall": ("entries", "Recall what answers a question, within a token budget."),
    "brief": ("entries", "Print what matters, for a session's start."),
    "audit": ("entries", "Show what memory costs; check the audit log."),
    "share": ("entries", "Publish entries to other groups."),
    "turn": ("conversations", "Print the blocks an agent gets before it answers."),
    "injections": ("conversations", "Show what was injected, why, and what it cost."),
    "lessons": ("lessons", "What corrections taught: list, show, add, retire, outcomes."),
    "exchange": ("conversations", "Archive what was asked and answered."),
    "groups": ("host", "Chats that have an agent of their own: add, list, remove."),
    "tasks": ("host", "Scheduled tasks: add, list, update, pause, resume, remove, logs, run."),
    "sessions": ("conversations", "Conversations: list, show, search, transcripts, archives, archive."),
    "forget": ("forget", "Remove something for good, from everywhere."),
    "import": ("transfer", "Bring in what another memory, or your other machine, exported."),
    "export": ("transfer", "Write what is not Markdown as text, for your other machines."),
    "install": ("setup", "Put memory into Claude Code, Codex, Cursor, …"),
    "uninstall": ("setup", "Take it out again."),
    "upkeep": ("upkeep", "Keep memory healthy; run it daily, or let cron do it."),
    "review": ("upkeep", "Decide on what upkeep proposes."),
    "heartbeat": ("upkeep", "Print the checklist of HEARTBEAT.md with its state."),
    "install-cron": ("upkeep", "Have this machine run upkeep every hour."),
    "hook": ("server", "Answer an agent's hook."),
    "mcp": ("server", "Serve memory to an MCP client."),
    "serve": ("server", "Serve hooks, MCP and an API from one process that stays warm."),
    "connect": ("server", "Use the memory of a server on another machine."),
    "web": ("server", "Open the page: see, correct and trust what agents know."),
    "token": ("server", "Tokens for agents over HTTP: new, list, revoke."),
    "config": ("admin", "Show, read and change settings."),
    "completion": ("admin", "Print the completion of a shell: bash, zsh, fish."),
}
SECTIONS = {
    "Begin": "init install uninstall doctor status models completion",
    "Remember and find": "write log search recall brief graph entries lessons sessions forget import export corpus",
    "See and decide": "web turn injections boot review upkeep heartbeat exchange off on audit eval bench",
    "Pages, projects, groups": "get project projects runbook policy checkpoint mirror groups agents share tasks",
    "Run": "serve token connect mcp hook index watch install-cron config db migrate-store",
}
AT_TERMINAL_EVERY, ELSEWHERE_EVERY = 0.2, 30.0  # seconds between two steps that are shown
# Words that people try first for something that has another name here.
SYNONYMS = {
    **dict.fromkeys(("remember", "note", "save"), "write"),
    **dict.fromkeys(("find", "query", "ask", "grep"), "search"),
    **dict.fromkeys(("delete", "remove", "rm"), "forget"),
    **dict.fromkeys(("settings", "set"), "config"),
    **dict.fromkeys(("setup",), "install"),
    **dict.fromkeys(("start", "server", "daemon"), "serve"),
    **{"disconnect": "connect", "disable": "off", "enable": "on", "check": "doctor", "new": "init"},
}


class UnknownName(click.UsageError):
    """A command or a client that does not exist, with similar ones."""

    def __init__(self, what: str, near: Sequence[str], ctx: click.Context | None) -> None:
        super().__init__(what, ctx)
        path = ctx.command_path if ctx else program()
        self.hint = f"did you mean {', '.join(f'{path} {one}' for one in near)}?" if near else ""


class NamedGroup(click.Group):
    """A group of commands that suggests the nearest when one does not exist."""

    def suggest(self, ctx: click.Context, name: str) -> list[str]:
        """Return similar commands."""
        from nanoclaw_memory.text import nearest_names

        return nearest_names(name, self.list_commands(ctx))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise UnknownName(f"there is no command {name!r}", self.suggest(ctx, name), ctx)

    def get_help(self, ctx: click.Context) -> str:
        return as_called(super().get_help(ctx), general=True)


class RootGroup(NamedGroup):
    """List the commands of the table and import a module only to run its command."""

    def suggest(self, ctx: click.Context, name: str) -> list[str]:
        """Return commands with a similar name or meaning, or below another one."""
        if near := super().suggest(ctx, name) or [meant for word, meant in SYNONYMS.items() if word == name]:
            return near
        groups = ((one, self.get_command(ctx, one)) for one in COMMANDS)
        return [
            f"{one} {name}"
            for one, group in groups
            if isinstance(group, click.Group) and name in group.commands
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().resolve_command(ctx, [*args[1:], "--help"] if args[0] == "help" else args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"nanoclaw_memory.interfaces.cli.{COMMANDS[cmd_name][0]}")
        variable = {"import": "import_", "eval": "eval_"}.get(cmd_name, cmd_name.replace("-", "_"))
        found: click.Command = getattr(module, variable)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names.split()])


def _option(flag: str, **settings: Any) -> click.Option:
    """Return an option that sets the caller's field of that name."""
    field = {"--set": "overrides"}.get(flag, flag[2:])

    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
        if value in (None, False, ()):
            return
        from nanoclaw_memory.interfaces.cli.common import caller_of

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


# For the root and for every command.
GLOBAL_OPTIONS = (
    _option("--home", metavar="DIR", help="Where memory lives; default NANOCLAW_HOME, else ~/.nanoclaw."),
    _option("--group", metavar="NAME", help="Whose memory; default NANOCLAW_GROUP, else main."),
    _option("--shared", is_flag=True, help="Ask as a shared chat: private memory stays hidden."),
    _option("--session", metavar="ID", help="The session that asks; default NANOCLAW_SESSION."),
    _option(
        "--project", metavar="SLUG", help="Where this belongs; default NANOCLAW_PROJECT, else the directory."
    ),
    _option("--set", metavar="KEY=VALUE", multiple=True, help="A setting for this call."),
    _option("--json", is_flag=True, help="Print JSON."),
)


@click.command(
    cls=RootGroup,
    params=list(GLOBAL_OPTIONS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 refused. Every command takes --json.",
)
@click.version_option(package_name="nanoclaw-memory", prog_name="nanoclaw-memory")
def cli() -> None:
    """Persistent, layered memory for AI agents.

    \b
    ncm init                                      create ~/.nanoclaw
    ncm write "Chose SQLite" --tag decision -i 0.9
    ncm boot                                      what an agent reads at start
    """


@cache
def program() -> str:
    """Return the name under which the person called this program."""
    if sys.argv[0].endswith("/nanoclaw_memory/__main__.py"):
        return "python -m nanoclaw_memory"
    return "nanoclaw-memory" if sys.argv[0].endswith("nanoclaw-memory") else "ncm"


@cache
def called() -> str:
    """Return the same with the home that the person named: without it a hint would be about another one."""
    given = sys.argv[1:]
    named = [word[7:] for word in given if word.startswith("--home=")]
    named += [word for before, word in itertools.pairwise(given) if before == "--home"]
    if not named:
        return program()
    import shlex

    return f"{program()} --home {shlex.quote(named[-1])}"


def as_called(text: str, general: bool = False) -> str:
    """Rewrite the commands in a text of ours as the person called this program; in `general` ones only the name."""
    options = "--home|--group|--shared|--session|--project|--set|--json"
    ours = rf"(?<![\w./-])(?:ncm|nanoclaw-memory)(?= (?:{'|'.join(COMMANDS)}|{options})\b)(?! --home)"
    return re.sub(ours, lambda found: program() if general else called(), text)


class ProgressLine:
    """Show the progress of long work on standard error: a bar at a terminal, elsewhere a line at intervals."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin anew: the first line comes an interval after a command's start, not after its process's."""
        self._stage, self._began, self._shown = "", 0.0, time.monotonic()
        self._open = False  # whether the line contains a bar
        self.last = ""  # the unfinished step

    def show(self, stage: str, done: int, total: int) -> None:
        """Show a step, unless the last one was shown a moment ago."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._began = stage, now
        of = f"/{total:,}" if total else ""
        self.last = f"{done:,}{of} {stage}"
        if total and done >= total:
            self.last = ""
            self.clear()
        elif now - self._shown >= (AT_TERMINAL_EVERY if _seen() else ELSEWHERE_EVERY):
            self._shown = now
            seconds = (now - self._began) * (total - done) / done if done and total else 0.0
            self._write(self.last + _time_left(seconds), done / total if total else 0.0)

    def _write(self, text: str, share: float) -> None:
        if not _seen():
            click.echo(text, err=True)
            return
        bar = f"[{'#' * int(30 * share):.<30}] " if share else ""
        click.echo(f"\r\033[K{bar}{text}", nl=False, err=True)
        self._open = True

    def clear(self) -> None:
        """Remove the bar before something else is printed."""
        if self._open:
            click.echo("\r\033[K", nl=False, err=True)
            self._open = False


PROGRESS = ProgressLine()


def _seen() -> bool:
    return bool(sys.stderr and sys.stderr.isatty())


def _time_left(seconds: float) -> str:
    if not seconds:
        return ""
    return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"


def _report_interrupt(unfinished: str, given: Sequence[str]) -> None:
    """Report after Ctrl-C where long work stopped, and how to resume it."""
    import shlex

    again = shlex.join(word for word in given if word != "--rebuild")  # it would start from the beginning
    click.echo(f"stopped at {unfinished}: memory is sound", err=True)
    click.echo(f"  to go on: {program()} {again}", err=True)


def report_error(kind: str, message: str, hint: str, code: int, as_json: bool) -> int:
    """Report what went wrong and what helps; return the exit code."""
    from nanoclaw_memory.rendering import json_text, visible

    if as_json:
        error = {"type": kind, "message": message, "hint": hint}
        click.echo(json_text({"ok": False, "error": error}))
    else:
        click.echo(visible(f"ncm: {as_called(message)}"), err=True)
        if hint:
            click.echo(visible(f"  {as_called(hint)}"), err=True)
    return code


def _report_os_error(error: OSError, as_json: bool) -> int:
    """Report a full disk or a missing permission in one line, because it is no bug of ours."""
    if error.filename is None:  # only the output itself has no name
        _drop_output()
        as_json = False
    what = error.filename or "the output"
    message = f"{what} cannot be used: {error.strerror or error}"
    return report_error("OSError", message, "check free disk space and permissions", 1, as_json)


def _drop_output() -> None:
    """Keep Python from complaining at exit about output that could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; every outcome becomes an exit code, never a traceback for a user's mistake."""
    from nanoclaw_memory.errors import NanoClawError
    from nanoclaw_memory.progress import watching

    # A short command produces too little garbage to collect; importing alone would trigger the collector ten times.
    gc.set_threshold(100_000, 10, 10)
    # One query's vector arithmetic is too small for threads: they would only burn CPU while waiting.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given and not _is_hook(given)  # a client reads what a hook prints
    PROGRESS.start()
    try:
        with watching(PROGRESS.show):
            code = cli.main(given, prog_name=program(), standalone_mode=False)
    except click.ClickException as error:
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        hint = getattr(error, "hint", "") or (f"see: {path} --help" if path else "")
        message = error.format_message()
        if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the whole help
            if not as_json:
                click.echo(f"{message}\n", err=True)
            message = "a command is missing"
        code = report_error("Usage", message, hint, 2, as_json)
    except NanoClawError as error:
        code = report_error(type(error).__name__, error.message, error.hint, error.exit_code, as_json)
    except (click.Abort, KeyboardInterrupt):
        code = 130
        PROGRESS.clear()
        if PROGRESS.last:
            _report_interrupt(PROGRESS.last, given)
    except BrokenPipeError:
        _drop_output()  # the reader closed the pipe
        code = 0
    except OSError as error:
        code = _report_os_error(error, as_json)
    except UnicodeEncodeError:  # bytes of the terminal that are no text
        message = "an argument is not valid UTF-8"
        code = report_error("InvalidValue", message, "write it again as text", 2, as_json)
    gc.freeze()  # everything ends with the process: the interpreter need not search it for cycles first
    sys.exit(code if isinstance(code, int) and not _is_hook(given) else 0)


def _is_hook(given: Sequence[str]) -> bool:
    """Return whether the command is `hook`: whatever its arguments, a client takes a failure for a refusal."""
    valued = {"--home", "--group", "--session", "--project", "--set"}
    words = (word for before, word in zip(["", *given], given, strict=False) if before not in valued)
    return next((word for word in words if word in COMMANDS), "") == "hook"
