"""Read files that changed since the graph last read them, before it answers, if they are few and small.

The check costs a listing and some `stat` calls; many or large files wait for upkeep.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import FileProblem, PathRefused, StoreError
from nanoclaw_memory.freshness import Freshness
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.table import keep_note, note_of
from nanoclaw_memory.text import plural
from nanoclaw_memory.workspace.listing import Seen, memory_pages
from nanoclaw_memory.workspace.paths import ARCHIVE, archive_path, log_path, visible

if TYPE_CHECKING:
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.workspace.paths import Home

VERSION = 11  # of the extraction: a new one reads every file again
RECENT_DAYS = 7  # logs that are checked besides today's
MOST_FILES = 20
MOST_BYTES = 256_000
WAIT_MS = 100  # for another writer
SHARED = "shared/"
DEEPEST = 2  # folders below memory/, projects/ or any other of the workspace
PAGES = ("USER.md", "IDENTITY.md", "MEMORY.md", "TOOLS.md")
_KEY = "watched"
_LOG = regex(r"(?:^|/)\d{4}-\d{2}-\d{2}\.md$")
_RENDERED = ("archive/", "domains/", "checkpoints/", "notes/", "active-context.md", "gating-policies.md")
_NO_PAGES = ("conversations/", "skills/", *(f"memory/{name}" for name in _RENDERED))


class WatchedFile(msgspec.Struct, frozen=True):
    """A file that the graph reads, with its size and time from `stat`."""

    relative: str
    base: Path
    name: str
    size: int
    mtime_ns: int

    @property
    def mark(self) -> list[int]:
        return [self.size, self.mtime_ns]


class PendingFiles(msgspec.Struct, frozen=True):
    """What the graph has not read yet: changed files, and paths of deleted ones."""

    files: list[WatchedFile]  # all of them
    changed: tuple[WatchedFile, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)

    @property
    def too_much(self) -> bool:
        return len(self.changed) > MOST_FILES or sum(file.size for file in self.changed) > MOST_BYTES

    @property
    def message(self) -> str:
        """Return the state in one line, with the next step."""
        files = plural(len(self.changed) + len(self.gone), "file")
        return f"{files} changed and not yet read into the graph: nanoclaw-memory upkeep ingest"


class Refresh:
    """Read files that changed between two runs of upkeep into one group's graph."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        home: Home,
        pages: Callable[[], list[Seen]] | None = None,
        freshness: Freshness | None = None,
    ) -> None:
        self.graph = graph
        self.home = home
        self._freshness = freshness or Freshness()
        self._pages = pages or (lambda: memory_pages(home, graph.scope.group))
        self.workspace = home.workspace(graph.scope.group)

    def run(self) -> tuple[int, str]:
        """Read what changed; return the number of files read, and a message about what is still pending."""
        try:
            place = ("graph files", self.graph.scope.private)
            listed = self._pages()
            state = (listed, self._noted(), self.graph.clock.now().date())
            if self._freshness.is_settled(place, state):
                return 0, ""
            pending = self.pending(listed)
            if not pending:
                self._freshness.settle(place, state)
                return 0, ""
            if pending.too_much:
                return 0, pending.message
            with self.graph.db.transaction(WAIT_MS):
                self._read_pending(pending)
        except (StoreError, OSError) as error:  # busy, read-only or damaged: answer from what is stored
            return 0, f"files that changed were not read into the graph: {error}"
        return len(pending.changed) + len(pending.gone), ""

    def watched(self, pages: list[Seen] | None = None) -> list[WatchedFile]:
        """Return the files to check: archives first, so that a moved line is found there before it is missed in its
        log.
        """
        today = self.graph.clock.now().date()
        days = [today - timedelta(days=back) for back in range(RECENT_DAYS, -1, -1)]
        own = [*dict.fromkeys(archive_path(day) for day in days), f"{ARCHIVE}/MEMORY.md"]
        own += [log_path(day) for day in days]
        own += PAGES
        listed = {seen.relative: seen for seen in (self._pages() if pages is None else pages)}
        own += [path for path in listed if not path.startswith(SHARED) and _is_near(path) and is_page(path)]
        shared = [path for path in listed if path.startswith("shared/project-") and path.count("/") == 1]
        return [self._watched(listed[path]) for path in (*own, *shared) if path in listed]

    def _visible(self, relative: str) -> bool:
        return visible(self.graph.scope, relative, self.graph.settings.privacy.shared_files)

    def _watched(self, seen: Seen) -> WatchedFile:
        name = seen.relative.removeprefix(SHARED)
        base = self.workspace if name == seen.relative else self.home.shared
        return WatchedFile(seen.relative, base, name, seen.size, seen.mtime_ns)

    def pending(self, pages: list[Seen] | None = None) -> PendingFiles:
        """Compare the files with what was last read."""
        files = self.watched(pages)
        known = self._known()
        here = {file.relative for file in files}
        gone = [
            path
            for path in known
            if path not in here and not (self._visible(path) and self._real(path).exists())
        ]
        changed = tuple(file for file in files if known.get(file.relative) != file.mark)
        return PendingFiles(files, changed, tuple(gone))

    def note(self, files: list[WatchedFile]) -> None:
        """Record files as read; needs an open transaction."""
        marks = {file.relative: file.mark for file in files}
        keep_note(self.graph.db, "graph_state", _KEY, json.dumps({"version": VERSION, "files": marks}))

    def _read_pending(self, pending: PendingFiles) -> None:
        from nanoclaw_memory.clock import stamp
        from nanoclaw_memory.workspace.files import read_text
        from nanoclaw_memory.workspace.paths import within

        for file in pending.changed:
            try:
                text = read_text(within(file.base / file.name, file.base))
            except (FileProblem, FileNotFoundError, PathRefused):
                continue  # reported by upkeep
            written = stamp(datetime.fromtimestamp(file.mtime_ns / 1e9, UTC))
            self.graph.ingest(file.relative, text, written)
        for path in pending.gone:
            self.graph.ingest(path, "")
        self.note(pending.files)  # as listed before reading: a change since then is read again

    def _noted(self) -> str:
        return note_of(self.graph.db, "graph_state", _KEY) or "{}"

    def _known(self) -> dict[str, list[int]]:
        kept = json.loads(self._noted())
        return kept["files"] if kept.get("version") == VERSION else {}

    def _real(self, relative: str) -> Path:
        name = relative.removeprefix(SHARED)
        return self.workspace / relative if name == relative else self.home.shared / name


def is_page(path: str) -> bool:
    """Return whether a file of the workspace is a page that a person maintains: no log, archive or rendered file."""
    return not (_LOG.search(path) or path.startswith(_NO_PAGES))


def _is_near(path: str) -> bool:
    """Return whether a file is at most so many folders deep, none of which has a dot in its name."""
    first, *folders = path.split("/")[:-1] or [""]
    return bool(first) and len(folders) <= DEEPEST and not any("." in folder for folder in (first, *folders))
