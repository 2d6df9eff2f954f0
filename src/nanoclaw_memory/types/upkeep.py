"""Types of upkeep and health: jobs, check-up findings, status."""

from __future__ import annotations

from pathlib import Path

import msgspec


class JobRun(msgspec.Struct, frozen=True):
    """One run of an upkeep job; `skipped` is why it did not run, `error` why it stopped."""

    name: str
    changed: int
    took_ms: float
    skipped: str = ""
    error: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()


class JobState(msgspec.Struct, frozen=True):
    """An upkeep job: its schedule, its last run, and its last change."""

    name: str
    about: str
    cron: str
    last_run: str
    changed: int
    error: str
    last_changed: str
    last_change: int
    next_run: str
    due: bool


class Exported(msgspec.Struct, frozen=True):
    """What an export wrote for other machines."""

    directory: str
    lines: int
    files_changed: int


class MergedIn(msgspec.Struct, frozen=True):
    """What an import of another machine's export changed, by kind of record."""

    added: dict[str, int] = {}
    changed: dict[str, int] = {}
    removed: dict[str, int] = {}
    forgotten: int = 0  # records left out because a person forgot or rejected them
    conflicts: tuple[str, ...] = ()  # proposals for values that two machines set independently
    problems: tuple[str, ...] = ()  # file, line and what is wrong with it


class MovedDatabase(msgspec.Struct, frozen=True):
    """A database that was moved to another store, with the compared row counts of its tables."""

    name: str
    rows: int
    moved: bool  # False: it was there already, row by row
    tables: dict[str, int]


class MovedStore(msgspec.Struct, frozen=True):
    """What was moved to another store; the source is unchanged."""

    to: str
    databases: tuple[MovedDatabase, ...]
    pages: int
    problems: tuple[str, ...]
    next: str


class Flush(msgspec.Struct, frozen=True):
    """Whether to ask an agent to write down what should last, why, and with which hidden prompt."""

    needed: bool
    why: str
    threshold: int
    prompt: str = ""


class Refreshed(msgspec.Struct, frozen=True):
    """What a refresh changed in a page, and where the previous version is kept."""

    path: str
    changed: bool
    bytes: int
    previous: str = ""


class HeartbeatItem(msgspec.Struct, frozen=True):
    """One line of HEARTBEAT.md and its state; `well` is None for what only a person can know."""

    text: str
    ticked: bool
    well: bool | None
    state: str
    next: str = ""


class Installed(msgspec.Struct, frozen=True):
    """Where the machine's scheduler was changed to run upkeep, or to stop."""

    where: str
    changed: bool
    removed: bool
    command: str
    note: str = ""


class Finding(msgspec.Struct, frozen=True):
    """One finding of a check-up: its level, its text, and the command that helps."""

    level: str  # ok, note, warning, problem
    message: str
    next: str = ""


class CacheSize(msgspec.Struct, frozen=True):
    """The size of one cache of the process, and its maximum."""

    name: str
    bytes: int
    most: int


class Status(msgspec.Struct, frozen=True):
    """An overview of a home."""

    home: Path
    group: str
    exists: bool
    groups: tuple[str, ...]
    files: int
    databases: dict[str, int]  # name -> bytes
    embedder: str
    usage: tuple[dict[str, float | str], ...] = ()
    project: str = ""  # the project of the working directory
    problems: tuple[str, ...] = ()  # lost or unusable databases, a clock that jumped
    off: tuple[str, ...] = ()  # directories in which memory is switched off
    caches: tuple[CacheSize, ...] = ()
    exchanges: int = 0  # messages with their answers
    conversations: int = 0


class JobResult(msgspec.Struct, frozen=True):
    """What a job changed or would change, and notes about it."""

    changed: int = 0
    notes: tuple[str, ...] = ()


class EvalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A person's question with what must and must not appear; `faces` are those that must answer it."""

    ask: str
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    faces: tuple[str, ...] = msgspec.field(default=(), name="in")
    nothing: bool = False  # nothing must be returned: in a turn, unless `in` names others
    category: str = ""


class EvalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one face showed for a question."""

    ask: str
    face: str
    passed: bool
    missing: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    tokens: int = 0


class Evaluation(msgspec.Struct, frozen=True):
    """Answers to all questions, the failed ones, and the regressions against the accepted result."""

    answers: tuple[EvalAnswer, ...]
    failed: tuple[str, ...] = ()
    regressions: tuple[EvalAnswer, ...] = ()
    compared: bool = False
    took_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Return whether it passed; with an accepted result only regressions count."""
        return not self.regressions if self.compared else not self.failed
