"""The directory of an export: one signed JSON line per record, in sorted files that git can merge line by line."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, NotFound, Refused
from nanoclaw_memory.store.records import KINDS, id_of
from nanoclaw_memory.workspace.files import replace_text

WORLDS = ("private", "shared")
KEY_FILE = "sync.key"
MAX_FILE, MAX_LINE = 500_000_000, 1_000_000
_SIGNED = re.compile(rb'(\{.*),"mac":"([0-9a-f]{32})"\}', re.DOTALL)
_ATTRIBUTES = "*.jsonl -text merge=union\n"
Ids = dict[str, dict[str, set[str]]]  # world, kind, ids


def sync_key(home: Path, new: bool = False) -> bytes:
    """Return the key that the person's machines share; with `new` it is created if missing."""
    path = home / KEY_FILE
    if not path.exists():
        if not new:
            raise NotFound(
                f"this machine has no {KEY_FILE}",
                f"copy it from the machine that exported, into {home}: what is not signed with it is refused",
            )
        private.replace_file(path, secrets.token_hex(32) + "\n")
    if path.stat().st_mode & 0o077:
        raise FileProblem(f"others may read {path}", f"run: chmod 600 {path}")
    try:
        return bytes.fromhex(path.read_text().strip())[:64]
    except (ValueError, UnicodeDecodeError):
        raise FileProblem(f"{path} contains no key", "copy it again from your other machine") from None


class ExportedLines(msgspec.Struct):
    """The content of a directory: versions of each record by id, lines of other keys, and problems."""

    records: dict[str, dict[str, list[Any]]] = msgspec.field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    foreign: dict[str, list[bytes]] = msgspec.field(default_factory=dict)
    problems: list[str] = msgspec.field(default_factory=list)
    signed: int = 0


class ExportDirectory:
    """One group's export."""

    def __init__(self, folder: Path, key: bytes, group: str) -> None:
        self.folder = folder
        self._key = key
        self._group = group

    # ---- reading ----

    def read(self, world: str) -> ExportedLines:
        """Return every record of one world; an invalid line is a problem, and the others count."""
        found = ExportedLines()
        for path, kind in self._files(world):
            name = path.relative_to(self.folder).as_posix()
            for number, line in enumerate(self._lines(path), 1):
                problem = self._take(found, world, kind, line) if line else ""
                if problem:
                    found.problems.append(f"{name}:{number}: {problem}")
        return found

    def _files(self, world: str) -> Iterator[tuple[Path, str]]:
        root = self.folder.resolve()
        for kind in KINDS:
            below = self.folder / world
            for path in [below / f"{kind}.jsonl", *sorted((below / kind).glob("????-??.jsonl"))]:
                if path.is_symlink() or not path.resolve().is_relative_to(root):
                    raise Refused(f"{path.name} is a link", "give the directory that ncm export wrote")
                if path.is_file():
                    yield path, kind

    def _lines(self, path: Path) -> list[bytes]:
        if path.stat().st_size > MAX_FILE:
            raise FileProblem(f"{path.name} is over {MAX_FILE:,} bytes", "it is no file of ncm export")
        return path.read_bytes().split(b"\n")

    def _take(self, found: ExportedLines, world: str, kind: str, line: bytes) -> str:
        """Read one line into `found`; return what is wrong with it."""
        if len(line) > MAX_LINE:
            return f"is over {MAX_LINE:,} bytes"
        signed = _SIGNED.fullmatch(line)
        if signed is None:
            return "is no line of ncm export" + (" (a mark of a git conflict)" if line[:1] in b"<=>|" else "")
        body = signed[1] + b"}"
        if not hmac.compare_digest(self._mac(world, kind, body), signed[2]):
            found.foreign.setdefault(kind, []).append(line)
            return "is not signed with this machine's key"
        try:
            record = msgspec.json.decode(body, type=KINDS[kind].record)
        except msgspec.MsgspecError as error:
            return f"cannot be read, perhaps it is of a newer release: {str(error)[:200]}"
        found.signed += 1
        found.records[kind].setdefault(id_of(kind, record), []).append(record)
        return ""

    # ---- writing ----

    def write(self, world: str, kind: str, records: Mapping[str, Any], foreign: list[bytes]) -> int:
        """Rewrite the files of a kind that differ; return how many did."""
        files: dict[str, list[tuple[tuple[str, ...], bytes]]] = {}
        for name, record in records.items():
            file = f"{kind}/{record.timestamp[:7]}.jsonl" if kind == "exchanges" else f"{kind}.jsonl"
            line = self._line(world, kind, record)
            files.setdefault(file, []).append(((*KINDS[kind].order(record), name), line))
        if foreign:
            files.setdefault(f"{kind}.jsonl", []).extend((("~",), line) for line in sorted(set(foreign)))
        # A file without lines stays, empty: git cannot merge a deleted file with a changed one.
        for path, own in self._files(world):
            if own == kind:
                files.setdefault(path.relative_to(self.folder / world).as_posix(), [])
        return sum(
            self._replace(self.folder / world / file, b"".join(line + b"\n" for _, line in sorted(lines)))
            for file, lines in files.items()
        )

    def write_attributes(self) -> int:
        """Configure git to merge the files by taking the lines of both sides."""
        path = self.folder / ".gitattributes"
        before = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        return 0 if _ATTRIBUTES.encode() in before else self._replace(path, before + _ATTRIBUTES.encode())

    def _replace(self, path: Path, text: bytes) -> int:
        if path.is_file() and path.read_bytes() == text:
            return 0
        replace_text(path, text.decode(), durable=False)
        return 1

    def _line(self, world: str, kind: str, record: Any) -> bytes:
        body = msgspec.json.encode(record)
        return body[:-1] + b',"mac":"' + self._mac(world, kind, body) + b'"}'

    def _mac(self, world: str, kind: str, body: bytes) -> bytes:
        """Return the signature of a line, valid for one group, world and kind; only a machine with the key can write
        it.
        """
        where = "\0".join((self._group, world, kind, "")).encode()
        return hashlib.blake2b(where + body, key=self._key, digest_size=16).hexdigest().encode()
