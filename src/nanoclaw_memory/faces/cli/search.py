"""Commands on the search index: index, search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nanoclaw_memory.faces.cli.face import Caller, bar, command, pass_caller
from nanoclaw_memory.text import plural

if TYPE_CHECKING:
    from nanoclaw_memory.types import Hit


@command("index")
@click.option("--rebuild", is_flag=True, help="Read every file again; the old index answers meanwhile.")
@pass_caller
def index(caller: Caller, rebuild: bool) -> None:
    """Bring the search index up to date with the files.

    \b
    ncm index
    ncm index --rebuild
    """
    with caller.memory() as memory:
        done = memory.index(rebuild, lambda stage, at, of: bar(at, of, stage))
    lines = [
        f"{plural(done.files, 'file')}, {plural(done.chunks, 'chunk')}:"
        f" {done.added} read, {done.removed} removed, {done.embedded} embedded"
    ]
    lines += [f"skipped {skipped.path}: {skipped.reason}" for skipped in done.skipped]
    caller.show(done, "\n".join(lines))
    _aloud(caller, done.degraded)


@command("search")
@click.argument("query")
@click.option("--limit", "-k", default=10, show_default=True, help="Most hits.")
@click.option("--fast", is_flag=True, help="Keywords only: no model is loaded.")
@click.option("--explain", is_flag=True, help="Show every component of each score.")
@pass_caller
def search(caller: Caller, query: str, limit: int, fast: bool, explain: bool) -> None:
    """Find lines in memory: by words and by meaning.

    \b
    ncm search "what did we decide about the database migration"
    ncm search "deploy key" -k 3 --fast
    """
    with caller.memory() as memory:
        found = memory.search(query, limit, fast=fast, explain=explain)
    caller.show(found, "\n\n".join(_shown(hit) for hit in found.hits) or "Nothing found.")
    _aloud(caller, found.degraded)


def _shown(hit: Hit) -> str:
    lines = f"{hit.start_line}" if hit.start_line == hit.end_line else f"{hit.start_line}-{hit.end_line}"
    head = f"{hit.path}:{lines}  {hit.score:.2f}  ({hit.why})"
    parts = "".join(f"\n    {name} {value:g}" for name, value in hit.parts.items())
    return f"{head}{parts}\n" + "\n".join(f"  {line}" for line in hit.text.split("\n"))


def _aloud(caller: Caller, degraded: tuple[str, ...]) -> None:
    if not caller.json:
        for line in degraded:
            click.echo(f"note: {line}", err=True)
