"""Commands on the Markdown files: init, write, log, boot, get."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, command, given_text, pass_caller
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import LogLine


@command("init")
@pass_caller
def init(caller: Caller) -> None:
    """Create a home, or with --group a group in it; files that exist are kept.

    \b
    ncm init
    ncm init --group family
    """
    with caller.memory(new=True) as memory:
        result = memory.init()
    lines = [f"created {name}" for name in result.created] + [f"kept    {name}" for name in result.kept]
    caller.show(result, f"Memory at {result.home}\n  " + "\n  ".join(lines))


@command("write")
@click.argument("text")
@click.option("--tag", "-t", default="", help="decision, milestone, lesson, context, …")
@click.option("--importance", "-i", type=float, help="0 to 1; 0.8 and more is kept for ever.")
@pass_caller
def write(caller: Caller, text: str, tag: str, importance: float | None) -> None:
    """Append a line to today's log; TEXT `-` reads it from standard input.

    \b
    ncm write "Switched to PostgreSQL" --tag decision --importance 0.9
    git log -1 --format=%s | ncm write - --tag milestone
    """
    with caller.memory(new=True) as memory:
        result = memory.write(given_text(text), tag, importance)
    masked = f" ({plural(result.redacted, 'credential')} masked)" if result.redacted else ""
    caller.show(result, f"{result.path}:{result.line}{masked}")


@command("log")
@click.argument("date", required=False)
@pass_caller
def log(caller: Caller, date: str | None) -> None:
    """Show the entries of a day's log; today's without DATE.

    \b
    ncm log
    ncm log 2026-02-23 --json
    """
    with caller.memory() as memory:
        day, lines = memory.log(date)
    shown = [
        f"{entry.line:>4}  {entry.tag or '-':<10} {_strength(entry):<4}  {entry.text}" for entry in lines
    ]
    result = {"date": day.isoformat(), "lines": lines}
    caller.show(result, "\n".join(shown) or f"No entries on {day.isoformat()}.")


def _strength(entry: LogLine) -> str:
    return "" if entry.importance is None else f"{entry.importance:g}"


@command("boot")
@click.option("--project", metavar="SLUG", default="", help="Boot as an agent of this project.")
@pass_caller
def boot(caller: Caller, project: str) -> None:
    """Print exactly what an agent reads at session start; sizes go to standard error.

    \b
    ncm boot
    ncm boot --project payment-api
    ncm boot --shared
    """
    with caller.memory() as memory:
        result = memory.boot(project)
    caller.show(result, result.text)
    if not caller.json:
        for file in result.files:
            state = "missing" if file.missing else f"{file.chars:,} characters, {file.tokens:,} tokens"
            click.echo(f"{file.path}: {state}{' (truncated)' if file.truncated else ''}", err=True)
        click.echo(f"{result.tokens:,} tokens in all", err=True)


@command("get")
@click.argument("file")
@click.option("--start", type=int, help="First line, from 1.")
@click.option("--end", type=int, help="Last line, included.")
@pass_caller
def get(caller: Caller, file: str, start: int | None, end: int | None) -> None:
    """Print lines of a memory file; a missing file is empty, with a note.

    \b
    ncm get MEMORY.md
    ncm get memory/2026-02-23.md --start 3 --end 9
    """
    with caller.memory() as memory:
        result = memory.get(file, start, end)
    caller.show(result, result.text)
    if result.note and not caller.json:
        click.echo(result.note, err=True)
