"""The command that removes something for good."""

from __future__ import annotations

from functools import partial

import click
from msgspec.structs import replace

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.cli.common import Caller, at_terminal, command, pass_caller
from nanoclaw_memory.types import Forgotten


@command("forget")
@click.option("--id", "entry_id", default="", metavar="ID", help="An entry, with every wording it replaced.")
@click.option("--entity", default="", metavar="NAME", help="All that is known of, or names, an entity.")
@click.option("--session", "of_session", default="", metavar="ID", help="All that a session said and stored.")
@click.option("--text", default="", metavar="TEXT", help="Whatever holds these words, in this order.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Agree to all of it without being asked.")
@click.option("--keep-pages", is_flag=True, help="Leave Markdown pages as they are.")
@click.option("--checkpoints", is_flag=True, help="Remove the checkpoints that hold it, whole.")
@click.option("--allow", is_flag=True, help="With --text: let a forgotten text come back in.")
@pass_caller
def forget(
    caller: Caller,
    entry_id: str,
    entity: str,
    of_session: str,
    text: str,
    dry_run: bool,
    yes: bool,
    keep_pages: bool,
    checkpoints: bool,
    allow: bool,
) -> None:
    """Remove something from every store, file and cache, for good, and keep it from coming back.

    At a terminal you see all that would go, with the diff of pages, and are asked once; elsewhere --yes must agree.
    It cannot be undone.

    \b
    ncm forget --text "Anna's phone number is 0171 5550199" --dry-run
    ncm forget --id mem-3f0c… --yes
    ncm forget --entity "Anna Kowalski" --yes --checkpoints
    """
    if allow:
        _allow(caller, text)
        return
    if not dry_run and not yes and (caller.json or not at_terminal()):
        raise Refused(
            "forgetting cannot be undone, and nobody can be asked here; nothing was removed",
            "see what would go with --dry-run, then agree with --yes",
        )
    with caller.memory() as memory:
        work = partial(memory.forget, id=entry_id, entity=entity, session=of_session, text=text)
        if dry_run:
            plan = _planned(work(dry_run=True), keep_pages)
            caller.show(plan, told(plan, checkpoints))
            return
        if not yes and not _agreed(_planned(work(dry_run=True), keep_pages), checkpoints):
            click.echo("nothing was removed", err=True)
            raise click.exceptions.Exit(1)
        done = work(agreed=lambda pages: not keep_pages, checkpoints=checkpoints)
    caller.show(done, told(done))
    if done.unfinished:
        raise click.exceptions.Exit(1)


# Here --session names what is to be forgotten; the session that asks is given before the command.
forget.params = [one for one in forget.params if one.expose_value or "--session" not in one.opts]


def _planned(plan: Forgotten, keep_pages: bool) -> Forgotten:
    """The plan, without what happens to pages if they are to stay."""
    if not keep_pages:
        return plan
    kept = tuple(replace(page, diff="") for page in plan.pages)
    return replace(plan, pages=kept, removed={**plan.removed, "lines": 0})


def _agreed(plan: Forgotten, checkpoints: bool) -> bool:
    click.echo(told(plan, checkpoints))
    return click.confirm("Remove all of this for good?", default=False)


def _allow(caller: Caller, text: str) -> None:
    if not text:
        raise click.UsageError("--allow needs --text")
    with caller.memory() as memory:
        lifted = memory.admin.allow_forgotten(text)
    caller.show({"lifted": lifted}, "it may come back in" if lifted else "it was not kept away")


def told(done: Forgotten, checkpoints: bool = False) -> str:
    """What went, what stayed, and what to do about it; of a plan, what would, and whether `checkpoints` go too."""
    verb = "would remove" if done.dry_run else "removed"
    counts = [f"{name.replace('_', ' ')} {number:,}" for name, number in done.removed.items() if number]
    lines = [f"{verb}: {', '.join(counts)}" if counts else "nothing holds it"]
    lines += [page.diff.rstrip("\n") for page in done.pages if done.dry_run and page.diff]
    if kept := [page.path for page in done.pages if not (page.diff if done.dry_run else page.removed)]:
        verb = "would keep" if done.dry_run else "kept in"
        lines.append(f"{verb} {', '.join(kept)}: without --keep-pages the lines go too")
    if done.checkpoints:
        named = ", ".join(done.checkpoints)
        stay = f"checkpoints that hold it: {named}; --checkpoints removes them"
        lines.append(f"would remove the checkpoints {named}, whole" if checkpoints else stay)
    lines += [f"still named by {place}: change it by hand" for place in done.left]
    if done.unfinished:
        lines.append(
            f"another process still reads {', '.join(done.unfinished)}: old pages stay until it ends"
        )
        lines.append("  stop it (ncm serve, an agent), then run the same command again")
    return "\n".join(lines)
