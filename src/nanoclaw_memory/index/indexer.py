"""Bring an index up to date with its files: read, cut, store, embed; one process at a time, resumable."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from nanoclaw_memory.errors import FileProblem, ProviderError
from nanoclaw_memory.index.chunker import Chunking, chunks_of
from nanoclaw_memory.index.prepare import embedded_text, prepared
from nanoclaw_memory.index.scanner import Scan, Seen, scan
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.store.chunks import Chunks, FileRow
from nanoclaw_memory.text import fingerprint, plural
from nanoclaw_memory.types import Chunk, Indexed
from nanoclaw_memory.workspace.files import read_text

BATCH = 64
SMALL_FILES = 64
SMALL_BYTES = 1_000_000
SMALL_TEXTS = 32

Progress = Callable[[str, int, int], None]
Files = Callable[[], Iterable[tuple[str, Path]]]
Reader = Callable[[Path], str]
Cutter = Callable[[str, str, Chunking], list[Chunk]]


def read_markdown(path: Path) -> str:
    """A memory file's text; binary content is refused aloud."""
    text = read_text(path)
    if "\x00" in text:
        raise FileProblem(f"{path.name} is a binary file", "only text belongs in memory")
    return text


@dataclass(frozen=True)
class Index:
    """One search index and what it is made from."""

    chunks: Chunks
    lock: Path
    files: Files
    chunking: Chunking
    embedder: Callable[[], Chain | None]  # asked only when vectors are wanted
    read: Reader = read_markdown
    cut: Cutter = field(default=chunks_of)
    forget: Callable[[str], str] = lambda text: text  # takes forgotten lines out, and keeps their places

    def scan(self) -> Scan:
        """What changed on disk since the last run; only looks."""
        return scan(self.files(), self.chunks.files(), self.chunking.key)

    def run(self, rebuild: bool = False, progress: Progress | None = None) -> Indexed:
        """Do everything there is to do; killed at any point, the next run goes on from there."""
        began = time.monotonic()
        said: list[str] = []
        with self._alone() as alone:
            if not alone:
                return self._report(Scan((), (), {}), 0, [_BUSY], began)
            if rebuild:
                self.chunks.mark_stale()
            found = self.scan()
            self._store(found, progress)
            embedded = self._embed(said, progress)
            chain = self.embedder()
            if chain and not said and (found.stale or embedded):
                self.chunks.prune_vectors(chain.identity.key)
        return self._report(found, embedded, said, began)

    def refresh(self, embed: bool) -> list[str]:
        """Take in small changes on the way to a search and say what is missing; never waits for others."""
        found = self.scan()
        chain = self.embedder() if embed else None
        if not found.stale and (chain is None or self._complete(chain)):
            return []
        if len(found.changed) > SMALL_FILES or sum(seen.size for seen in found.changed) > SMALL_BYTES:
            return [f"index: {plural(len(found.changed), 'file')} changed since; run: nanoclaw-memory index"]
        with self._alone() as alone:
            if not alone:
                return [_BUSY]
            self._store(found, None)
            return self._embed_few(chain) if chain else []

    def _embed_few(self, chain: Chain) -> list[str]:
        """Embed what little is missing; never the whole index on the way to an answer."""
        waiting = len(self.chunks.pending(chain.identity.key, SMALL_TEXTS + 1))
        if waiting <= SMALL_TEXTS:
            said: list[str] = []
            self._embed(said, None, time.monotonic() + chain.timeout)
            return said
        unready = [member for member in chain.members if not getattr(member, "installed", True)]
        if unready:
            return ["vectors: the model is not installed; run: nanoclaw-memory models install"]
        return ["vectors: not all chunks are embedded yet; run: nanoclaw-memory index"]

    def _complete(self, chain: Chain) -> bool:
        """Whether every chunk has a vector, as the last run found."""
        return self.chunks.meta("embedded") == f"{chain.identity.key} {self.chunks.generation()}"

    def _store(self, found: Scan, progress: Progress | None) -> None:
        for path in found.removed:
            self.chunks.remove_file(path)
        for done, seen in enumerate(found.changed, 1):
            self._take(seen, found.known.get(seen.relative))
            if progress:
                progress("files", done, len(found.changed))

    def _take(self, seen: Seen, known: FileRow | None) -> None:
        """Read one file and store its chunks, or the reason why it has none."""
        row = FileRow(0, seen.relative, seen.size, seen.mtime_ns, "", self.chunking.key, "")
        try:
            text = self.read(seen.path)
        except FileNotFoundError:
            self.chunks.remove_file(seen.relative)  # it vanished between the look and the reading
            return
        except FileProblem as problem:
            self.chunks.put_file(replace(row, skipped=problem.message), ())
            return
        print_ = fingerprint(text)
        if known and known.fingerprint == print_ and known.chunking == self.chunking.key:
            self.chunks.touch_file(known, seen.size, seen.mtime_ns)
            return
        new = prepared(seen.relative, self.cut(seen.relative, self.forget(text), self.chunking))
        self.chunks.put_file(replace(row, fingerprint=print_), new)

    def _embed(self, said: list[str], progress: Progress | None, deadline: float | None = None) -> int:
        """Embed what has no vector yet, batch by batch; gives how many texts were embedded."""
        chain = self.embedder()
        if chain is None or self._complete(chain):
            return 0
        from nanoclaw_memory.store.vectors import coded

        key = chain.identity.key
        waiting = self.chunks.pending(key)
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            stored = self.chunks.load(chunk for _, chunk in batch)
            texts = [embedded_text(stored[chunk].chunk) for _, chunk in batch]
            try:
                vectors = chain.members[0].embed_documents(texts, deadline)
            except ProviderError as error:
                said.append(f"vectors: {error.message}" + (f"; {error.hint}" if error.hint else ""))
                return start
            self.chunks.put_vectors(key, coded([print_ for print_, _ in batch], vectors))
            if progress:
                progress("embeddings", start + len(batch), len(waiting))
        self.chunks.set_meta("embedded", f"{key} {self.chunks.generation()}")
        return len(waiting)

    def _report(self, found: Scan, embedded: int, said: list[str], began: float) -> Indexed:
        files, chunks = self.chunks.count()
        chain = self.embedder()
        whole = chain is None or self._complete(chain)
        pending = 0 if chain is None or whole else len(self.chunks.pending(chain.identity.key))
        return Indexed(
            files,
            chunks,
            len(found.changed),
            len(found.removed),
            embedded,
            pending,
            self.chunks.skipped(),
            tuple(said),
            round((time.monotonic() - began) * 1000, 1),
        )

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process may index now; it never waits for another that does."""
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        with self.lock.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True


_BUSY = "index: another process is indexing; what it has done so far is searched"
