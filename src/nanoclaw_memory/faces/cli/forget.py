"""The command that removes something for good."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from nanoclaw_memory.faces.cli.face import Caller, command, pass_caller
from nanoclaw_memory.types import Forgotten, ForgottenPage


@command("forget")
@click.option("--id", "entry_id", default="", metavar="ID", help="An entry, with every wording it replaced.")
@click.option("--entity", default="", metavar="NAME", help="All that is known of, or names, an entity.")
@click.option("--session", "of_session", default="", metavar="ID", help="All that a session said and stored.")
@click.option("--text", default="", metavar="TEXT", help="Whatever holds these words, in this order.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Agree to the changes of Markdown pages without being asked.")
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
    checkpoints: bool,
    allow: bool,
) -> None:
    """Remove something from every store, file and cache, for good, and keep it from coming back.

    Lines leave Markdown pages only if you agree to the diff. It cannot be undone.

    \b
    ncm forget --text "Anna's phone number is 0171 5550199" --dry-run
    ncm forget --id mem-3f0c… --yes
    ncm forget --entity "Anna Kowalski" --yes --checkpoints
    """
    if allow:
        _allow(caller, text)
        return

    def agreed(pages: Sequence[ForgottenPage]) -> bool:
        if yes or caller.json or not sys.stdin.isatty():
            return yes
        click.echo("\n".join(page.diff for page in pages))
        return click.confirm("Take these lines out of the pages?", default=False)

    with caller.memory() as memory:
        done = memory.forget(
            id=entry_id,
            entity=entity,
            session=of_session,
            text=text,
            dry_run=dry_run,
            agreed=agreed,
            checkpoints=checkpoints,
        )
    caller.show(done, told(done))
    if done.unfinished:
        raise click.exceptions.Exit(1)


# Here --session names what is to be forgotten; the session that asks is given before the command.
forget.params = [one for one in forget.params if one.expose_value or "--session" not in one.opts]


def _allow(caller: Caller, text: str) -> None:
    if not text:
        raise click.UsageError("--allow needs --text")
    with caller.memory() as memory:
        lifted = memory.forget_allow(text)
    caller.show({"lifted": lifted}, "it may come back in" if lifted else "it was not kept away")


def told(done: Forgotten) -> str:
    """What went, what stayed, and what to do about it."""
    verb = "would remove" if done.dry_run else "removed"
    counts = [f"{name.replace('_', ' ')} {number:,}" for name, number in done.removed.items() if number]
    lines = [f"{verb}: {', '.join(counts)}" if counts else "nothing holds it"]
    lines += [page.diff.rstrip("\n") for page in done.pages if done.dry_run]
    kept = [page.path for page in done.pages if not page.removed]
    if kept and not done.dry_run:
        lines.append(f"kept in {', '.join(kept)}: agree with --yes to take the lines out")
    if done.checkpoints:
        lines.append(f"checkpoints that hold it: {', '.join(done.checkpoints)}; --checkpoints removes them")
    lines += [f"still named by {place}: change it by hand" for place in done.left]
    if done.unfinished:
        lines.append(
            f"another process still reads {', '.join(done.unfinished)}: old pages stay until it ends"
        )
        lines.append("  stop it (ncm serve, an agent), then run the same command again")
    return "\n".join(lines)
