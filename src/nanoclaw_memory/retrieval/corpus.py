"""Domain documents: named collections of Markdown, text, HTML and PDF, each in its own database."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import (
    CorruptDatabase,
    FileProblem,
    InvalidValue,
    NotFound,
    PathRefused,
    StoreError,
)
from nanoclaw_memory.retrieval.chunker import Chunking, section_chunks
from nanoclaw_memory.retrieval.indexer import Index, read_markdown
from nanoclaw_memory.retrieval.scanner import seen_files
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.types import Corpus, Indexed, Skipped
from nanoclaw_memory.workspace.paths import check_slug

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain

MAX_PDF_BYTES = 200_000_000
MAX_PAGES = 5_000
SUFFIXES = (".md", ".markdown", ".txt", ".html", ".htm", ".pdf")
_BLOCKS = frozenset(
    "p div li tr br h1 h2 h3 h4 h5 h6 section article table ul ol pre blockquote dd dt".split()
)
_UNSEEN = frozenset("script style head template noscript".split())


class Corpora(msgspec.Struct, frozen=True):
    """The corpora of a group; each is one file in `folder`."""

    folder: Path
    chunking: Chunking
    embedder: Callable[[], Chain | None]
    opened: dict[str, SqliteDatabase]
    forget: Callable[[str], str] = lambda text: text
    is_of_others: Callable[[Path], bool] = lambda path: False

    def names(self) -> list[str]:
        """Return the names of all corpora, in order."""
        return sorted(path.stem for path in self.folder.glob("*.db")) if self.folder.is_dir() else []

    def add(self, name: str, paths: Sequence[Path]) -> Indexed:
        """Create a corpus, or add to one; the documents stay where they are."""
        if name == "all":
            raise InvalidValue("a corpus cannot be called 'all'", "--corpus all means every one of them")
        check_slug(name)
        roots = [path.expanduser().resolve() for path in paths]
        for root in roots:
            if self.is_of_others(root):
                raise PathRefused(f"{root.name} belongs to another group", "give documents of this group")
            if not root.exists():
                raise NotFound(f"there is no {root}", "give a file or folder of documents")
        chunks = self._chunks(name)
        known = self._sources(chunks)
        every = dict.fromkeys([*known, *map(str, roots)])
        chunks.set_meta("sources", json.dumps(list(every)))
        return self.index(name).run()

    def all(self) -> tuple[Corpus, ...]:
        """Return name, sources and size of each corpus."""
        found = []
        for name in self.names():
            try:
                found.append(self._described(name))
            except StoreError as error:
                found.append(Corpus(name, (), 0, 0, (Skipped(f"{name}.db", error.message),)))
        return tuple(found)

    def _described(self, name: str) -> Corpus:
        chunks = self._chunks(name)
        files, count = chunks.count()
        return Corpus(name, tuple(self._sources(chunks)), files, count, chunks.skipped())

    def reindex(self, name: str = "", rebuild: bool = False) -> Indexed:
        """Update one corpus, or all, from its documents."""
        chosen = [self._known(name)] if name else self.names()
        runs, damaged = [], []
        for one in chosen:
            try:
                runs.append(self.index(one).run(rebuild))
            except CorruptDatabase as error:  # its sources are lost with it; the others are still updated
                if name:
                    raise
                damaged.append(f"corpus {one}: {error.message}; {error.hint}")
        return Indexed(
            sum(run.files for run in runs),
            sum(run.chunks for run in runs),
            sum(run.added for run in runs),
            sum(run.removed for run in runs),
            sum(run.embedded for run in runs),
            sum(run.pending for run in runs),
            tuple(skipped for run in runs for skipped in run.skipped),
            tuple(dict.fromkeys([*(line for run in runs for line in run.degraded), *damaged])),
            sum(run.took_ms for run in runs),
            tuple(dict.fromkeys(line for run in runs for line in run.announced)),
        )

    def remove(self, name: str) -> None:
        """Remove a corpus; its documents are not touched."""
        self._known(name)
        database = self.opened.pop(name, None)
        if database:
            database.close()
        for path in self.folder.glob(f"{name}.db*"):
            path.unlink(missing_ok=True)

    def index(self, name: str) -> Index:
        """Return the index of an existing corpus."""
        chunks = self._chunks(name)
        return Index(
            chunks,
            self.folder / f"{name}.db-indexing",
            lambda: seen_files(self._documents(chunks)),
            self.chunking,
            self.embedder,
            read_document,
            section_chunks,
            self.forget,
        )

    def _documents(self, chunks: Passages) -> Iterator[tuple[str, Path]]:
        """Yield the documents of a corpus, without those of others reached through a link or a folder above the
        home.
        """
        found = documents(Path(source) for source in self._sources(chunks))
        return ((name, path) for name, path in found if not self.is_of_others(path))

    def _known(self, name: str) -> str:
        if name not in self.names():
            have = ", ".join(self.names()) or "none yet"
            raise NotFound(f"there is no corpus {name!r}", f"corpora: {have}")
        return name

    def _chunks(self, name: str) -> Passages:
        if name not in self.opened:
            self.opened[name] = SqliteDatabase(self.folder / f"{name}.db", "index")
        return Passages(self.opened[name])

    @staticmethod
    def _sources(chunks: Passages) -> list[str]:
        return [str(source) for source in json.loads(chunks.meta("sources") or "[]")]


def documents(sources: Iterator[Path]) -> Iterator[tuple[str, Path]]:
    """Yield every document below the sources with its full path; links to folders are not followed."""
    for source in sources:
        if source.is_file():
            yield str(source), source
            continue
        for folder, folders, names in os.walk(source):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if path.suffix.lower() in SUFFIXES and not name.startswith("."):
                    yield str(path), path


def read_document(path: Path) -> str:
    """Return a document's text, as Markdown if it has headings or pages."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return read_pdf(path)
    text = read_markdown(path)
    return html_text(text) if suffix in (".html", ".htm") else text


def read_pdf(path: Path) -> str:
    """Return the text layer of a PDF with a heading per page."""
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it logs each irregular object of a file
    size = path.stat().st_size
    if size > MAX_PDF_BYTES:
        raise FileProblem(f"{path.name} has {size:,} bytes, over the limit of {MAX_PDF_BYTES:,}", "split it")
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise FileProblem(f"{path.name} is encrypted", "save a copy without a password")
        pages = [page.extract_text() for page in reader.pages[:MAX_PAGES]]
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError) as error:
        raise FileProblem(f"{path.name} cannot be read as PDF: {error}", "open and save it anew") from None
    if not any(page.strip() for page in pages):
        raise FileProblem(f"{path.name} holds no text, only pictures", "use text recognition first")
    return "\n".join(f"## page {number}\n{page}" for number, page in enumerate(pages, 1) if page.strip())


def html_text(text: str) -> str:
    """Return the visible text of a page, a line per block, headings as Markdown."""
    parser = _HtmlPage()
    parser.feed(text)
    parser.close()
    lines = (re.sub(r"[ \t\r\f\v]+", " ", line).strip() for line in "".join(parser.out).split("\n"))
    return "\n".join(line for line in lines if line)


class _HtmlPage(HTMLParser):
    """Collect the visible text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag in _BLOCKS:
            self.out.append("\n" + "#" * int(tag[1]) + " " if re.fullmatch(r"h[1-6]", tag) else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag in _BLOCKS:
            self.out.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.out.append(data.replace("\n", " "))
