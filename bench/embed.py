"""The local models' speed: texts a second, milliseconds a query, memory, and the cost of a cold start.

    python bench/embed.py [--models DIR] [--quick]

Prints Markdown tables. CPU time counts all threads, so it hardly depends on what else the machine does; wall
time does. The texts are paragraphs of Python's own help topics, cut to the lengths named.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import EMBEDDERS, RERANKER, Model, install
from nanoclaw_memory.providers.reranker import CrossEncoder

DEFAULT_MODELS = Path(__file__).parent.parent / ".venv" / "models"
QUERIES = (
    "what did we decide about the database migration",
    "when is Alice's birthday",
    "which port does the gateway run on",
    "how do I restore a checkpoint before a risky change",
)


def corpus(words: int, count: int) -> list[str]:
    """`count` texts of about `words` words each."""
    from pydoc_data import topics

    stream = re.findall(r"\S+", " ".join(topics.topics[name] for name in sorted(topics.topics)))
    starts = range(0, len(stream) - words, max(1, (len(stream) - words) // count))
    return [" ".join(stream[start : start + words]) for start in starts][:count]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of `work`."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def table(title: str, head: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(
            "| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row) + " |"
        )


def documents(model: Model, folder: Path, scale: float) -> None:
    rows: list[tuple[object, ...]] = []
    lengths = (
        ("log line, 20 words", 20, 600),
        ("paragraph, 80 words", 80, 240),
        ("chunk, 270 words", 270, 96),
    )
    for label, words, count in lengths:
        texts = corpus(words, max(16, int(count * scale)))
        for max_tokens, threads in ((512, 1), (512, 2), (256, 2)):
            embedder = LocalEmbedder(model, folder, threads, max_tokens)
            embedder.embed_query("warm")
            wall, cpu = timed(lambda e=embedder, t=texts: e.embed_documents(t))  # type: ignore[misc]
            tokens = sum(len(embedder.model.ids(f"passage: {text}", max_tokens)) for text in texts)
            spent = (len(texts) / wall, 1000 * cpu / len(texts), tokens / cpu)
            rows.append((label, max_tokens, threads, *spent))
    head = ("texts", "max tokens", "threads", "texts/s", "CPU ms a text", "tokens a second of CPU")
    table("Documents", head, rows)


def queries(model: Model, folder: Path, scale: float) -> None:
    rows: list[tuple[object, ...]] = []
    embedder = LocalEmbedder(model, folder)
    embedder.embed_query("warm")
    taken = [
        timed(lambda n=number: embedder.embed_query(QUERIES[n % 4]))  # type: ignore[misc]
        for number in range(int(200 * scale))
    ]
    walls = sorted(wall for wall, _ in taken)
    cpu = sum(cpu for _, cpu in taken) / len(taken)
    rows.append((1000 * walls[len(walls) // 2], 1000 * walls[int(len(walls) * 0.95)], 1000 * cpu))
    table("Queries", ("wall ms p50", "wall ms p95", "CPU ms"), rows)


def reranking(folder: Path, scale: float) -> None:
    rows: list[tuple[object, ...]] = []
    for label, words in (("20 words", 20), ("80 words", 80), ("270 words", 270)):
        texts = corpus(words, int(24 * max(scale, 0.5)))
        for max_tokens in (128, 256, 512):
            model = CrossEncoder(folder, max_tokens=max_tokens)
            far = time.monotonic() + 600
            model.rerank("warm", ["warm"], far)
            wall, cpu = timed(lambda m=model, t=texts, f=far: m.rerank(QUERIES[0], t, f))  # type: ignore[misc]
            rows.append((label, max_tokens, 1000 * wall / len(texts), 1000 * cpu / len(texts)))
    table("Reranking", ("texts", "max tokens", "wall ms a pair", "CPU ms a pair"), rows)


COLD = """
import json, resource, sys, time
def spent():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime
marks = [spent()]
from pathlib import Path
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import model_named
marks.append(spent())
folder = Path(sys.argv[1])
embedder = LocalEmbedder(model_named(folder.name), folder)
embedder.embed_query("warm")
marks.append(spent())
small = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
embedder.embed_documents(["word " * 400] * 32)
large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([*marks, small, large]))
"""


def cold_start(folder: Path, runs: int) -> None:
    results = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", COLD, str(folder)], capture_output=True, text=True, check=True
        )
        results.append(json.loads(done.stdout))
    best = min(results, key=lambda marks: marks[2])
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    rows: list[tuple[object, ...]] = [
        ("interpreter start, CPU ms", 1000 * best[0]),
        ("import of the embedder, CPU ms", 1000 * (best[1] - best[0])),
        ("verify + load + first query, CPU ms", 1000 * (best[2] - best[1])),
        ("RSS after a query, MB", best[3] / unit),
        ("RSS after 32 chunks of 400 words, MB", best[4] / unit),
    ]
    table(f"Cold start (best of {runs})", ("what", "figure"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--models", type=Path, default=DEFAULT_MODELS, help="where the models are installed")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    arguments = parser.parse_args()
    scale = 0.1 if arguments.quick else 1.0
    install(RERANKER, arguments.models)
    for model in EMBEDDERS:
        install(model, arguments.models)
        folder = arguments.models / model.name
        print(f"\n## {model.name}")
        cold_start(folder, 3)
        queries(model, folder, scale)
        documents(model, folder, scale)
    reranking(arguments.models / RERANKER.name, scale)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nPeak RSS of this process: {peak / 1024:.0f} MB")


if __name__ == "__main__":
    main()
