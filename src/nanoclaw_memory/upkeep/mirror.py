"""Keep a directory of Markdown and a team's table of pages synchronised both ways; concurrent edits are merged."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import file_time
from nanoclaw_memory.entries.domains import merge_files
from nanoclaw_memory.errors import FileProblem, PathRefused
from nanoclaw_memory.progress import counted
from nanoclaw_memory.store.pages import PageRow, PageTable
from nanoclaw_memory.types import Mirrored
from nanoclaw_memory.workspace.files import APPENDED, locked, read_text, replace_text
from nanoclaw_memory.workspace.listing import DOMAINS
from nanoclaw_memory.workspace.merging import Merge, merge
from nanoclaw_memory.workspace.paths import MAX_NAME, MAX_PATH, within
from nanoclaw_memory.workspace.starter import without_starter

FRESH_NS = 2_000_000_000  # an editor may still be writing; also the coarsest tick of a file system's clock
TICK_NS = 20_000_000  # of finer clocks
TRIES = 5
WHOLE = 3  # a folder that had so many pages and has none now is a lost one
MANY = 50  # for so many pages progress is reported
_LOCAL = "memory/checkpoints/"  # copies of pages, not pages
_UNREADABLE = "\x00"


class FileStat(msgspec.Struct, frozen=True, array_like=True):
    """The stat by which an unchanged file is recognised."""

    size: int
    mtime_ns: int
    ctime_ns: int


class PageState(msgspec.Struct, frozen=True, array_like=True):
    """A page as file and table last agreed: its version, the fingerprint of its text, and the file's stat."""

    version: int
    mark: str
    stat: FileStat | None = None  # None: read the file again
    problem: str = ""


class MirrorState(msgspec.Struct):
    """The pages on which a directory and the table last agreed."""

    table: str = ""
    cursor: int = 0
    pages: dict[str, PageState] = {}
    waiting: set[str] = set()  # pages that could not be written


class PageConflict(msgspec.Struct, frozen=True):
    """A page of which both sides changed the same lines: its text now, and the other side's lines."""

    path: str
    theirs: str
    mine: str


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """A directory and the table that it mirrors; `prefix` is what its paths begin with elsewhere."""

    folder: Path
    table: PageTable
    state_file: Path
    now: Callable[[], str]
    author: str = "owner"
    left_out: tuple[str, ...] = ()  # top-level names that are no pages of this table
    only: tuple[str, ...] = ()  # the only paths to mirror; empty: all
    deletes: bool = False  # whether a folder without pages was emptied on purpose
    forgets: Callable[[str], bool] = lambda text: False
    propose: Callable[[PageConflict], None] = lambda conflict: None

    def sync(self, quiet: bool = False, looking: bool = True) -> Mirrored:
        """Synchronise both. With `quiet` a file that is being changed waits for the next time.

        Without `looking` the files are listed only if the table has something new.
        """
        if not self.folder.is_dir():
            return Mirrored()
        state = self._known()
        if not looking and state.pages and not state.waiting and self._is_head(state):
            return self._reported(state, ())
        files, problems = self._files()
        if self._is_current(state, files):
            return self._reported(state, problems)
        with locked(self.state_file.parent):
            return _Synchronisation(self, _read_state(self.state_file), files, problems, quiet=quiet).run()

    def _is_current(self, state: MirrorState, files: Mapping[str, FileStat]) -> bool:
        same = files.keys() == state.pages.keys() and not state.waiting
        return (
            same
            and all(state.pages[path].stat == found for path, found in files.items())
            and self._is_head(state)
        )

    def _is_head(self, state: MirrorState) -> bool:
        return self.table.head() == (state.table, state.cursor)

    def _reported(self, state: MirrorState, problems: tuple[str, ...]) -> Mirrored:
        found = (one.problem for one in state.pages.values() if one.problem)
        return Mirrored(problems=(*problems, *found))

    def _files(self) -> tuple[dict[str, FileStat], tuple[str, ...]]:
        files: dict[str, FileStat] = {}
        problems: list[str] = []
        if self.only:
            found_here = {path: found for path in self.only if (found := stat_of(self.folder / path))}
            return found_here, ()
        _list_pages(str(self.folder), self.left_out, files, problems)
        return files, tuple(sorted(problems))

    def _known(self) -> MirrorState:
        """Return the last agreed state, read-only."""
        try:
            found = self.state_file.stat()
        except FileNotFoundError:
            return MirrorState()
        return _remembered(self.state_file, found.st_mtime_ns, found.st_size, found.st_ino)

    def save(self, state: MirrorState) -> None:
        """Store the agreed state; if it is lost, the texts are compared again."""
        replace_text(self.state_file, msgspec.json.encode(state).decode(), durable=False)


class _Synchronisation:
    """One synchronisation."""

    def __init__(
        self,
        mirror: Mirror,
        state: MirrorState,
        files: dict[str, FileStat],
        problems: tuple[str, ...],
        quiet: bool,
    ) -> None:
        self.mirror = mirror
        self.table = mirror.table
        self.state = state
        self.files = files
        self.quiet = quiet
        self.problems = list(problems)
        self.counts = dict.fromkeys(("pulled", "pushed", "merged", "deleted", "kept"), 0)
        self.conflicts: list[str] = []
        self.puts = 0

    def run(self) -> Mirrored:
        state = self.state
        table, cursor = self.table.head()
        # An empty folder is a lost one, and deletes nothing; a state agreed with another table is void.
        if state.table != table or not self.files:
            state.table, state.cursor, state.pages = table, 0, {}
        theirs = {path for path in self.table.changed_since(state.cursor) if self._is_meant(path)}
        mine = {path for path, found in self.files.items() if self._known(path).stat != found}
        gone = {path for path, known in state.pages.items() if path not in self.files and known.version}
        state.pages = {
            path: known for path, known in state.pages.items() if known.version or path in self.files
        }
        waiting, state.waiting = state.waiting, set()
        new = mine - state.pages.keys()
        lost = self._lost(gone, new) if gone and not self.mirror.deletes else set()
        for path in lost:
            del state.pages[path]
        self._follow_renames(gone - lost, new)
        try:
            found = sorted(theirs | mine | gone | waiting | lost)
            for path in counted("pages", found) if len(found) > MANY else found:
                self._sync_page(path)
            _, last = self.table.head()
            state.cursor = last if last == cursor + self.puts else cursor
        finally:
            self.mirror.save(state)
        problems = (*self.problems, *(one.problem for one in state.pages.values() if one.problem))
        return Mirrored(**self.counts, conflicts=tuple(self.conflicts), problems=problems)

    def _is_meant(self, path: str) -> bool:
        return path in self.mirror.only or (
            not self.mirror.only and path.partition("/")[0] not in self.mirror.left_out
        )

    def _lost(self, gone: set[str], new: set[str]) -> set[str]:
        """Return the pages that vanished with their whole folder and are nowhere else: it may not be mounted."""
        moved = set()
        for path in new:
            with suppress(FileProblem, PathRefused):
                moved.add(_mark(self._text(path) or ""))
        left = [path for path in gone if self._known(path).mark not in moved]
        there = {folder for path in self.files for folder in PurePosixPath(path).parents}
        count = Counter(folder for path in left for folder in PurePosixPath(path).parents)
        whole = {folder for folder, pages in count.items() if pages >= WHOLE and folder not in there}
        for folder in sorted(whole):
            if folder.parent not in whole:
                self.problems.append(
                    f"{folder} was gone with its {count[folder]} pages, which are back: to delete them for all, "
                    "delete one of them after the others"
                )
        return {path for path in left if whole.intersection(PurePosixPath(path).parents)}

    def _follow_renames(self, gone: set[str], new: set[str]) -> None:
        """Apply to a renamed file what others changed under its old name meanwhile."""
        marks = {self._known(path).mark: path for path in gone}
        for path in new if gone else ():
            with suppress(FileProblem, PathRefused):
                text = self._text(path) or ""
                old = marks.get(_mark(text), "")
                row = self.table.current(old) if old else None
                changed = row is not None and row.text and row.version != self._known(old).version
                if row and changed and self._write(path, text, row):
                    self.state.pages[old] = PageState(row.version, _mark(row.text or ""))

    def _known(self, path: str) -> PageState:
        return self.state.pages.get(path) or PageState(0, "")

    def _sync_page(self, path: str) -> None:
        """Synchronise one page; killed at any point, the next round ends the same way."""
        if not is_page(path):
            self.problems.append(f"{path[:200]!r} is no path of a page")
            return
        try:
            self._agree(path)
        except (FileProblem, PathRefused) as problem:  # both sides stay as they are
            known, found = self._known(path), self.files.get(path)
            if found is not None:
                self.state.pages[path] = PageState(known.version, known.mark, found, problem.message)
            else:
                self.state.waiting.add(path)
                self.problems.append(problem.message)

    def _agree(self, path: str) -> None:
        known, base = self._known(path), None
        for _ in range(TRIES):
            found, mine = stat_of(self.mirror.folder / path), self._text(path)
            if self._unfinished(found, known):
                self.state.waiting.add(path)
                return
            with self.table.db.transaction():
                row = self._decided(path, known, mine, base)
            if self._write(path, mine, row):
                self._remember(path, row)
                return
            # Somebody saved the file meanwhile: its text came from `mine`, which the row contains.
            known, base = PageState(row.version if row else 0, known.mark), mine
        raise FileProblem(f"{path} changes all the time", "it is tried again later")

    def _unfinished(self, found: FileStat | None, known: PageState) -> bool:
        """Return whether an editor seems to be writing the file."""
        if found is None or known.stat == found:
            return False
        age = time.time_ns() - found.mtime_ns
        emptied = known.version > 0 and not found.size
        return (self.quiet and 0 <= age < FRESH_NS // 2) or (emptied and 0 <= age < FRESH_NS)

    def _decided(self, path: str, known: PageState, mine: str | None, base: str | None) -> PageRow | None:
        """Return the row that both sides get; a new one is put into the table."""
        theirs = self.table.current(path)
        version, text = (theirs.version, theirs.text) if theirs else (0, None)
        if mine == text or (version != known.version and self._untouched(known, mine, theirs)):
            self._count("pulled" if mine != text else "")
            return theirs
        if version == known.version and base is None:
            if mine is None or text is None or _mark(mine) != known.mark:
                self._count("deleted" if mine is None else "pushed")
                return self._put(path, version, mine)
            return theirs
        if mine is None or theirs is None or text is None:
            # Deleted on one side and edited on the other, or created again after a deletion: the edit stays.
            self._count("kept" if known.version else "pushed")
            return theirs if mine is None else self._put(path, version, mine)
        if base is None and known.version and (row := self.table.at(path, known.version)):
            base = row.text
        if base is None and not without_starter(text).strip():  # so far it contains only what `init` wrote
            base = text
        return self._merged(path, theirs, mine, base)

    def _untouched(self, known: PageState, mine: str | None, theirs: PageRow | None) -> bool:
        """Return whether this side has nothing of its own: the page is unchanged, or only what `init` wrote."""
        if mine is None or theirs is None:
            return not known.version
        mark = _mark(mine)
        if known.version and mark == known.mark:
            return True
        if self.table.merged(theirs.path, known.version, mark):
            return True
        return not known.version and theirs.text is not None and not without_starter(mine).strip()

    def _merged(self, path: str, theirs: PageRow, mine: str, base: str | None) -> PageRow:
        text = theirs.text or ""
        if path.startswith(DOMAINS):
            made = merge_files(base or "", mine, text)
        elif base is not None or APPENDED.fullmatch(path.rpartition("/")[2]):
            made = self._without_forgotten(merge(base or "", mine, text), text)
        else:
            made = Merge(text, mine)
        if made.conflict:
            self.mirror.propose(PageConflict(path, made.text, made.mine))
            self.conflicts.append(path)
        self._count("merged")
        return theirs if made.text == text else self._put(path, theirs.version, made.text, _mark(mine))

    def _without_forgotten(self, made: Merge, theirs: str) -> Merge:
        """Remove what was forgotten elsewhere from an edit that was made before."""
        known = set(theirs.split("\n"))

        def kept(text: str) -> str:
            return "\n".join(
                line for line in text.split("\n") if line in known or not self.mirror.forgets(line)
            )

        return Merge(kept(made.text), kept(made.mine))

    def _count(self, what: str) -> None:
        if what:
            self.counts[what] += 1

    def _put(self, path: str, version: int, text: str | None, merged: str = "") -> PageRow:
        found = stat_of(self.mirror.folder / path)
        row = PageRow(
            path=path,
            version=version + 1,
            text=text,
            author=self.mirror.author,
            machine=platform.node()[:100],
            saved_at=self.mirror.now(),
            mtime_ns=found.mtime_ns if found and not merged else time.time_ns(),
            merged=merged,
        )
        self.table.put(row)
        self.puts += 1
        return row

    # ---- the file ----

    def _text(self, path: str) -> str | None:
        real = self._place(path)
        try:
            text = read_text(real)
        except FileNotFoundError:
            return None
        if _UNREADABLE in text:
            raise FileProblem(f"{path} contains NUL characters and is no text", "it was left as it is")
        return text

    def _place(self, path: str) -> Path:
        real = self.mirror.folder / path
        if within(real, self.mirror.folder) != self.mirror.folder.resolve() / path:
            raise FileProblem(f"{path} is a link or below one", "put the file itself there")
        return real

    def _write(self, path: str, before: str | None, row: PageRow | None) -> bool:
        """Write the row's text to the file, if nobody changed it since it was read."""
        real = self._place(path)
        if before is None and (row is None or row.text is None) and not real.parent.exists():
            return True  # deleted with its folder
        with locked(real.parent):
            if self._text(path) != before:
                return False
            if row is None or row.text is None:
                real.unlink(missing_ok=True)
                return True
            if row.text != before:
                replace_text(real, row.text)
            if real.stat().st_mtime_ns != row.mtime_ns:
                os.utime(real, ns=(row.mtime_ns, row.mtime_ns))
        return True

    def _remember(self, path: str, row: PageRow | None) -> None:
        if row is None or row.text is None:
            self.state.pages.pop(path, None)
            return
        found = stat_of(self.mirror.folder / path)
        # Within one tick of the file system's clock it may change again, and look the same.
        tick = TICK_NS if found and found.ctime_ns % 1_000_000 else FRESH_NS
        fresh = found is None or time.time_ns() - found.ctime_ns < tick
        self.state.pages[path] = PageState(row.version, _mark(row.text), None if fresh else found)


def stat_of(path: Path) -> FileStat | None:
    """Return the stat by which an unchanged file is recognised, or None."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return _file_stat(found) if stat.S_ISREG(found.st_mode) else None


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(found.st_size, file_time(found), found.st_ctime_ns)


@functools.lru_cache(maxsize=8_192)
def is_page(path: str) -> bool:
    """Return whether a path of the table may become a file: others may have written it."""
    parts = path.split("/")
    return (
        path.endswith(".md")
        and len(path) <= MAX_PATH
        and path.isprintable()
        and "\\" not in path
        and all(part and not part.startswith(".") and len(part.encode()) <= MAX_NAME for part in parts)
        and not path.startswith(_LOCAL)
    )


def _list_pages(
    folder: str, left_out: Collection[str], files: dict[str, FileStat], problems: list[str]
) -> None:
    """Collect the paths of pages with their stats, and why other files are no pages."""
    # One stat per file and no Path: this runs at every call.
    below = [""]
    while below:
        prefix = below.pop()
        try:
            entries = list(os.scandir(f"{folder}/{prefix}"))
        except OSError as error:
            problems.append(f"{prefix or folder} cannot be read: {error.strerror}")
            continue
        for entry in entries:
            name, path = entry.name, prefix + entry.name
            if name[0] == "." or (not prefix and name in left_out):
                continue
            if entry.is_dir(follow_symlinks=False):
                if not f"{path}/".startswith(_LOCAL):
                    below.append(f"{path}/")
            elif entry.is_symlink():
                if name.endswith(".md") or Path(entry.path).is_dir():  # False for a link to itself
                    problems.append(f"{path} is a link and was left out")
            elif name.endswith(".md"):
                if not is_page(path):
                    problems.append(f"{path!r} is no name for a page and was left out")
                    continue
                with suppress(OSError):  # deleted since it was listed
                    files[path] = _file_stat(entry.stat(follow_symlinks=False))


@functools.lru_cache(maxsize=16)
def _remembered(file: Path, *stamp: int) -> MirrorState:
    """Return the state in a file with this stamp."""
    return _read_state(file)


def _read_state(file: Path) -> MirrorState:
    return private.read_json(file, MirrorState) or MirrorState()  # without it the texts are compared


def _mark(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
