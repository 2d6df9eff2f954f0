"""Commands on the database files: check."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller


@group("db")
def db() -> None:
    """Look after the database files."""


@db.command("check")
@click.option("--all", "all_groups", is_flag=True, help="Check the databases of every group.")
@pass_caller
def check(caller: Caller, all_groups: bool) -> None:
    """Run the integrity check over every database there is; exit 1 when one is damaged.

    \b
    ncm db check
    ncm db check --all --json
    """
    with caller.memory() as memory:
        checks = memory.admin.check_databases(all_groups)
    sound = not any(one.problems for one in checks)
    lines = []
    for one in checks:
        lines.append(f"{one.path}: {'sound' if not one.problems else 'DAMAGED'}")
        lines += [f"  {problem}" for problem in one.problems] + ([f"  next: {one.next}"] if one.next else [])
    caller.show({"ok": sound, "databases": checks}, "\n".join(lines) or "No databases yet.")
    if not sound:
        raise click.exceptions.Exit(1)
