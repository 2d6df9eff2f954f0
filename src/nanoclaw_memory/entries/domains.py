"""Write entries as Markdown to `memory/domains/<type>.md`; a person's edits become proposals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.entries.lines import masked
from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import item_line, safe_line
from nanoclaw_memory.statements import text_key
from nanoclaw_memory.store.entries import PRIORITIES, EntryTable, Filter
from nanoclaw_memory.store.proposals import Proposals
from nanoclaw_memory.text import fingerprint, plural
from nanoclaw_memory.types import ORIGINS, Entry
from nanoclaw_memory.workspace.files import locked, read_or_empty, read_text, replace_text
from nanoclaw_memory.workspace.paths import within

if TYPE_CHECKING:
    from nanoclaw_memory.workspace.merging import Merge

FOLDER = "memory/domains"
MOST_ENTRIES = 5_000
MOST_CHARS = 1_000_000  # a longer file is rewritten with the newest entries, up to 4/5 of this
STAMP_CHARS = 16  # of the fingerprint of a file as we wrote it
_STAMP = regex(r"<!-- nanoclaw-memory (?:\S+ )?(?P<fingerprint>[0-9a-f]{16,64}) -->\n")
_ENTRY = regex(r"- (?P<text>.*?) \^(?P<mark>\d{9})(?P<about>[a-z]{2})?\s*$")
# The format of an older release.
_OLD_ENTRY = regex(r"- (?P<text>.*?)\s*<!-- (?P<id>mem-[0-9a-f-]{36})\b(?P<about>[^>]*)-->\s*$")
_OLD_NOTE = (
    "Written from the stored entries. Edits are welcome: they are offered as changes, not overwritten."
)


def domain_path(entry_type: str) -> str:
    """Return the workspace path of a type's domain file."""
    return f"{FOLDER}/{entry_type}.md"


class DomainFile(msgspec.Struct, frozen=True):
    """The content of a domain file on disk."""

    body: str
    ours: bool  # False if somebody else created the file or removed our first line
    edited: bool


class DomainLine(msgspec.Struct, frozen=True):
    """A line of a domain file; it names its entry by a mark of four tokens."""

    text: str
    mark: str
    origin: str = "owner"
    priority: str = "medium"


class LostLine(msgspec.Struct, frozen=True):
    """A line of a domain file whose entry is in no database."""

    line: int
    text: str
    priority: str
    origin: str


class DomainFiles:
    """The domain files of one group."""

    def __init__(
        self,
        table: EntryTable,
        proposals: Proposals,
        workspace: Path,
        clock: Clock,
        intake: Intake,
    ) -> None:
        self._table = table
        self._proposals = proposals
        self._workspace = workspace
        self._clock = clock
        self._intake = intake

    def update(self, entry_type: str, gone: Iterable[str] = (), come: Sequence[Entry] = ()) -> str:
        """Update a file after a change; return a note if a person's edits prevent it."""
        with locked(self._folder()):
            page = self.read(entry_type)
            if page is None or len(page.body) > MOST_CHARS:
                self._rewrite(entry_type)
                return ""
            if page.edited:
                with self._table.db.transaction():
                    self._table.leave_out(entry.id for entry in come)
                return self._offer(entry_type, page)
            if "<!-- mem-" in page.body:
                self._rewrite(entry_type)
                return ""
            marks = {_mark(entry_id) for entry_id in (*gone, *(entry.id for entry in come))}
            body = _without(page.body, [mark for mark in marks if f" ^{mark}" in page.body])
            self._write(entry_type, body + "".join(_line(entry) for entry in come))
            return ""

    def render(self, entry_type: str) -> str:
        """Rewrite a file from the entries; return a note if a person's edits prevent it."""
        with locked(self._folder()):
            page = self.read(entry_type)
            if page is not None and page.edited:
                return self._offer(entry_type, page)
            if lost := len(self.lost(entry_type)):
                lines = f"{domain_path(entry_type)} holds {plural(lost, 'line')} that the database lost"
                return f"{lines} and was left as it is; run: ncm entries migrate"
            self._rewrite(entry_type)
            return ""

    def lost(self, entry_type: str) -> list[LostLine]:
        """Return lines of the file whose entries are missing in the database: it was lost or replaced."""
        page = self.read(entry_type)
        if page is None or not page.ours:
            return []
        known = set(map(_mark, self._table.ids(entry_type)))
        found = []
        for number, line in enumerate(page.body.split("\n"), 2):
            entry = _parsed(line)
            if entry is None or entry.mark in known:
                continue
            origin = "import" if page.edited else entry.origin
            text = plain_text(entry.text)
            if not self._table.has_text(entry_type, text_key(text)):
                found.append(LostLine(number, text, entry.priority, origin))
        return found

    def discard_edits(self, entry_type: str) -> None:
        """Rewrite a file whatever it contains, once its edits have been decided."""
        with locked(self._folder()):
            self._rewrite(entry_type)

    def read(self, entry_type: str) -> DomainFile | None:
        """Return the file on disk, or None."""
        text = read_or_empty(self._path(entry_type)).replace("\r\n", "\n")
        if not text.strip("\x00 \n"):  # what a power cut leaves of a file that was not synced
            return None
        return _file(text)

    def missing(self, entry_type: str) -> int:
        """Count the entries missing from the file or wrongly in it; a person's edits do not count."""
        page = self.read(entry_type)
        if page is not None and page.edited:
            return 0
        newest = {_mark(entry.id) for entry in self._newest(entry_type)}
        there = {line.mark for line in map(_parsed, page.body.splitlines()) if line} if page else set()
        return len(newest - there) + len(there - set(map(_mark, self._table.in_domain(entry_type))))

    # ---- a person's edits ----

    def _offer(self, entry_type: str, page: DomainFile) -> str:
        known = {_mark(entry.id): entry for entry in self._newest(entry_type)}
        written = self._table.in_domain(entry_type) if page.ours else set()
        offered = 0
        seen: set[str] = set()
        for line in page.body.splitlines():
            found = _parsed(line)
            if found and found.mark in known:
                entry = known[found.mark]
                seen.add(entry.id)
                if found.text != _text(entry) and entry.id in written:
                    offered += self._propose(entry_type, entry, plain_text(found.text))
            elif not found and (text := _added(line)):
                offered += self._propose(entry_type, None, text)
        for entry in known.values():
            if entry.id in written and entry.id not in seen:
                offered += self._propose(entry_type, entry, "")
        count = f" ({plural(offered, 'new proposal')})" if offered else ""
        return f"{domain_path(entry_type)} holds edits by hand and was left as it is{count}; see: ncm review"

    def _propose(self, entry_type: str, entry: Entry | None, text: str) -> int:
        if text and self._intake.forgets(text):
            return 0
        before = [f"- {_text(entry)}"] if entry else []
        after = [f"+ {item_line(text)}"] if text else []
        proposal = self._proposals.propose(
            "domain-edit",
            {
                "type": entry_type,
                "id": entry.id if entry else "",
                "content": text,
                "origin": entry.provenance.origin if entry else "",
            },
            why="edited by hand" if entry and text else "removed by hand" if entry else "added by hand",
            key=f"{entry_type}\n{entry.id if entry else ''}\n{entry.updated_at if entry else ''}\n{text}",
            moment=stamp(self._clock.now()),
            source=domain_path(entry_type),
            diff="\n".join([*before, *after]),
            origin="owner",
            effect="changes the entry to what stands in the file",
        )
        return int(proposal is not None)

    # ---- inside ----

    def _newest(self, entry_type: str) -> list[Entry]:
        """Return the entries that a rewritten file contains, oldest first."""
        wanted = Filter(stamp(self._clock.now()), (entry_type,))
        left, chosen = MOST_CHARS * 4 // 5, []
        for entry in self._table.recent(wanted, MOST_ENTRIES):
            left -= len(entry.content) + 100
            if left < 0:
                break
            chosen.append(entry)
        return chosen[::-1]

    def _rewrite(self, entry_type: str) -> None:
        with self._table.db.transaction():
            self._table.take_in(entry_type)
        lines = "".join(_line(entry) for entry in self._newest(entry_type))
        self._write(entry_type, f"# Memory: {entry_type}\n\n{lines}")

    def _write(self, entry_type: str, body: str) -> None:
        replace_text(self._path(entry_type), _stamped(body), durable=False)

    def _folder(self) -> Path:
        folder = self._workspace / FOLDER
        within(folder, self._workspace)
        return folder

    def _path(self, entry_type: str) -> Path:
        path = self._workspace / domain_path(entry_type)
        within(path, self._workspace)
        return path


def merge_files(base: str, mine: str, theirs: str) -> Merge:
    """Merge two machines' versions of a domain file; it stays ours as long as no person edited it."""
    from nanoclaw_memory.workspace.merging import Merge, merge

    found = [_file(text) for text in (base, mine, theirs)]
    made = merge(*(domain_file.body for domain_file in found))
    if any(domain_file.edited for domain_file in found[1:]):
        head = theirs.removesuffix(found[2].body)  # its stamp does not match the merged body
        return Merge(head + made.text, head + made.mine)
    text = _stamped(made.text)
    return Merge(text, text)  # derived: errors in it are overwritten


def _file(text: str) -> DomainFile:
    found = _STAMP.match(text)
    if not found:
        return DomainFile(text, ours=False, edited=True)
    body = text[found.end() :]
    return DomainFile(body, ours=True, edited=not fingerprint(body).startswith(found["fingerprint"]))


def _stamped(body: str) -> str:
    return f"<!-- nanoclaw-memory {fingerprint(body)[:STAMP_CHARS]} -->\n{body}"


def count_lines(workspace: Path) -> int:
    """Count the entries in the domain files, for a home whose database is lost."""
    total = 0
    for path in sorted((workspace / FOLDER).glob("*.md")):
        try:
            total += sum(1 for line in read_text(path).split("\n") if _parsed(line))
        except (NanoClawError, OSError):
            continue  # doctor reports it like any unreadable file
    return total


def _without(body: str, marks: Sequence[str]) -> str:
    if not marks:
        return body
    lines = body.splitlines(keepends=True)
    gone = set(marks)
    return "".join(line for line in lines if (found := _parsed(line)) is None or found.mark not in gone)


def plain_text(line: str) -> str:
    """Return a line of a domain file without the escapes that `safe_line` added."""
    text = line.replace("&lt;", "<").replace("] (", "](").replace("! [", "![")
    return re.sub(r"^(\d{1,9})?\\(?=[\W_])", r"\1", text)


def _line(entry: Entry) -> str:
    about = entry.author[0] + entry.priority[0]
    return f"- {_text(entry)} ^{_mark(entry.id)}{'' if about == 'om' else about}\n"


def _mark(entry_id: str) -> str:
    """Return nine digits that identify an entry in its file: four tokens with their sign, where its id has thirty."""
    return f"{int(fingerprint(entry_id)[:12], 16) % 10**9:09d}"


def _parsed(line: str) -> DomainLine | None:
    """Parse a line that we or an older release wrote; return None for any other."""
    if found := _ENTRY.match(line):
        about = found["about"] or "om"
        origin = next((one for one in ORIGINS if one[0] == about[0]), "import")
        priority = next((one for one in PRIORITIES if one[0] == about[1]), "medium")
        return DomainLine(found["text"], found["mark"], origin, priority)
    if (old := _OLD_ENTRY.match(line)) is None:
        return None
    known = old["about"].split()
    origin = known[1] if len(known) == 3 and known[1] in ORIGINS else "import"
    priority = known[-1] if known and known[-1] in PRIORITIES else "medium"
    return DomainLine(old["text"], _mark(old["id"]), origin, priority)


def _text(entry: Entry) -> str:
    return safe_line(masked(entry.content))


def _added(line: str) -> str:
    """Return the text of a line that a person added; empty for headings, notes, comments and blank lines."""
    stripped = line.strip()
    if not stripped or stripped == _OLD_NOTE or stripped.startswith(("#", "<!--")):
        return ""
    return re.sub(r"^[-*+]\s+", "", stripped)
