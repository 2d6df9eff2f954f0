"""A search in a new process at 10,000 chunks, and how soon a changed file is found in a warm one.

    python bench/cold_search.py [--models DIR] [--chunks 10000]

The notes are docstrings of installed packages in 500 files; their vectors are random (embedding is not measured).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from measure import cpu_of, table
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.embedder import Chain, checked
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from scale import docstrings

FILES = 500


class RandomEmbedder:
    """Random vectors under the local model's identity, so that indexing costs nothing."""

    weights = (0.5, 0.5)

    def __init__(self, models: Path) -> None:
        self.identity = LocalEmbedder(*embedder(models)).identity
        self._chance = np.random.default_rng(1)

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Any:
        rows = self._chance.normal(size=(len(texts), self.identity.dimensions))
        return checked(rows, len(texts), self.identity)

    def embed_query(self, text: str, deadline: float | None = None) -> Any:
        return self.embed_documents([text])[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--chunks", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        (home / "models").symlink_to(options.models.resolve())
        memory = Memory.open(home)
        memory.init()
        write_notes(home, options.chunks)
        memory.group.resources.embedder = Chain((RandomEmbedder(options.models),))
        done = memory.index()
        print(f"{done.files} files, {done.chunks:,} chunks\n")
        rows = [["bare Python", cpu_of([sys.executable, "-c", "pass"])]]
        command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home)]
        question = "how are values parsed from a configuration file"
        rows.append(["ncm --version", cpu_of([*command, "--version"])])
        rows.append(["ncm search --fast", cpu_of([*command, "search", question, "--fast"])])
        rows.append(["ncm search", cpu_of([*command, "search", question], runs=5)])
        table(["new process", "CPU ms"], rows)
        print()
        lag(memory, home)
        memory.close()


def write_notes(home: Path, chunks: int) -> None:
    texts = itertools.cycle(itertools.islice(docstrings(), 20_000))
    folder = home / "workspace" / "memory"
    for number in range(FILES):
        parts = [f"## Part {part}\n\n{next(texts).replace('#', '')}\n" for part in range(chunks // FILES)]
        (folder / f"tools-{number}.md").write_text("\n".join(parts), encoding="utf-8")


def lag(memory: Memory, home: Path, runs: int = 40) -> None:
    """Seconds from the end of a write to a search that finds it (searches refresh the index in place)."""
    found, cpu = [], []
    for number in range(runs):
        word = f"quokka{number}x"
        path = home / "workspace" / "memory" / f"tools-{number}.md"
        path.write_text(
            path.read_text(encoding="utf-8") + f"\n## New\n\nThe {word} arrived.\n", encoding="utf-8"
        )
        began, spent = time.monotonic(), time.process_time()
        hits = memory.search(word, 3).hits
        found.append(time.monotonic() - began)
        cpu.append(time.process_time() - spent)
        if not any(word in hit.text for hit in hits):
            raise SystemExit(f"{word} was not found")
    found.sort()
    print(f"write to searchable: p50 {statistics.median(cpu):.3f} s, most {max(cpu):.3f} s of CPU")
    print(
        f"write to searchable: p50 {statistics.median(found):.3f} s, p99 {found[-1]:.3f} s (wall, {runs} runs)"
    )


if __name__ == "__main__":
    main()
