"""The workspace's own files -> the graph: USER.md, IDENTITY.md, MEMORY.md, project and tool files."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.graph.ingest import Ingest
from nanoclaw_memory.types import Ingested, Scope
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import Home, memory_files

SEEDS = (
    "USER.md",
    "IDENTITY.md",
    "MEMORY.md",
    "TOOLS.md",
    "memory/project-*.md",
    "memory/tools-*.md",
    "shared/project-*.md",
)


def seed(home: Home, scope: Scope, ingest: Ingest, shared_files: tuple[str, ...]) -> list[Ingested]:
    """Read every seed file this scope may see; a file that is gone takes its facts along."""
    done = []
    seen = set()
    for relative, path in _seed_files(home, scope, shared_files):
        seen.add(relative)
        written = stamp(datetime.fromtimestamp(path.stat().st_mtime, UTC))
        done.append(ingest.file(relative, read_text(path), written))
    if scope.private:
        gone = [path for path in ingest.mentions.paths() if _is_seed(path) and path not in seen]
        done += [ingest.file(path, "") for path in gone]
    return done


def _seed_files(home: Home, scope: Scope, shared_files: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    files = [entry for entry in memory_files(home, scope, shared_files) if _is_seed(entry[0])]
    # USER.md and IDENTITY.md say who is meant; the others use those names.
    return iter(sorted(files, key=lambda entry: (entry[0] not in SEEDS[:2], entry[0])))


def _is_seed(path: str) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in SEEDS)
