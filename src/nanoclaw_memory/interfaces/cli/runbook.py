"""Commands on runbooks: list, show."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import plural


@group("runbook")
def runbook() -> None:
    """How-tos of the group: memory/tools-NAME.md."""


@runbook.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the runbooks.

    \b
    ncm runbook list
    """
    with caller.memory() as memory:
        found = memory.workspace.runbooks()
    lines = [f"{one.name:<24} {one.title} ({plural(one.chars, 'character')})" for one in found]
    caller.show({"runbooks": found}, "\n".join(lines) or "No runbooks yet: write memory/tools-NAME.md")


@runbook.command("show")
@click.argument("name")
@pass_caller
def show(caller: Caller, name: str) -> None:
    """Print a runbook.

    \b
    ncm runbook show deploy
    """
    with caller.memory() as memory:
        lines = memory.workspace.runbook(name)
    caller.show({"path": lines.path, "text": lines.text}, lines.text)
