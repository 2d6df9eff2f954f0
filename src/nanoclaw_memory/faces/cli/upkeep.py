"""Commands on upkeep: upkeep, review, heartbeat, install-cron."""

from __future__ import annotations

import click

from nanoclaw_memory.faces.cli.face import Caller, command, pass_caller
from nanoclaw_memory.types import JobRun, JobState, Scope


@command("upkeep")
@click.argument("job", required=False, default="")
@click.option("--dry-run", is_flag=True, help="Say what would change; change nothing.")
@click.option("--due", is_flag=True, help="Only jobs whose time has come, as cron does.")
@click.option("--all-groups", is_flag=True, help="In every group of the home.")
@pass_caller
def upkeep(caller: Caller, job: str, dry_run: bool, due: bool, all_groups: bool) -> None:
    """Keep memory healthy: read facts from logs, cool, archive, propose, index. JOB names one job;
    `status` shows all of them with their last and next runs.

    Exit 1 when a job failed.

    \b
    ncm upkeep
    ncm upkeep status
    ncm upkeep retain --dry-run
    ncm upkeep --due --all-groups
    """
    if job == "status":
        _status(caller)
        return
    with caller.memory() as memory:
        groups = memory.home.groups() if all_groups else [caller.group]
    found: list[tuple[str, JobRun]] = []
    for name in groups:
        with caller.memory_as(Scope(name, caller.session, not caller.shared, caller.origin)) as memory:
            found += [(name, run) for run in memory.upkeep(job, dry_run, due)]
    runs = [
        {"name": run.name, "changed": run.changed, "took_ms": run.took_ms, "skipped": run.skipped}
        | {"error": run.error, "hint": run.hint, "notes": run.notes, "group": name}
        for name, run in found
    ]
    lines = [_line(run, name if all_groups else "", dry_run) for name, run in found]
    caller.show({"jobs": runs, "dry_run": dry_run}, "\n".join(lines))
    if any(run.error for _, run in found):
        raise click.exceptions.Exit(1)


def _line(run: JobRun, group: str, dry_run: bool) -> str:
    where = f"{group:<12} " if group else ""
    if run.skipped:
        return f"{where}{run.name:<15} skipped: {run.skipped}"
    if run.error:
        return f"{where}{run.name:<15} failed: {run.error}\n    {run.hint}"
    verb = "would change" if dry_run else "changed"
    return "\n".join(
        [f"{where}{run.name:<15} {verb} {run.changed:,}", *(f"    {note}" for note in run.notes)]
    )


def _status(caller: Caller) -> None:
    with caller.memory() as memory:
        found = memory.upkeep_status()
    caller.show({"jobs": found}, "\n".join(_state(one) for one in found))


def _state(one: JobState) -> str:
    last = f"last {one.last_run[:16].replace('T', ' ')}" if one.last_run else "never ran"
    changed = f", changed {one.last_change:,} on {one.last_changed[:10]}" if one.last_changed else ""
    when = (
        "due now" if one.due else f"next {one.next_run[:16].replace('T', ' ')}" if one.next_run else "by hand"
    )
    failed = f"\n    failed: {one.error}" if one.error else ""
    return f"{one.name:<15} {one.cron:<12} {last}{changed}; {when}{failed}"
