"""The audit log: one JSON line per change, each linked to the one before it by its hash.

It contains ids of entries and fingerprints of their text, never the text: forgotten text must not survive in a log.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.sha256 import sha256
from nanoclaw_memory.types import AuditVerdict, Scope
from nanoclaw_memory.workspace.files import locked

GENESIS = "0" * 64
_TAIL = 65_536


class Link(msgspec.Struct, frozen=True):
    """The number and hash of one line."""

    seq: int
    hash: str


class AuditLog:
    """`logs/audit.jsonl` and `audit.head`, which records how far the log reaches, so that a truncation is detected."""

    def __init__(self, folder: Path, scope: Scope, clock: Clock) -> None:
        self.path = folder / "audit.jsonl"
        self.head_path = folder / "audit.head"
        self._scope = scope
        self._clock = clock

    # ---- writing ----

    def append(self, event: str, entry_id: str = "", **details: Any) -> Link:
        """Append one line; it is on disk when this returns. One writer at a time over all processes."""
        record = {
            "at": stamp(self._clock.now()),
            "event": event,
            "id": entry_id,
            "group": self._scope.group,
            "session": self._scope.session_id,
            "origin": self._scope.origin,
            **({} if self._scope.private else {"shared": True}),
            **{name: value for name, value in details.items() if value not in (None, "", ())},
        }
        try:
            with locked(self.path.parent):
                return self._append(record)
        except OSError as error:
            raise StoreError(
                f"the audit log cannot be written: {error.strerror}",
                "nothing was changed; check free disk space and permissions",
            ) from error

    def _append(self, record: Mapping[str, Any]) -> Link:
        with private.appending(self.path) as handle:
            size = _whole_lines(handle)
            last, head = _last(handle, size), self._head()
            lines = []
            if not self._continues(last, head):
                broken = {
                    "at": record["at"],
                    "event": "chain-broken",
                    "expected": head.seq,
                    "hash": head.hash,
                }
                last, line = _bound({**broken, "found": last.seq}, last)
                lines.append(line)
            last, line = _bound(record, last)
            private.append_all(handle, b"".join([*lines, line]), size)
        self._write_head(last)
        return last

    def _continues(self, last: Link, head: Link) -> bool:
        """Return whether the log still contains the head's line; the head may lag after a power cut."""
        if last == head:
            return True
        if last.seq < head.seq:
            return False
        return head.seq == 0 or any(link == head for link, _ in self._links())

    def _head(self) -> Link:
        try:
            seq, digest = self.head_path.read_text(encoding="ascii").split()
            return Link(int(seq), digest)
        except (OSError, ValueError):
            return Link(0, GENESIS)

    def _write_head(self, link: Link) -> None:
        handle = os.open(self.head_path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(handle, f"{link.seq:012d} {link.hash}\n".encode("ascii"), 0)
        finally:
            os.close(handle)

    # ---- reading ----

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield every intact record, oldest first."""
        for _, record in self._links():
            yield record

    def last(self, limit: int) -> list[dict[str, Any]]:
        """Return the last intact records, newest first."""
        lines = deque(self._lines(), maxlen=limit)
        return [record for raw in reversed(lines) if (record := _parsed(raw)) is not None]

    def verify(self, anchors: Iterable[tuple[str, Link]] = ()) -> AuditVerdict:
        """Walk the chain, then check that it reaches the head and every group's anchor."""
        problems: list[str] = []
        seen: dict[int, str] = {0: GENESIS}
        previous = Link(0, GENESIS)
        for number, raw in enumerate(self._lines(), 1):
            record = _parsed(raw)
            if record is None:
                problems.append(f"line {number} is no record")
                continue
            link = Link(int(record["seq"]), str(record["hash"]))
            if record["prev"] != previous.hash or link.seq != previous.seq + 1:
                problems.append(f"line {number} does not follow the line before it: one was removed or moved")
            if _digest(record) != link.hash:
                problems.append(f"line {number} was changed")
            if record.get("event") == "chain-broken":
                problems.append(
                    f"line {number} records that {record.get('expected')} lines stood here before"
                )
            seen[link.seq] = link.hash
            previous = link
        for who, link in [("the head file", self._head()), *anchors]:
            if seen.get(link.seq) != link.hash:
                problems.append(f"{who} knows of line {link.seq}, which the log no longer holds")
        return AuditVerdict(not problems, previous.seq, tuple(problems))

    def _links(self) -> Iterator[tuple[Link, dict[str, Any]]]:
        for raw in self._lines():
            record = _parsed(raw)
            if record is not None:
                yield Link(int(record["seq"]), str(record["hash"])), record

    def _lines(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as stream:
                yield from stream
        except FileNotFoundError:
            return


def _bound(record: Mapping[str, Any], before: Link) -> tuple[Link, bytes]:
    full = {"seq": before.seq + 1, **record, "prev": before.hash}
    full["hash"] = _digest(full)
    line = json.dumps(full, ensure_ascii=True).encode("ascii") + b"\n"
    return Link(before.seq + 1, full["hash"]), line


def _digest(record: Mapping[str, Any]) -> str:
    body = {name: value for name, value in record.items() if name != "hash"}
    return sha256(json.dumps(body, sort_keys=True, ensure_ascii=True).encode("ascii")).hexdigest()


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(raw)
        return record if {"seq", "prev", "hash"} <= record.keys() and int(record["seq"]) else None
    except (ValueError, AttributeError, TypeError):
        return None


def _whole_lines(handle: int) -> int:
    """Cut off a last line that a power cut left half written; it was never acknowledged. Return the size."""
    size = os.fstat(handle).st_size
    tail = os.pread(handle, _TAIL, max(size - _TAIL, 0))
    if tail and not tail.endswith(b"\n"):
        size -= len(tail) - (tail.rfind(b"\n") + 1)
        os.ftruncate(handle, size)
    return size


def _last(handle: int, size: int) -> Link:
    tail = os.pread(handle, min(size, _TAIL), max(size - _TAIL, 0))
    for raw in reversed(tail.splitlines()):
        record = _parsed(raw)
        if record is not None:
            return Link(int(record["seq"]), str(record["hash"]))
    return Link(0, GENESIS)
