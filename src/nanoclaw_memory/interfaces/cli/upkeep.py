"""Commands on upkeep: upkeep, review, heartbeat, install-cron."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click
from msgspec.structs import asdict

from nanoclaw_memory.errors import InvalidValue, NanoClawError
from nanoclaw_memory.interfaces.cli import as_called
from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    at_terminal,
    caller_of,
    clock_of,
    command,
    group,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import visible, visible_line
from nanoclaw_memory.types import JobRun, JobState, Proposal

PROPOSAL_IDS = click.argument("ids", nargs=-1, required=True, metavar="ID...")
CHOSEN_IDS = click.argument("ids", nargs=-1, metavar="ID...")
OF_ORIGIN = click.option("--origin", default="", help="All that wait from this origin: import, agent, …")


@command("upkeep", cls=Command)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--dry-run", is_flag=True, help="Report what would change; change nothing.")
@click.option("--due", is_flag=True, help="Only jobs whose time has come, as cron does.")
@click.option("--all-groups", is_flag=True, help="In every group of the home.")
def upkeep(caller: Caller, jobs: tuple[str, ...], dry_run: bool, due: bool, all_groups: bool) -> None:
    """Keep memory healthy: read facts from logs, cool, archive, propose, index. JOBs are run in the order
    in which they are named; `status` shows all of them with their last and next runs.

    Exit 1 when a job failed.

    \b
    ncm upkeep
    ncm upkeep status
    ncm upkeep retain --dry-run
    ncm upkeep --due --all-groups
    """
    with caller.memory() as memory:
        if jobs == ("status",):
            states = memory.upkeep.status()
            return caller.show(Output({"jobs": states}, map(partial(_state_line, clock_of(memory)), states)))
        if all_groups:
            memory.group.require_main("look after all groups")
        groups = memory.home.groups() if all_groups else [caller.group]
    runs = []
    for name in groups:
        try:
            with caller.memory(new=True, group=name) as memory:
                for job in jobs or ("",):
                    runs += [(name, run) for run in memory.upkeep.run(job, dry_run, due)]
        except NanoClawError as error:
            if not all_groups:
                raise
            # A group that cannot be opened does not stop the others.
            runs.append((name, JobRun("open", 0, 0.0, error=error.message, hint=error.hint)))
    result = {"jobs": [asdict(run) | {"group": name} for name, run in runs], "dry_run": dry_run}
    lines = [_run_line(run, name if all_groups else "", dry_run) for name, run in runs]
    caller.show(Output(result, lines, failed=any(run.error for _, run in runs)))


def _run_line(run: JobRun, group: str, dry_run: bool) -> str:
    where = f"{group:<12} " if group else ""
    if run.skipped:
        return f"{where}{run.name:<15} skipped: {run.skipped}"
    if run.error:
        return f"{where}{run.name:<15} failed: {run.error}\n    {as_called(run.hint)}"
    verb = "would change" if dry_run else "changed"
    notes = "".join(f"\n    {as_called(note)}" for note in run.notes)
    return f"{where}{run.name:<15} {verb} {run.changed:,}{notes}"


def _state_line(shown: Callable[[str], str], state: JobState) -> str:
    last, following, changed_on = (
        shown(moment).replace("T", " ") for moment in (state.last_run, state.next_run, state.last_changed)
    )
    ran = f"last {last}" if last else "never ran"
    changed = f", changed {state.last_change:,} on {changed_on[:10]}" if changed_on else ""
    planned = f"next {following}" if following else "by hand"
    when = "due now" if state.due else planned
    failed = f"\n    failed: {state.error}" if state.error else ""
    return f"{state.name:<15} {state.cron:<12} {ran}{changed}; {when}{failed}"


@group("review", invoke_without_command=True)
@click.pass_context
def review(context: click.Context) -> None:
    """Decide on what upkeep proposes: promotions, demotions, lessons, held entries, archive candidates.

    At a terminal it asks about each in turn; otherwise it lists them.

    \b
    ncm review
    ncm review accept prop-1a2b3c4d5e6f
    """
    if context.invoked_subcommand:
        return
    caller = caller_of(context)
    with caller.memory() as memory:
        found = memory.upkeep.review()
        if found and not caller.json and at_terminal():
            return _ask(memory, found)
    text = "\n\n".join(map(_proposal_lines, found))
    caller.show(Output({"proposals": found}, text, "Nothing waits for review."))


@review.command("accept")
@CHOSEN_IDS
@OF_ORIGIN
def accept(memory: Memory, ids: tuple[str, ...], origin: str) -> Output:
    """Carry out proposals; demotions come first, because they free space in MEMORY.md.

    \b
    ncm review accept prop-1a2b3c4d5e6f
    ncm review accept --origin import
    """
    return _decide(memory, ids, origin, True)


@review.command("reject")
@CHOSEN_IDS
@OF_ORIGIN
def reject(memory: Memory, ids: tuple[str, ...], origin: str) -> Output:
    """Refuse proposals; the same ones never come back.

    \b
    ncm review reject prop-1a2b3c4d5e6f
    """
    return _decide(memory, ids, origin, False)


@review.command("edit")
@click.argument("proposal_id", metavar="ID")
@click.argument("text")
def edit(memory: Memory, proposal_id: str, text: str) -> Output:
    """Accept a promotion or lesson in your own words.

    \b
    ncm review edit prop-1a2b3c4d5e6f "Keystone listens on port 3055"
    """
    decided = memory.upkeep.decide(proposal_id, True, text)
    return Output({"proposals": [decided]}, f"accepted {decided.id} in your words")


@review.command("undo")
@PROPOSAL_IDS
def undo(memory: Memory, ids: tuple[str, ...]) -> Output:
    """Take decisions back: what they changed is reverted, and the proposals are open again.

    \b
    ncm review undo prop-1a2b3c4d5e6f
    """
    found = [memory.upkeep.undo(one) for one in dict.fromkeys(ids)]
    return Output({"proposals": found}, [f"{one.id} ({one.kind}) is {one.status} again" for one in found])


@review.command("skip")
@PROPOSAL_IDS
def skip(memory: Memory, ids: tuple[str, ...]) -> Output:
    """Leave proposals for later.

    \b
    ncm review skip prop-1a2b3c4d5e6f
    """
    found = [memory.upkeep.proposal(one) for one in ids]
    return Output({"proposals": found}, [f"{proposal.id} stays {proposal.status}" for proposal in found])


def _decide(memory: Memory, ids: tuple[str, ...], origin: str, accepted: bool) -> Output:
    chosen = [memory.upkeep.proposal(number) for number in dict.fromkeys(ids)]
    if bool(ids) == bool(origin):
        raise InvalidValue("which proposals are meant?", "name their ids, or --origin: ncm review")
    chosen += [proposal for proposal in memory.upkeep.review() if origin and proposal.origin == origin]
    chosen.sort(key=lambda proposal: proposal.kind != "demotion")
    decided = [memory.upkeep.decide(proposal.id, accepted) for proposal in chosen]
    return Output(
        {"proposals": decided}, [f"{proposal.status} {proposal.id} ({proposal.kind})" for proposal in decided]
    )


def _proposal_lines(proposal: Proposal) -> str:
    about = {
        "why": proposal.why,
        "from": proposal.source,
        "said by": proposal.origin,
        "if accepted": proposal.effect,
    }
    told = "".join(f"\n  {name}: {visible_line(value)}" for name, value in about.items() if value)
    diff = "\n".join(f"    {line}" for line in proposal.diff.split("\n"))
    return f"{proposal.id}  {proposal.kind}{told}\n{diff}"


_CHOICES = ("accept", "edit", "reject", "skip", "quit")


def _ask(memory: Memory, found: list[Proposal]) -> None:
    """Ask about each proposal; undecided ones stay open."""
    for number, proposal in enumerate(found, 1):
        click.echo(visible(f"\n[{number}/{len(found)}] {_proposal_lines(proposal)}"))
        offered = [word for word in _CHOICES if word != "edit" or proposal.may_be_reworded]
        choices = click.Choice([word[0] for word in offered])
        answer = click.prompt(", ".join(offered), type=choices, default="s")
        if answer == "q":
            return
        if answer == "s":
            continue
        own = visible_line(str(proposal.payload.get("text", "")))
        text = click.prompt("text", default=own) if answer == "e" else ""
        try:
            decided = memory.upkeep.decide(proposal.id, answer != "r", text)
            click.echo(decided.status)
        except NanoClawError as error:
            click.echo(visible(f"{error.message}\n  {error.hint}"), err=True)


@command("heartbeat")
def heartbeat(memory: Memory) -> Output:
    """Print HEARTBEAT.md's checklist with the state of each item that can be known.

    \b
    ncm heartbeat
    """
    items = memory.upkeep.heartbeat()
    signs = {True: "✓", False: "!", None: "?"}
    lines = [
        f"{signs[item.well]} {item.text}: {item.state}"
        + (f"\n    {as_called(item.next)}" if item.next else "")
        for item in items
    ]
    return Output({"items": items}, lines, "HEARTBEAT.md has no items.")


@command("install-cron")
@click.option("--remove", is_flag=True, help="Take it out again.")
@click.option("--systemd", is_flag=True, help="A systemd user timer instead of a crontab line.")
def install_cron(memory: Memory, remove: bool, systemd: bool) -> Output:
    """Ask this machine to run the upkeep that is due every hour, for all groups of the home.

    \b
    ncm install-cron
    ncm install-cron --systemd
    ncm install-cron --remove
    """
    done = memory.upkeep.install_cron(remove, systemd)
    verb = "removed from" if remove else "written to"
    text = f"{verb} {done.where}" if done.changed else f"{done.where} is as it should be"
    return Output(done, filter(None, (text, done.note)))
