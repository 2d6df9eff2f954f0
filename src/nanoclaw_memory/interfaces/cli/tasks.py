"""Commands on scheduled tasks: add, list, pause, resume, remove, logs, run."""

from __future__ import annotations

import time

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Task, TaskRun


@group("tasks")
def tasks() -> None:
    """Prompts that run by the clock: a group's own; the main group sees all."""


@tasks.command("add")
@click.argument("prompt")
@click.option("--cron", metavar="FIELDS", help='Five fields in your time zone, 0 is Sunday: "0 9 * * 1".')
@click.option("--every", metavar="SPAN", help="An interval: 90s, 15m, 2h, 1d.")
@click.option("--at", metavar="TIME", help="Once: 2026-03-01T09:00.")
@click.option("--for", "target", metavar="GROUP", default="", help="Another group's task (main group only).")
@click.option("--chat", metavar="JID", default="", help="The chat that the task belongs to.")
@click.option(
    "--context",
    type=click.Choice(["group", "isolated"]),
    default="isolated",
    help="Resume the group's session, or start without one.",
)
@pass_caller
def add(
    caller: Caller,
    prompt: str,
    cron: str | None,
    every: str | None,
    at: str | None,
    target: str,
    chat: str,
    context: str,
) -> None:
    """Schedule a prompt: by cron, at an interval, or once.

    \b
    ncm tasks add "Summarise the week" --cron "0 9 * * 1"
    ncm tasks add "Check the backup" --every 6h --context group
    ncm tasks add "Wish Ann a happy birthday" --at 2026-03-01T09:00 --for family
    """
    given = [(kind, value) for kind, value in (("cron", cron), ("interval", every), ("once", at)) if value]
    if len(given) != 1:
        raise click.UsageError("give one of --cron, --every and --at")
    (kind, value) = given[0]
    with caller.memory(new=True) as memory:
        task = memory.host.tasks.add(prompt, kind, value, target, context, chat)
    caller.show(task, f"{task.id} runs first at {task.next_run}")


@tasks.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the tasks, oldest first.

    \b
    ncm tasks list
    ncm tasks list --group family
    """
    with caller.memory() as memory:
        found = memory.host.tasks.all()
    lines = [_line(task) for task in found]
    caller.show({"tasks": found}, "\n".join(lines) or 'No tasks yet: ncm tasks add "…" --every 1d')


@tasks.command("pause")
@click.argument("task_id", metavar="ID")
@pass_caller
def pause(caller: Caller, task_id: str) -> None:
    """Keep a task from running until it is resumed.

    \b
    ncm tasks pause task-0123456789ab
    """
    with caller.memory() as memory:
        task = memory.host.tasks.pause(task_id)
    caller.show(task, f"{task.id} is paused")


@tasks.command("resume")
@click.argument("task_id", metavar="ID")
@pass_caller
def resume(caller: Caller, task_id: str) -> None:
    """Let a task run again; times that were missed are not made up for.

    \b
    ncm tasks resume task-0123456789ab
    """
    with caller.memory() as memory:
        task = memory.host.tasks.resume(task_id)
    caller.show(task, f"{task.id} runs next at {task.next_run}")


@tasks.command("remove")
@click.argument("task_id", metavar="ID")
@pass_caller
def remove(caller: Caller, task_id: str) -> None:
    """Delete a task and the log of its runs.

    \b
    ncm tasks remove task-0123456789ab
    """
    with caller.memory() as memory:
        task = memory.host.tasks.remove(task_id)
    caller.show({"id": task.id, "removed": True}, f"{task.id} is removed")


@tasks.command("logs")
@click.argument("task_id", metavar="ID")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, help="How many runs; default 20.")
@pass_caller
def logs(caller: Caller, task_id: str, limit: int) -> None:
    """Show how a task's runs went, newest first.

    \b
    ncm tasks logs task-0123456789ab
    """
    with caller.memory() as memory:
        runs = memory.host.tasks.logs(task_id, limit)
    caller.show({"runs": runs}, "\n".join(map(_run_line, runs)) or "It has not run yet.")


@tasks.command("run")
@click.option("--command", required=True, metavar="TEMPLATE", help="What to start, with {prompt} in it.")
@click.option("--timeout", type=float, default=600, help="Seconds that one task may take; default 600.")
@click.option("--watch", is_flag=True, help="Stay and run tasks as they come due.")
@pass_caller
def run(caller: Caller, command: str, timeout: float, watch: bool) -> None:
    """Run what is due now, each task as a command.

    The command is started without a shell, in the group's directory, with the agent's HOME of that group.
    {prompt}, {group}, {session} and {task} are filled in. Missed runs are run once. Exit 1 when a task failed.

    \b
    ncm tasks run --command "claude -p {prompt}"
    ncm tasks run --command "my-agent --resume={session} {prompt}" --timeout 120 --watch
    """
    with caller.memory() as memory:
        while True:
            runs = memory.host.run_tasks(command, timeout)
            if runs or not watch:
                _show_runs(caller, runs)
            if not watch:
                break
            time.sleep(5)
    if any(one.status != "success" for one in runs):
        raise click.exceptions.Exit(1)


def _show_runs(caller: Caller, runs: list[TaskRun]) -> None:
    shown = [f"{one.task_id}  {_run_line(one)}" for one in runs]
    caller.show({"runs": runs}, "\n".join(shown) or "Nothing is due.")


def _line(task: Task) -> str:
    schedule = {"interval": f"every {_span(task.schedule_value)}", "once": "once"}.get(
        task.schedule_type, task.schedule_value
    )
    head = f"{task.id}  {task.group:<12} {task.status:<9} {schedule:<14} {task.next_run or '-':<24}"
    return f"{head}  {one_line(task.prompt)[:60]}"


def _span(milliseconds: str) -> str:
    seconds = int(milliseconds) // 1_000 if milliseconds.isdecimal() else 0
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _run_line(run: TaskRun) -> str:
    outcome = run.error or run.result
    return f"{run.run_at}  {run.status:<11} {run.duration_ms:>8,} ms  {one_line(outcome)[:80]}"
