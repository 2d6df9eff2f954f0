"""Types of the workspace: log lines, boot, policies, checkpoints, projects, items of other SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


class LogLine(msgspec.Struct, frozen=True):
    """One line of a daily log: `- [tag|i=0.9|@project|by agent] text`; a person's own has no `by`."""

    line: int
    text: str
    tag: str = ""
    importance: float | None = None
    indent: int = 0
    project: str = ""
    origin: str = "owner"
    path: str = ""  # of the archive to which the line was moved


class Agent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent of the roster: its role, its group, the projects it works on, and the files it reads at its start."""

    name: str
    role: str = ""
    group: str = "main"
    projects: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()  # empty: what every agent reads


class Lines(msgspec.Struct, frozen=True):
    """A range of lines of a memory file; 1-based, inclusive; empty with a note when there are none."""

    path: str
    start_line: int
    end_line: int
    text: str
    exists: bool
    note: str = ""


class PageFile(msgspec.Struct, frozen=True):
    """A Markdown file of the memory."""

    path: str
    bytes: int
    changed_at: str


class PageText(msgspec.Struct, frozen=True):
    """A Markdown file as it was read; its fingerprint reveals whether it has changed since."""

    path: str
    text: str
    fingerprint: str
    exists: bool = True


class PageVersion(msgspec.Struct, frozen=True):
    """A former text of a page, valid until `until`."""

    name: str
    until: str
    bytes: int


class LineOrigin(msgspec.Struct, frozen=True):
    """Where a line of a page comes from: an accepted proposal and its sources, or the first version that has it."""

    line: int
    text: str
    since: str = ""  # empty: older than every stored version
    proposal: str = ""
    sources: tuple[str, ...] = ()


class Written(msgspec.Struct, frozen=True):
    """Where a line was written; `held` is the entry that awaits review instead."""

    path: str
    line: int
    redacted: int = 0
    held: str = ""


class BootFile(msgspec.Struct, frozen=True):
    """One file of the boot context, as the agent gets it."""

    path: str
    chars: int
    tokens: int
    truncated: bool = False
    missing: bool = False


class Boot(msgspec.Struct, frozen=True):
    """What an agent reads at session start."""

    files: tuple[BootFile, ...]
    text: str
    tokens: int
    mode: str
    brief: str = ""  # the brief within the text


class Created(msgspec.Struct, frozen=True):
    """What `init` created and what existed already."""

    home: Path
    created: tuple[str, ...]
    kept: tuple[str, ...]


class Policy(msgspec.Struct, frozen=True):
    """A gating policy: what triggers it and what must happen first."""

    id: str
    title: str
    trigger: str
    gate: str
    reason: str = ""
    source: str = ""
    line: int = 0
    enforce: str = ""  # the reaction of a tool hook: warn (also when empty), ask or block


class PolicyHit(msgspec.Struct, frozen=True):
    """A policy that a planned action triggers, its certainty (0 to 1), and the words, or that it was the meaning."""

    policy: Policy
    score: float
    matched: tuple[str, ...]
    by: str = "words"


class Runbook(msgspec.Struct, frozen=True):
    """A how-to of the group: `memory/tools-NAME.md`."""

    name: str
    path: str
    title: str
    chars: int


class Checkpoint(msgspec.Struct, frozen=True):
    """A saved state of a group's workspace and databases; `damaged` databases were copied as they were."""

    name: str
    created_at: str
    reason: str
    files: int
    databases: tuple[str, ...]
    bytes: int
    path: str
    damaged: tuple[str, ...] = ()


class Restored(msgspec.Struct, frozen=True):
    """What a restore did, and the checkpoint of the state before it."""

    name: str
    before: str
    replaced: int
    removed: int
    databases: tuple[str, ...]


class DatabaseCheck(msgspec.Struct, frozen=True):
    """The problems that the integrity check of one database found; empty if it is sound."""

    group: str
    path: str
    problems: tuple[str, ...] = ()
    next: str = ""


class CheckpointChange(msgspec.Struct, frozen=True):
    """One difference between a checkpoint and now."""

    path: str
    kind: str  # added, removed, changed
    diff: str = ""


class Project(msgspec.Struct, frozen=True):
    """A project: its memory file (its own or shared by all groups), if any, and the exchanges in it."""

    slug: str
    path: str = ""
    title: str = ""
    chars: int = 0
    exchanges: int = 0
    last: str = ""  # time of the last exchange


class StoredItem(msgspec.Struct, frozen=True):
    """What an agent of another SDK stored under a namespace and key."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: str
    updated_at: str
    fields: tuple[str, ...] | None = None  # paths in the value that are searched; None: all of it


class Mirrored(msgspec.Struct, frozen=True):
    """The result of synchronising a directory with a team's pages."""

    pulled: int = 0
    pushed: int = 0
    merged: int = 0
    deleted: int = 0
    kept: int = 0  # deleted on one side and edited on the other: they stay
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        return self.pulled + self.pushed + self.merged + self.deleted + self.kept
