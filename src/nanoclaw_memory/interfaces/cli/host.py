"""Commands on the host: groups that have an agent, and scheduled tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import msgspec

from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    clock_of,
    fields,
    group,
    listing,
    noted,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.types import MAIN_GROUP, Task, TaskRun

TASK_ID = click.argument("task_id", metavar="ID")
GROUP_FIELDS = ("folder", "name", "jid", "trigger_pattern", "requires_trigger", "container_config")


@group("groups")
def groups() -> None:
    """Chats that have an agent of their own; the main group administers them."""


@groups.command("add", new=True)
@click.argument("folder")
@click.option("--chat", required=True, metavar="JID", help="The chat's id on its channel.")
@click.option("--name", default="", help="What people call it; default the folder.")
@click.option("--trigger", default="@Agent", metavar="PATTERN", help="What calls the agent; default @Agent.")
@click.option("--always", is_flag=True, help="Answer every message, not only those that call.")
@click.option("--container", metavar="JSON", default="", help="What your host needs to run its agent.")
def add_group(
    memory: Memory, folder: str, chat: str, name: str, trigger: str, always: bool, container: str
) -> Output:
    """Give a chat an agent with a directory of its own; again changes its name and trigger.

    \b
    ncm groups add family --chat 1203630@g.us --name "The family" --trigger @Andy
    """
    config = _object(container) if container else None
    made = memory.host.state.register_group(chat, name or folder, folder, trigger, not always, config)
    return Output(made, f"{made.folder}: {made.name} ({made.jid}), called by {made.trigger_pattern}")


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.BadParameter(f"--container is no JSON object: {error}") from None


@groups.command("list")
def list_groups(memory: Memory) -> Output:
    """List the groups with the chat and the session that each resumes; then those without a chat.

    \b
    ncm groups list
    """
    host = memory.host.state
    found, sessions, problems = list(host.groups.values()), host.all_sessions(), host.problems
    rows = [
        fields(chat_group, *GROUP_FIELDS) | {"session_id": sessions.get(chat_group.folder, "")}
        for chat_group in found
    ]
    lines = [
        f"{chat_group.folder:<16} {chat_group.jid:<32} {chat_group.trigger_pattern:<16} {chat_group.name}"
        for chat_group in found
    ]
    silent = sorted(set(memory.home.groups()) - {chat_group.folder for chat_group in found} - {MAIN_GROUP})
    lines += [f"{name:<16} (no chat)" for name in silent]
    result = {"groups": rows, "without_chat": silent, "problems": problems}
    return Output(result, lines, "No chat has an agent yet.", noted(problems))


@groups.command("remove")
@click.argument("folder")
def remove_group(memory: Memory, folder: str) -> Output:
    """Take a chat's agent away; its directory, messages and session stay.

    \b
    ncm groups remove family
    """
    host = memory.host.state
    host.unregister_group(host.group(folder).jid)
    return Output({"folder": folder, "removed": True}, f"{folder} has no agent any more; its files stay")


@group("tasks")
def tasks() -> None:
    """Prompts that run by the clock: a group's own; the main group sees all."""


@tasks.command("add", new=True)
@click.argument("prompt")
@click.option("--cron", metavar="FIELDS", help='Five fields in your time zone, 0 is Sunday: "0 9 * * 1".')
@click.option("--every", "interval", metavar="SPAN", help="An interval: 90s, 15m, 2h, 1d.")
@click.option("--at", "once", metavar="TIME", help="Once: 2026-03-01T09:00.")
@click.option("--for", "target", metavar="GROUP", default="", help="Another group's task (main group only).")
@click.option("--chat", metavar="JID", default="", help="The chat that the task belongs to.")
@click.option(
    "--context",
    type=click.Choice(["group", "isolated"]),
    default="isolated",
    help="Resume the group's session, or start without one.",
)
def add_task(
    memory: Memory, prompt: str, target: str, chat: str, context: str, **schedules: str | None
) -> Output:
    """Schedule a prompt: by cron, at an interval, or once.

    \b
    ncm tasks add "Summarise the week" --cron "0 9 * * 1"
    ncm tasks add "Check the backup" --every 6h --context group
    ncm tasks add "Wish Ann a happy birthday" --at 2026-03-01T09:00 --for family
    """
    chosen = [(kind, value) for kind, value in schedules.items() if value]
    if len(chosen) != 1:
        raise click.UsageError("give one of --cron, --every and --at")
    task = memory.host.tasks.add(prompt, *chosen[0], group=target, context_mode=context, chat_jid=chat)
    return Output(task, f"{task.id} runs first at {clock_of(memory)(task.next_run)}")


@tasks.command("list")
def list_tasks(memory: Memory) -> Output:
    """List the tasks, oldest first.

    \b
    ncm tasks list
    ncm tasks list --group family
    """
    shown = clock_of(memory)
    none = 'No tasks yet: ncm tasks add "…" --every 1d'
    return listing("tasks", memory.host.tasks.all(), lambda task: _task_line(task, shown), none)


@tasks.command("update")
@TASK_ID
@click.option("--prompt", default="", help="Another prompt.")
@click.option("--cron", metavar="FIELDS", help="Another time: five fields.")
@click.option("--every", "interval", metavar="SPAN", help="Another interval.")
@click.option("--at", "once", metavar="TIME", help="Once, at another time.")
@click.option(
    "--context",
    type=click.Choice(["group", "isolated"]),
    default=None,
    help="With the group's session or without.",
)
def update_task(
    memory: Memory, task_id: str, prompt: str, context: str | None, **schedules: str | None
) -> Output:
    """Change a task's prompt, schedule or context; the rest stays.

    \b
    ncm tasks update task-0123456789ab --cron "30 8 * * 1"
    """
    chosen = [(kind, value) for kind, value in schedules.items() if value]
    if len(chosen) > 1:
        raise click.UsageError("give one of --cron, --every and --at")
    kind, value = chosen[0] if chosen else ("", "")
    task = memory.host.tasks.update(task_id, prompt, kind, value, context or "")
    return Output(task, f"{task.id} runs next at {clock_of(memory)(task.next_run)}")


@tasks.command("pause")
@TASK_ID
def pause_task(memory: Memory, task_id: str) -> Output:
    """Keep a task from running until it is resumed.

    \b
    ncm tasks pause task-0123456789ab
    """
    task = memory.host.tasks.pause(task_id)
    return Output(task, f"{task.id} is paused")


@tasks.command("resume")
@TASK_ID
def resume_task(memory: Memory, task_id: str) -> Output:
    """Let a task run again; times that were missed are not made up for.

    \b
    ncm tasks resume task-0123456789ab
    """
    task = memory.host.tasks.resume(task_id)
    return Output(task, f"{task.id} runs next at {clock_of(memory)(task.next_run)}")


@tasks.command("remove")
@TASK_ID
def remove_task(memory: Memory, task_id: str) -> Output:
    """Delete a task and the log of its runs.

    \b
    ncm tasks remove task-0123456789ab
    """
    task = memory.host.tasks.remove(task_id)
    return Output({"id": task.id, "removed": True}, f"{task.id} is removed")


@tasks.command("logs")
@TASK_ID
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, help="How many runs; default 20.")
def logs(memory: Memory, task_id: str, limit: int) -> Output:
    """Show how a task's runs went, newest first.

    \b
    ncm tasks logs task-0123456789ab
    """
    return listing("runs", memory.host.tasks.logs(task_id, limit), _run_line, "It has not run yet.")


@tasks.command("run", cls=Command)
@click.option("--command", required=True, metavar="TEMPLATE", help="What to start, with {prompt} in it.")
@click.option("--timeout", type=float, default=600, help="Seconds that one task may take; default 600.")
@click.option("--watch", is_flag=True, help="Stay and run tasks as they come due.")
def run(caller: Caller, command: str, timeout: float, watch: bool) -> None:
    """Run what is due now, each task as a command.

    The command is started without a shell, in the group's directory, with the agent's HOME of that group.
    {prompt}, {group}, {session} and {task} are filled in. Missed runs are run once. What a task
    prints goes to its chat's outbox, if it has one. Exit 1 when a task failed.

    \b
    ncm tasks run --command "claude -p {prompt}"
    ncm tasks run --command "my-agent --resume={session} {prompt}" --timeout 120 --watch
    """
    with caller.memory() as memory:
        while True:
            runs = memory.host.run_tasks(command, timeout)
            lines = [f"{one.task_id}  {_run_line(one)}" for one in runs]
            if not watch:
                break
            if runs:
                caller.show(Output({"runs": runs}, lines))
            time.sleep(5)
    failed = any(one.status != "success" for one in runs)
    caller.show(Output({"runs": runs}, lines, "Nothing is due.", failed=failed))


def _task_line(task: Task, shown: Callable[[str], str]) -> str:
    schedule = {"interval": f"every {_span(task.schedule_value)}", "once": "once"}.get(
        task.schedule_type, task.schedule_value
    )
    head = f"{task.id}  {task.group:<12} {task.status:<9} {schedule:<14} {shown(task.next_run) or '-':<16}"
    return f"{head}  {visible_line(task.prompt, 60)}"


def _span(milliseconds: str) -> str:
    seconds = int(milliseconds) // 1_000 if milliseconds.isdecimal() else 0
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _run_line(run: TaskRun) -> str:
    outcome = run.error or run.result
    return f"{run.run_at}  {run.status:<11} {run.duration_ms:>8,} ms  {visible_line(outcome, 80)}"
