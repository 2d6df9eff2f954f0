"""The command `forget`: show what would go, ask once, remove it for good; list and lift what is kept out."""

from __future__ import annotations

from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.cli import called
from nanoclaw_memory.interfaces.cli.common import Caller, Command, Output, at_terminal, command
from nanoclaw_memory.rendering import visible
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Forgotten

SHOWN_ROWS = 50  # of a plan to forget
COMMON = 10  # texts with a word, from which on forgetting it is warned of


@command("forget", cls=Command)
@click.argument("words", nargs=-1, metavar="[TEXT]")
@click.option("--id", default="", metavar="ID", help="An entry, with every wording it replaced.")
@click.option("--entity", default="", metavar="NAME", help="All that is known of, or names, an entity.")
@click.option("--session", default="", metavar="ID", help="All that a session said and stored.")
@click.option("--text", default="", metavar="TEXT", help="The same as TEXT: these words, in this order.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Agree to all of it without being asked.")
@click.option("--keep-pages", is_flag=True, help="Leave Markdown pages as they are.")
@click.option("--checkpoints", is_flag=True, help="Remove the checkpoints that contain it, whole.")
@click.option("--keep-out", is_flag=True, help="Keep TEXT out though nothing contains it.")
@click.option("--allow", is_flag=True, help="Let a forgotten TEXT come back in.")
@click.option("--list", "listed", is_flag=True, help="Show how much is kept out.")
def forget(
    caller: Caller,
    words: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    keep_pages: bool,
    checkpoints: bool,
    keep_out: bool,
    allow: bool,
    listed: bool,
    **target: Any,
) -> None:
    """Remove whatever contains TEXT from every store, file and cache, for good, and keep it from coming back.

    At a terminal you see all that would go, with the diff of pages, and are asked once; elsewhere --yes must agree.
    It cannot be undone. A name is better forgotten with --entity: new things may then be learnt of it.

    \b
    ncm forget "Anna's phone number is 0171 5550199" --dry-run
    ncm forget --id mem-3f0c… --yes
    ncm forget --entity "Anna Kowalski" --yes --checkpoints
    """
    if listed:
        return _list_kept_out(caller)
    if words and target["text"]:
        raise click.UsageError("TEXT and --text say the same: give one of them")
    target["text"] = target["text"] or " ".join(words)
    if not any(target.values()):
        raise click.UsageError("what is to be forgotten? Give its TEXT, or --id, --entity or --session")
    if allow:
        return _allow(caller, target["text"])
    if not dry_run and not yes and (caller.json or not at_terminal()):
        raise Refused(
            "forgetting cannot be undone, and nobody can be asked here; nothing was removed",
            "see what would go with --dry-run, then agree with --yes",
        )
    with caller.memory() as memory:
        work = partial(memory.forget, **target)
        text = target["text"]
        if dry_run:
            plan = _plan(work(dry_run=True), keep_pages)
            return caller.show(Output(plan, "\n".join(_forgotten_lines(plan, text, checkpoints))))
        if not yes and not _agreed(_plan(work(dry_run=True), keep_pages), text, checkpoints):
            click.echo("nothing was removed", err=True)
            raise click.exceptions.Exit(1)
        done = work(agreed=lambda pages: not keep_pages, checkpoints=checkpoints, keep_out=keep_out)
    caller.show(Output(done, _forgotten_lines(done, text), failed=bool(done.unfinished)))


# Here --session names what is to be forgotten; the current session is named before the command.
forget.params = [
    parameter for parameter in forget.params if parameter.expose_value or "--session" not in parameter.opts
]


def _plan(plan: Forgotten, keep_pages: bool) -> Forgotten:
    """Return the plan, without changes of pages if they are to stay."""
    if not keep_pages:
        return plan
    kept = tuple(replace(page, diff="") for page in plan.pages)
    return replace(plan, pages=kept, removed={**plan.removed, "lines": 0})


def _agreed(plan: Forgotten, text: str, checkpoints: bool) -> bool:
    click.echo(visible("\n".join(_forgotten_lines(plan, text, checkpoints))))
    return click.confirm("Remove all of this for good?", default=False)


def _allow(caller: Caller, text: str) -> None:
    if not text:
        raise click.UsageError("--allow needs the text")
    with caller.memory() as memory:
        lifted = memory.admin.allow_forgotten(text)
    caller.show(Output({"lifted": lifted}, "it may come back in" if lifted else "it was not kept away"))


def _list_kept_out(caller: Caller) -> None:
    with caller.memory() as memory:
        found = memory.admin.kept_out()
    lines = [
        f"{kept_out.day or '-':<10}  {plural(kept_out.texts, 'text')}, "
        f"{plural(kept_out.values, 'value')} of the graph  {kept_out.reason}"
        for kept_out in found
    ]
    note = (
        "only fingerprints are kept, so the words cannot be shown; --allow with the words lets them in again"
    )
    caller.show(Output({"kept_out": found}, lines, "Nothing is kept out.", [note] if found else []))


def _kept_out_lines(done: Forgotten, text: str) -> list[str]:
    """Return what is refused from now on, and what was perhaps meant instead."""
    if not done.kept_out:
        return (
            [f"nothing is kept out; to keep it out all the same: {called()} forget … --keep-out"]
            if text
            else []
        )
    verb = "would be kept out" if done.dry_run else "kept out from now on"
    if not text:
        return [f"{verb}: {plural(done.kept_out, 'text')} as they stood"]
    lines = [f"{verb}: {text!r}, wherever it is said or written; --allow lets it in again"]
    if len(text.split()) == 1:
        taken = sum(number for name, number in done.removed.items() if name != "chunks")
        if taken >= COMMON:
            lines.append(
                f"  careful: this one word takes {taken:,} texts, and every later text with it is refused"
            )
        lines.append(
            f"  a single word: {called()} forget --entity {text} removes what is known of it, and lets new things in"
        )
    return lines


def _forgotten_lines(done: Forgotten, text: str = "", checkpoints: bool = False) -> list[str]:
    """Return what was, or would be, removed, what stays, and what to do about it; a plan may remove `checkpoints`
    too.
    """
    verb = "would remove" if done.dry_run else "removed"
    counts = [f"{name.replace('_', ' ')} {number:,}" for name, number in done.removed.items() if number]
    lines = [f"{verb}: {', '.join(counts)}" if counts else "nothing holds it"]
    lines += [f"  {row}" for row in done.rows[:SHOWN_ROWS]]
    if (more := len(done.rows) - SHOWN_ROWS) > 0:
        lines.append(f"  and {more:,} more; all of them with --json")
    lines += [page.diff.rstrip("\n") for page in done.pages if done.dry_run and page.diff]
    if kept := [page.path for page in done.pages if not (page.diff if done.dry_run else page.removed)]:
        verb = "would keep" if done.dry_run else "kept in"
        lines.append(f"{verb} {', '.join(kept)}: without --keep-pages the lines go too")
    if done.checkpoints:
        named = ", ".join(done.checkpoints)
        stay = f"checkpoints that hold it: {named}; --checkpoints removes them"
        lines.append(f"would remove the checkpoints {named}, whole" if checkpoints else stay)
    lines += [f"still named by {place}: change it by hand" for place in done.left]
    lines += _kept_out_lines(done, text)
    if done.unfinished:
        databases = ", ".join(done.unfinished)
        lines.append(f"another process still reads {databases}: old pages stay until it ends")
        lines.append(f"  stop it ({called()} serve, an agent), then run the same command again")
    return lines
