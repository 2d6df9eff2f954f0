"""Commands that set memory up: init, install, uninstall."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from nanoclaw_memory.errors import InvalidValue, Refused
from nanoclaw_memory.interfaces.cli import UnknownName, as_called
from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    at_terminal,
    command,
    listing,
    noted,
)
from nanoclaw_memory.interfaces.install.calls import Commands, Target
from nanoclaw_memory.interfaces.install.clients import CLIENTS
from nanoclaw_memory.interfaces.shim import is_remote
from nanoclaw_memory.text import nearest_names, plural

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.install.install import InstallPlan
    from nanoclaw_memory.interfaces.install.survey import ClientState
    from nanoclaw_memory.memory import Memory

_PLUGINS = ("policies", "graph-memory", "recall", "continuity", "stability", "growth-vectors")
# The recommended plugins for each use; what is not named keeps its default.
PROFILES: dict[str, dict[str, str]] = {
    "personal": {"plugins.allow": json.dumps(_PLUGINS)},
    "project": {"plugins.allow": json.dumps(_PLUGINS[:-1])},
    "team": {"plugins.allow": json.dumps(_PLUGINS[:-2])},
    "code": {"plugins.allow": json.dumps(_PLUGINS[:-2]), "cron.ragReindex": ""},
    "minimal": {"plugins.allow": "[]", "cron.ragReindex": ""},
}


class ClientName(click.Choice[str]):
    """The name of a known client; for an unknown one, similar names are suggested."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return value
        near = nearest_names(value, self.choices)
        raise UnknownName(f"{value!r} is no client that we know", near or ["--list"], ctx)


CLIENT = click.argument("client", type=ClientName(list(CLIENTS)))
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show the change.")
PROJECT = click.option("--project", is_flag=True, help="In this directory's files, not in your own.")


@command("init", cls=Command)
@click.option("--profile", type=click.Choice(list(PROFILES)), help="Set up for one use.")
def init(caller: Caller, profile: str | None) -> None:
    """Create a home, or with --group a group in it; files that exist are kept.

    At a terminal, a new home asks for your name, your time zone and the client to connect; Enter goes on. A profile
    sets which plugins run: personal all of them; project all but lessons; team and code neither lessons nor
    stability; minimal none: files, facts and search. Code and minimal read no domain documents by the clock.

    \b
    ncm init
    ncm init --group family
    ncm init --profile code
    """
    with caller.memory(new=True) as memory:
        result = memory.init()
        for key, value in PROFILES[profile].items() if profile else ():
            memory.admin.config_set(key, value)
        is_new = "nanoclaw.json" in result.created and at_terminal() and not caller.json
        if is_new:
            _ask_who(memory)
    counts = [f"{plural(len(result.created), 'file')} created"] if result.created else []
    counts += [f"{plural(len(result.kept), 'file')} kept"] if result.kept else []
    own = "" if caller.group == "main" else f", group {caller.group}"
    caller.show(Output(result, f"Memory at {result.home}{own} ({', '.join(counts)})"))
    if is_new:
        for number, client in enumerate(_ask_for_clients()):
            install_into(caller, client, models=False if number else None, in_full=False)


def _ask_who(memory: Memory) -> None:
    """Ask for name and time zone, and write them where agents and the clock find them."""
    from nanoclaw_memory.clock import machine_zone

    name = click.prompt("Your name", default="", show_default=False)
    here = machine_zone() or "UTC"
    named = click.prompt("Your time zone", default=here, value_proc=_zone)
    if named != here:
        memory.admin.config_set("user.timezone", named)
    memory.workspace.introduce({"name": name, "timezone": named})


def _zone(typed: str) -> str:
    """Return a time zone for its name or its city; ask again when there is none."""
    from nanoclaw_memory.clock import zone_named

    try:
        return zone_named(typed)
    except InvalidValue as error:
        raise click.UsageError(f"{error.message}; {error.hint}") from None


def _ask_for_clients() -> list[str]:
    """Ask which clients of this machine to connect."""
    from nanoclaw_memory.interfaces.install.survey import survey

    found = [
        client.name for client in survey() if client.here and client.installed == "no" and not client.plugin
    ]
    click.echo(
        f"Clients found here: {', '.join(found)}" if found else "No client that we know was found here."
    )
    chosen: list[str] = click.prompt(
        "Connect which", default=" ".join(found[:1]) or "none", value_proc=_clients
    )
    return chosen


def _clients(typed: str) -> list[str]:
    names = [] if typed.strip().lower() in ("none", "no", "n") else typed.replace(",", " ").split()
    for name in names:
        if name not in CLIENTS:
            near = nearest_names(name, CLIENTS)
            raise click.UsageError(f"{name!r} is no client that we know; {', '.join(near) or 'or none'}?")
    return names


@command("install", cls=Command)
@click.argument("client", type=ClientName(list(CLIENTS)), required=False)
@click.option("--list", "listed", is_flag=True, help="Show the clients, which are here, and what each gets.")
@click.option("--replace", is_flag=True, help="Replace an installation for another home or group.")
@click.option(
    "--server/--no-server",
    default=None,
    help="Whether a session starts a server, which ends when idle. Default: as chosen before, else yes.",
)
@click.option(
    "--models/--no-models",
    default=None,
    help="Whether to fetch the local model (72 MB, once). Default: you are asked; without a terminal, no.",
)
@DRY_RUN
@PROJECT
def install(caller: Caller, client: str | None, listed: bool, project: bool, **choices: Any) -> None:
    """Put memory into CLIENT: its hooks where it runs hooks, the MCP server everywhere.

    The exact change is shown; what was there before is kept, and `uninstall` brings it back. Each session of a client
    with hooks makes sure that a server runs: prompts are then answered by meaning, in milliseconds. It listens on a
    socket in the home only and ends after half an hour without a client (server.autostart, server.idleMinutes).

    \b
    ncm install --list
    ncm install claude-code --dry-run
    ncm install codex --models
    ncm install gemini --no-server
    ncm install cursor --project
    """
    if listed:
        return _list(caller)
    if client is None:
        raise UnknownName("which client?", ["--list"], click.get_current_context())
    install_into(caller, client, folder=_folder(project), **choices)


def install_into(
    caller: Caller,
    client: str,
    *,
    replace: bool = False,
    dry_run: bool = False,
    folder: Path | None = None,
    server: bool | None = None,
    models: bool | None = None,
    in_full: bool = True,
) -> None:
    """Install memory into a client; report the changes, `in_full` line by line, and the next step.

    `server` says whether its sessions start one, `models` whether to fetch the local model; None is the usual choice.
    """
    from nanoclaw_memory.interfaces.cli import offers
    from nanoclaw_memory.interfaces.install import install as installer

    with caller.memory(new=True) as memory:
        home = memory.home.root
        commands = _commands(caller, home)
        plan = installer.plan(client, commands, folder)
        if not dry_run:
            _agree(client, plan, commands.target, replace)
            if not is_remote(str(home)):
                memory.init()
            taken_over = [installer.record_of(_home_of(other), client, folder) for other in plan.others]
            installer.install(plan.changes, installer.record_of(home, client, folder), taken_over)
        served = offers.choose_server(home, client, server, dry_run)
        fetched = offers.fetch_model(memory, bool(models)) if caller.json and not dry_run else ""
        more = {"server": served, **({"model": fetched} if fetched else {})}
        _show(caller, client, plan, dry_run, "is installed already", in_full, more)
        if not dry_run and not caller.json:
            if plan.changes:
                _say(f"{CLIENTS[client].title} remembers from its next session on, in {home}")
                _say(f"  what it got: ncm injections; to take it out: ncm uninstall {client}")
            _say(offers.server_line(home, client, served))
            fetched = offers.fetch_model(memory, models)
            _say(offers.model_line(fetched))
    if models and fetched not in ("", offers.INSTALLED):
        raise click.exceptions.Exit(1)


def _say(line: str) -> None:
    """Tell the person about the next step, on standard error."""
    if line:
        click.echo(as_called(line), err=True)


def _list(caller: Caller) -> None:
    """Show every client: whether it is on this machine, what it supports, and whether memory is installed in it."""
    from nanoclaw_memory.interfaces.install.survey import survey

    def line(state: ClientState) -> str:
        gets = "hooks and MCP" if state.hooks else "MCP"
        here = "found" if state.here else "not found"
        by = {"no": "", "yes": f"installed for {'; '.join(state.memories)}"}.get(
            state.installed, state.installed
        )
        has = ", ".join(filter(None, [state.problem, "plugin" if state.plugin else "", by]))
        return f"{state.name:<15} {here:<10} {gets:<14} {has}".rstrip()

    caller.show(listing("clients", survey(), line, ""))


def _agree(client: str, plan: InstallPlan, target: Target, replace: bool) -> None:
    """Ask before replacing an installation for another memory."""
    if not plan.others or replace:
        return
    others = "; ".join(map(str, plan.others))
    what = f"{client} is installed for another memory ({others}); this one ({target}) would replace it"
    if not at_terminal():
        raise Refused(what, f"to replace it: ncm install {client} --replace")
    if not click.confirm(f"{what}. Replace it?"):
        raise Refused("nothing was changed")


@command("uninstall", cls=Command)
@CLIENT
@DRY_RUN
@PROJECT
def uninstall(caller: Caller, client: str, dry_run: bool, project: bool) -> None:
    """Take memory out of CLIENT again; your memory itself stays.

    With the last client, a server that a session started ends.

    \b
    ncm uninstall claude-code
    """
    from nanoclaw_memory.interfaces.http.claim import end_self_started
    from nanoclaw_memory.interfaces.install import install as installer

    with caller.memory(new=True) as memory:
        home = memory.home.root
    record, target = installer.record_of(home, client, _folder(project)), _target(caller, home)
    plan = installer.plan_removal(client, target, record, _folder(project))
    if plan.others and not plan.changes:
        options = " ".join(plan.others[0].options)
        raise Refused(
            f"{client} is installed for {plan.others[0]}", f"to remove that: ncm {options} uninstall {client}"
        )
    ended = False
    if not dry_run:
        installer.uninstall(plan.changes, record)
        ended = not installer.has_clients(home) and end_self_started(home)
    _show(caller, client, plan, dry_run, "is not installed", more={"server_ended": ended})


def _target(caller: Caller, home: Path) -> Target:
    return Target.of(home, caller.group, caller.shared)


def _commands(caller: Caller, home: Path) -> Commands:
    """Return how the client calls us; any home but the usual one is named, because a client lacks our environment."""
    from nanoclaw_memory.interfaces.install import launcher

    if launcher.is_cached() and not caller.json:
        click.echo(
            "note: this program runs from a cache; to keep it: uv tool install nanoclaw-memory", err=True
        )
    return Commands(str(launcher.path_in(home)), _target(caller, home))


def _home_of(target: Target) -> Path:
    return Path(target.home) if target.home else Path.home() / ".nanoclaw"


def _folder(project: bool) -> Path | None:
    return Path.cwd() if project else None


def _show(
    caller: Caller,
    client: str,
    plan: InstallPlan,
    dry_run: bool,
    nothing: str,
    in_full: bool = True,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    changes = plan.changes
    rows = [{"path": change.path, "diff": change.diff, "removed": change.after is None} for change in changes]
    result = {"client": client, "dry_run": dry_run, "files": rows, "notes": plan.notes, **more}
    paths = ", ".join(str(change.path) for change in changes)
    note = f"{'would change' if dry_run else 'changed'}: {paths}" if changes else ""
    diffs = "\n".join(change.diff for change in changes if in_full)
    empty = "" if changes else f"{client} {nothing}; nothing changed."
    caller.show(Output(result, diffs, empty, [note, *noted(plan.notes)]))
