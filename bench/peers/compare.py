"""Ours beside the memories that a user might choose instead: same documents, questions, machine and embedding model.

    python bench/peers/compare.py [--only NAME…] [--conversations 4] [--questions 120] [--json FILE]

Installs each system by name and pinned version from the package registries into an environment of its own
(`--environments`, about 2 GB, kept from run to run), runs one after another and prints a table. Linux.

Documents: conversations of LoCoMo, one Markdown file a session (title, day, a paragraph a turn), and daily notes, one
Markdown file a day (a bullet a statement), made of the cases of `bench/changes.py`: 246 files with 2,354 statements.
Nobody is given more than that. Systems that read Markdown get the folder, or its files where their documentation wants
them; those that store messages or entities get the statements one by one, with day and title. Each is asked by the way
its documentation recommends to an agent, with its default settings, for five results. Where it needs an embedding model
it is given ours by `bench/embedding_server.py`, with the right prefixes, whose CPU and memory are added to its own.
Systems that cannot search for a sentence get its words without stop words. No language model rewrites questions, judges
or summarises, for anyone.

Columns: *answer in 5* is the share of LoCoMo's questions (categories 1 to 4) with a statement of the evidence among
five results, *in 1,000 tokens* the same in the first 1,000 tokens of twenty, because five results are five lines for
one and five pages for another; *tokens* are those of five results. *today's value*, *outdated first* and *outdated,
unmarked* are shares of the questions on changed values, by the rules of `bench/changes.py`: today's is shown; the first
line with either has the outdated one; an outdated one stands in a line that neither says so nor has today's. CPU,
resident memory and disk are of all processes of a system; the documents are not counted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adapters import ADAPTERS, Adapter
from documents import DATA, Document, Question, read
from processes import cpu_seconds, resident_mb

from nanoclaw_memory.tokens import count

HERE = Path(__file__).parent
RESULTS = 5
MORE_RESULTS = 20
TOKENS = 1000
Figures = dict[str, float | str]


def main() -> None:
    options = _options()
    documents, questions = read(options.data, options.conversations, options.questions)
    chosen = [one for one in ADAPTERS if not options.only or one.name in options.only]
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as scratch, _embedding_server(options.models) as (endpoint, server):
        for kind in chosen:
            folder = Path(scratch) / kind.name
            _write(folder / "documents", documents)
            adapter = kind(folder, options.environments, endpoint, options.models)
            try:
                found[kind.name] = _measure(adapter, documents, questions, server)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                found[kind.name] = {"why": str(error)}
            finally:
                if adapter.program is not None:
                    adapter.program.close()
            print(f"{kind.name}: {found[kind.name]}", file=sys.stderr, flush=True)
            shutil.rmtree(folder)
    _print(chosen, found, len(documents), questions)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--environments", type=Path, default=HERE.parents[1] / ".bench" / "peers")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in ADAPTERS])
    parser.add_argument("--conversations", type=int, default=4, help="of LoCoMo")
    parser.add_argument("--questions", type=int, default=120, help="of each of the two kinds, at most")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


@contextmanager
def _embedding_server(models: Path) -> Iterator[tuple[str, int]]:
    command = [sys.executable, str(HERE.parent / "embedding_server.py"), "--models", str(models)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.kill()
        process.wait()


def _write(folder: Path, documents: Sequence[Document]) -> None:
    folder.mkdir(parents=True)
    for document in documents:
        (folder / f"{document.name}.md").write_text(document.markdown)


def _measure(
    adapter: Adapter, documents: Sequence[Document], questions: Sequence[Question], server: int
) -> Figures:
    adapter.install()
    _texts_are("passage", adapter.endpoint)
    cpu, wall = cpu_seconds(), time.monotonic()
    adapter.index(documents)
    figures: Figures = {"index CPU s": cpu_seconds() - cpu, "index wall s": time.monotonic() - wall}
    _texts_are("query", adapter.endpoint)
    adapter.ask("warm up", RESULTS)
    figures["disk MB"] = _disk(adapter.folder)
    cpu = cpu_seconds()
    shown = [adapter.ask(question.text, RESULTS) for question in questions]
    figures["question CPU ms"] = (cpu_seconds() - cpu) / len(questions) * 1000
    resident = resident_mb(adapter.program.process.pid) if adapter.program else 0
    figures["RSS MB"] = resident + (resident_mb(server) if adapter.embeds else 0)
    figures["rewritten"] = sum(
        (adapter.folder / "documents" / f"{one.name}.md").read_text() != one.markdown for one in documents
    )
    asked = [question for question in questions if question.case is None]
    more = [_first(adapter.ask(question.text, MORE_RESULTS), TOKENS) for question in asked]
    figures["answer in 1,000 tokens"] = _answered(asked, more)
    return figures | _quality(questions, shown)


def _texts_are(role: str, endpoint: str) -> None:
    """Tell the embedding server which of the model's prefixes the texts to come need."""
    request = urllib.request.Request(endpoint.replace("/v1", f"/{role}"), method="PUT")
    urllib.request.urlopen(request).close()


def _disk(folder: Path) -> float:
    """What a system wrote, without the documents themselves."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".md") / 1e6


def _quality(questions: Sequence[Question], shown: Sequence[str]) -> Figures:
    pairs = list(zip(questions, shown, strict=True))
    asked = [pair for pair in pairs if pair[0].case is None]
    changed = [question.judged(text) for question, text in pairs if question.case is not None]
    return {
        "tokens": statistics.fmean(count(text) for text in shown),
        "answer in 5": _answered(*zip(*asked, strict=True)),
        "today's value": statistics.fmean(one["current shown"] for one in changed),
        "outdated first": statistics.fmean(one["outdated first"] for one in changed),
        "outdated, unmarked": statistics.fmean(one["unmarked"] for one in changed),
    }


def _answered(questions: Sequence[Question], shown: Sequence[str]) -> float:
    pairs = zip(questions, shown, strict=True)
    return statistics.fmean(question.judged(text)["answer"] for question, text in pairs)


def _first(text: str, tokens: int) -> str:
    """The whole words within the first tokens."""
    while (size := count(text)) > tokens:
        text = text[: int(len(text) * tokens / size * 0.99)].rpartition(" ")[0]
    return text


def _print(
    chosen: Sequence[type[Adapter]], found: dict[str, Figures], documents: int, questions: Sequence[Question]
) -> None:
    changed = sum(question.case is not None for question in questions)
    print(f"{documents} documents, {len(questions) - changed} and {changed} questions\n")
    columns = {
        "answer in 5": ".2f",
        "answer in 1,000 tokens": ".2f",
        "tokens": ",.0f",
        "today's value": ".2f",
        "outdated first": ".2f",
        "outdated, unmarked": ".2f",
        "question CPU ms": ",.1f",
        "index CPU s": ",.1f",
        "index wall s": ",.1f",
        "disk MB": ",.1f",
        "RSS MB": ",.0f",
    }
    print(f"| system | {' | '.join(columns)} |\n|" + "---|" * (len(columns) + 1))
    for kind in chosen:
        if "why" not in (figures := found[kind.name]):
            cells = (format(figures[name], style) for name, style in columns.items())
            print(
                f"| {kind.name} {kind.package.rpartition('@')[2].rpartition('=')[2]} | {' | '.join(cells)} |"
            )
    for kind in chosen:
        figures = found[kind.name]
        end = f"could not run: {figures['why']}" if "why" in figures else kind.way
        rewritten = f"; it rewrote {figures['rewritten']} of the files" if figures.get("rewritten") else ""
        print(f"\n- {kind.name}: {end}{rewritten}")


if __name__ == "__main__":
    main()
