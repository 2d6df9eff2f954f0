"""Commands on upkeep: upkeep, review, heartbeat, install-cron."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.cli.common import Caller, at_terminal, command, group, pass_caller
from nanoclaw_memory.types import JobRun, JobState, Proposal, Scope

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory


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
        if all_groups:
            memory.admin.require_main("look after all groups")
        groups = memory.home.groups() if all_groups else [caller.group]
    found = [(name, run) for name in groups for run in _runs(caller, name, (job, dry_run, due), all_groups)]
    runs = [
        {"name": run.name, "changed": run.changed, "took_ms": run.took_ms, "skipped": run.skipped}
        | {"error": run.error, "hint": run.hint, "notes": run.notes, "group": name}
        for name, run in found
    ]
    lines = [_line(run, name if all_groups else "", dry_run) for name, run in found]
    caller.show({"jobs": runs, "dry_run": dry_run}, "\n".join(lines))
    if any(run.error for _, run in found):
        raise click.exceptions.Exit(1)


def _runs(caller: Caller, name: str, how: tuple[str, bool, bool], many: bool) -> list[JobRun]:
    """The runs of one group; of many, one that cannot be opened does not keep the others from theirs."""
    try:
        with caller.memory_as(Scope(name, caller.session, not caller.shared, caller.origin)) as memory:
            return memory.upkeep.run(*how)
    except NanoClawError as error:
        if not many:
            raise
        return [JobRun("open", 0, 0.0, "", error.message, error.hint)]


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
        found = memory.upkeep.status()
    caller.show({"jobs": found}, "\n".join(_state(one) for one in found))


def _state(one: JobState) -> str:
    last = f"last {one.last_run[:16].replace('T', ' ')}" if one.last_run else "never ran"
    changed = f", changed {one.last_change:,} on {one.last_changed[:10]}" if one.last_changed else ""
    when = (
        "due now" if one.due else f"next {one.next_run[:16].replace('T', ' ')}" if one.next_run else "by hand"
    )
    failed = f"\n    failed: {one.error}" if one.error else ""
    return f"{one.name:<15} {one.cron:<12} {last}{changed}; {when}{failed}"


@group("review", invoke_without_command=True)
@click.pass_context
@pass_caller
def review(caller: Caller, context: click.Context) -> None:
    """Decide on what upkeep proposes: promotions, demotions, lessons, held entries, archive candidates.

    At a terminal it asks about each in turn; otherwise it lists them.

    \b
    ncm review
    ncm review accept prop-1a2b3c4d5e6f
    """
    if context.invoked_subcommand:
        return
    with caller.memory() as memory:
        found = memory.upkeep.review()
        if found and not caller.json and at_terminal():
            _ask(memory, found)
            return
    text = "\n\n".join(_proposal(one) for one in found) or "Nothing waits for review."
    caller.show({"proposals": found}, text)


@review.command("accept")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@pass_caller
def accept(caller: Caller, ids: tuple[str, ...]) -> None:
    """Carry out proposals; demotions come first, because they make room.

    \b
    ncm review accept prop-1a2b3c4d5e6f
    """
    _decide(caller, ids, True)


@review.command("reject")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@pass_caller
def reject(caller: Caller, ids: tuple[str, ...]) -> None:
    """Refuse proposals; the same ones never come back.

    \b
    ncm review reject prop-1a2b3c4d5e6f
    """
    _decide(caller, ids, False)


@review.command("edit")
@click.argument("proposal_id", metavar="ID")
@click.argument("text")
@pass_caller
def edit(caller: Caller, proposal_id: str, text: str) -> None:
    """Accept a promotion or lesson in your own words.

    \b
    ncm review edit prop-1a2b3c4d5e6f "Keystone listens on port 3055"
    """
    with caller.memory() as memory:
        decided = memory.upkeep.decide(proposal_id, True, text)
    caller.show({"proposals": [decided]}, f"accepted {decided.id} in your words")


@review.command("skip")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@pass_caller
def skip(caller: Caller, ids: tuple[str, ...]) -> None:
    """Leave proposals for later.

    \b
    ncm review skip prop-1a2b3c4d5e6f
    """
    with caller.memory() as memory:
        found = [memory.upkeep.proposal(one) for one in ids]
    caller.show({"proposals": found}, "\n".join(f"{one.id} stays {one.status}" for one in found))


def _decide(caller: Caller, ids: tuple[str, ...], accepted: bool) -> None:
    with caller.memory() as memory:
        chosen = [memory.upkeep.proposal(one) for one in dict.fromkeys(ids)]
        chosen.sort(key=lambda one: one.kind != "demotion")
        decided = [memory.upkeep.decide(one.id, accepted) for one in chosen]
    lines = [f"{one.status} {one.id} ({one.kind})" for one in decided]
    caller.show({"proposals": decided}, "\n".join(lines))


def _proposal(one: Proposal) -> str:
    source = f"\n  from: {one.source}" if one.source else ""
    diff = "\n".join(f"    {line}" for line in one.diff.split("\n"))
    return f"{one.id}  {one.kind}\n  why: {one.why}{source}\n{diff}"


def _ask(memory: Memory, found: list[Proposal]) -> None:
    """One proposal after the other; whatever is not decided stays open."""
    for number, one in enumerate(found, 1):
        click.echo(f"\n[{number}/{len(found)}] {_proposal(one)}")
        choices = click.Choice(["a", "e", "r", "s", "q"])
        answer = click.prompt("accept, edit, reject, skip, quit", type=choices, default="s")
        if answer == "q":
            return
        if answer == "s":
            continue
        text = click.prompt("text", default=str(one.payload.get("text", ""))) if answer == "e" else ""
        try:
            decided = memory.upkeep.decide(one.id, answer != "r", text)
            click.echo(decided.status)
        except NanoClawError as error:
            click.echo(f"{error.message}\n  {error.hint}", err=True)


@command("heartbeat")
@pass_caller
def heartbeat(caller: Caller) -> None:
    """Print HEARTBEAT.md's checklist with the state of each item that can be known.

    \b
    ncm heartbeat
    """
    with caller.memory() as memory:
        items = memory.upkeep.heartbeat()
    signs = {True: "✓", False: "!", None: "?"}
    lines = [
        f"{signs[item.well]} {item.text}: {item.state}" + (f"\n    {item.next}" if item.next else "")
        for item in items
    ]
    caller.show({"items": items}, "\n".join(lines) or "HEARTBEAT.md has no items.")


@command("install-cron")
@click.option("--remove", is_flag=True, help="Take it out again.")
@click.option("--systemd", is_flag=True, help="A systemd user timer instead of a crontab line.")
@pass_caller
def install_cron(caller: Caller, remove: bool, systemd: bool) -> None:
    """Ask this machine to run the upkeep that is due every hour, for all groups of the home.

    \b
    ncm install-cron
    ncm install-cron --systemd
    ncm install-cron --remove
    """
    with caller.memory() as memory:
        done = memory.upkeep.install_cron(remove, systemd)
    verb = "removed from" if remove else "written to"
    text = f"{verb} {done.where}" if done.changed else f"{done.where} is as it should be"
    caller.show(done, "\n".join(part for part in (text, done.note) if part))
