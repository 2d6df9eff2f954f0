"""Forgetting in files: pages as a diff that a person agrees to; our own notes, queues and logs at once."""

from __future__ import annotations

import difflib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.entries.domains import FOLDER as DOMAINS
from nanoclaw_memory.entries.domains import DomainFiles
from nanoclaw_memory.errors import CorruptDatabase, FileProblem
from nanoclaw_memory.host.directories import ipc_directory
from nanoclaw_memory.store.erasure import Wanted
from nanoclaw_memory.store.phrases import holds, texts_in, words_of
from nanoclaw_memory.store.read_only import texts_of
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import MAIN_GROUP, SHARED
from nanoclaw_memory.upkeep.forgotten_lines import name_reveals_removed, removed_lines, without
from nanoclaw_memory.workspace.checkpoints import FOLDER as CHECKPOINTS
from nanoclaw_memory.workspace.files import locked, read_text, replace_text, split_lines
from nanoclaw_memory.workspace.paths import Home, agent_home
from nanoclaw_memory.workspace.roster import FILE as ROSTER

_DATABASE = (
    ".db",
    ".db-wal",
    ".db-shm",
    ".db-lock",
    ".db-indexing",
    ".db-vectors",
    ".lock",
    ".onnx",
    ".sock",
)
_NEVER = ("audit.jsonl", "audit.head")


class PageChange(msgspec.Struct, frozen=True):
    """What is removed from one page."""

    relative: str
    path: Path
    before: str
    after: str  # empty: the file itself is removed
    gone: frozenset[int]
    diff: str
    renamed: bool = False

    @property
    def lines(self) -> list[str]:
        """Return the lines that are removed."""
        return [line for number, line in enumerate(split_lines(self.before)) if number in self.gone]


class Files(msgspec.Struct, frozen=True):
    """The files of one group that may contain its texts."""

    home: Home
    group: str
    domains: DomainFiles

    @property
    def workspace(self) -> Path:
        return self.home.workspace(self.group)

    # ---- pages: written and read by people ----

    def page_changes(self, wanted: Wanted) -> list[PageChange]:
        """Return every affected page with the lines to remove; change nothing."""
        changes = []
        for relative, path in self._pages():
            change = self._page_change(relative, path, wanted)
            if change is not None:
                changes.append(change)
        return changes

    def apply(self, change: PageChange, wanted: Wanted) -> None:
        """Remove the lines from the page as it is now; all or nothing."""
        with locked(change.path.parent):
            now = self._page_change(change.relative, change.path, wanted)
            if now is None:
                return
            if now.after:
                replace_text(now.path, now.after)
            if now.renamed and now.after:
                mark = fingerprint(now.relative)[:8]
                now.path.rename(now.path.with_name(f"{now.path.name[:10]}-conversation-{mark}.md"))
            if not now.after:
                now.path.unlink(missing_ok=True)
            private.sync_folder(now.path.parent)

    def names_left(self, wanted: Wanted) -> list[str]:
        """Return pages whose name contains the text; only their owner may rename them."""
        return [
            relative
            for relative, path in self._pages()
            if holds(wanted.matcher, path.stem) and not relative.startswith("conversations/")
        ]

    def _page_change(self, relative: str, path: Path, wanted: Wanted) -> PageChange | None:
        try:
            before = read_text(path)
        except (FileNotFoundError, FileProblem):
            return None
        gone = removed_lines(relative, before, wanted)
        if not gone:
            return None
        after = without(relative, before, gone)
        diff = "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in difflib.unified_diff(
                split_lines(before), split_lines(after), f"a/{relative}", f"b/{relative}", n=1
            )
        )
        renamed = name_reveals_removed(relative, before, gone)
        return PageChange(relative, path, before, after, frozenset(gone), diff, renamed)

    def _pages(self) -> Iterator[tuple[str, Path]]:
        for relative, path in _below(self.workspace):
            if relative.startswith(f"{CHECKPOINTS}/") or path.suffix == ".tmp":
                continue
            if relative.startswith(f"{DOMAINS}/") and not self._edited(path):
                continue  # rewritten from the entries
            yield relative, path
        own = self.home.group_root(self.group) / "CLAUDE.md"
        if own.is_file():
            yield "CLAUDE.md", own
        if self.group == MAIN_GROUP:
            for relative, path in _below(self.home.shared):
                yield f"shared/{relative}", path
        for relative, path in _below(agent_home(self.home, self.group)):
            if path.suffix in (".md", ".txt"):
                yield f"agent/{relative}", path

    def _edited(self, path: Path) -> bool:
        try:
            page = self.domains.read(path.stem)
        except FileProblem:
            return True
        return page is not None and page.edited

    # ---- files of the program ----

    def machine_files(self, wanted: Wanted) -> list[tuple[str, Path, int]]:
        """Return our own files that contain it: kind, path, and number of records."""
        found = []
        for kind, path in self._machine():
            count = self._held(kind, path, wanted)
            if count:
                found.append((kind, path, count))
        return found

    def clean(self, kind: str, path: Path, wanted: Wanted) -> None:
        """Remove records from a queue or log; delete derived files."""
        if kind in ("spooled", "log_lines", "transcripts") and path.suffix == ".jsonl":
            self._without_records(path, wanted)
        elif kind == "versions":
            text, relative = read_text(path), self._version_of(path)
            kept = without(relative, text, removed_lines(relative, text, wanted))
            replace_text(path, kept) if kept else path.unlink()
        else:
            path.unlink(missing_ok=True)

    def others_left(self, wanted: Wanted) -> list[str]:
        """Return files that contain it and that only their owner may change.

        These are the audit log, the settings, the roster, tokens, the agent's own files, and pages that are no valid
        text.
        """
        fixed = (self.home.logs / "audit.jsonl", self.home.settings_file, self.home.root / ROSTER)
        own = [path.name for path in fixed if path.is_file() and _text_holds(path, wanted)]
        tokens = sorted((self.home.root / "tokens").glob("*.json"))
        own += [f"tokens/{path.name}" for path in tokens if _text_holds(path, wanted)]
        own += [
            f"agent/{relative}"
            for relative, path in _below(agent_home(self.home, self.group))
            if path.suffix not in (".md", ".txt", ".jsonl", ".tmp") and _bytes_hold(path, wanted)
        ]
        return own + [name for name, path in self._pages() if _is_no_text(path) and _bytes_hold(path, wanted)]

    def _machine(self) -> Iterator[tuple[str, Path]]:
        data = self.home.data(self.group)
        for relative, path in _below(data):
            top = relative.partition("/")[0]
            if top in ("sessions", "ipc", "models") or path.name.endswith(_DATABASE):
                continue
            kinds = {"spool": "spooled", f"{SHARED}spool": "spooled", "versions": "versions"}
            yield ("leftovers" if path.suffix == ".tmp" else kinds.get(top, "notes")), path
        for _, path in _below(ipc_directory(self.home, self.group)):
            yield "queued", path
        for _, path in _below(agent_home(self.home, self.group)):
            if path.suffix in (".jsonl", ".tmp"):
                yield "transcripts", path
        for path in sorted(self.home.logs.glob("*.jsonl")) if self.home.logs.is_dir() else ():
            if path.name not in _NEVER:
                yield "log_lines", path
        for _, path in _below(self.workspace):
            if path.suffix == ".tmp":
                yield "leftovers", path

    def _version_of(self, path: Path) -> str:
        """Return the page of which a file is an earlier version."""
        page = path.parent.relative_to(self.home.data(self.group) / "versions").as_posix()
        return page if page.endswith(".md") else f"{page.replace('memory_', 'memory/', 1)}.md"

    def _held(self, kind: str, path: Path, wanted: Wanted) -> int:
        if kind == "transcripts" and wanted.session and wanted.session in path.stem:
            return 1
        if path.suffix == ".jsonl":
            with path.open("rb") as stream:
                return sum(_record_holds(line, wanted) for line in stream)
        if kind == "versions":
            text = path.read_bytes().decode("utf-8", "replace")
            return int(bool(removed_lines(self._version_of(path), text, wanted)))
        return int(_text_holds(path, wanted))

    def _without_records(self, path: Path, wanted: Wanted) -> None:
        if wanted.session and wanted.session in path.stem:
            path.unlink(missing_ok=True)
            return
        with ExitStack() as stack:
            if path.parent.name.endswith("spool"):
                stack.enter_context(private.locked(path.parent / "drain.lock"))
            if not path.exists():
                return
            stack.enter_context(
                private.locked(path)
            )  # a hook that waits for it finds the new file afterwards
            with path.open("rb") as stream:
                left = b"".join(line for line in stream if not _record_holds(line, wanted))
            private.replace_file(path, left, durable=True)

    # ---- checkpoints: copies of everything ----

    def checkpoints(self, wanted: Wanted) -> tuple[list[str], list[str]]:
        """Return the checkpoints that contain it, and those that cannot be read."""
        held, unreadable = [], []
        folder = self.workspace / CHECKPOINTS
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not path.is_dir():
                continue
            try:
                if any(_copy_holds(relative, file, wanted) for relative, file in _below(path)):
                    held.append(path.name)
            except CorruptDatabase:
                unreadable.append(path.name)
        return held, unreadable

    def remove_checkpoint(self, name: str) -> None:
        """Remove a whole checkpoint: part of it could not be restored."""
        with locked(self.workspace / CHECKPOINTS):
            shutil.rmtree(self.workspace / CHECKPOINTS / name, ignore_errors=True)


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every regular file below a folder; links are not followed."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path


def _record_holds(line: bytes, wanted: Wanted) -> bool:
    text = line.decode("utf-8", "replace")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return holds(wanted.matcher, text)
    if wanted.session and isinstance(record, dict) and record.get("session") == wanted.session:
        return True
    return any(holds(wanted.matcher, part) for part in texts_in(record))


def _text_holds(path: Path, wanted: Wanted) -> bool:
    text = path.read_bytes().decode("utf-8", "replace")
    return any(
        holds(wanted.matcher, part) or (wanted.topics and words_of(part) in wanted.topics)
        for part in texts_in(text)
    )


def _is_no_text(path: Path) -> bool:
    try:
        read_text(path)
    except (FileProblem, FileNotFoundError):
        return True
    return False


def _bytes_hold(path: Path, wanted: Wanted) -> bool:
    """Return whether a file of any kind contains it, as far as bytes show."""
    raw = path.read_bytes()
    return any(holds(wanted.matcher, raw.decode(code, "replace")) for code in ("utf-8", "utf-16", "latin-1"))


def _copy_holds(relative: str, path: Path, wanted: Wanted) -> bool:
    if path.suffix == ".db":
        return any(
            any(holds(wanted.matcher, part) for part in texts_in(text))
            or (wanted.session != "" and column == "session_id" and text == wanted.session)
            for column, text in texts_of(path)
        )
    text = path.read_bytes().decode("utf-8", "replace")
    return bool(removed_lines(relative.removeprefix("workspace/"), text, wanted))
