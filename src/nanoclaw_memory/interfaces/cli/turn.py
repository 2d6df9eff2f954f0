"""Commands on turns: the blocks for a message, and the exchange that came of it."""

from __future__ import annotations

import sys

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import Caller, command, group, pass_caller
from nanoclaw_memory.types import PluginNote, ToolCall


@command("turn")
@click.argument("message")
@pass_caller
def turn(caller: Caller, message: str) -> None:
    """Print the blocks that an agent would get before answering MESSAGE; - reads it from standard input.

    What was left out, and why, goes to standard error.

    \b
    ncm turn "How did last week's deployment go?"
    ncm turn "When is Partner's birthday?" --session s7 --json
    """
    text = (sys.stdin.read() if sys.stdin else "") if message == "-" else message
    with caller.memory() as memory:
        result = memory.before_turn(text)
    caller.show(result, result.text)
    if not caller.json:
        for note in (*result.skipped, *result.notes):
            click.echo(f"{note.plugin}: {note.reason}", err=True)
        click.echo(f"{sum(b.tokens for b in result.blocks)} tokens in {result.took_ms:.1f} ms", err=True)


@group("exchange")
def exchange() -> None:
    """What was asked and answered."""


@exchange.command("add")
@click.option("--user", "-u", required=True, metavar="TEXT", help="What the person said.")
@click.option("--agent", "-a", default="", metavar="TEXT", help="What the agent answered.")
@click.option(
    "--tool", "tools", multiple=True, metavar="NAME[:TARGET]", help="A tool that was called; repeat it."
)
@click.option("--at", metavar="MOMENT", help="When it was said (ISO 8601); now without it.")
@pass_caller
def add(caller: Caller, user: str, agent: str, tools: tuple[str, ...], at: str | None) -> None:
    """Archive an exchange, so that later sessions remember it; credentials are masked.

    \b
    ncm exchange add --user "Let's keep REST alive" --agent "Agreed: six months" --session s1
    ncm exchange add -u "Read it again" -a "Done" --tool read:app.py --tool read:app.py
    """
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(at).astimezone() if at else None
    except ValueError:
        raise InvalidValue(f"{at!r} is no moment", "write it as 2026-02-23T14:30") from None
    calls = [ToolCall(name, target) for name, _, target in (text.partition(":") for text in tools)]
    with caller.memory(new=True) as memory:
        result = memory.after_turn(user, agent, calls, moment)
    known = "" if result.new else " (known already)"
    masked = f", {result.redacted} credentials masked" if result.redacted else ""
    told = f"exchange {result.id}{known}, entropy {result.entropy:.1f}{masked}"
    caller.show(result, told if result.id else "not archived")
    if not caller.json:
        _tell(result.notes)


def _tell(notes: tuple[PluginNote, ...]) -> None:
    for note in notes:
        click.echo(f"{note.plugin}: {note.reason}", err=True)
