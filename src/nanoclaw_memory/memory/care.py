"""Looking after it all: upkeep, review, import, forget, health, models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from nanoclaw_memory.clock import zone
from nanoclaw_memory.errors import NanoClawError, NotFound, Refused
from nanoclaw_memory.memory.turns import Turns
from nanoclaw_memory.types import MAIN_GROUP, Scope

if TYPE_CHECKING:
    from nanoclaw_memory.providers.writer import Writer
    from nanoclaw_memory.types import (
        BroughtIn,
        Finding,
        Flush,
        Forgotten,
        ForgottenPage,
        HeartbeatItem,
        Installed,
        JobRun,
        JobState,
        PluginNote,
        Proposal,
        Refreshed,
        Restored,
        Status,
    )
    from nanoclaw_memory.upkeep.context import House
    from nanoclaw_memory.upkeep.forget_stores import Premises


class Care(Turns):
    """Looking after it all: upkeep, review, import, forget, health, models."""

    # ---- turns ----

    def session_end(self) -> tuple[PluginNote, ...]:
        """Tell the plugins that the session is over, and refresh active-context.md; gives what failed."""
        from nanoclaw_memory.types import PluginNote

        notes = self._lifecycle.session_end()
        if not self.scope.private:  # the page is private, and so is what stands on it
            return notes
        try:
            self.refresh_active_context()
        except NanoClawError as error:
            notes = (*notes, PluginNote("active-context", error.message))
        return notes

    # ---- bringing memory in ----

    def entries_migrate(self, dry_run: bool = False) -> BroughtIn:
        """MEMORY.md and memory/*.md into typed entries; the files stay as they are.

        What domain files say of entries that the database lost comes back first, as imports.
        """
        from nanoclaw_memory.upkeep.importing import migrate_files, restore_lost, together
        from nanoclaw_memory.workspace.paths import memory_files

        self._require_private("memory files")
        self.require_group()
        with self._importing() as own:
            restored = restore_lost(own.entries, dry_run)
        files = memory_files(self.home, self.scope, ())
        return together(restored, migrate_files(self.entries, files, dry_run))

    def _importing(self) -> Self:
        """The same memory as one that writes with the origin `import`."""
        scope = replace(self.scope, origin="import")
        return type(self)(self.home.root, scope, self._given_clock, self._overrides, self._directory)

    def import_export(self, kind: str, path: Path, dry_run: bool = False) -> BroughtIn:
        """What another memory exported, with the origin `import`."""
        from nanoclaw_memory.upkeep.importing import import_export

        self._require_private("imports")
        self.require_group()
        with self._importing() as own:
            return import_export(
                kind,
                path,
                own.entries,
                own.graph,
                self.home,
                self.scope.group,
                self.clock,
                dry_run,
            )

    # ---- forgetting ----

    def forget(
        self,
        *,
        id: str = "",
        entity: str = "",
        session: str = "",
        text: str = "",
        dry_run: bool = False,
        agreed: Callable[[Sequence[ForgottenPage]], bool] | None = None,
        checkpoints: bool = False,
    ) -> Forgotten:
        """Remove something for good, from every store and file, and keep it away from now on.

        `agreed` is shown what would leave Markdown pages; without its consent they stay as they are.
        """
        from nanoclaw_memory.upkeep.forget import Asked, Forgetting

        self._require_owner("forget")
        work = Forgetting(self._premises(), Asked(id, entity, session, text))
        if dry_run:
            return work.preview()
        done = work.carry_out(agreed or (lambda pages: False), checkpoints)
        self.telemetry.record("forget", removed=sum(done.removed.values()), pages=len(done.pages))
        return done

    def forget_allow(self, text: str) -> int:
        """Let a forgotten text come back in; gives how many tombstones were lifted."""
        from nanoclaw_memory.store.phrases import Phrases

        self._require_owner("lift a tombstone")
        return self.intake.allow(Phrases.asked(text) | Phrases.met([text]))

    def _restored(self) -> None:
        """A restored state may hold what was forgotten since it was saved: take that out again."""
        scope = Scope(self.scope.group)  # whoever comes first after a kill, the work is the owner's
        with type(self)(self.home.root, scope, self._given_clock, self._overrides, self._directory) as own:
            from nanoclaw_memory.upkeep.forget import Asked, Forgetting

            try:
                if own.intake.tombstones() is None:
                    return
                Forgetting(own._premises(), Asked(again=True)).carry_out(lambda pages: False, False)
            except NanoClawError as error:  # its mark stays: doctor tells, and the next forget completes it
                self.telemetry.record("restore", error=error.message)

    def _premises(self) -> Premises:
        from nanoclaw_memory.upkeep.forget_files import Files
        from nanoclaw_memory.upkeep.forget_stores import Premises

        group, store = self.scope.group, self.home.root / "store"
        house = self._house
        corpora = self._search.corpora
        for name in corpora.names():
            corpora.index(name)
        return Premises(
            house,
            Files(self.home, group, self.entries.ledger.domains),
            self.database,
            self._opened_host.database if (store / "messages.db").exists() else None,
            self._published(group) if (store / "published" / f"{group}.db").exists() else None,
            corpora.opened,
        )

    def _require_owner(self, what: str) -> None:
        self._require_private(what)
        if self.scope.origin != "owner":
            raise Refused(f"only a person may {what}", "run it at the command line: ncm forget")

    # ---- upkeep ----

    @cached_property
    def _house(self) -> House:
        from nanoclaw_memory.upkeep.context import House

        self._require_private("upkeep")
        self.require_group()
        if not self.home.workspace(self.scope.group).is_dir():
            raise NotFound(f"there is no memory at {self.home.root}", "create it: nanoclaw-memory init")
        return House(
            self.home,
            self.scope,
            self.settings,
            self.clock,
            self.intake,
            open_graph=lambda: self.graph,
            open_entries=lambda: self.entries,
            open_database=self.database,
            open_writer=self._writer,
            drain=self._drain_all,
            index=self.index,
            stale_files=lambda: len((found := self._search.index.scan()).changed + found.removed),
            reindex=lambda: self.corpora.reindex(),
            has=lambda name: (self.home.data(self.scope.group) / f"{name}.db").exists(),
        )

    def _writer(self) -> Writer | None:
        from nanoclaw_memory.providers.writer import writer_for

        return writer_for(self.settings.writer, self.home.data(MAIN_GROUP), self.clock)

    def _drain_all(self) -> int:
        return sum(iter(lambda: self.drain(200), 0))

    def upkeep(self, job: str = "", dry_run: bool = False, due: bool = False) -> list[JobRun]:
        """Run all jobs, or one; `due` only those whose time has come; `dry_run` says what they would do."""
        from nanoclaw_memory.upkeep.jobs import JOBS, job_named
        from nanoclaw_memory.upkeep.scheduler import run

        runs = run(self._house, [job_named(job)] if job else JOBS, dry_run, due)
        for one in runs:
            if not one.skipped:
                self.telemetry.record("upkeep", job=one.name, changed=one.changed, error=one.error)
        return runs

    def upkeep_status(self) -> list[JobState]:
        """Every job: its schedule, its last run, and whether it is due."""
        from nanoclaw_memory.upkeep.scheduler import states

        return states(self._house)

    def review(self) -> list[Proposal]:
        """Every change that waits for a person: what makes room first, then the oldest."""
        from nanoclaw_memory.upkeep.review import open_proposals

        return open_proposals(self._house)

    def review_decide(self, proposal_id: str, accept: bool, text: str = "") -> Proposal:
        """Accept a proposal, in other words if `text` gives them, or reject it for good."""
        from nanoclaw_memory.upkeep.review import decide, write_page
        from nanoclaw_memory.upkeep.scheduler import undisturbed

        with undisturbed(self.home.data(self.scope.group)):
            decided = decide(self._house, proposal_id, accept, text)
            write_page(self._house)
        self.telemetry.record("review", kind=decided.kind, accepted=accept)
        return decided

    def flush_needed(self, context_tokens: int, transcript_bytes: int = 0) -> Flush:
        """Whether to ask the agent now to write down what should last; true once per compaction cycle."""
        from nanoclaw_memory.upkeep.flush import flush_needed

        return flush_needed(self._house, context_tokens, transcript_bytes)

    def refresh_active_context(self) -> Refreshed:
        """Bring active-context.md up to date with this session and the latest log; hand-written lines stay."""
        from nanoclaw_memory.upkeep.active_context import refresh

        return refresh(self._house)

    def heartbeat(self) -> list[HeartbeatItem]:
        """HEARTBEAT.md's checklist, with the state of what can be known."""
        from nanoclaw_memory.upkeep.heartbeat import heartbeat

        return heartbeat(self._house)

    def install_cron(self, remove: bool = False, systemd: bool = False) -> Installed:
        """Ask the machine to run upkeep every hour, or no longer."""
        from nanoclaw_memory.upkeep.crontab import install

        self.require_main("set up this machine's upkeep")
        return install(self.home.root.absolute(), remove, systemd)

    # ---- health ----

    def doctor(self, fix: bool = False) -> list[Finding]:
        """The check-up of home, settings, files and databases; `fix` removes what killed writers left."""
        from nanoclaw_memory.errors import SettingsError
        from nanoclaw_memory.store.integrity import of_all_groups
        from nanoclaw_memory.types import Finding
        from nanoclaw_memory.upkeep.doctor import Patient, check_forgotten, examine, sweep

        try:
            zone(self.settings.user.timezone)
        except SettingsError as error:  # nothing else can be examined without settings
            return [Finding("problem", error.message, error.hint)]
        listed = list(check_forgotten(self.intake, fix))
        databases = self._existing_databases()
        if self.scope.private and self.scope.group == MAIN_GROUP:
            databases += tuple(of_all_groups(self.home.root))
        patient = Patient(self.home, self.scope, self.configuration, databases)
        swept = sweep(patient, self.clock.now()) if fix else []
        return [*swept, *examine(patient, [*listed, *self._loops(), *self._lost_entries()])]

    def _lost_entries(self) -> Iterator[Finding]:
        """Entries that only the domain files know: their database was lost or replaced."""
        from nanoclaw_memory.entries.domains import lines_held
        from nanoclaw_memory.entries.rules import TYPES
        from nanoclaw_memory.errors import StoreError
        from nanoclaw_memory.text import plural
        from nanoclaw_memory.types import Finding

        if not self.scope.private or not self.home.workspace(self.scope.group).is_dir():
            return
        try:
            known = self._has_entries()
            lost = sum(len(self.entries.ledger.domains.lost(kind)) for kind in TYPES) if known else 0
        except StoreError:
            return  # the check of the databases tells of it
        lost = lost if known else lines_held(self.home.workspace(self.scope.group))
        if lost:
            told = f"the domain files hold {plural(lost, 'line')} of entries that no database knows"
            yield Finding("problem", told, "nanoclaw-memory entries migrate")

    def _loops(self) -> Iterator[Finding]:
        """The learning loops; none of a memory that is not there, or that this scope may not look into."""
        from nanoclaw_memory.upkeep.loops import findings

        if not self.scope.private or not self.home.workspace(self.scope.group).is_dir():
            return
        yield from findings(self._house)

    def status(self) -> Status:
        """What there is, at a glance; opens nothing."""
        from nanoclaw_memory.upkeep.status import status

        return status(self.home, self.scope, self.settings, self.clock)

    # ---- local models ----

    def models(self, check: bool = False) -> list[dict[str, str]]:
        """The local models and how they stand; with `check` every byte is verified."""
        import msgspec

        from nanoclaw_memory.providers.models import states

        return [
            msgspec.to_builtins(state)
            for state in states(self.home.models, self.settings.embeddings.model_path, check)
        ]

    def models_install(
        self,
        names: Iterable[str] = (),
        every: bool = False,
        force: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> list[dict[str, str]]:
        """Fetch and verify models, by default the embedder; does nothing for those that are there."""
        import msgspec

        from nanoclaw_memory.providers.models import EMBEDDER, MODELS, install, model_named

        self.require_main("fetch models")
        chosen = MODELS if every else tuple(map(model_named, names)) or (EMBEDDER,)
        return [msgspec.to_builtins(install(model, self.home.models, progress, force)) for model in chosen]

    # ---- checkpoints ----

    def checkpoint_restore(self, name: str) -> Restored:
        """Bring back a checkpoint, all or nothing; the present state is saved as another one first."""
        from nanoclaw_memory.workspace.restore import restore

        done = restore(self.checkpoints, name)
        self.telemetry.record("restore", files=done.replaced, removed=done.removed)
        return done
