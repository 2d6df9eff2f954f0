"""Commands that put memory into a client, and out again."""

from __future__ import annotations

from pathlib import Path

import click

from nanoclaw_memory.interfaces.cli.common import Caller, command, pass_caller
from nanoclaw_memory.interfaces.install.clients import CLIENTS, Commands
from nanoclaw_memory.interfaces.install.install import FileChange, plan, plan_removal, program
from nanoclaw_memory.interfaces.install.install import install as put_in
from nanoclaw_memory.interfaces.install.install import uninstall as take_out

CLIENT = click.argument("client", type=click.Choice(list(CLIENTS)))
DRY = click.option("--dry-run", is_flag=True, help="Only show the change.")
PROJECT = click.option("--project", is_flag=True, help="In this directory's files, not in your own.")


@command("install")
@CLIENT
@DRY
@PROJECT
@pass_caller
def install(caller: Caller, client: str, dry_run: bool, project: bool) -> None:
    """Put memory into CLIENT: its hooks where it runs hooks, the MCP server everywhere.

    The exact change is shown; what was there before is kept, and `uninstall` brings it back.

    \b
    ncm install claude-code --dry-run
    ncm install codex
    ncm install cursor --project
    """
    with caller.memory(new=True) as memory:
        changes = plan(client, _commands(caller, memory.home.root), _folder(project))
        if not dry_run:
            memory.init()
            put_in(changes, _record(memory.home.root, client, project))
    _show(caller, client, changes, dry_run, "is installed already")


@command("uninstall")
@CLIENT
@DRY
@PROJECT
@pass_caller
def uninstall(caller: Caller, client: str, dry_run: bool, project: bool) -> None:
    """Take memory out of CLIENT again; your memory itself stays.

    \b
    ncm uninstall claude-code
    """
    with caller.memory(new=True) as memory:
        home = memory.home.root
    record = _record(home, client, project)
    changes = plan_removal(client, _commands(caller, home), record, _folder(project))
    if not dry_run:
        take_out(changes, record)
    _show(caller, client, changes, dry_run, "is not installed")


def _commands(caller: Caller, home: Path) -> Commands:
    """How the client calls us; any home but the usual one is named, for a client has not our environment."""
    usual = home.resolve() == (Path.home() / ".nanoclaw").resolve()
    options = [] if usual else ["--home", str(home.resolve())]
    options += ["--group", caller.group] if caller.group != "main" else []
    options += ["--shared"] if caller.shared else []
    return Commands(program(), tuple(options))


def _folder(project: bool) -> Path | None:
    return Path.cwd() if project else None


def _record(home: Path, client: str, project: bool) -> Path:
    from nanoclaw_memory.text import fingerprint

    where = f"-{fingerprint(str(Path.cwd()))[:12]}" if project else ""
    return home / "installed" / f"{client}{where}.json"


def _show(caller: Caller, client: str, changes: list[FileChange], dry_run: bool, nothing: str) -> None:
    rows = [{"path": change.path, "diff": change.diff, "removed": change.after is None} for change in changes]
    done = "would change" if dry_run else "changed"
    text = "\n".join(change.diff for change in changes) or f"{client} {nothing}; nothing changed."
    caller.show({"client": client, "dry_run": dry_run, "files": rows}, text)
    if changes and not caller.json:
        click.echo(f"{done}: {', '.join(str(change.path) for change in changes)}", err=True)
