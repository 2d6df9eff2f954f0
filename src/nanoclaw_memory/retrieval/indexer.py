"""Update an index from its files: read, cut, store, embed; one process at a time, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, ReadOnlyStore
from nanoclaw_memory.freshness import Freshness
from nanoclaw_memory.progress import counted
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.retrieval import coming_days
from nanoclaw_memory.retrieval.attributes import Attributes
from nanoclaw_memory.retrieval.chunker import Chunking, chunks_of
from nanoclaw_memory.retrieval.currency import Currency
from nanoclaw_memory.retrieval.prepare import prepared
from nanoclaw_memory.retrieval.scanner import Scan, scan
from nanoclaw_memory.retrieval.sources import FEW_ROWS, ROWS_AT_ONCE, RowReader
from nanoclaw_memory.retrieval.vectoring import Vectoring, answering
from nanoclaw_memory.store.passages import FILES, FileRow, NewPassage, Passages
from nanoclaw_memory.store.vectors import MOST_BYTES, Matrix, StoredVectors, VectorCache, searched
from nanoclaw_memory.text import fingerprint, plural
from nanoclaw_memory.types import Indexed, Passage
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.listing import Seen

SMALL_FILES = 64
SMALL_BYTES = 1_000_000
SMALL_TEXTS = 32
COMPARED_AT_ONCE = 500
LONGEST_COMPARISON = 60.0  # seconds
PATIENCE = 0.5  # seconds to wait for another process or thread on the way to a search
_RUN = "run"  # written into the lock file during a full run

Files = Callable[[], Iterable[Seen]]
Reader = Callable[[Path], str]
Cutter = Callable[[str, str, Chunking], list[Passage]]


def read_markdown(path: Path) -> str:
    """Return a memory file's text; binary content is refused with an error."""
    text = read_text(path)
    if "\x00" in text:
        raise FileProblem(f"{path.name} is a binary file", "only text belongs in memory")
    return text


class Index(msgspec.Struct, dict=True):
    """A search index and its sources."""

    passages: Passages
    lock: Path
    files: Files
    chunking: Chunking
    embedder: Callable[[], Chain | None]  # called only when vectors are needed
    read: Reader = read_markdown
    cut: Cutter = msgspec.field(default=chunks_of)
    forget: Callable[[str], str] = lambda text: text  # blanks forgotten lines, so that line numbers stay
    rows: RowReader | None = None  # the group's databases; a corpus has none
    today: Callable[[], date] = date.today
    freshness: Freshness = msgspec.field(default_factory=Freshness)
    vectors: VectorCache = msgspec.field(default_factory=lambda: VectorCache(MOST_BYTES))
    has_read_vectors: bool = False  # in this process, for a question

    @cached_property
    def currency(self) -> Currency:
        """Return which statements are superseded by later ones."""
        return Currency(self.passages, self.today, Attributes(self._vectors_at_hand))

    def _vectors_at_hand(self, identity: str) -> Matrix | StoredVectors | None:
        """Return the vectors of an embedder if this process has read them anyway, else None."""
        chain = self.embedder() if self.has_read_vectors else None
        if chain is None or not chain.identity.key.startswith(identity):
            return None
        return searched(self.passages, chain.identity.key, chain.identity.dimensions, self.vectors)

    def scan(self) -> Scan:
        """Return what changed on disk since the last run; changes nothing."""
        files, place = self.files(), ("files", str(self.lock))
        state = (files, self.passages.generation(), self.chunking.key)
        if self.freshness.is_settled(place, state):
            return Scan((), (), {})
        found = scan(files, self.passages.files(), self.chunking.key)
        if not found.stale:
            self.freshness.settle(place, state)
        return found

    def run(self, rebuild: bool = False) -> Indexed:
        """Update everything; if killed, the next run continues."""
        began = time.monotonic()
        if self.passages.database.read_only:
            raise ReadOnlyStore(
                "the index cannot be written: the home is read-only",
                f"searching works all the same; else: chmod -R u+w {self.lock.parent}",
            )
        with self._alone() as alone:
            if not alone:
                return self._report(Scan((), (), {}), 0, (_BUSY,), began)
            if rebuild:
                self.passages.mark_stale()
            rows, said = self._read_rows(None, whole=True)
            found = self.scan()
            work = self._vectoring()
            recut = self._recut(found) if work else ()
            announced = self._announced(work, recut)
            self._store(found, set(found.changed) - set(recut))
            embedded = self._swap(recut, found, work) if work and recut else 0
            self._compare_all()
            if work:
                said += self._mend(work)
                embedded += self._fill(work, found, embedded)
                work.pack()
        announced += self._replaced()
        said += work.said if work else []
        report = self._report(found, embedded, tuple(dict.fromkeys(said)), began, announced)
        return replace(report, added=report.added + rows)

    def refresh(self, embed: bool, sources: Collection[str] | None = None, quiet: bool = False) -> list[str]:
        """Index small changes before a search and report what is missing; never wait for other processes.

        `sources` are those that the search covers: without files among them, no file is looked at. With `quiet`
        nobody reads the report: one-time notices are kept for the next one, and little is read.
        """
        key = (str(self.lock), embed, sources if sources is None else tuple(sources))
        return [*self.freshness.look(key, lambda: self._refresh(embed, sources, quiet))]

    def _refresh(self, embed: bool, sources: Collection[str] | None, quiet: bool) -> list[str]:
        said = self._read_rows(sources, FEW_ROWS if quiet else ROWS_AT_ONCE)[1]
        found = self.scan() if sources is None or FILES in sources else Scan((), (), {})
        said += self._refresh_files(found, embed)
        if not quiet:
            said += [f"index: {line}" for line in self._replaced()]
        if not self.passages.database.read_only:
            self.currency.refresh()
            if self.rows is not None:
                coming_days.refresh(self.passages)
        return said

    def _compare_all(self) -> None:
        """Compare uncompared statements for a limited time; later searches compare the rest."""
        until = time.monotonic() + LONGEST_COMPARISON
        while self.currency.refresh(COMPARED_AT_ONCE) and time.monotonic() < until:
            pass
        while self.rows is not None and coming_days.refresh(self.passages):
            pass

    def _refresh_files(self, found: Scan, embed: bool) -> list[str]:
        work = self._vectoring() if embed else None
        if not found.stale and (work is None or work.complete):
            return []
        if self.passages.database.read_only:
            return self._refresh_copy(found, work)
        recut = self._recut(found)
        changed = set(found.changed) - set(recut)
        if len(changed) > SMALL_FILES or sum(seen.size for seen in changed) > SMALL_BYTES:
            return [f"index: {plural(len(changed), 'file')} changed since; run: nanoclaw-memory index"]
        with self._alone(PATIENCE) as alone:
            if not alone:
                return [_BUSY]
            found = self.scan()  # the process that was waited for may have indexed it
            self._store(found, set(found.changed) - set(recut))
            said = self._recut_few(recut, found, work) if recut else []
            return said + self._embed_few(work) if work else said

    def _read_rows(
        self, sources: Collection[str] | None, most: int = ROWS_AT_ONCE, whole: bool = False
    ) -> tuple[int, list[str]]:
        """Read changed rows of the group's databases; return how many, and which sources could not be read."""
        if self.rows is None:
            return 0, []
        return self.rows.read(sources, most, whole)

    def _replaced(self) -> tuple[str, ...]:
        """Return the notice about an index that an earlier version made."""
        if self.passages.meta("replaced") is None:
            return ()
        self.passages.drop_meta("replaced")
        return ("made by an earlier version, so it was rebuilt",)

    def _refresh_copy(self, found: Scan, work: Vectoring | None) -> list[str]:
        """Index changes for this process only; without vectors, which would have to be recomputed every time."""
        self._store(found, found.changed)
        if work is None or work.complete:
            return []
        return ["vectors: the home is read-only, so what is new is found by its words alone"]

    def embed(self, most: int) -> int:
        """Read changed rows of the group's databases and embed at most so many passages without a vector."""
        self._read_rows(None, whole=True)
        self.currency.refresh(COMPARED_AT_ONCE)
        coming_days.refresh(self.passages)
        work = self._vectoring()
        if work is not None and not self.passages.database.read_only:
            self._mend(work)
        if work is None or work.complete:
            return 0
        with self._alone() as alone:
            done = work.fill(fallbacks=False, most=most) if alone else 0
            if done:
                work.pack()
            return done

    def _mend(self, work: Vectoring) -> list[str]:
        if not self.vectors.mend(self.passages, work.chain.identity.key):
            return []
        return ["vectors: their file was lost or damaged, so they are made anew"]

    def answering(self) -> str:
        """Return the key of the model in use: the configured one only when its vectors are complete."""
        return answering(self.passages)

    def _vectoring(self) -> Vectoring | None:
        chain = self.embedder()
        return Vectoring(self.passages, chain, self.vectors) if chain else None

    def _recut(self, found: Scan) -> tuple[Seen, ...]:
        """Return files that only need re-cutting: their old chunks stay in use until vectors are ready."""
        if not answering(self.passages):
            return ()
        return tuple(
            seen
            for seen in found.changed
            if (known := found.known.get(seen.relative))
            and (known.size, known.mtime_ns) == (seen.size, seen.mtime_ns)
        )

    def _announced(self, work: Vectoring | None, recut: Sequence[Seen]) -> tuple[str, ...]:
        lines = []
        if recut:
            lines.append(f"{plural(len(recut), 'file')} cut anew; the old index answers until that is done")
        if work and work.replacing:
            lines.append(f"embedded anew by {work.chain.identity.key} in place of {work.replacing}")
        return tuple(lines)

    def _swap(self, recut: Sequence[Seen], found: Scan, work: Vectoring) -> int:
        """Re-cut files once all of their new chunks have vectors; during an outage the old ones stay."""
        embedded = 0
        if _installed(work.chain):
            embedded = work.ahead(self._new_chunks(recut))
        if not work.said:
            self._store(found, set(recut))
        return embedded

    def _fill(self, work: Vectoring, found: Scan, ahead: int) -> int:
        """Embed stored passages and drop unused vectors, except those made ahead of a re-cut."""
        swapped = not work.said
        if not swapped and work.replacing:
            return 0  # the old chunks have the old vectors, the new model only works for the new chunks
        embedded = work.fill(fallbacks=True)
        if swapped and work.complete and (found.stale or embedded or ahead):
            work.prune()
        return embedded

    def _new_chunks(self, recut: Sequence[Seen]) -> Iterator[NewPassage]:
        for seen in counted("files cut anew", recut):
            with suppress(FileNotFoundError, FileProblem):  # reported when it is stored
                yield from self._cut(seen.relative, self.read(Path(seen.path)))

    def _recut_few(self, recut: Sequence[Seen], found: Scan, work: Vectoring | None) -> list[str]:
        """Re-cut a small memory on the way to a search; a large one stays as it is."""
        if work and self.passages.count()[1] <= SMALL_TEXTS:
            self._swap(recut, found, work)
            return []
        if work is None:
            return []  # words find as much in the old chunks
        anew = f"{plural(len(recut), 'file')} must be cut anew; the old index answers until then"
        return [f"index: {anew}; run: nanoclaw-memory index"]

    def _embed_few(self, work: Vectoring) -> list[str]:
        """Embed a few missing passages; never the whole index on the way to an answer."""
        waiting = self.passages.count_pending(work.chain.identity.key, SMALL_TEXTS + 1)
        if waiting <= SMALL_TEXTS:
            work.deadline = time.monotonic() + work.chain.timeout
            work.fill(fallbacks=False)
            return work.said
        if not _installed(work.chain):
            return ["vectors: the model is not installed; run: nanoclaw-memory models install"]
        if work.replacing:
            return []  # the search reports which model answers instead
        return ["vectors: not all chunks are embedded yet; run: nanoclaw-memory index"]

    def _store(self, found: Scan, changed: Collection[Seen]) -> None:
        for path in found.removed:
            self.passages.remove_file(path)
        for seen in counted("files", [seen for seen in found.changed if seen in changed]):
            self._take(seen, found.known.get(seen.relative))

    def _take(self, seen: Seen, known: FileRow | None) -> None:
        """Read one file and store its chunks, or the reason why it has none."""
        row = FileRow(0, seen.relative, seen.size, seen.mtime_ns, "", self.chunking.key, "")
        try:
            text = self.read(Path(seen.path))
        except FileNotFoundError:
            self.passages.remove_file(seen.relative)  # deleted between listing and reading
            return
        except FileProblem as problem:
            self.passages.put_file(replace(row, skipped=problem.message), ())
            return
        print_ = fingerprint(text)
        if known and known.fingerprint == print_ and known.chunking == self.chunking.key:
            self.passages.touch_file(known, seen.size, seen.mtime_ns)
            return
        written = min(datetime.fromtimestamp(seen.mtime_ns / 1e9).astimezone().date(), self.today())
        new = [_seen(new_passage, written.isoformat()) for new_passage in self._cut(seen.relative, text)]
        self.passages.put_file(replace(row, fingerprint=print_), new)

    def _cut(self, relative: str, text: str) -> list[NewPassage]:
        return prepared(relative, self.cut(relative, self.forget(text), self.chunking))

    def _report(
        self,
        found: Scan,
        embedded: int,
        said: tuple[str, ...],
        began: float,
        announced: tuple[str, ...] = (),
    ) -> Indexed:
        files, chunks = self.passages.count()
        work = self._vectoring()
        whole = work is None or work.complete
        pending = 0 if work is None or whole else len(self.passages.pending(work.chain.identity.key))
        return Indexed(
            files,
            chunks,
            len(found.changed),
            len(found.removed),
            embedded,
            pending,
            self.passages.skipped(),
            said,
            round((time.monotonic() - began) * 1000, 1),
            announced,
        )

    @contextmanager
    def _alone(self, patience: float = 0.0) -> Iterator[bool]:
        """Acquire the index lock; wait so many seconds for another update, but not for a full run."""
        private.make_folder(self.lock.parent)
        until = time.monotonic() + patience
        with open(self.lock, "a+", opener=private.opener) as handle:
            while not private.lock_within(handle, 0):
                handle.seek(0)
                if time.monotonic() >= until or handle.read() == _RUN:
                    yield False
                    return
                time.sleep(0.002)
            handle.truncate(0)
            if not patience:
                handle.write(_RUN)
                handle.flush()
            yield True


def _seen(new: NewPassage, day: str) -> NewPassage:
    """Date an undated passage by the day of its file."""
    return new if new.passage.day else replace(new, passage=replace(new.passage, seen=day))


def _installed(chain: Chain) -> bool:
    return all(getattr(member, "installed", True) for member in chain.members)


_BUSY = "index: another process is indexing; what it has done so far is searched"
