"""Read facts and relations, with their lines, from logs, archives and memory files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.graph.refresh import VERSION, Refresh
from nanoclaw_memory.store.mentions import MentionTable
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import JobResult
from nanoclaw_memory.upkeep.log_blocks import archives, logs
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import ARCHIVE, day_in_path

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group


def ingest(group: Group, dry_run: bool = False) -> JobResult:
    """Read files that changed since the last time; retire what only deleted files stated.

    Archives come first: a line that moved there must be known there before its log no longer has it.
    """
    graph = group.graph
    mentions = MentionTable(graph.db)
    refresh = Refresh(graph, group.home)
    files_now = refresh.watched()  # before reading: what changes meanwhile is read again
    known = mentions.read_files()
    seen, notes, changed = set(), [], 0
    files = [*archives(group.workspace), *((path, file) for _, path, file in logs(group.workspace))]
    for path, file in files:
        seen.add(path)
        try:
            text = read_text(file)
        except FileNotFoundError:  # removed since we looked
            seen.discard(path)
            continue
        except FileProblem as problem:
            notes.append(f"{path} was not read: {problem.message}")
            continue
        mark = fingerprint(f"{VERSION}\n{text}")
        if known.get(path) == mark:
            continue
        if dry_run:
            notes.append(f"would read {path}")
            changed += 1
            continue
        with graph.db.transaction():
            done = graph.ingest(path, text, _written(file))
            mentions.mark_read(path, mark)
        changed += done.added + done.retired
    gone = [path for path in {*known, *mentions.paths()} if path not in seen and _is_log(path)]
    if dry_run:
        return JobResult(changed + len(gone), (*notes, *(f"{path} is gone" for path in sorted(gone))))
    for path in sorted(gone):
        with graph.db.transaction():
            changed += graph.ingest(path, "").retired
            mentions.mark_read(path, "")
    changed += sum(done.added + done.retired for done in graph.seed(group.home))
    with graph.db.transaction():
        refresh.note(files_now)
    return JobResult(changed, tuple(notes))


def _written(file: Path) -> str:
    try:
        return stamp(datetime.fromtimestamp(file.stat().st_mtime, UTC))
    except FileNotFoundError:  # removed since it was read
        return ""


def _is_log(path: str) -> bool:
    return day_in_path(path) is not None or path.startswith(f"{ARCHIVE}/")
