"""Commands on checkpoints: create, list, show, restore, diff."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Checkpoint

MARKS = {"added": "+", "removed": "-", "changed": "~"}


@group("checkpoint")
def checkpoint() -> None:
    """Save the group's files and databases before risk, and bring them back."""


@checkpoint.command("create")
@click.argument("name")
@click.option("--reason", default="", help="Why; shown in the list.")
@pass_caller
def create(caller: Caller, name: str, reason: str) -> None:
    """Save the present state under a name.

    \b
    ncm checkpoint create before-migration --reason "moving to the new schema"
    """
    with caller.memory() as memory:
        made = memory.workspace.checkpoint(name, reason)
    caller.show(made, f"{_line(made)}\n{made.path}")


@checkpoint.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the checkpoints, oldest first.

    \b
    ncm checkpoint list
    """
    with caller.memory() as memory:
        found = memory.workspace.checkpoints()
    caller.show({"checkpoints": found}, "\n".join(_line(one) for one in found) or "No checkpoints yet.")


@checkpoint.command("show")
@click.argument("name")
@pass_caller
def show(caller: Caller, name: str) -> None:
    """Show what a checkpoint holds.

    \b
    ncm checkpoint show before-migration
    """
    with caller.memory() as memory:
        summary, manifest = memory.workspace.show_checkpoint(name)
    lines = [f"  {saved.path} ({saved.bytes:,} bytes)" for saved in manifest.files]
    lines += [f"  {path} -> {target}" for path, target in manifest.links.items()]
    lines += [f"  data/{saved.path}.db ({saved.bytes:,} bytes)" for saved in manifest.databases]
    caller.show({"checkpoint": summary, "manifest": manifest}, "\n".join([_line(summary), *lines]))


@checkpoint.command("restore")
@click.argument("name")
@pass_caller
def restore(caller: Caller, name: str) -> None:
    """Bring back a checkpoint; the present state is saved as another checkpoint first.

    \b
    ncm checkpoint restore before-migration
    """
    with caller.memory() as memory:
        done = memory.workspace.restore_checkpoint(name)
    caller.show(
        done,
        f"restored {done.name}: {plural(done.replaced, 'file')}, {plural(done.removed, 'file')} removed, "
        f"{plural(len(done.databases), 'database')}\nthe state before is checkpoint {done.before}",
    )


@checkpoint.command("diff")
@click.argument("name")
@pass_caller
def diff(caller: Caller, name: str) -> None:
    """Show what changed since a checkpoint.

    \b
    ncm checkpoint diff before-migration
    """
    with caller.memory() as memory:
        changes = memory.workspace.compare_checkpoint(name)
    shown = [f"{MARKS[one.kind]} {one.path}" + (f"\n{one.diff}" if one.diff else "") for one in changes]
    caller.show({"changes": changes}, "\n".join(shown) or f"Nothing has changed since {name}.")


def _line(one: Checkpoint) -> str:
    what = f"{plural(one.files, 'file')}, {plural(len(one.databases), 'database')}, {one.bytes:,} bytes"
    damaged = f"  (damaged: {', '.join(one.damaged)})" if one.damaged else ""
    return f"{one.name:<28} {one.created_at}  {what}{damaged}  {one.reason}".rstrip()
