"""Commands on the search index: index, search, watch, corpus, bench, eval."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    answer_as_served,
    command,
    fields,
    group,
    limit_option,
    noted,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import inert_lines, marks, visible_line
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import EvalAnswer, Evaluation, Hit, Indexed


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
    """Find lines in memory, by words and by meaning; without QUERY the newest entries of a type or tag.

    \b
    ncm search "what did we decide about the database migration"
    ncm search "deploy key" -k 3 --fast
    ncm search "nondual awareness" --corpus books
    """
    if not (query.strip() or types or options["tags"] or options["include_superseded"]):
        raise InvalidValue("say what to search for", 'nanoclaw-memory search "when is the launch"')
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
    reported: set[str] = set()  # a missing part is reported only once
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
    """Measure search on your own notes."""


@bench.command("embed")
@click.option("--texts", default=200, show_default=True, help="How many chunks take part.")
def bench_embed(memory: Memory, texts: int) -> Output:
    """Compare keyword search and embedders on your own notes: each finds a chunk by one of its sentences.

    \b
    ncm bench embed
    ncm bench embed --set embeddings.provider=openai --set embeddings.model=nomic-embed-text
    """
    cost = next((model.all for model in memory.admin.embedding_cost(texts).models if model.configured), 0.0)
    if cost:
        click.echo(f"about {cost:.4f} $ will be spent on {texts} texts", err=True)
    rows = memory.admin.compare_embedders(texts)
    head = f"{'':<44} {'R@1':>6} {'R@5':>6} {'MRR':>6} {'ms a query':>11}"
    lines = [
        f"{row.name:<44} {row.recall_1:>6.3f} {row.recall_5:>6.3f} {row.mrr:>6.3f} {row.query_ms:>11.1f}"
        + (f"  {row.note}" if row.note else "")
        for row in rows
    ]
    return Output({"results": rows}, [head, *lines])


@bench.command("cost")
def bench_cost(memory: Memory) -> Output:
    """Estimate what embedding this memory would cost with each model; calls nothing and spends nothing.

    \b
    ncm bench cost
    ncm bench cost --set embeddings.provider=azure-openai
    """
    estimate = memory.admin.embedding_cost()
    lines = [
        f"{plural(estimate.texts, 'text')}, about {estimate.tokens:,} tokens; {estimate.waiting:,} wait for a vector"
    ]
    for model in estimate.models:
        head = f"{model.name:<44} {model.price:>7.3f} $/1M  all {model.all:>9.4f} $  waiting {model.waiting:>9.4f} $"
        lines.append(head + ("  <- configured" if model.configured else ""))
    return Output(estimate, lines)


@command("eval", cls=Command)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--save", is_flag=True, help="Accept this result: later ones are compared with it.")
@click.option(
    "--example", is_flag=True, help="Sixty questions over a sample workspace, in a home of their own."
)
@click.option("--misses", is_flag=True, help="Also show what single faces missed.")
@click.option("--fast", is_flag=True, help="Words only: no model is loaded.")
def eval_(caller: Caller, file: Path | None, save: bool, example: bool, misses: bool, fast: bool) -> None:
    """Ask your own questions of search, graph, recall and turn; exit 1 when an answer was lost.

    FILE is TOML, JSON or JSONL: `ask`, what `must` and `must_not` appear, `in` which faces, or `nothing = true`. Beside
    an accepted result (--save) only what that one had and this one has not counts.

    \b
    ncm eval questions.toml
    ncm eval questions.toml --save
    ncm eval --example --fast
    """
    if (file is None) == (not example) or (example and save):
        raise InvalidValue("give a file of questions, or --example", "ncm eval questions.toml")
    if file is not None:
        with caller.memory() as memory:
            if not fast:
                answer_as_served(memory)
            result = memory.evaluate(file.expanduser(), save, fast)
    else:
        result = Memory.evaluate_example(fast)
    caller.show(Output(_evaluated(result), _evaluation_lines(result, misses), failed=not (save or result.ok)))


def _evaluated(result: Evaluation) -> dict[str, Any]:
    return {**fields(result, "answers", "failed", "regressions", "compared", "took_s"), "passed": result.ok,
            "questions": len({answer.ask for answer in result.answers})}  # fmt: skip


def _evaluation_lines(result: Evaluation, misses: bool) -> list[str]:
    """Yield a row for each face, then the questions that failed and the regressions."""
    asked = {answer.ask for answer in result.answers}
    lines = [f"{'':<8} {'passed':>9} {'tokens, mean':>13}"]
    for face in dict.fromkeys(answer.face for answer in result.answers):
        own = [answer for answer in result.answers if answer.face == face]
        passed, tokens = sum(answer.passed for answer in own), sum(answer.tokens for answer in own) / len(own)
        lines.append(f"{face:<8} {f'{passed}/{len(own)}':>9} {tokens:>13.0f}")
    lines.append(f"{'all':<8} {f'{len(asked) - len(result.failed)}/{len(asked)}':>9}")
    lines += [f"lost: {_wrong(answer)}" for answer in result.regressions]
    wanted = [
        answer for answer in result.answers if not answer.passed and (misses or answer.ask in result.failed)
    ]
    return lines + [f"failed: {_wrong(answer)}" for answer in wanted if answer not in result.regressions]


def _wrong(answer: EvalAnswer) -> str:
    parts = [f"without {one!r}" for one in answer.missing] + [f"with {one!r}" for one in answer.shown]
    return visible_line(f"{answer.ask}  ({answer.face}: {', '.join(parts) or 'something was said'})")


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
    return f"{head}{parts}\n" + "\n".join(f"  {line}" for line in inert_lines(hit.text).split("\n"))
