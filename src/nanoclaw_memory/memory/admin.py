"""The part `memory.admin`: settings, local models, databases, domain documents and file watching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from nanoclaw_memory.clock import zone_named
from nanoclaw_memory.errors import (
    CorruptDatabase,
    InvalidValue,
    NotFound,
    Refused,
    SettingsError,
    StoreError,
)
from nanoclaw_memory.memory.group import Group, Part
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import (
    MAIN_GROUP,
    SHARED,
    Compared,
    DatabaseCheck,
    EmbeddingCost,
    Indexed,
    KeptOut,
    MovedStore,
    Scope,
    Status,
)

if TYPE_CHECKING:
    import threading

    from nanoclaw_memory.retrieval.corpus import Corpora


class AdminPart(Part):
    """Administer a home, and what is derived from a group's memory."""

    # ---- settings ----

    def config_rows(self, prefix: str = "") -> list[dict[str, Any]]:
        """Return every setting with its value and where it comes from; credentials are masked."""
        from nanoclaw_memory.settings import leaves

        self._use_what_is_readable()
        return [
            {"key": leaf.path, "value": value, "from": origin, "about": leaf.description}
            for leaf in leaves()
            if leaf.path.startswith(prefix)
            for value, origin in [self.config_get(leaf.path)]
        ]

    def config_get(self, key: str) -> tuple[Any, str]:
        """Return the value of a setting and where it comes from; credentials are masked."""
        from nanoclaw_memory.settings import SECRET_KEYS

        value = self._group.configuration.value(key)
        if {key, key.rpartition(".")[2]} & SECRET_KEYS and value:
            value = "[set]"
        return value, self._group.configuration.origin(key)

    def config_set(self, key: str, value: str) -> Any:
        """Change one setting in the home's settings file; the file is replaced all or nothing."""
        from nanoclaw_memory.settings import with_value

        self._use_what_is_readable()
        self._group.require_main("change settings")
        if key == "user.timezone":  # the type cannot check that a time zone of this name exists
            value = zone_named(value)
        self._group.intake.refuse(value)
        self._rewrite_settings(lambda tree: with_value(tree, key, value))
        return self.config_get(key)[0]

    def config_unset(self, key: str) -> None:
        """Remove one key, known or not, from the home's settings file."""
        from nanoclaw_memory.settings import without_value

        self._use_what_is_readable()
        self._group.require_main("change settings")
        self._rewrite_settings(lambda tree: without_value(tree, key))

    def _rewrite_settings(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        import json

        from nanoclaw_memory.settings import read_file
        from nanoclaw_memory.workspace.files import locked, replace_text

        home = self._group.home
        with locked(home.root):
            tree = change(read_file(home.settings_file))
            replace_text(home.settings_file, json.dumps(tree, indent=2, ensure_ascii=False) + "\n")
        self._group.resources.reload()
        self._use_what_is_readable()

    def _use_what_is_readable(self) -> None:
        """Go on with what can be used of settings that have a mistake: they are shown and repaired here."""
        from nanoclaw_memory.settings import readable

        try:
            _ = self._group.configuration
        except SettingsError as mistake:
            self._group.resources.use(readable(self._group.home.root, mistake), mistake.message)

    # ---- local models ----

    def models(self, check: bool = False) -> list[dict[str, str]]:
        """Return the local models and their state; `check` verifies every byte."""
        from nanoclaw_memory.providers.models import states

        own, folder = self._group.settings.embeddings, self._group.home.models
        name = own.model if own.provider == "local" else ""
        return [msgspec.to_builtins(state) for state in states(folder, name, own.model_path, check)]

    def install_models(
        self,
        names: Sequence[str] = (),
        every: bool = False,
        force: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> list[dict[str, str]]:
        """Fetch and verify models, by default the embedder; models that are installed are skipped."""
        from nanoclaw_memory.providers.models import EMBEDDERS, MODELS, install, model_named

        self._group.require_main("fetch models")
        chosen = MODELS if every else tuple(map(model_named, names)) or EMBEDDERS[:1]
        folder = self._group.home.models
        return [msgspec.to_builtins(install(model, folder, progress, force)) for model in chosen]

    def compare_embedders(
        self,
        texts: Annotated[int, Meta(ge=1, le=5000)] = 200,
    ) -> list[Compared]:
        """Compare keyword search and the embedders on this memory's own chunks."""
        from nanoclaw_memory.retrieval.compare import compare

        self._group.require_group()
        return compare(self._group.retrieval.index, texts)

    def embedding_cost(self, most: Annotated[int, Meta(ge=1)] | None = None) -> EmbeddingCost:
        """Return what embedding this memory, or at most `most` of its texts, would cost with each model that has a
        price.
        """
        from nanoclaw_memory.retrieval.compare import cost

        self._group.require_owner("see what all of memory would cost")
        self._group.retrieval.refresh()
        return cost(self._group.retrieval.index, self._group.settings.embeddings, most)

    # ---- databases and the index ----

    def check_databases(self, all_groups: bool = False) -> list[DatabaseCheck]:
        """Check the integrity of every existing database of this group or of all groups; create none."""
        from nanoclaw_memory.store.integrity import check

        group, root = self._group, self._group.home.root
        if all_groups:
            group.require_main("look at all groups")
        found: list[DatabaseCheck] = []
        for name in group.home.groups() if all_groups else [group.scope.group]:
            with group.as_scope(Scope(name, private=group.scope.private)) as other:
                found += check(root, name, other.existing_databases())
        if group.scope.group == MAIN_GROUP and group.scope.private:  # this command administers every group
            found += check(root, MAIN_GROUP, group.resources.store.of_all_groups())
        return found

    def make_role(self, name: str, password: str = "") -> str:
        """Create a login role in PostgreSQL for an agent of this group or of its shared chats; return its URL."""
        from nanoclaw_memory.memory.resources import ALL_DATABASES
        from nanoclaw_memory.store.roles import make_role

        group = self._group
        if group.scope.origin != "owner":
            raise Refused("only a person may make a role", "run it at the command line")
        group.require_group()
        paths = {group.data / f"{one}.db": one.removeprefix(SHARED) for one in ALL_DATABASES}
        store, private = group.resources.store, group.scope.private
        return make_role(store, name, group.scope.group, paths, private=private, password=password)

    @property
    def has_roles(self) -> bool:
        """Return whether the databases are on a server, which has login roles."""
        return bool(self._group.resources.store.url)

    def make_token_role(self, name: str, password: str) -> bool:
        """Create a login role for an agent's token; return False where there is no server or it lets us create none."""
        if not self.has_roles:
            return False
        try:
            return bool(self.make_role(name, password))
        except StoreError as error:
            self._group.telemetry.record("token", error=error.message)
            return False

    def drop_token_role(self, name: str) -> bool:
        """Drop the login role of an agent's token; return False where it has none."""
        if not self.has_roles:
            return False
        try:
            self.drop_role(name)
        except NotFound:
            return False
        return True

    def drop_role(self, name: str) -> None:
        """Drop an agent's login role and close its connections."""
        from nanoclaw_memory.store.roles import drop_role

        self._group.require_owner("end a role")
        drop_role(self._group.resources.store, name)

    def migrate_store(self, to: str, replace: bool = False) -> MovedStore:
        """Move the whole home to a PostgreSQL server, or to `files`; the source is left unchanged."""
        from nanoclaw_memory.memory.migration import migrate_store

        done = migrate_store(self._group, to, replace)
        self._group.telemetry.record("migrate store", databases=len(done.databases), pages=done.pages)
        return done

    def reset_database(self, name: str) -> Path:
        """Set a damaged database aside, or accept that it is lost; the next use creates an empty one."""
        group = self._group
        group.require_owner("begin a database anew")
        found = {database.path.stem: database for database in group.existing_databases()}
        if group.scope.group == MAIN_GROUP:
            found |= {
                one.name: one for one in group.resources.store.of_all_groups() if one.name == "messages"
            }
        if name not in found:
            raise NotFound(f"there is no database {name[:80]!r}", f"there are: {', '.join(found)}")
        database = found[name]
        try:
            sound = not database.check()
        except CorruptDatabase:
            sound = False
        if sound:
            raise InvalidValue(f"{database.path.name} is sound", "nothing was changed")
        database.set_aside()
        return database.path.parent / "damaged"

    @property
    def corpora(self) -> Corpora:
        """Return the domain documents: add, list, reindex, remove."""
        self._group.require_private("where domain documents come from")
        self._group.require_group()
        return self._group.retrieval.corpora

    def watch(self, stop: threading.Event) -> Iterator[Indexed]:
        """Index whenever files change, until `stop` is set; yield the result of each run."""
        from nanoclaw_memory.retrieval.scanner import changes

        self._group.require_group()
        for _ in changes((self._group.workspace, self._group.home.shared), stop):
            yield self._group.index()

    def allow_forgotten(self, text: str) -> int:
        """Allow a forgotten text to be stored again; return how many tombstones were lifted."""
        from nanoclaw_memory.store.phrases import Phrases

        self._group.require_owner("lift a tombstone")
        wordings = self._group.intake.wordings(text)
        return self._group.intake.allow(Phrases.of_request(*wordings) | Phrases.of_rows(wordings))

    def kept_out(self) -> list[KeptOut]:
        """Count what is kept out, by day and reason; the texts themselves are stored nowhere."""
        self._group.require_owner("see what is kept out")
        return self._group.intake.kept_out()

    def is_forgotten(self, text: str) -> bool:
        """Return whether a text is, or contains, one that a person asked to forget."""
        return self._group.intake.forgets(text)


def status(group: Group) -> Status:
    """Return counts and sizes of one group, and which of its databases are lost or unreadable."""
    from nanoclaw_memory.providers.usage import Usage
    from nanoclaw_memory.workspace.paths import memory_files

    home, private = group.home, group.scope.private
    administers = private and group.scope.group == MAIN_GROUP
    found = [database for database in group.existing_databases() if database.exists()]
    sizes = {one.path.stem: one.size() for one in sorted(found, key=lambda database: database.path)}
    talk = _count_talk(group)
    usage = Usage(home.data(MAIN_GROUP) / "usage.json", group.clock).total() if private else ()
    return Status(
        home=home.root,
        group=group.scope.group,
        exists=group.workspace.is_dir(),
        groups=tuple(home.groups()) if administers else (group.scope.group,),
        files=sum(1 for _ in memory_files(home, group.scope, group.settings.privacy.shared_files)),
        databases=sizes,
        problems=tuple(_problems(group)),
        embedder=_embedder_state(group),
        usage=tuple(msgspec.to_builtins(spent) for spent in usage),
        project=group.scope.project,
        off=group.settings.projects.off if private else (),
        caches=group.resources.caches()
        if private
        else (),  # their sizes reveal something about private content
        exchanges=talk[0],
        conversations=talk[1],
    )


def _count_talk(group: Group) -> tuple[int, int]:
    """Count the exchanges and conversations of this scope; none if their database cannot be read, a problem anyway."""
    if not group.has("continuity"):
        return 0, 0
    try:
        return group.exchanges.count(), group.exchanges.count_sessions()
    except StoreError:
        return 0, 0


def _problems(group: Group) -> Iterator[str]:
    for database in group.existing_databases():
        try:
            if lost := database.lost_writes():
                yield f"{database.path.name} has lost its last {plural(lost, 'write')}"
        except StoreError as error:
            yield error.message
    if group.scope.private:
        from nanoclaw_memory.upkeep.doctor import check_clock

        yield from (finding.message for finding in check_clock(group))


def _embedder_state(group: Group) -> str:
    from nanoclaw_memory.providers import models

    own = group.settings.embeddings
    if own.provider == "azure-openai":
        return f"azure-openai {own.deployment} ({own.dimensions})"
    if own.provider == "openai":
        return f"openai {own.model}"
    if own.provider == "none":
        return "none: keyword and graph search"
    model, folder = models.embedder(group.home.models, own.model, own.model_path)
    state = "installed" if models.installed(model, folder) else "not installed"
    return f"local {model.name} ({state})"
