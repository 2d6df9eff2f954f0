"""The part `memory.workspace`: projects, runbooks, policies, checkpoints, notes, active context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import PathRefused, StoreError
from nanoclaw_memory.memory.team_pages import shown, with_pages
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import (
    MAIN_GROUP,
    Agent,
    Checkpoint,
    CheckpointChange,
    LineOrigin,
    Lines,
    Mirrored,
    PageFile,
    PageText,
    PageVersion,
    Policy,
    PolicyHit,
    Project,
    Proposal,
    Refreshed,
    Restored,
    Runbook,
    Written,
)

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.store.sdk_items import SdkItems
    from nanoclaw_memory.workspace.checkpoints import Checkpoints, Manifest
    from nanoclaw_memory.workspace.notes import Notes


@with_pages
class WorkspacePart:
    """Works on the group's Markdown and its checkpoints."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def introduce(self, about: Mapping[str, str]) -> None:
        """Write who the user is into USER.md, as `- key: value` above its first section."""
        from nanoclaw_memory.workspace.files import read_text, replace_text

        lines = [f"- {key}: {one_line(value)}\n" for key, value in about.items() if value.strip()]
        self._group.intake.refuse("".join(lines))
        path = self._group.workspace / "USER.md"
        head, section, rest = read_text(path).partition("## ")
        replace_text(path, "".join([head, *lines, "\n", section, rest]))

    # ---- projects, runbooks, policies ----

    def projects(self) -> list[Project]:
        """The projects this scope knows: their files, the group's own and the shared ones, and those talked in."""
        from nanoclaw_memory.workspace.projects import projects

        group = self._group
        group.require_group()
        talked = group.exchanges.projects(group.scope.private) if group.has("continuity") else []
        said = {slug: {"exchanges": count, "last": last} for slug, count, last in talked}
        pages = projects(group.home, group.scope, self._shared_files)
        found = [replace(page, **said.get(page.slug, {})) for page in pages]
        known = {page.slug for page in pages}
        found += [Project(slug, **about) for slug, about in said.items() if slug not in known]  # type: ignore[arg-type]
        return sorted(found, key=lambda project: (project.slug, project.path))

    def project(self, slug: str) -> list[Lines]:
        """A project's memory: the group's own file, then the shared one."""
        from nanoclaw_memory.workspace.projects import project_files

        found = project_files(self._group.home, self._group.scope, self._shared_files, slug)
        return [self._read(project.path) for project in found]

    def new_project(self, slug: str, title: str = "") -> Project:
        """Create a project's file; never overwrites. All groups read what the main one makes, of others only they."""
        from nanoclaw_memory.workspace.projects import new_project

        self._group.require_owner("make a project's page")  # sessions begin with it as the owner's own
        self._group.require_group()
        title = self._group.intake.admit(title, slug).text
        return new_project(self._group.home, self._group.scope.group, slug, title)

    def note_project(self, slug: str, text: str, section: str = "Lessons") -> Written:
        """Add a line to a project's page, which is created if it is missing; an agent's says that it is one's.

        The main group's is read by all groups, and so is that of agents whom the roster has on the project. What
        reads like an attack is held for review.
        """
        from nanoclaw_memory.upkeep.project_memory import note

        self._group.require_private("project notes")
        self._group.require_group()
        return note(self._group, slug, text, section)

    def share_project(self, slug: str) -> Project:
        """Let all groups read the main group's own page on a project."""
        from nanoclaw_memory.workspace.projects import share_project

        self._group.require_main("share a project's page")
        return share_project(self._group.home, self._group.scope.group, slug)

    def close_phase(self, slug: str, since: str = "") -> list[Proposal]:
        """Propose for a project's page what its log has of decisions, lessons, conventions and risks since a day."""
        from nanoclaw_memory.upkeep.project_memory import close_phase

        self._group.require_private("proposals")
        self._group.require_group()
        return close_phase(self._group, slug, since)

    def agents(self) -> list[Agent]:
        """The roster."""
        from nanoclaw_memory.workspace.roster import agents

        return agents(self._group.home)

    def put_agent(
        self,
        name: str,
        role: str = "",
        group: str = MAIN_GROUP,
        projects: Sequence[str] = (),
        loads: Sequence[str] = (),
    ) -> Agent:
        """Add an agent to the roster, or change the one of that name; its group is created if it is missing.

        `loads` are the files that it reads at its start, beside the memory of its projects; empty means all.
        """
        from nanoclaw_memory.workspace.roster import put
        from nanoclaw_memory.workspace.starter import initialise

        self._group.require_main("change the roster")
        role = self._group.intake.admit(role, name).text
        agent = Agent(name, role, group, tuple(projects), tuple(loads))
        made = put(self._group.home, agent)
        if not self._group.home.workspace(made.group).is_dir():
            initialise(self._group.home, made.group, self._group.today)
        return made

    def runbooks(self) -> list[Runbook]:
        """The how-tos in memory/tools-*.md."""
        from nanoclaw_memory.workspace.projects import runbooks

        self._group.require_group()
        return runbooks(self._group.home, self._group.scope, self._shared_files)

    def runbook(self, name: str) -> Lines:
        """One runbook's text."""
        from nanoclaw_memory.workspace.projects import runbook

        return self._read(runbook(self._group.home, self._group.scope, self._shared_files, name).path)

    def policies(self) -> list[Policy]:
        """The gating policies, in the file's order."""
        from nanoclaw_memory.workspace import policies

        self._group.require_group()
        return policies.read(self._policies_file())

    def add_policy(
        self, title: str, trigger: str, gate: str, reason: str = "", source: str = "", enforce: str = ""
    ) -> Policy:
        """Add a gating policy under the next number, which was never used before."""
        from nanoclaw_memory.workspace import policies

        self._group.require_owner("add a policy")  # a turn gives it as the owner's rule
        self._group.require_group()
        admitted = self._group.intake.admit_all(title, trigger, gate, reason, source)
        texts = [one.text for one in admitted]
        return policies.add(self._policies_file(), texts[0], texts[1], texts[2], texts[3], texts[4], enforce)

    def check_policies(self, action: str, fast: bool = False) -> list[PolicyHit]:
        """Which policies a planned action triggers: by its words, and unless `fast` by its meaning."""
        from nanoclaw_memory.retrieval.gates import met

        known, own = self.policies(), self._group.resources
        if fast or not known:
            return met(known, action, None, None)
        with own.judging():
            return met(known, action, own.embedder, own.judge)

    # ---- pages as a person edits them ----

    def files(self) -> list[PageFile]:
        """Every Markdown file that this scope may see, with its size and the time of its last change."""
        from nanoclaw_memory.workspace.paths import memory_files

        self._group.require_group()
        found = []
        for relative, path in memory_files(self._group.home, self._group.scope, self._shared_files):
            with suppress(OSError):  # gone since it was listed
                state = path.stat()
                changed = datetime.fromtimestamp(state.st_mtime, UTC)
                found.append(PageFile(relative, state.st_size, stamp(changed)))
        return found

    def page(self, file: str) -> PageText:
        """A Markdown file as a whole, with the fingerprint that `save_page` asks for."""
        from nanoclaw_memory.text import fingerprint
        from nanoclaw_memory.workspace.files import read_text

        self._group.require_group()
        relative, path = self._group.file(file)
        try:
            text = read_text(path)
        except FileNotFoundError:
            return PageText(relative, "", fingerprint(""), exists=False)
        return PageText(relative, text, fingerprint(text))

    def save_page(self, file: str, text: str, fingerprint: str) -> PageText:
        """Replace a Markdown file if it still is what was read; the text before it is kept as a version."""
        from nanoclaw_memory.upkeep import pages

        self._group.require_owner("edit a page")
        relative = self._group.file(file)[0]
        if relative.startswith("shared/") and self._group.scope.group != MAIN_GROUP:
            raise PathRefused(
                f"{relative} belongs to all groups", "edit it in the main group: without --group"
            )
        pages.save(self._group, relative, text, fingerprint)
        self._group.telemetry.record("page saved", chars=len(text))
        return self.page(relative)

    def versions(self, file: str) -> list[PageVersion]:
        """The kept versions of a page, newest first."""
        from nanoclaw_memory.upkeep import pages

        self._group.require_private("versions of pages")
        return pages.versions(self._group, self._group.file(file)[0])

    def version(self, file: str, name: str) -> PageText:
        """One version of a page."""
        from nanoclaw_memory.text import fingerprint
        from nanoclaw_memory.upkeep import pages

        self._group.require_private("versions of pages")
        relative = self._group.file(file)[0]
        text = pages.version(self._group, relative, name)
        return PageText(relative, text, fingerprint(text))

    def line_origins(self, file: str) -> list[LineOrigin]:
        """Where each line of a page comes from: a proposal that was accepted, or the first version that has it."""
        from nanoclaw_memory.upkeep import pages

        self._group.require_private("where lines come from")
        return pages.origins(self._group, self._group.file(file)[0])

    # ---- checkpoints ----

    def checkpoints(self) -> list[Checkpoint]:
        """The group's checkpoints, oldest first."""
        return self._checkpoints.all()

    def checkpoint(self, name: str, reason: str = "") -> Checkpoint:
        """Save the group's files and databases under a name."""
        made = self._checkpoints.create(name, self._group.intake.admit(reason, name).text)
        self._group.telemetry.record("checkpoint", files=made.files, bytes=made.bytes)
        return made

    def show_checkpoint(self, name: str) -> tuple[Checkpoint, Manifest]:
        """A checkpoint and the files and databases in it."""
        return self._checkpoints.show(name)

    def compare_checkpoint(self, name: str) -> list[CheckpointChange]:
        """What changed since a checkpoint."""
        return self._checkpoints.diff(name)

    def restore_checkpoint(self, name: str) -> Restored:
        """Bring back a checkpoint, all or nothing; the present state is saved as another one first."""
        from nanoclaw_memory.workspace.restore import restore

        if self._group.intake.is_damaged():  # what was forgotten since could not be taken out again
            raise StoreError(
                "nothing was restored: the list of forgotten texts is damaged", "first: ncm doctor --fix"
            )
        done = restore(self._checkpoints, name)
        self._group.telemetry.record("restore", files=done.replaced, removed=done.removed)
        return done

    @property
    def _checkpoints(self) -> Checkpoints:
        if not self._group.scope.private:  # they contain private memory
            raise PathRefused("checkpoints are private", "ask without --shared")
        self._group.require_group()
        return self._group.checkpoints

    # ---- what agents keep ----

    def refresh_active_context(self) -> Refreshed:
        """Bring active-context.md up to date with this session and the latest log; hand-written lines stay."""
        from nanoclaw_memory.upkeep.active_context import refresh

        self._group.require_workspace()
        return refresh(self._group)

    def mirror(self, folder: Path, wait: Callable[[float], bool] | None = None) -> Iterator[Mirrored]:
        """Keep a directory and the team's pages the same until `wait` returns True; once without it."""
        from nanoclaw_memory.memory.team_pages import mirror

        return mirror(self._group, folder, wait)

    @property
    def notes(self) -> Notes:
        """The agent's own notes, by the commands of Anthropic's memory tool."""
        from nanoclaw_memory.workspace.notes import Notes

        self._group.require_private("notes")
        self._group.require_group()

        folder = self._group.workspace / "memory" / "notes"
        return Notes(
            folder,
            lambda text: self._group.intake.admit(text).text,
            lambda: shown(self._group, deletes=True),
        )

    @cached_property
    def sdk_items(self) -> SdkItems:
        """Session histories and items of agents built with other SDKs."""
        return self._group.sdk_items

    @property
    def _shared_files(self) -> tuple[str, ...]:
        return self._group.settings.privacy.shared_files

    def _policies_file(self) -> Path:
        from nanoclaw_memory.workspace.policies import POLICIES

        return self._group.file(POLICIES)[1]

    def _read(self, file: str) -> Lines:
        from nanoclaw_memory.workspace.files import read_lines

        return read_lines(self._group.home, self._group.scope, self._shared_files, file)
