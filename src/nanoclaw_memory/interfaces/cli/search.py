"""Commands on the search index: index, search, watch, corpus, bench."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import click

from nanoclaw_memory.interfaces.cli.common import Caller, Command, Output, command, group, limit_option, noted
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import marks
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Hit, Indexed


@command("index")
@click.option("--rebuild", is_flag=True, help="Read every file again; the old index answers meanwhile.")
def index(memory: Memory, rebuild: bool) -> Output:
    """Bring the search index up to date with the files.

    \b
    ncm index
    ncm index --rebuild
    """
    return _report(memory.index(rebuild))


@command("search")
@click.argument("query", default="")
@limit_option("--limit", "-k", most=100, default=10, help="Most hits, up to 100.")
@click.option("--type", "types", multiple=True, help="Only entries of this type.")
@click.option("--tag", "tags", multiple=True, help="Only entries with this tag.")
@click.option("--include-superseded", is_flag=True, help="Entries, replaced ones too.")
@click.option("--corpus", default="", help="Search these domain documents; `all` for them and memory.")
@click.option("--fast", is_flag=True, help="Words only: no model is loaded.")
@click.option("--rerank/--no-rerank", default=None, help="Read the best hits again; default as set.")
@click.option("--mmr", is_flag=True, help="Prefer hits that differ from each other.")
@click.option("--explain", is_flag=True, help="Show every component of each score.")
def search(memory: Memory, query: str, limit: int, types: tuple[str, ...], **options: Any) -> Output:
    """Find lines in memory, by words and by meaning; without QUERY the newest entries.

    \b
    ncm search "what did we decide about the database migration"
    ncm search "deploy key" -k 3 --fast
    ncm search "nondual awareness" --corpus books
    """
    found = memory.search(query, limit, types=types or None, **options)
    shown = "\n\n".join(_hit_lines(hit, memory.scope.project) for hit in found.hits)
    return Output(found, shown, "Nothing found.", noted(found.degraded))


@command("watch", cls=Command)
def watch(caller: Caller) -> None:
    """Keep the index up to date while files change; ends with Ctrl-C.

    \b
    ncm watch
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    reported: set[str] = set()  # what is missing is missing every time
    with caller.memory() as memory:
        try:
            for done in memory.admin.watch(stop):
                notes = noted(line for line in done.degraded if line not in reported)
                if done.added or done.removed or done.embedded:
                    caller.show(Output(done, _counts(done), notes=notes))
                elif not caller.json:
                    caller.show(Output(done, notes=notes))
                reported.update(done.degraded)
        except KeyboardInterrupt:
            stop.set()


@group("corpus")
def corpus() -> None:
    """Domain documents: Markdown, text, HTML and PDF, searched with `search --corpus`.

    \b
    ncm corpus add books ~/Documents/books
    ncm search "contraindications" --corpus books
    """


@corpus.command("add", new=True)
@click.argument("name")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
def corpus_add(memory: Memory, name: str, paths: tuple[Path, ...]) -> Output:
    """Index files or folders as NAME; the documents stay where they are.

    \b
    ncm corpus add books ~/Documents/books
    """
    return _report(memory.admin.corpora.add(name, paths))


@corpus.command("list")
def corpus_list(memory: Memory) -> Output:
    """Every corpus with its sources and size.

    \b
    ncm corpus list
    """
    found = memory.admin.corpora.all()
    lines = [
        f"{one.name}  {plural(one.files, 'file')}, {plural(one.chunks, 'chunk')}  {', '.join(one.sources)}"
        for one in found
    ]
    return Output({"corpora": found}, lines, "No corpora yet: ncm corpus add NAME PATH")


@corpus.command("reindex")
@click.argument("name", default="")
@click.option("--rebuild", is_flag=True, help="Read every document again.")
def corpus_reindex(memory: Memory, name: str, rebuild: bool) -> Output:
    """Bring NAME, or all corpora, up to date with their documents.

    \b
    ncm corpus reindex books
    """
    return _report(memory.admin.corpora.reindex(name, rebuild))


@corpus.command("remove")
@click.argument("name")
def corpus_remove(memory: Memory, name: str) -> Output:
    """Forget NAME; its documents are not touched.

    \b
    ncm corpus remove books
    """
    memory.admin.corpora.remove(name)
    return Output({"removed": name}, f"removed {name}; its documents are untouched")


@group("bench")
def bench() -> None:
    """Measure on your own notes."""


@bench.command("embed")
@click.option("--texts", default=200, show_default=True, help="How many chunks take part.")
def bench_embed(memory: Memory, texts: int) -> Output:
    """Compare keyword search and embedders on your own notes: each finds a chunk by one of its sentences.

    \b
    ncm bench embed
    ncm bench embed --set embeddings.provider=openai --set embeddings.model=nomic-embed-text
    """
    rows = memory.admin.compare_embedders(texts)
    head = f"{'':<44} {'R@1':>6} {'R@5':>6} {'MRR':>6} {'ms a query':>11}"
    lines = [
        f"{row.name:<44} {row.recall_1:>6.3f} {row.recall_5:>6.3f} {row.mrr:>6.3f} {row.query_ms:>11.1f}"
        + (f"  {row.note}" if row.note else "")
        for row in rows
    ]
    return Output({"results": rows}, [head, *lines])


def _report(done: Indexed) -> Output:
    lines = [
        f"{plural(done.files, 'file')}, {plural(done.chunks, 'chunk')}: {_counts(done)}",
        *done.announced,
    ]
    lines += [f"skipped {skipped.path}: {skipped.reason}" for skipped in done.skipped]
    return Output(done, lines, notes=noted(done.degraded))


def _counts(done: Indexed) -> str:
    return f"{done.added} read, {done.removed} removed, {done.embedded} embedded"


def _hit_lines(hit: Hit, project: str) -> str:
    lines = f"{hit.start_line}" if hit.start_line == hit.end_line else f"{hit.start_line}-{hit.end_line}"
    where = f"{hit.path}:{lines}" if hit.start_line else f"{hit.type} {hit.id}" if hit.type else hit.place
    trust = marks(hit.origin if hit.untrusted else "", hit.suspicions, hit.unconfirmed)
    other = f"  [project {hit.project}]" if hit.project not in ("", project) else ""
    mark = f", {hit.status}" if hit.status else ""
    head = f"{where}{other}  {hit.score:.2f}  ({', '.join(filter(None, (hit.why, trust)))})  {hit.when}{mark}"
    parts = "".join(f"\n    {name} {value:g}" for name, value in hit.parts.items())
    return f"{head}{parts}\n" + "\n".join(f"  {line}" for line in hit.text.split("\n"))
