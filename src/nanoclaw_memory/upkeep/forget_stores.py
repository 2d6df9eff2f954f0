"""The stores of one group that can hold a text: what is found in each of them, and how it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.store import erasure
from nanoclaw_memory.store.chunks import Chunks
from nanoclaw_memory.store.erasure import Place, Row, Wanted
from nanoclaw_memory.store.phrases import Words, holds, is_cut
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
        self.database = group.database
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


class Stores:
    """Finds and removes; `wanted` may grow while pages are looked at."""

    def __init__(self, targets: ForgetTargets) -> None:
        self.at = targets
        self.group = targets.group
        self.wanted = Wanted()
        self._spoken: list[Row] | None = None  # the exchanges that go, as long as they may be known

    def erasers(self) -> dict[str, Callable[[], None]]:
        """How each store is cleaned, in order; lessons come from exchanges, so they go before them."""
        return {
            "machine files": self._erase_machine_files,
            "published": self._erase_published,
            "messages": self._erase_messages,
            "sdk": lambda: self._erase_plain("sdk", erasure.SDK),
            "lessons": self._erase_lessons,
            "continuity": self._erase_continuity,
            "graph": self._erase_graph,
            "entries": self._erase_entries,
        }

    # ---- what is found ----

    def found(
        self, database: str, places: Sequence[Place], wanted: Wanted | None = None
    ) -> Iterator[tuple[Place, Row]]:
        if not self.group.has(database):
            return
        for place in places:
            for row in erasure.rows_of(self.at.database(database), place, wanted or self.wanted):
                yield place, row

    def cut_texts(self) -> Iterator[str]:
        """What is left of longer texts where they were cut off; a fingerprint of the whole does not know them."""
        if not self.wanted.matcher.may_be_cut:
            return
        every = [row for _, rows in self._messages() for row in rows]
        for rows in (*self.graph().values(), *self._lessons().values()):
            every += rows
        for name, places in (
            ("entries", erasure.ENTRIES),
            ("continuity", erasure.CONTINUITY),
            ("sdk", erasure.SDK),
        ):
            every += [row for _, row in self.found(name, places)]
        yield from (text for row in every for text in row.texts if is_cut(self.wanted.matcher, text))

    def look_again(self) -> None:
        """Others may have written since; from the tombstones on nothing wanted comes in."""
        self._spoken = None

    def _exchanges(self) -> list[Row]:
        if self._spoken is None:
            self._spoken = [row for _, row in self.found("continuity", erasure.CONTINUITY[:1])]
        return self._spoken

    def topics(self) -> frozenset[Words]:
        """What the exchanges that go were about."""
        exchanges = self._exchanges()
        return erasure.topics_of(self.at.database("continuity"), exchanges) if exchanges else frozenset()

    def graph(self) -> dict[str, list[Row]]:
        if not self.group.has("facts"):
            return {}
        kept = self.group.intake.tombstones()
        values = kept.forgotten_values() if kept is not None else set()
        return erasure.graph_rows(self.at.database("facts"), self.wanted, values)

    def graph_values(self) -> list[tuple[str, str, str]]:
        """Name, key and digest of the facts and relations that go."""
        found = self.graph()
        return list(erasure.graph_marks(self.at.database("facts"), found)) if found else []

    def _lessons(self) -> dict[str, list[Row]]:
        if not self.group.has("facts"):
            return {}
        db, exchanges = self.at.database("facts"), self._exchanges()
        found = {
            place.table: {row.key: row for row in erasure.rows_of(db, place, self.wanted)}
            for place in erasure.LESSONS
        }
        for table, rows in (
            ("growth_vectors", erasure.lessons_from(db, exchanges)),
            ("vector_outcomes", erasure.outcomes_of(db, exchanges)),
        ):
            found[table] = {row.key: row for row in rows} | found[table]
        return {table: list(rows.values()) for table, rows in found.items()}

    def _chats(self) -> dict[str, object]:
        group = self.group.scope.group
        if self.at.messages is None:
            return {}
        chats = erasure.chats_of(self.at.messages, group, group == MAIN_GROUP)
        return {"chats": json.dumps(chats), "group": group}

    def _messages(self) -> list[tuple[Place, list[Row]]]:
        if self.at.messages is None:
            return []
        params = self._chats()
        chats = json.loads(str(params["chats"]))
        own = erasure.messages_of_session(self.at.messages, self.wanted.session, chats)
        wanted = replace(self.wanted, keys={**self.wanted.keys, "messages": own})
        return [
            (place, erasure.rows_of(self.at.messages, place, wanted, params)) for place in erasure.MESSAGES
        ]

    def indexes(self) -> Iterator[tuple[str, SqliteDatabase]]:
        if self.group.has("index"):
            yield "index", self.at.database("index")
        yield from self.at.corpora.items()

    def counted(self) -> dict[str, int]:
        """How much is found in each store."""
        names = {
            "merges": "wordings",
            "growth_vectors": "lessons",
            "history": "sdk_items",
            "items": "sdk_items",
        }
        plain = {"entries", "proposals", "exchanges", "facts", "relations", "aliases", "messages"}
        counts = dict.fromkeys(
            "entries wordings proposals published facts relations aliases lessons exchanges turn_notes"
            " sdk_items messages tasks chunks".split(),
            0,
        )

        def count(table: str, number: int) -> None:
            talk = "messages" if table in ("chats", "registered_groups") else "turn_notes"
            otherwise = "tasks" if "task" in table else talk
            name = names.get(table, table if table in plain else otherwise)
            counts[name] = counts.get(name, 0) + number

        for database, places in (
            ("entries", erasure.ENTRIES),
            ("continuity", erasure.CONTINUITY),
            ("sdk", erasure.SDK),
        ):
            for place, _ in self.found(database, places):
                count(place.table, 1)
        for table, rows in (*self.graph().items(), *self._lessons().items()):
            count(table, len(rows))
        for place, rows in self._messages():
            count(place.table, len(rows))
        if self.at.published is not None:
            rows = erasure.rows_of(self.at.published, erasure.ENTRIES[0], self._of_published())
            counts["published"] = len(rows)
        for _, db in self.indexes():
            counts["chunks"] += sum(erasure.files_with_chunks(Chunks(db), self.wanted).values())
        for kind, _, number in self.at.files.machine_files(self.wanted):
            counts[kind] = counts.get(kind, 0) + number
        return counts

    def _of_published(self) -> Wanted:
        """Published copies go by their text and session: their row numbers are not the group's own."""
        return replace(self.wanted, keys={})

    # ---- how it leaves ----

    def _erase_machine_files(self) -> None:
        for kind, path, _ in self.at.files.machine_files(self.wanted):
            self.at.files.clean(kind, path, self.wanted)
            self.at.step(f"file {path.name}")

    def _erase_published(self) -> None:
        if self.at.published is not None:
            db = self.at.published
            with _erasing(db).transaction():
                erasure.remove_entries(db, erasure.rows_of(db, erasure.ENTRIES[0], self._of_published()))

    def _erase_messages(self) -> None:
        if self.at.messages is None:
            return
        with _erasing(self.at.messages).transaction():
            for place, rows in self._messages():
                if place.table == "scheduled_tasks" and not place.instead:
                    for table in ("task_run_logs", "task_leases"):
                        erasure.remove_rows(self.at.messages, Place(table, "task_id", ()), rows)
                if place.table == "messages":
                    erasure.remove_replies(self.at.messages, rows)
                erasure.remove_rows(self.at.messages, place, rows)

    def _erase_plain(self, database: str, places: Sequence[Place]) -> None:
        if not self.group.has(database):
            return
        db = self.at.database(database)
        with _erasing(db).transaction():
            for place in places:
                erasure.remove_rows(db, place, erasure.rows_of(db, place, self.wanted))

    def _erase_lessons(self) -> None:
        if self.group.has("facts"):
            db = self.at.database("facts")
            with _erasing(db).transaction():
                found = self._lessons()
                for place in erasure.LESSONS:
                    erasure.remove_rows(db, place, found[place.table])

    def _erase_continuity(self) -> None:
        self._erase_plain("continuity", erasure.CONTINUITY)
        if self.group.has("continuity"):
            db = self.at.database("continuity")
            with db.transaction():
                db.execute("DELETE FROM graph_answers")  # a cache of one minute

    def _erase_graph(self) -> None:
        if self.group.has("facts"):
            db = self.at.database("facts")
            with _erasing(db).transaction():
                erasure.remove_graph(db, self.graph())
                erasure.clear_sources(db, self.wanted)
        self.group.intake.veil(self._tells)

    def _tells(self, name: str, texts: Sequence[str]) -> bool:
        return name in self.wanted.names or any(holds(self.wanted.matcher, text) for text in texts if text)

    def _erase_entries(self) -> None:
        if not self.group.has("entries"):
            return
        db = self.at.database("entries")
        with _erasing(db).transaction():
            for place in erasure.ENTRIES[1:]:
                erasure.remove_rows(db, place, erasure.rows_of(db, place, self.wanted))
            erasure.remove_entries(db, erasure.rows_of(db, erasure.ENTRIES[0], self.wanted))

    def erase_chunks(self, paths: set[str], texts: Sequence[str]) -> None:
        """Files that held it leave the search indexes whole: what is left of them is indexed anew."""
        for _, db in self.indexes():
            chunks = Chunks(db)
            found = erasure.files_with_chunks(chunks, self.wanted)
            stale = {*found, *paths, *(path for path in chunks.files() if path.startswith("memory/domains/"))}
            erasure.remove_from_index(Chunks(_erasing(db)), sorted(stale), texts)


def _erasing(db: SqliteDatabase) -> SqliteDatabase:
    """The database with deleted rows overwritten at once."""
    db.query("PRAGMA secure_delete = ON")
    return db
