"""The stores of one group that can hold a text: what is found in each of them, and how it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.sources import RowReader
from nanoclaw_memory.store import erasure
from nanoclaw_memory.store.erasure import Row, TextPlace, Wanted
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.store.phrases import holds, is_cut
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.types import MAIN_GROUP
from nanoclaw_memory.upkeep.forget_files import Files

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group


class ForgetTargets:
    """Every store and file of one group that can contain a text."""

    def __init__(
        self, group: Group, step: Callable[[str], None] = lambda name: None, wait_ms: int = 5_000
    ) -> None:
        self.group = group
        self.step = step  # receives the name of every step, so that tests can stop at any
        self.wait_ms = wait_ms
        self.wanted = Wanted()  # may grow while pages are looked at
        self._exchanges: list[Row] | None = None  # those that go, as long as they may be known
        self.database = group.database
        group.retrieval.heal()  # of a damaged index nothing could be removed
        self.files = Files(group.home, group.scope.group, group.entries.ledger.domains)

    @cached_property
    def messages(self) -> SqliteDatabase | None:
        """The host's database, where there is one."""
        return self.group.host.database if (self._store / "messages.db").exists() else None

    @cached_property
    def published(self) -> SqliteDatabase | None:
        """What the group has published, where it has."""
        name = self.group.scope.group
        there = (self._store / "published" / f"{name}.db").exists()
        return self.group.resources.published(name) if there else None

    @cached_property
    def corpora(self) -> Mapping[str, SqliteDatabase]:
        """The databases of the group's domain documents."""
        corpora = self.group.retrieval.corpora
        for name in corpora.names():
            corpora.index(name)
        return corpora.opened

    @property
    def _store(self) -> Path:
        return self.group.home.root / "store"

    # ---- what is found ----

    def found(self, step: str) -> list[tuple[TextPlace, list[Row]]]:
        """The rows of one step that are to go."""
        db = self._database(step)
        if db is None:
            return []
        wanted = self._of_published() if step == "published" else self.wanted
        if step == "graph" and (kept := self.group.intake.tombstones()) is not None:
            keys = erasure.kept_away_keys(db, kept.forgotten_values())
            own = {table: wanted.keys.get(table, frozenset()) | found for table, found in keys.items()}
            wanted = replace(wanted, keys={**wanted.keys, **own})
        given = self._parameters(step)
        return [(place, erasure.rows_of(db, place, wanted, given)) for place in erasure.PLACES[step]]

    def rows(self, step: str, place: TextPlace, wanted: Wanted) -> list[Row]:
        """The rows of one place that another request would take along."""
        db = self._database(step)
        return erasure.rows_of(db, place, wanted, erasure.parameters(wanted)) if db is not None else []

    def cut_texts(self) -> Iterator[str]:
        """What is left of longer texts where they were cut off; a fingerprint of the whole does not know them."""
        if self.wanted.matcher.may_be_cut:
            every = (row for step in erasure.PLACES for _, rows in self.found(step) for row in rows)
            yield from (text for row in every for text in row.texts if is_cut(self.wanted.matcher, text))

    def look_again(self) -> None:
        """Others may have written since; from the tombstones on nothing wanted comes in."""
        self._exchanges = None

    def exchanges(self) -> list[Row]:
        """The exchanges that are to go."""
        if self._exchanges is None:
            self._exchanges = self.rows("continuity", erasure.EXCHANGE, self.wanted)
        return self._exchanges

    def graph_values(self) -> list[tuple[str, str, str]]:
        """Name, key and digest of the facts and relations that go."""
        found = {place.table: rows for place, rows in self.found("graph") if not place.instead}
        return list(erasure.graph_values(self.database("facts"), found)) if found else []

    def indexes(self) -> Iterator[tuple[str, SqliteDatabase]]:
        if self.group.has("index"):
            yield "index", self.database("index")
        yield from self.corpora.items()

    def counted(self) -> dict[str, int]:
        """How much is found in each store."""
        names = [place.counted for places in erasure.PLACES.values() for place in places if place.counted]
        counts = dict.fromkeys([*names, "chunks"], 0)
        for step in erasure.PLACES:
            for place, rows in self.found(step):
                if place.counted:
                    counts[place.counted] += len(rows)
        for _, db in self.indexes():
            counts["chunks"] += sum(erasure.files_with_passages(Passages(db), self.wanted).values())
        for kind, _, number in self.files.machine_files(self.wanted):
            counts[kind] = counts.get(kind, 0) + number
        return counts

    def _of_published(self) -> Wanted:
        """Published copies go by their text and session: their row numbers are not the group's own."""
        return replace(self.wanted, keys={})

    def _database(self, step: str) -> SqliteDatabase | None:
        if step == "published":
            return self.published
        if step == "messages":
            return self.messages
        name = erasure.DATABASES.get(step, step)
        return self.database(name) if self.group.has(name) else None

    def _parameters(self, step: str) -> dict[str, str]:
        exchanges = self.exchanges() if step == "lessons" else []
        name, chats = self.group.scope.group, []
        if step == "messages" and self.messages is not None:
            chats = erasure.chats_of(self.messages, name, name == MAIN_GROUP)
        return erasure.parameters(self.wanted, exchanges, name, chats)

    # ---- how it leaves ----

    def erase(self, step: str) -> None:
        """Remove what is found in one step."""
        db = self._database(step)
        if db is not None:
            with _erasing(db).transaction():
                for place, rows in self.found(step):
                    erasure.remove_rows(db, place, rows)
                    if step == "graph" and not place.instead:
                        erasure.remove_names(db, rows)
        if step == "graph":
            self.group.intake.veil(self._tells)

    def _tells(self, name: str, texts: Sequence[str]) -> bool:
        return name in self.wanted.names or any(holds(self.wanted.matcher, text) for text in texts if text)

    def erase_machine_files(self) -> None:
        """Remove it from queues, logs and notes."""
        for kind, path, _ in self.files.machine_files(self.wanted):
            self.files.clean(kind, path, self.wanted)
            self.step(f"file {path.name}")

    def erase_chunks(self, paths: set[str], texts: Sequence[str]) -> None:
        """Files that held it leave the search indexes whole: what is left of them is indexed anew."""
        for name, db in self.indexes():
            passages = Passages(_erasing(db))
            if name == "index":  # rows have left their databases by now, and leave the index with them
                RowReader(passages, self.group.database, self.group.has, Chunking()).read(whole=True)
            stale = {*erasure.files_with_passages(passages, self.wanted), *paths}
            erasure.remove_from_index(passages, self.wanted, sorted(stale), texts)


def _erasing(db: SqliteDatabase) -> SqliteDatabase:
    """The database with deleted rows overwritten at once."""
    db.query("PRAGMA secure_delete = ON")
    return db
