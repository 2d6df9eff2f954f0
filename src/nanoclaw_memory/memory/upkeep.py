"""The part `memory.upkeep`: jobs, review, imports and the machine's schedule."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.memory.group import Part
from nanoclaw_memory.memory.team_pages import with_pages
from nanoclaw_memory.types import (
    BroughtIn,
    Exported,
    HeartbeatItem,
    Installed,
    JobRun,
    JobState,
    MergedIn,
    Proposal,
)

PROPOSING = ("promote", "metabolize")  # jobs


@with_pages
class UpkeepPart(Part):
    """Maintain memory over time; changes to a person's page are proposed for review."""

    def run(self, job: str = "", dry_run: bool = False, due: bool = False) -> list[JobRun]:
        """Run all jobs or one; `due` runs only those that are due; `dry_run` reports what they would do."""
        from nanoclaw_memory.upkeep.jobs import JOBS, job_named
        from nanoclaw_memory.upkeep.scheduler import run

        self._group.require_workspace()
        with self._group.resources.judging():
            runs = run(self._group, [job_named(job)] if job else JOBS, dry_run, due)
        for one in runs:
            if not one.skipped:
                self._group.telemetry.record("upkeep", job=one.name, changed=one.changed, error=one.error)
        return runs

    def unproposed(self) -> list[str]:
        """Return the jobs that make proposals and have not run today, for a home where no server runs them."""
        from nanoclaw_memory.upkeep import run_history

        group = self._group
        if not group.settings.cron.nightly.strip() or not (group.has("entries") or group.has("continuity")):
            return []
        if not group.scope.private or not group.database("index").is_file:
            return []
        past = run_history.read(group.data).jobs
        zone = group.clock.now().tzinfo
        ran = {name: moment_of(run.at).astimezone(zone).date() for name, run in past.items() if run.at}
        return [name for name in PROPOSING if ran.get(name) != group.today]

    def status(self) -> list[JobState]:
        """Return every job with its schedule, its last run and whether it is due."""
        from nanoclaw_memory.upkeep.scheduler import states

        self._group.require_workspace()
        return states(self._group)

    # ---- review ----

    def review(self) -> list[Proposal]:
        """Return every open proposal: those that make room first, then the oldest."""
        from nanoclaw_memory.upkeep.review import open_proposals

        self._group.require_workspace()
        return open_proposals(self._group)

    def count_open(self) -> int:
        """Count the open proposals."""
        from nanoclaw_memory.upkeep.review import count_open

        self._group.require_private("proposals")
        return count_open(self._group)

    def proposal(self, proposal_id: str) -> Proposal:
        """Return one proposal, open or decided."""
        from nanoclaw_memory.upkeep.review import holder

        self._group.require_private("proposals")
        return holder(self._group, proposal_id).proposals.get(proposal_id)

    def decide(self, proposal_id: str, accept: bool, text: str = "") -> Proposal:
        """Accept a proposal, reworded as `text` if that is set, or reject it permanently."""
        from nanoclaw_memory.upkeep.review import decide, write_page
        from nanoclaw_memory.upkeep.scheduler import jobs_paused

        self._group.require_workspace()
        with jobs_paused(self._group.data):
            decided = decide(self._group, proposal_id, accept, text)
            write_page(self._group)
        self._group.telemetry.record("review", kind=decided.kind, accepted=accept)
        return decided

    def undo(self, proposal_id: str) -> Proposal:
        """Undo a decision: its changes are reverted and the proposal is open again."""
        from nanoclaw_memory.upkeep.review import undo, write_page
        from nanoclaw_memory.upkeep.scheduler import jobs_paused

        self._group.require_workspace()
        with jobs_paused(self._group.data):
            reopened = undo(self._group, proposal_id)
            write_page(self._group)
        self._group.telemetry.record("review undone", kind=reopened.kind)
        return reopened

    # ---- imports ----

    def migrate_files(self, dry_run: bool = False, undo: bool = False) -> BroughtIn:
        """Import MEMORY.md and memory/*.md as typed entries, after a checkpoint; the files stay as they are.

        Entries that only domain files still contain are restored first. `undo` removes what an earlier run stored.
        """
        from nanoclaw_memory.upkeep.importing import undo_migration

        self._group.require_private("memory files")
        self._group.require_group()
        if undo:
            return undo_migration(self._group.entries, dry_run)
        preview = self._migrated(dry_run=True)
        if dry_run or not preview.stored:
            return replace(preview, dry_run=dry_run)
        name = f"before-migrate-{self._group.clock.now():%Y%m%d-%H%M%S}"
        self._group.checkpoints.create(name, "before ncm entries migrate")
        return replace(self._migrated(dry_run=False), checkpoint=name)

    def _migrated(self, dry_run: bool) -> BroughtIn:
        from nanoclaw_memory.upkeep.importing import combined, migrate_files, restore_lost
        from nanoclaw_memory.workspace.paths import memory_files

        restored = restore_lost(self._group.entries, dry_run)
        files = memory_files(self._group.home, self._group.scope, ())
        with self._group.resources.judging():
            judge = self._group.resources.judge
        return combined(restored, migrate_files(self._group.entries, files, dry_run, judge))

    def import_export(self, kind: str, path: Path, dry_run: bool = False) -> BroughtIn:
        """Import the export of another memory, with the origin `import`."""
        from nanoclaw_memory.upkeep.importing import import_export

        self._group.require_private("imports")
        self._group.require_group()
        if kind == "nanoclaw":
            from nanoclaw_memory.upkeep.version_one import import_tree

            self._group.require_main("bring in the groups of a NanoClaw")
            return import_tree(self._group, path.expanduser(), dry_run)
        self._group.require_own_file(path)
        with self._group.as_scope(replace(self._group.scope, origin="import")) as own:
            if kind == "obsidian":
                from nanoclaw_memory.upkeep.vault import import_vault

                return import_vault(own, path.expanduser(), dry_run)
            if kind == "memory-jsonl":
                from nanoclaw_memory.upkeep.importing import import_triples

                return import_triples(own, path.expanduser(), dry_run)
            return import_export(own, kind, path, dry_run)

    # ---- the person's other machines ----

    def export(self, folder: Path) -> Exported:
        """Write everything that is not Markdown as text that git can merge, for the person's other machines."""
        from nanoclaw_memory.upkeep.sync import export

        done = export(self._group, folder)
        self._group.telemetry.record("export", lines=done.lines, files=done.files_changed)
        return done

    def merge_in(self, folder: Path) -> MergedIn:
        """Merge in what the person's other machines exported."""
        from nanoclaw_memory.upkeep.scheduler import jobs_paused
        from nanoclaw_memory.upkeep.sync_import import import_directory

        with jobs_paused(self._group.data):
            done = import_directory(self._group, folder)
        self._group.telemetry.record("merge in", added=done.added, problems=len(done.problems))
        return done

    # ---- on this machine ----

    def heartbeat(self) -> list[HeartbeatItem]:
        """Return the checklist of HEARTBEAT.md, with the state of each item that can be checked."""
        from nanoclaw_memory.upkeep.heartbeat import heartbeat

        self._group.require_workspace()
        return heartbeat(self._group)

    def install_cron(self, remove: bool = False, systemd: bool = False) -> Installed:
        """Schedule hourly upkeep on this machine, or stop doing so."""
        from nanoclaw_memory.upkeep.crontab import install

        self._group.require_main("set up this machine's upkeep")
        return install(self._group.home.root.absolute(), remove, systemd)
