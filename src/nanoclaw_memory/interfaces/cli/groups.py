"""Commands on groups: chats that have an agent with a memory of its own."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller


@group("groups")
def groups() -> None:
    """Chats that have an agent of their own; the main group administers them."""


@groups.command("add")
@click.argument("folder")
@click.option("--chat", required=True, metavar="JID", help="The chat's id on its channel.")
@click.option("--name", default="", help="What people call it; default the folder.")
@click.option("--trigger", default="@Agent", metavar="PATTERN", help="What calls the agent; default @Agent.")
@click.option("--always", is_flag=True, help="Answer every message, not only those that call.")
@pass_caller
def add(caller: Caller, folder: str, chat: str, name: str, trigger: str, always: bool) -> None:
    """Give a chat an agent with a directory of its own; again changes its name and trigger.

    \b
    ncm groups add family --chat 1203630@g.us --name "The family" --trigger @Andy
    """
    with caller.memory(new=True) as memory:
        made = memory.host.state.register_group(chat, name or folder, folder, trigger, not always)
    caller.show(made, f"{made.folder}: {made.name} ({made.jid}), called by {made.trigger_pattern}")


@groups.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the groups with the session that each resumes.

    \b
    ncm groups list
    """
    with caller.memory() as memory:
        host = memory.host.state
        found, sessions, problems = list(host.groups.values()), host.all_sessions(), host.problems
    rows = [
        {
            "folder": one.folder,
            "name": one.name,
            "jid": one.jid,
            "trigger_pattern": one.trigger_pattern,
            "requires_trigger": one.requires_trigger,
            "session_id": sessions.get(one.folder, ""),
        }
        for one in found
    ]
    lines = [
        f"{row['folder']:<16} {row['jid']:<32} {row['trigger_pattern']:<16} {row['name']}" for row in rows
    ]
    caller.show({"groups": rows, "problems": problems}, "\n".join(lines) or "No chat has an agent yet.")
    if not caller.json:
        for problem in problems:
            click.echo(f"note: {problem}", err=True)


@groups.command("remove")
@click.argument("folder")
@pass_caller
def remove(caller: Caller, folder: str) -> None:
    """Take a chat's agent away; its directory, messages and session stay.

    \b
    ncm groups remove family
    """
    with caller.memory() as memory:
        host = memory.host.state
        host.unregister_group(host.group(folder).jid)
    caller.show({"folder": folder, "removed": True}, f"{folder} has no agent any more; its files stay")
