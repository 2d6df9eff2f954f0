"""The part `memory.workspace`: projects, runbooks, policies, checkpoints, notes and the active context."""

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
from nanoclaw_memory.memory.group import Part
from nanoclaw_memory.memory.team_pages import mirror, synchronised, with_pages
from nanoclaw_memory.text import fingerprint, one_line
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
    from nanoclaw_memory.store.sdk_items import SdkItems
    from nanoclaw_memory.workspace.checkpoints import Checkpoints, Manifest
    from nanoclaw_memory.workspace.notes import Notes


@with_pages
class WorkspacePart(Part):
    """Work on the group's Markdown and its checkpoints."""

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
        """Return the projects this scope knows: from files of the group, from shared files and from conversations."""
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
        """Return the memory of a project: the group's own file, then the shared one."""
        from nanoclaw_memory.workspace.projects import project_files

        found = project_files(self._group.home, self._group.scope, self._shared_files, slug)
        return [self._read(project.path) for project in found]

    def new_project(self, slug: str, title: str = "") -> Project:
        """Create a project's file; never overwrites. The main group's is read by all groups, another group's only by
        itself.
        """
        from nanoclaw_memory.workspace.projects import new_project

        self._group.require_owner("make a project's page")  # sessions begin with it as the owner's words
        self._group.require_group()
        title = self._group.intake.admit(title, slug).text
        return new_project(self._group.home, self._group.scope.group, slug, title)

    def note_project(self, slug: str, text: str, section: str = "Lessons") -> Written:
        """Add a line to a project's page, which is created if missing; a line of an agent is marked.

        All groups read the main group's page, and that of agents whom the roster names for the project. A line that
        reads like an attack is held for review.
        """
        from nanoclaw_memory.upkeep.project_memory import note

        self._group.require_private("project notes")
        self._group.require_group()
        return note(self._group, slug, text, section)

    def share_project(self, slug: str) -> Project:
        """Share the main group's own page on a project with all groups."""
        from nanoclaw_memory.workspace.projects import share_project

        self._group.require_main("share a project's page")
        return share_project(self._group.home, self._group.scope.group, slug)

    def close_phase(self, slug: str, since: str = "") -> list[Proposal]:
        """Propose decisions, lessons, conventions and risks from the log since a day for the project's page."""
        from nanoclaw_memory.upkeep.project_memory import close_phase

        self._group.require_private("proposals")
        self._group.require_group()
        return close_phase(self._group, slug, since)

    def agents(self) -> list[Agent]:
        """Return the roster of agents."""
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
        """Add an agent to the roster, or change the one of that name; a missing group is created.

        `loads` are the files it reads at its start, in addition to its projects' memory; empty means all.
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
        """Return the how-tos in memory/tools-*.md."""
        from nanoclaw_memory.workspace.projects import runbooks

        self._group.require_group()
        return runbooks(self._group.home, self._group.scope, self._shared_files)

    def runbook(self, name: str) -> Lines:
        """Return the text of one runbook."""
        from nanoclaw_memory.workspace.projects import runbook

        return self._read(runbook(self._group.home, self._group.scope, self._shared_files, name).path)

    def policies(self) -> list[Policy]:
        """Return the gating policies, in the file's order."""
        from nanoclaw_memory.workspace import policies

        self._group.require_group()
        return policies.read(self._policies_file())

    def add_policy(
        self, title: str, trigger: str, gate: str, reason: str = "", source: str = "", enforce: str = ""
    ) -> Policy:
        """Add a gating policy under the next unused number."""
        from nanoclaw_memory.workspace import policies

        self._group.require_owner("add a policy")  # turns show it as the owner's rule
        self._group.require_group()
        admitted = self._group.intake.admit_all(title, trigger, gate, reason, source)
        texts = [one.text for one in admitted]
        return policies.add(self._policies_file(), texts[0], texts[1], texts[2], texts[3], texts[4], enforce)

    def check_policies(self, action: str, fast: bool = False) -> list[PolicyHit]:
        """Return the policies that a planned action triggers: by its words and, unless `fast`, by its meaning."""
        from nanoclaw_memory.retrieval.policy_matching import triggered

        known, own = self.policies(), self._group.resources
        if fast or not known:
            return triggered(known, action, None, None)
        with own.judging():
            return triggered(known, action, own.embedder, own.judge)

    # ---- pages as a person edits them ----

    def files(self) -> list[PageFile]:
        """Return every Markdown file that this scope may see, with its size and the time of its last change."""
        from nanoclaw_memory.workspace.paths import memory_files

        self._group.require_group()
        found = []
        for relative, path in memory_files(self._group.home, self._group.scope, self._shared_files):
            with suppress(OSError):  # deleted since it was listed
                state = path.stat()
                changed = datetime.fromtimestamp(state.st_mtime, UTC)
                found.append(PageFile(relative, state.st_size, stamp(changed)))
        return found

    def page(self, file: str) -> PageText:
        """Return a whole Markdown file, with the fingerprint that `save_page` requires."""
        from nanoclaw_memory.workspace.files import read_text

        self._group.require_group()
        relative, path = self._group.file(file)
        try:
            text = read_text(path)
        except FileNotFoundError:
            return PageText(relative, "", fingerprint(""), exists=False)
        return PageText(relative, text, fingerprint(text))

    def save_page(self, file: str, text: str, fingerprint: str) -> PageText:
        """Replace a Markdown file that has not changed since it was read; its previous text is kept as a version."""
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
        """Return the stored versions of a page, newest first."""
        from nanoclaw_memory.upkeep import pages

        self._group.require_private("versions of pages")
        return pages.versions(self._group, self._group.file(file)[0])

    def version(self, file: str, name: str) -> PageText:
        """Return one version of a page."""
        from nanoclaw_memory.upkeep import pages

        self._group.require_private("versions of pages")
        relative = self._group.file(file)[0]
        text = pages.version(self._group, relative, name)
        return PageText(relative, text, fingerprint(text))

    def line_origins(self, file: str) -> list[LineOrigin]:
        """Return where each line of a page comes from: an accepted proposal, or the first version that has it."""
        from nanoclaw_memory.upkeep import pages

        self._group.require_private("where lines come from")
        return pages.origins(self._group, self._group.file(file)[0])

    # ---- checkpoints ----

    def checkpoints(self) -> list[Checkpoint]:
        """Return the group's checkpoints, oldest first."""
        return self._checkpoints.all()

    def checkpoint(self, name: str, reason: str = "") -> Checkpoint:
        """Save the group's files and databases under a name."""
        made = self._checkpoints.create(name, self._group.intake.admit(reason, name).text)
        self._group.telemetry.record("checkpoint", files=made.files, bytes=made.bytes)
        return made

    def show_checkpoint(self, name: str) -> tuple[Checkpoint, Manifest]:
        """Return a checkpoint and the files and databases in it."""
        return self._checkpoints.show(name)

    def compare_checkpoint(self, name: str) -> list[CheckpointChange]:
        """Return what changed since a checkpoint."""
        return self._checkpoints.diff(name)

    def restore_checkpoint(self, name: str) -> Restored:
        """Restore a checkpoint, all or nothing; the present state is saved as another checkpoint first."""
        from nanoclaw_memory.workspace.restore import restore

        if self._group.intake.is_damaged():  # what was forgotten since then could not be removed again
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

    # ---- for agents ----

    def refresh_active_context(self) -> Refreshed:
        """Update active-context.md from this session and the latest log; hand-written lines stay."""
        from nanoclaw_memory.upkeep.active_context import refresh

        self._group.require_workspace()
        return refresh(self._group)

    def mirror(self, folder: Path, wait: Callable[[float], bool] | None = None) -> Iterator[Mirrored]:
        """Keep a directory and the team's pages synchronised until `wait` returns True, or once without it."""
        return mirror(self._group, folder, wait)

    @property
    def notes(self) -> Notes:
        """Return the agent's own notes, by the commands of Anthropic's memory tool."""
        from nanoclaw_memory.workspace.notes import Notes

        self._group.require_private("notes")
        self._group.require_group()

        folder = self._group.workspace / "memory" / "notes"
        return Notes(
            folder,
            lambda text: self._group.intake.admit(text).text,
            lambda: synchronised(self._group, deletes=True),
        )

    @cached_property
    def sdk_items(self) -> SdkItems:
        """Return session histories and items of agents built with other SDKs."""
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
