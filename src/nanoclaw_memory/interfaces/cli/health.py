"""Commands on health: status, doctor."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, command, pass_caller
from nanoclaw_memory.text import plural

SIGNS = {"problem": "✗", "warning": "!", "note": "·", "ok": "✓"}


@command("status")
@pass_caller
def status(caller: Caller) -> None:
    """Show what there is, at a glance; opens nothing and is instant.

    \b
    ncm status
    """
    with caller.memory() as memory:
        found = memory.status()
    own = "" if found.group == "main" else f" --group {found.group}"
    state = "" if found.exists else f" (not created yet: ncm init{own})"
    lines = [f"home      {found.home}{state}", f"group     {found.group} of {', '.join(found.groups)}"]
    lines.append(f"memory    {plural(found.files, 'file')}")
    lines += [f"database  {name}.db, {size:,} bytes" for name, size in found.databases.items()]
    lines.append(f"embedder  {found.embedder}")
    for spent in found.usage:
        who = f"{spent['provider']} {spent['model']}"
        sums = f"{spent['calls']:,} calls, {spent['tokens']:,} tokens, ${spent['cost']:.4f}"
        lines.append(f"spent     {who}: {sums}")
    caller.show(found, "\n".join(lines))


@command("doctor")
@click.option("--fix", is_flag=True, help="Remove temporary files of killed writers, over an hour old.")
@pass_caller
def doctor(caller: Caller, fix: bool) -> None:
    """Check home, settings, files and databases; every finding ends with the command that helps.

    Exit 1 when a problem was found.

    \b
    ncm doctor
    ncm doctor --json
    ncm doctor --fix
    """
    with caller.memory(new=True) as memory:
        findings = memory.doctor(fix)
    lines = [f"{SIGNS[found.level]} {found.message}\n    {found.next}" for found in findings]
    well = not any(found.level == "problem" for found in findings)
    caller.show({"ok": well, "findings": findings}, "\n".join(lines))
    if not well:
        raise click.exceptions.Exit(1)
