"""Move a whole home to PostgreSQL or to files: copied, compared row by row, restartable; the source is unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import Conflict, InvalidValue, StoreError
from nanoclaw_memory.memory.group import Group
from nanoclaw_memory.memory.resources import ALL_DATABASES, Resources
from nanoclaw_memory.memory.team_pages import synchronise, team_tables
from nanoclaw_memory.progress import counted
from nanoclaw_memory.store.copying import contents
from nanoclaw_memory.store.opening import Store
from nanoclaw_memory.store.pages import PageTable
from nanoclaw_memory.types import SHARED, MovedDatabase, MovedStore, Scope

if TYPE_CHECKING:
    from nanoclaw_memory.store.database import Database

FILES = "files"
STATE_FILE = "migrate-store.json"
PREFIX = ".moving-"
# The index is rebuilt from its sources; pages are moved separately.
LEFT_OUT = ("index", f"{SHARED}index", "pages")


class Move(msgspec.Struct, frozen=True):
    """A database on both sides; `name` is its path in the home."""

    name: str
    source: Database
    target: Database


class StoreMigration:
    """Run one move. The state of each database when it was moved is recorded, so that newer rows are never
    overwritten.
    """

    def __init__(self, group: Group, to: str, replace: bool) -> None:
        self.group = group
        self.home = group.home
        self.url = "" if to == FILES else to
        self.replace = replace
        self.state_file = group.data / STATE_FILE
        self.moved = private.read_json(self.state_file, dict[str, str]) or {}
        self.closing = ExitStack()
        if self.url and not self.url.startswith(("postgresql://", "postgres://")):
            raise InvalidValue(f"{to[:60]!r} is no store", "give postgresql://… or files")
        if self.url == group.resources.store.url:
            raise InvalidValue("the home is there already", "see: ncm config get store.url")

    def run(self) -> MovedStore:
        """Move every database, then the pages."""
        for left in self.group.data.glob(f"{PREFIX}*"):  # left by a run that was killed
            shutil.rmtree(left)
        with self.closing:
            groups = self._groups()
            moves = [move for name in groups for move in self._of_group(name)]
            moves += self._of_all()
            self._check_free(moves)
            done = [self._carry(move) for move in counted("databases", moves)]
            pages, problems = 0, list[str]()
            for name in groups:
                number, found = self._carry_pages(name)
                pages += number
                problems += found
        return MovedStore(
            to="files" if not self.url else "PostgreSQL",
            databases=tuple(done),
            pages=pages,
            problems=tuple(problems),
            next="stop what uses this home, then: ncm config set store.url " + ("URL" if self.url else "''"),
        )

    # ---- what is moved ----

    def _groups(self) -> list[str]:
        """Return the groups of this home and those known only to the server, for which a folder is created here."""
        from nanoclaw_memory.workspace.starter import initialise

        known = self.home.groups()
        for name in self.group.resources.store.groups():
            if name not in known:
                initialise(self.home, name, self.group.today)
        return self.home.groups()

    def _resources(self, name: str, target: bool) -> Resources:
        own = self.group.resources
        url = {"store.url": self.url} if target else {}
        made = Resources(self.home.root, name, own.given_clock, {**own.overrides, **url}, own.directory)
        self.closing.callback(made.close)
        return made

    def _of_group(self, name: str) -> Iterator[Move]:
        source, target = self._resources(name, False), self._resources(name, True)
        for one in ALL_DATABASES:
            if one not in LEFT_OUT and source.has(one):
                yield self._move(source.database(one), target.database(one))

    def _of_all(self) -> Iterator[Move]:
        target = Store(self.home.root, self.url)
        for database in self.group.resources.store.of_all_groups():
            other = target.open(database.path, database.name, counted=database.name == "messages")
            for each in (database, other):
                self.closing.callback(each.close)
            yield self._move(database, other)

    def _move(self, source: Database, target: Database) -> Move:
        return Move(source.path.relative_to(self.home.root).as_posix(), source, target)

    def _check_free(self, moves: list[Move]) -> None:
        """Refuse, before anything is changed, a target with rows that may not exist here."""
        taken = [move for move in moves if move.target.exists() and not self._is_free(move)]
        if taken and not self.replace:
            raise Conflict(
                f"{taken[0].name} at the target has rows that are not of this home, or newer ones",
                "choose an empty database; or with --replace they are set aside",
            )
        for move in taken:
            move.target.set_aside()

    def _is_free(self, move: Move) -> bool:
        """Return whether a target database is new, or equals the source as it is or as it was when moved."""
        found = contents(move.target).digest
        if found in (self.moved.get(move.name), contents(move.source).digest):
            return True
        with self._folder() as folder:
            blank = move.source.at(folder / "blank.tmp")
            try:
                return found == contents(blank).digest
            finally:
                blank.close()

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Return a folder for copies; `forget` knows their suffix, should one be left behind."""
        with TemporaryDirectory(prefix=PREFIX, dir=self.group.data) as name:
            yield Path(name)

    # ---- copying ----

    def _carry(self, move: Move) -> MovedDatabase:
        """Copy the rows of the source to the target, all or nothing, and compare them."""
        with self._folder() as folder:
            move.source.copy_to(folder / "copy.tmp")
            saved = move.source.at(folder / "copy.tmp")
            here = contents(saved)
            saved.close()
            moved = not move.target.exists() or contents(move.target).digest != here.digest
            if moved:
                self._note(move.name, here.digest)
                move.target.load_from(folder / "copy.tmp")
        there = contents(move.target)
        if there != here:
            raise StoreError(
                f"{move.name}: {here.rows} rows went and {there.rows} arrived, or not the same",
                "the source is as it was; run it again, and report it if it stays",
            )
        if move.target.name == "forgotten" and not self.url:
            self._list_forgotten(move)
        return MovedDatabase(name=move.name, rows=here.rows, moved=moved, tables=here.counts)

    def _list_forgotten(self, move: Move) -> None:
        """Write the second copy of the tombstones that files have beside the list."""
        from nanoclaw_memory.intake.intake import Intake
        from nanoclaw_memory.store.phrases import Phrases

        Intake(data=move.target.path.parent, database=lambda: move.target).allow(Phrases())

    def _carry_pages(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Synchronise the server's table and the files of the home; return how many pages."""
        group = Group(self._resources(name, bool(self.url)), Scope(name))
        done = synchronise(group, "owner")
        if group.resources.pages_away_until:
            raise StoreError(f"the pages of {name} could not be moved: {done.problems[0]}", "run it again")
        tables = team_tables(group)
        return sum(len(PageTable(database).all()) for database in tables), done.problems

    # ---- the record of moves ----

    def _note(self, name: str, digest: str) -> None:
        from nanoclaw_memory.workspace.files import replace_text

        self.moved[name] = digest
        replace_text(self.state_file, msgspec.json.encode(self.moved).decode())


def migrate_store(group: Group, to: str, replace: bool = False) -> MovedStore:
    """Move the whole home to another store; only the owner may, in the main group."""
    from nanoclaw_memory.upkeep.scheduler import jobs_paused

    group.require_main("move the store")
    group.require_owner("move the store")
    group.require_workspace()
    with jobs_paused(group.data):
        return StoreMigration(group, to, replace).run()
