"""The spool: a hook appends a prompt or an answer within a millisecond; they are archived as exchanges later."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import read_moment, stamp
from nanoclaw_memory.private import appending, lock_within, make_folder, replace_file

if TYPE_CHECKING:
    from nanoclaw_memory.types import Scope, Utterance

MAX_TEXT = 100_000
LOCK_SECONDS = 0.3  # seconds to wait for another process that is writing
KEPT = "taken-0.jsonl"  # records that an earlier run left, read first
LOST_AFTER = timedelta(days=1)
LOOKED_BACK = 5  # questions: clients record an interruption as a message of the person
COMPARED = 4_000  # first characters by which a question is recognised


class SpooledExchange(msgspec.Struct, frozen=True):
    """A question and its answer, waiting to be archived."""

    session: str
    private: bool
    question: str
    answer: str
    at: datetime
    project: str = ""


class _Record(msgspec.Struct, frozen=True):
    """One line of the spool."""

    at: datetime
    session: str
    private: bool
    kind: str
    text: str
    project: str = ""


class Spool(msgspec.Struct, frozen=True):
    """The spool of one group: hooks write `spool.jsonl`; `taken-*.jsonl` wait to be archived."""

    folder: Path

    def note(self, scope: Scope, kind: str, text: str, at: datetime, checked: bool = True) -> None:
        """Append a message (`prompt`) or an answer (`answer`): one short write."""
        record = {
            "at": stamp(at),
            "session": scope.session_id,
            "private": scope.private,
            "project": scope.project,
            "kind": kind,
            "text": text[:MAX_TEXT],
        }
        if not checked:
            record["unchecked"] = True
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        make_folder(self.folder)
        path = self.folder / "spool.jsonl"
        while True:
            with appending(path) as handle:
                # Who holds the lock for longer has crashed: without it a record may be written twice, never lost.
                lock_within(handle, LOCK_SECONDS)
                # A file that was moved away is no longer read by anybody.
                if _is_at(path, handle):
                    _append(handle, line)
                    if _is_at(path, handle):
                        return

    def open_question(self, session: str) -> tuple[str, datetime] | None:
        """Return the last message of a session and its time, if no answer has been spooled since."""
        asked = None
        for record in self._records():
            if record.session == session:
                asked = (record.text, record.at) if record.kind == "prompt" else None
        return asked

    def unanswered_messages(self) -> list[str]:
        """Return private messages that are not archived yet."""
        return [record.text for record in self._records() if record.private and record.kind == "prompt"]

    def waiting(self) -> int:
        """Count the answers that wait to be archived."""
        return sum(record.kind == "answer" for record in self._records())

    def _records(self) -> Iterator[_Record]:
        for path in (*self._taken_files(), self.folder / "spool.jsonl"):
            try:
                lines = path.read_text("utf-8", "replace").split("\n")
            except FileNotFoundError:  # none yet, or just archived by another process
                continue
            yield from filter(None, map(_record, lines))

    def drain(
        self,
        now: datetime,
        archive: Callable[[SpooledExchange], object],
        limit: int = 50,
        check: Callable[[str], str] = lambda text: text,
        wait: float = 10.0,
    ) -> int:
        """Pass at most `limit` complete exchanges to `archive`, oldest first; incomplete ones stay.

        A crash half-way passes some of them again: archiving must be idempotent, as `Memory.after_turn` is. `check`
        receives the texts that were spooled unchecked; when it raises an error, everything stays. Everything also
        stays when another process has been draining for more than `wait` seconds.
        """
        if not self.folder.is_dir() or not os.access(self.folder, os.W_OK):
            return 0  # what is spooled in a home that cannot be written stays
        with appending(self.folder / "drain.lock") as lock:
            if not lock_within(lock, wait):
                return 0
            self._take(now)
            taken = self._taken_files()
            lines = [
                _checked(line, check)
                for path in taken
                for line in path.read_text("utf-8", "replace").split("\n")
            ]
            whole, waiting = _pairs(lines, now)
            for spoken, _ in whole[:limit]:
                archive(spoken)
            self._keep([line for _, pair in whole[limit:] for line in pair] + waiting, taken)
        return min(len(whole), limit)

    def _taken_files(self) -> list[Path]:
        """Return the files to be archived, in the order of writing: a clock may have been set back."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []  # noqa: PTH208 - glob compiles a pattern
        return sorted((self.folder / name for name in names if name.startswith("taken-")), key=_written)

    def _take(self, now: datetime) -> None:
        path = self.folder / "spool.jsonl"
        if path.exists():
            with appending(path) as handle:
                lock_within(handle, LOCK_SECONDS)
                path.rename(self.folder / f"taken-{stamp(now)}-{os.getpid()}-{monotonic_ns()}.jsonl")

    def _keep(self, lines: list[str], taken: list[Path]) -> None:
        kept = self.folder / KEPT
        if lines:
            replace_file(kept, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        for path in taken:
            if path != kept or not lines:
                path.unlink(missing_ok=True)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.fstat(handle).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _append(handle: int, line: bytes) -> None:
    """Write a whole line or raise an OSError; the rest of a line that was cut short is ended first."""
    size = os.fstat(handle).st_size
    rest = b"\n" + line if size and os.pread(handle, 1, size - 1) != b"\n" else line
    while rest:  # after a short write, the next one raises the reason
        rest = rest[os.write(handle, rest) :]


def answer_in(
    said: Sequence[Utterance], question: str, at: datetime | None, spooled: Callable[[str], str]
) -> str:
    """Return the answer to a spooled question among the last turns of a transcript, or an empty text.

    `spooled` changes a turn as the spool changed the question, so that the two can be compared. Without a time `at`
    the transcript must contain the question; with one, the last turn after that time also counts as its answer.
    """
    if not said:
        return ""
    asked = [number for number, turn in enumerate(said) if turn.speaker == "User"]
    for number in reversed(asked[-LOOKED_BACK:]):
        if _beginning(spooled(said[number].text[:COMPARED])) == _beginning(question):
            return _answer_after(said, number)
    last = asked[-1] if asked else -1
    return _answer_after(said, last) if at and _is_younger(said[-1], at) else ""


def turns_of_questions(
    said: Sequence[Utterance], questions: Iterable[str], spooled: Callable[[str], str]
) -> tuple[Utterance, ...]:
    """Return the turns of a transcript that are one of these questions or its answer."""
    known, kept, inside = set(map(_beginning, questions)), [], False
    for turn in said:
        if turn.speaker == "User":
            inside = _beginning(spooled(turn.text[:COMPARED])) in known
        if inside:
            kept.append(turn)
    return tuple(kept)


def _answer_after(said: Sequence[Utterance], number: int) -> str:
    spoken = itertools.takewhile(lambda turn: turn.speaker == "Agent", said[number + 1 :])
    return "\n\n".join(turn.text for turn in spoken)


def _beginning(text: str) -> str:
    return " ".join(text[:COMPARED].split())[: COMPARED // 2]


def _is_younger(turn: Utterance, at: datetime) -> bool:
    try:
        return read_moment(turn.at) >= at
    except ValueError:  # for clients that write no time
        return False


def _record(line: str) -> _Record | None:
    try:
        return msgspec.json.decode(line, type=_Record)
    except msgspec.MsgspecError:
        return None  # a torn line of a killed hook


def _checked(line: str, check: Callable[[str], str]) -> str:
    if '"unchecked": true' not in line or _record(line) is None:
        return line
    record = json.loads(line)
    if record.pop("unchecked", False):
        record["text"] = check(str(record["text"]))
    return json.dumps(record, ensure_ascii=False)


def _pairs(lines: list[str], now: datetime) -> tuple[list[tuple[SpooledExchange, list[str]]], list[str]]:
    """Return questions with their answers, and the lines that are not complete yet."""
    open_questions: dict[str, tuple[_Record, str]] = {}
    whole: list[tuple[SpooledExchange, list[str]]] = []
    for line in lines:
        record = _record(line)
        if record is None:
            continue
        if record.kind == "prompt":
            open_questions[record.session] = (record, line)
        elif record.session in open_questions:
            asked, first = open_questions.pop(record.session)
            private = asked.private or record.private
            spoken = SpooledExchange(
                session=asked.session,
                private=private,
                question=asked.text,
                answer=record.text,
                at=asked.at,
                project=asked.project,
            )
            whole.append((spoken, [first, line]))
    waiting = [line for asked, line in open_questions.values() if now - asked.at < LOST_AFTER]
    return whole, waiting


def _written(path: Path) -> tuple[bool, int]:
    try:
        return path.name != KEPT, path.stat().st_mtime_ns
    except FileNotFoundError:  # just archived by another process
        return True, 0
