"""The spool: a hook notes what was said in a millisecond; exchanges are made of it later, by whoever has time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import moment_of, stamp

MAX_TEXT = 100_000
LOST_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class Spoken:
    """A question and its answer, waiting to be archived."""

    session: str
    private: bool
    question: str
    answer: str
    at: datetime


@dataclass(frozen=True)
class Spool:
    """The things said in one group: `spool.jsonl` is written by hooks, `taken-*.jsonl` wait to be archived."""

    folder: Path

    def note(self, session: str, private: bool, kind: str, text: str, at: datetime) -> None:
        """Append what was asked (`prompt`) or answered (`answer`): one short write."""
        record = {
            "at": stamp(at),
            "session": session,
            "private": private,
            "kind": kind,
            "text": text[:MAX_TEXT],
        }
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "spool.jsonl"
        while True:
            with _locked(path) as handle:
                # Taken away between open and lock: what is written now would be read by nobody.
                if path.exists() and os.fstat(handle).st_ino == path.stat().st_ino:
                    os.write(handle, line)
                    return

    def drain(self, now: datetime, archive: Callable[[Spoken], object], limit: int = 50) -> int:
        """Hand over at most `limit` whole exchanges, oldest first; what is incomplete waits.

        A crash half-way hands some over again: archiving must be idempotent, and `Memory.after_turn` is.
        """
        if not self.folder.is_dir():
            return 0
        with _locked(self.folder / "drain.lock"):
            self._take(now)
            taken = sorted(self.folder.glob("taken-*.jsonl"))
            lines = [line for path in taken for line in path.read_text("utf-8", "replace").splitlines()]
            whole, waiting = _pairs(lines, now)
            for spoken, _ in whole[:limit]:
                archive(spoken)
            self._keep([line for _, pair in whole[limit:] for line in pair] + waiting, taken)
        return min(len(whole), limit)

    def _take(self, now: datetime) -> None:
        path = self.folder / "spool.jsonl"
        if path.exists():
            with _locked(path):
                path.rename(self.folder / f"taken-{stamp(now)}-{os.getpid()}.jsonl")

    def _keep(self, lines: list[str], taken: list[Path]) -> None:
        kept = self.folder / "taken-0.jsonl"
        if lines:
            fresh = self.folder / "kept.tmp"
            fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            fresh.replace(kept)
        for path in taken:
            if path != kept or not lines:
                path.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _pairs(lines: list[str], now: datetime) -> tuple[list[tuple[Spoken, list[str]]], list[str]]:
    """Questions with their answers, and the lines that still wait for one."""
    open_questions: dict[str, tuple[dict[str, Any], str]] = {}
    whole: list[tuple[Spoken, list[str]]] = []
    for line in lines:
        try:
            record = json.loads(line)
            at, session, kind = moment_of(record["at"]), record["session"], record["kind"]
            private, text = bool(record["private"]), str(record["text"])
        except (ValueError, KeyError, TypeError):
            continue  # a torn line of a killed hook
        if kind == "prompt":
            open_questions[session] = ({"at": at, "private": private, "text": text}, line)
        elif session in open_questions:
            asked, first = open_questions.pop(session)
            spoken = Spoken(session, asked["private"] or private, asked["text"], text, asked["at"])
            whole.append((spoken, [first, line]))
    waiting = [line for asked, line in open_questions.values() if now - asked["at"] < LOST_AFTER]
    return whole, waiting
