"""What every part stands on: home, scope, settings, clock, databases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, SystemClock, zone
from nanoclaw_memory.errors import NoMemory, NotFound, PathRefused
from nanoclaw_memory.types import MAIN_GROUP, Scope
from nanoclaw_memory.workspace.paths import PENDING_RESTORE, Home, default_home

if TYPE_CHECKING:
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.providers.embedder import Chain
    from nanoclaw_memory.providers.reranker import Reranker
    from nanoclaw_memory.settings import Configuration, Settings
    from nanoclaw_memory.store.sqlite import SqliteDatabase
    from nanoclaw_memory.telemetry import Telemetry
    from nanoclaw_memory.workspace.checkpoints import Checkpoints

DATABASES = ("facts", "entries", "continuity", "index", "sdk", "forgotten")


class Core:
    """What every part stands on: home, scope, settings, clock, databases."""

    def __init__(
        self,
        home: Path,
        scope: Scope,
        clock: Clock | None = None,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.home = Home(home)
        self.scope = scope
        self._given_clock = clock
        self._overrides = dict(overrides or {})
        self._directory = directory
        self._databases: dict[str, SqliteDatabase] = {}
        self.resident = False  # a server that lives on sets it: only then are turns worth loading a model
        self._lent = False
        self.home.group_root(scope.group)  # refuses a bad name at once

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        scope: Scope | None = None,
        *,
        clock: Clock | None = None,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> Self:
        """Open a home (default `NANOCLAW_HOME` or ~/.nanoclaw); touches nothing until used.

        A restore that was killed half-way is finished first, and one that is running is waited for.
        """
        root = Path(home).expanduser() if home else default_home()
        memory = cls(root, scope or Scope(), clock, overrides, directory)
        if (memory.home.workspace(memory.scope.group) / PENDING_RESTORE).exists():
            from nanoclaw_memory.workspace.restore import finish

            finish(memory._checkpoints())
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the plugins, and close every database that was opened."""
        if "_lifecycle" in self.__dict__:
            self.__dict__.pop("_lifecycle").close()
        if self._lent:
            return
        for name in ("_search", "_opened_host"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    def for_session(self, session_id: str) -> Self:
        """The same memory as another session sees it: shares what is open, and lives no longer than this one."""
        scope = replace(self.scope, session_id=session_id)
        other = type(self)(self.home.root, scope, self._given_clock, self._overrides, self._directory)
        other._databases = self._databases
        other._lent = True
        for name in ("configuration", "clock", "telemetry", "embedder", "_search"):
            other.__dict__[name] = getattr(self, name)
        return other

    # ---- what everything stands on ----

    @cached_property
    def configuration(self) -> Configuration:
        from nanoclaw_memory.settings import load

        return load(self.home.root, self._overrides, directory=self._directory)

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @cached_property
    def clock(self) -> Clock:
        return self._given_clock or SystemClock(self.settings.user.timezone)

    @cached_property
    def telemetry(self) -> Telemetry:
        from nanoclaw_memory.telemetry import Telemetry

        own = self.settings.telemetry
        return Telemetry(self.home.logs / "telemetry.jsonl", self.clock, own.enabled, own.max_bytes)

    def today(self) -> date:
        """The date in the user's time zone."""
        return self.clock.now().date()

    def database(self, name: str) -> SqliteDatabase:
        """One of the group's databases: facts, continuity, entries or index."""
        if name not in self._databases:
            path = self.home.data(self.scope.group) / f"{name}.db"
            if self.scope.group != MAIN_GROUP and path.is_symlink():
                raise PathRefused(f"{path.name} of {self.scope.group} is a link", "put the file itself there")
            self._databases[name] = _opened(path, name)
        return self._databases[name]

    @cached_property
    def embedder(self) -> Chain | None:
        """Who makes vectors; None when embeddings are off. Loads nothing before first use."""
        from nanoclaw_memory.providers.embedder import embedder_for

        return embedder_for(
            self.settings.embeddings, self.home.models, self.home.data(MAIN_GROUP), self.clock
        )

    @cached_property
    def reranker(self) -> Reranker:
        """Who reads the best hits again: as set, or the local cross-encoder when a search asks for one."""
        from nanoclaw_memory.providers.models import RERANKER, directory
        from nanoclaw_memory.providers.reranker import CrossEncoder, reranker_for

        own, data = self.settings, self.home.data(MAIN_GROUP)
        found = reranker_for(own.rerank, own.writer, self.home.models, data, self.clock)
        return found or CrossEncoder(directory(RERANKER, self.home.models))

    # ---- forgetting ----

    @cached_property
    def intake(self) -> Intake:
        """What may come in: every text passes it once."""
        from nanoclaw_memory.intake.intake import Intake

        return Intake(
            data=self.home.data(self.scope.group),
            database=lambda: self.database("forgotten"),
            redact=self.settings.privacy.redact_secrets,
            origin=self.scope.origin,
            record=lambda event, **fields: self.telemetry.record(event, **fields),
        )

    def forgets(self, text: str) -> bool:
        """Whether a text is, or contains, one that a person asked to forget."""
        return self.intake.forgets(text)

    # ---- settings ----

    def config_rows(self, prefix: str = "") -> list[dict[str, Any]]:
        """Every setting with its value and origin; credentials masked."""
        from nanoclaw_memory.settings import leaves

        return [
            {"key": leaf.path, "value": value, "from": origin, "about": leaf.description}
            for leaf in leaves()
            if leaf.path.startswith(prefix)
            for value, origin in [self.config_get(leaf.path)]
        ]

    def config_get(self, key: str) -> tuple[Any, str]:
        """A setting's value and where it comes from; credentials masked."""
        from nanoclaw_memory.settings import SECRET_KEYS

        value = self.configuration.value(key)
        if key.rpartition(".")[2] in SECRET_KEYS and value:
            value = "[set]"
        return value, self.configuration.origin(key)

    def config_set(self, key: str, value: str) -> Any:
        """Change one setting in the home's file, all or nothing."""
        import json

        from nanoclaw_memory.settings import read_file, with_value
        from nanoclaw_memory.workspace.files import locked, replace_text

        self.require_main("change settings")
        if key == "user.timezone":  # whether there is such a zone no type can say
            zone(value)
        self.intake.refuse(value)
        with locked(self.home.root):
            tree = with_value(read_file(self.home.settings_file), key, value)
            replace_text(self.home.settings_file, json.dumps(tree, indent=2, ensure_ascii=False) + "\n")
        self.__dict__.pop("configuration", None)
        return self.config_get(key)[0]

    # ---- inside ----

    def _checkpoints(self) -> Checkpoints:
        from nanoclaw_memory.store.snapshots import Snapshots
        from nanoclaw_memory.workspace.checkpoints import Checkpoints

        # The index is derived; what was forgotten since stays forgotten when a checkpoint is restored.
        kept = tuple(name for name in DATABASES if name not in ("index", "forgotten"))
        return Checkpoints(
            self.home.workspace(self.scope.group),
            Snapshots(kept, self.database),
            self.clock,
            restored=self._restored,
        )

    def _restored(self) -> None:
        """What is left to do when a restore has replaced everything; may be called again after a kill."""

    def _existing_databases(self) -> tuple[SqliteDatabase, ...]:
        folder = self.home.data(self.scope.group)
        return tuple(self.database(name) for name in DATABASES if (folder / f"{name}.db").exists())

    def _require_private(self, what: str) -> None:
        if not self.scope.private:
            raise PathRefused(f"a shared scope does not see {what}", "ask in a private one: without --shared")

    def require_home(self) -> None:
        """There must be a memory: a mistyped home must not become a second, empty one."""
        if not self.home.exists():
            raise NoMemory(
                f"there is no memory at {self.home.root}",
                "create it: ncm init; or name another place with --home or NANOCLAW_HOME",
            )

    def require_main(self, what: str) -> None:
        """What concerns the whole home is done by the main group, in private."""
        if self.scope.group == MAIN_GROUP and self.scope.private:
            return
        who = f"the group {self.scope.group!r}" if self.scope.private else "a shared scope"
        raise PathRefused(
            f"{who} may not {what}: only the main group administers, in private",
            "ask as the main group: without --group and --shared",
        )

    def require_group(self) -> None:
        """A group must have been made by `init`: a mistyped name must not open a second memory."""
        if self.scope.group != MAIN_GROUP and not self.home.group_root(self.scope.group).is_dir():
            raise NotFound(
                f"there is no group {self.scope.group!r}",
                f"create it: nanoclaw-memory init --group {self.scope.group}",
            )


def _opened(path: Path, name: str) -> SqliteDatabase:
    """A group's database of this name, with what takes over files of older releases."""
    from nanoclaw_memory.store.sqlite import SqliteDatabase

    if name == "facts":
        from nanoclaw_memory.store.legacy_facts import adopter

        return SqliteDatabase(path, name, adopter(path.parent))
    if name == "forgotten":
        from nanoclaw_memory.store.tombstones import forgotten_database

        return forgotten_database(path.parent)
    return SqliteDatabase(path, name, durable=name == "entries")
