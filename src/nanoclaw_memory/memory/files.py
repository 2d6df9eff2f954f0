"""Markdown and its safety: lines, logs, projects, policies, checkpoints, notes."""

from __future__ import annotations

from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.clock import day_of
from nanoclaw_memory.errors import InvalidValue, PathRefused
from nanoclaw_memory.memory.core import Core
from nanoclaw_memory.types import MAIN_GROUP, Scope
from nanoclaw_memory.workspace.paths import locate, log_path

if TYPE_CHECKING:
    from nanoclaw_memory.store.sdk_items import SdkItems
    from nanoclaw_memory.types import (
        Checkpoint,
        Created,
        DatabaseCheck,
        Lines,
        LogLine,
        Policy,
        PolicyHit,
        Project,
        Runbook,
        Written,
    )
    from nanoclaw_memory.workspace.checkpoints import Checkpoints
    from nanoclaw_memory.workspace.notes import Notes


class Files(Core):
    """Markdown and its safety: lines, logs, projects, policies, checkpoints, notes."""

    # ---- session start ----

    def init(self) -> Created:
        """Create the home, or a group in it; never overwrites."""
        from nanoclaw_memory.workspace.starter import initialise

        return initialise(self.home, self.scope.group, self.today())

    # ---- agents built with other SDKs ----

    @property
    def notes(self) -> Notes:
        """The agent's own notes, by the commands of Anthropic's memory tool."""
        from nanoclaw_memory.workspace.notes import Notes

        self._require_private("notes")
        self.require_group()

        folder = self.home.workspace(self.scope.group) / "memory" / "notes"
        return Notes(folder, lambda text: self.intake.admit(text).text)

    @cached_property
    def sdk_items(self) -> SdkItems:
        """Session histories and items of agents built with other SDKs."""
        from nanoclaw_memory.store.sdk_items import SdkItems

        self.require_group()
        return SdkItems(
            self.database("sdk"), self.clock, lambda value: self.intake.talk_value(value, "sdk items")
        )

    # ---- lines ----

    def get(self, file: str, start_line: int | None = None, end_line: int | None = None) -> Lines:
        """Exact lines of a memory file; a missing file or range is empty with a note, never an error."""
        from nanoclaw_memory.types import Lines
        from nanoclaw_memory.workspace.files import read_text, split_lines

        start = 1 if start_line is None else start_line
        if start < 1 or (end_line is not None and end_line < start):
            raise InvalidValue(
                f"lines {start} to {'the end' if end_line is None else end_line} are no range",
                "lines count from 1: --start 1 --end 20",
            )
        self.require_group()
        relative, path = locate(self.home, self.scope, file, self.settings.privacy.shared_files)
        try:
            lines = split_lines(read_text(path))
        except FileNotFoundError:
            return Lines(relative, 0, 0, "", False, f"there is no {relative} yet")
        chosen = lines[start - 1 : end_line]
        if not chosen:
            return Lines(relative, 0, 0, "", True, f"{relative} has {len(lines):,} lines")
        return Lines(relative, start, start + len(chosen) - 1, "".join(chosen), True)

    def write(self, content: str, tag: str = "", importance: float | None = None) -> Written:
        """Append one line to today's log; on disk when this returns."""
        from nanoclaw_memory.types import Written
        from nanoclaw_memory.workspace import log
        from nanoclaw_memory.workspace.files import append_line

        self.require_group()
        admitted = self.intake.admit(content, tag)
        line = log.format_line(admitted.text, tag, importance)
        today = self.today()
        relative, path = locate(self.home, replace(self.scope, private=True), log_path(today), ())
        number = append_line(path, line, log.header(today))
        self.telemetry.record("write", chars=len(line), redacted=admitted.redacted)
        return Written(relative, number, admitted.redacted)

    def log(self, day: str | date | None = None) -> tuple[date, list[LogLine]]:
        """The entries of one day's log; today's without an argument."""
        from nanoclaw_memory.workspace import log

        wanted = _day(day) if day else self.today()
        return wanted, log.parse(self.get(log_path(wanted)).text)

    # ---- projects, runbooks, policies ----

    def projects(self) -> list[Project]:
        """The project files this scope may see, the group's own and the shared ones."""
        from nanoclaw_memory.workspace.projects import projects

        self.require_group()
        return projects(self.home, self.scope, self.settings.privacy.shared_files)

    def project(self, slug: str) -> list[Lines]:
        """A project's memory: the group's own file, then the shared one."""
        from nanoclaw_memory.workspace.projects import project_files

        found = project_files(self.home, self.scope, self.settings.privacy.shared_files, slug)
        return [self.get(project.path) for project in found]

    def project_new(self, slug: str, title: str = "") -> Project:
        """Create a project's file, shared by all groups; never overwrites."""
        from nanoclaw_memory.workspace.projects import new_project

        self.intake.refuse(slug, title)
        return new_project(self.home, slug, title)

    def runbooks(self) -> list[Runbook]:
        """The how-tos in memory/tools-*.md."""
        from nanoclaw_memory.workspace.runbooks import runbooks

        self.require_group()
        return runbooks(self.home, self.scope, self.settings.privacy.shared_files)

    def runbook(self, name: str) -> Lines:
        """One runbook's text."""
        from nanoclaw_memory.workspace.runbooks import runbook

        return self.get(runbook(self.home, self.scope, self.settings.privacy.shared_files, name).path)

    def policies(self) -> list[Policy]:
        """The gating policies, in the file's order."""
        from nanoclaw_memory.workspace import policies

        self.require_group()
        return policies.read(self._policies_file(self.scope))

    def policy_add(self, title: str, trigger: str, gate: str, reason: str = "", source: str = "") -> Policy:
        """Add a gating policy under the next number, which was never used before."""
        from nanoclaw_memory.workspace import policies

        self._require_private("policies, nor adds any")
        self.require_group()
        admitted = self.intake.admit_all(title, trigger, gate, reason, source)
        return policies.add(self._policies_file(self.scope), *(one.text for one in admitted))

    def policy_check(self, action: str) -> list[PolicyHit]:
        """Which policies a planned action triggers, and by which words."""
        from nanoclaw_memory.workspace import policies

        return policies.check(self.policies(), action)

    # ---- checkpoints ----

    @property
    def checkpoints(self) -> Checkpoints:
        """The group's checkpoints; they hold private memory, so a shared scope may not see them."""
        if not self.scope.private:
            raise PathRefused("checkpoints are private", "ask without --shared")
        self.require_group()
        return self._checkpoints()

    def checkpoint(self, name: str, reason: str = "") -> Checkpoint:
        """Save the group's files and databases under a name."""
        self.intake.refuse(name, reason)
        made = self.checkpoints.create(name, reason)
        self.telemetry.record("checkpoint", files=made.files, bytes=made.bytes)
        return made

    def db_check(self, all_groups: bool = False) -> list[DatabaseCheck]:
        """The integrity of every database there is, of this group or of all; creates none."""
        from nanoclaw_memory.store.integrity import check, of_all_groups

        groups = self.home.groups() if all_groups else [self.scope.group]
        if all_groups:
            self.require_main("look at all groups")
        found: list[DatabaseCheck] = []
        for group in groups:
            with type(self)(self.home.root, replace(self.scope, group=group), self.clock) as other:
                found += check(self.home.root, group, other._existing_databases())
        if self.scope.group == MAIN_GROUP:  # it administers what is of all groups
            found += check(self.home.root, MAIN_GROUP, of_all_groups(self.home.root))
        return found

    # ---- inside ----

    def _policies_file(self, scope: Scope) -> Path:
        from nanoclaw_memory.workspace.policies import POLICIES

        return locate(self.home, scope, POLICIES, self.settings.privacy.shared_files)[1]


def _day(day: str | date) -> date:
    if isinstance(day, date):
        return day
    try:
        return day_of(day)
    except ValueError:
        raise InvalidValue(f"{day!r} is no date", "write it as YYYY-MM-DD") from None
