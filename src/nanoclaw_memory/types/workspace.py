"""Nouns of the Markdown files: log lines, boot, policies, checkpoints, projects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LogLine:
    """One line of a daily log: `- [tag|i=0.9] text`."""

    line: int
    text: str
    tag: str = ""
    importance: float | None = None
    indent: int = 0


@dataclass(frozen=True)
class Lines:
    """A range of lines read from a memory file; 1-based, inclusive; empty with a note when there are none."""

    path: str
    start_line: int
    end_line: int
    text: str
    exists: bool
    note: str = ""


@dataclass(frozen=True)
class Written:
    """Where a line was written."""

    path: str
    line: int
    redacted: int = 0


@dataclass(frozen=True)
class BootFile:
    """One file of the boot context, as the agent gets it."""

    path: str
    chars: int
    tokens: int
    truncated: bool = False
    missing: bool = False


@dataclass(frozen=True)
class Boot:
    """What an agent reads at session start."""

    files: tuple[BootFile, ...]
    text: str
    tokens: int
    mode: str


@dataclass(frozen=True)
class Created:
    """What `init` made and what it left as it was."""

    home: Path
    created: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Policy:
    """A gating policy: what triggers it and what must happen first."""

    id: str
    title: str
    trigger: str
    gate: str
    reason: str = ""
    source: str = ""
    line: int = 0


@dataclass(frozen=True)
class PolicyHit:
    """A policy that a planned action triggers, how surely (0 to 1), and the words that tell."""

    policy: Policy
    score: float
    matched: tuple[str, ...]


@dataclass(frozen=True)
class Runbook:
    """A how-to of the group: `memory/tools-NAME.md`."""

    name: str
    path: str
    title: str
    chars: int


@dataclass(frozen=True)
class Checkpoint:
    """A saved state of a group's workspace and databases; `damaged` databases were copied as they were."""

    name: str
    created_at: str
    reason: str
    files: int
    databases: tuple[str, ...]
    bytes: int
    path: str
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restored:
    """What a restore did, and the checkpoint that holds the state before it."""

    name: str
    before: str
    replaced: int
    removed: int
    databases: tuple[str, ...]


@dataclass(frozen=True)
class DatabaseCheck:
    """What the integrity check of one database file found; nothing when it is sound."""

    group: str
    path: str
    problems: tuple[str, ...] = ()
    next: str = ""


@dataclass(frozen=True)
class Change:
    """One difference between a checkpoint and now."""

    path: str
    kind: str  # added, removed, changed
    diff: str = ""


@dataclass(frozen=True)
class Project:
    """A project's memory file, its own or shared by all groups."""

    slug: str
    path: str
    title: str
    chars: int
