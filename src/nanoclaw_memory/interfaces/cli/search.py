"""Commands on the search index: index, search, watch, corpus, bench."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nanoclaw_memory.interfaces.cli.common import Caller, bar, command, group, pass_caller
from nanoclaw_memory.text import plural

if TYPE_CHECKING:
    from nanoclaw_memory.types import Hit, Indexed


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
    _show_run(caller, done)


@command("search")
@click.argument("query", default="")
@click.option(
    "--limit", "-k", type=click.IntRange(1, 100), default=10, show_default=True, help="Most hits, up to 100."
)
@click.option("--type", "types", multiple=True, help="Only entries of this type.")
@click.option("--tag", "tags", multiple=True, help="Only entries with this tag.")
@click.option("--include-superseded", is_flag=True, help="Entries, replaced ones too.")
@click.option("--corpus", default="", help="Search these domain documents; `all` for them and memory.")
@click.option("--fast", is_flag=True, help="Words only: no model is loaded.")
@click.option("--rerank/--no-rerank", default=None, help="Read the best hits again; default as set.")
@click.option("--mmr", is_flag=True, help="Prefer hits that differ from each other.")
@click.option("--explain", is_flag=True, help="Show every component of each score.")
@pass_caller
def search(caller: Caller, /, query: str, limit: int, types: tuple[str, ...], **options: Any) -> None:
    """Find lines in memory, by words and by meaning; without QUERY the newest entries.

    \b
    ncm search "what did we decide about the database migration"
    ncm search "deploy key" -k 3 --fast
    ncm search "nondual awareness" --corpus books
    """
    with caller.memory() as memory:
        found = memory.search(query, limit, types=types or None, **options)
    caller.show(found, "\n\n".join(_shown(hit) for hit in found.hits) or "Nothing found.")
    _aloud(caller, found.degraded)


@command("watch")
@pass_caller
def watch(caller: Caller) -> None:
    """Keep the index up to date while files change; ends with Ctrl-C.

    \b
    ncm watch
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    told: set[str] = set()  # what is missing is missing every time
    with caller.memory() as memory:
        try:
            for done in memory.admin.watch(stop):
                if done.added or done.removed or done.embedded:
                    caller.show(done, f"{done.added} read, {done.removed} removed, {done.embedded} embedded")
                _aloud(caller, tuple(line for line in done.degraded if line not in told))
                told.update(done.degraded)
        except KeyboardInterrupt:
            stop.set()


@group("corpus")
def corpus() -> None:
    """Domain documents: Markdown, text, HTML and PDF, searched with `search --corpus`.

    \b
    ncm corpus add books ~/Documents/books
    ncm search "contraindications" --corpus books
    """


@corpus.command("add")
@click.argument("name")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@pass_caller
def corpus_add(caller: Caller, name: str, paths: tuple[Path, ...]) -> None:
    """Index files or folders as NAME; the documents stay where they are.

    \b
    ncm corpus add books ~/Documents/books
    """
    with caller.memory(new=True) as memory:
        done = memory.admin.corpora.add(name, paths, lambda stage, at, of: bar(at, of, stage))
    _show_run(caller, done)


@corpus.command("list")
@pass_caller
def corpus_list(caller: Caller) -> None:
    """Every corpus with its sources and size.

    \b
    ncm corpus list
    """
    with caller.memory() as memory:
        found = memory.admin.corpora.all()
    lines = [
        f"{one.name}  {plural(one.files, 'file')}, {plural(one.chunks, 'chunk')}  {', '.join(one.sources)}"
        for one in found
    ]
    caller.show({"corpora": found}, "\n".join(lines) or "No corpora yet: ncm corpus add NAME PATH")


@corpus.command("reindex")
@click.argument("name", default="")
@click.option("--rebuild", is_flag=True, help="Read every document again.")
@pass_caller
def corpus_reindex(caller: Caller, name: str, rebuild: bool) -> None:
    """Bring NAME, or all corpora, up to date with their documents.

    \b
    ncm corpus reindex books
    """
    with caller.memory() as memory:
        done = memory.admin.corpora.reindex(name, rebuild, lambda stage, at, of: bar(at, of, stage))
    _show_run(caller, done)


@corpus.command("remove")
@click.argument("name")
@pass_caller
def corpus_remove(caller: Caller, name: str) -> None:
    """Forget NAME; its documents are not touched.

    \b
    ncm corpus remove books
    """
    with caller.memory() as memory:
        memory.admin.corpora.remove(name)
    caller.show({"removed": name}, f"removed {name}; its documents are untouched")


@group("bench")
def bench() -> None:
    """Measure on your own notes."""


@bench.command("embed")
@click.option("--texts", default=200, show_default=True, help="How many chunks take part.")
@pass_caller
def bench_embed(caller: Caller, texts: int) -> None:
    """Compare keyword search and embedders on your own notes: each finds a chunk by one of its sentences.

    \b
    ncm bench embed
    ncm bench embed --set embeddings.provider=openai --set embeddings.model=nomic-embed-text
    """
    with caller.memory() as memory:
        rows = memory.admin.compare_embedders(texts, lambda stage, at, of: bar(at, of, stage))
    head = f"{'':<44} {'R@1':>6} {'R@5':>6} {'MRR':>6} {'ms a query':>11}"
    lines = [
        f"{row.name:<44} {row.recall_1:>6.3f} {row.recall_5:>6.3f} {row.mrr:>6.3f} {row.query_ms:>11.1f}"
        + (f"  {row.note}" if row.note else "")
        for row in rows
    ]
    caller.show({"results": rows}, "\n".join([head, *lines]))


def _show_run(caller: Caller, done: Indexed) -> None:
    lines = [
        f"{plural(done.files, 'file')}, {plural(done.chunks, 'chunk')}:"
        f" {done.added} read, {done.removed} removed, {done.embedded} embedded"
    ]
    lines += done.announced
    lines += [f"skipped {skipped.path}: {skipped.reason}" for skipped in done.skipped]
    caller.show(done, "\n".join(lines))
    _aloud(caller, done.degraded)


def _shown(hit: Hit) -> str:
    lines = f"{hit.start_line}" if hit.start_line == hit.end_line else f"{hit.start_line}-{hit.end_line}"
    where = f"{hit.path}:{lines}" if hit.start_line else f"{hit.type} {hit.id}"
    trust = f", untrusted: {hit.origin}" if hit.untrusted else ""
    head = f"{where}  {hit.score:.2f}  ({hit.why}{trust})"
    parts = "".join(f"\n    {name} {value:g}" for name, value in hit.parts.items())
    return f"{head}{parts}\n" + "\n".join(f"  {line}" for line in hit.text.split("\n"))


def _aloud(caller: Caller, degraded: tuple[str, ...]) -> None:
    if not caller.json:
        for line in degraded:
            click.echo(f"note: {line}", err=True)
