"""Forget for good: by id, entity, session or text, out of every store, file and copy of one group.

A tombstone comes first and what the request is found by goes last: killed at any point, the same command
completes the work. Free pages, keyword segments and the WAL of every touched database are written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.store import erasure
from nanoclaw_memory.store.chunks import Chunks
from nanoclaw_memory.store.erasure import Place, Row, Wanted
from nanoclaw_memory.store.names import NameTable, fold
from nanoclaw_memory.store.phrases import Either, Phrases
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.tombstones import TombstoneTable
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import MAIN_GROUP, Entry, Forgotten, ForgottenPage
from nanoclaw_memory.upkeep.forget_files import Files, PageChange
from nanoclaw_memory.upkeep.house import House
from nanoclaw_memory.workspace.files import replace_text

PENDING = "forget.pending"
MAX_TEXT = 20_000
# The store by which a request is found; "again" is what tombstones keep away.
LAST = {"id": "entries", "entity": "graph", "session": "continuity", "text": "entries", "again": "entries"}

Consent = Callable[[Sequence[ForgottenPage]], bool]


@dataclass(frozen=True)
class Asked:
    """What a person wants forgotten; exactly one of them. `again`: all that was forgotten before."""

    id: str = ""
    entity: str = ""
    session: str = ""
    text: str = ""
    again: bool = False

    @property
    def by(self) -> str:
        """Which of them it is."""
        given = [name for name in LAST if getattr(self, name)]
        if len(given) != 1:
            raise InvalidValue(
                "say what to forget, in one way", "one of --id, --entity, --session and --text"
            )
        return given[0]

    @property
    def value(self) -> str:
        return str(getattr(self, self.by))


@dataclass(frozen=True)
class Premises:
    """All of one group that can hold a text."""

    house: House
    files: Files
    database: Callable[[str], SqliteDatabase]
    messages: SqliteDatabase | None = None
    published: SqliteDatabase | None = None
    corpora: Mapping[str, SqliteDatabase] | None = None
    step: Callable[[str], None] = lambda name: None  # told the name of every step, so that tests can stop
    wait_ms: int = 5_000


class Forgetting:
    """One request to forget."""

    def __init__(self, premises: Premises, asked: Asked) -> None:
        self.at = premises
        self.asked = asked
        self.house = premises.house
        self.pending = self.house.data / PENDING
        self.by = asked.by
        self.wanted, self.kept = self._resolved()

    def preview(self) -> Forgotten:
        """What would go; changes nothing."""
        return self._result(self._pages(self._changes(), False), self._counted(), dry_run=True)

    def carry_out(self, agreed: Consent, checkpoints: bool) -> Forgotten:
        """Forget; pages only if `agreed` says so when it is shown what leaves them."""
        changes = self._changes()
        counted = self._counted()
        remove_pages = not changes or agreed(self._pages(changes, False))
        replace_text(self.pending, "")
        self.at.step("pending")
        self._tombstones()
        self.at.step("tombstones")
        self._erase(changes if remove_pages else [])
        held, unreadable = self.at.files.checkpoints(self.wanted)
        if checkpoints:
            for name in held:
                self.at.files.remove_checkpoint(name)
                self.at.step(f"checkpoint {name}")
            counted["checkpoints"] = len(held)
        self._audit(counted)
        self.at.step("audit")
        unfinished = self._scrub()
        result = self._result(self._pages(changes, remove_pages), counted)
        kept = () if checkpoints else tuple(held)
        return replace(result, checkpoints=(*kept, *unreadable), unfinished=tuple(unfinished))

    # ---- what is asked ----

    def _resolved(self) -> tuple[Wanted, Phrases]:
        """What to look for, and what to keep away from now on."""
        if len(self.asked.value) > MAX_TEXT:
            raise InvalidValue(
                f"the text has {len(self.asked.value):,} characters", "give the sentence that tells it"
            )
        wanted, kept = getattr(self, f"_by_{self.by}")()
        if self.pending.exists():  # an earlier run was killed: what it had kept away goes too
            marks = TombstoneTable(self.at.database("facts")).marks()
            wanted = replace(wanted, matcher=Either(wanted.matcher, marks))
        return wanted, kept

    def _by_text(self) -> tuple[Wanted, Phrases]:
        phrases = Phrases.asked(self.asked.text)
        if not phrases:
            raise InvalidValue("the text holds no words", "give the words that are to be forgotten")
        return Wanted(phrases), phrases

    def _by_again(self) -> tuple[Wanted, Phrases]:
        return Wanted(TombstoneTable(self.at.database("facts")).marks()), Phrases()

    def _by_id(self) -> tuple[Wanted, Phrases]:
        texts = self._texts_of_entry() if self.house.has("entries") else []
        if not texts and not self.pending.exists():
            raise NotFound(f"there is no entry {self.asked.id[:80]!r}", "see: ncm entries list --status all")
        phrases = Phrases.met(texts, longest=10_000)
        return Wanted(phrases, keys={"entries": self._chain_numbers()}), phrases

    def _by_entity(self) -> tuple[Wanted, Phrases]:
        name = fold(self.asked.entity)
        if not name or not Phrases.asked(self.asked.entity):
            raise InvalidValue("the entity is empty", 'name it: ncm forget --entity "Anna Kowalski"')
        names, labels = {name}, {self.asked.entity}
        if self.house.has("facts"):
            table = NameTable(self.at.database("facts"))
            meaning = table.meanings([name])[name]
            if not meaning.ambiguous:
                names |= set(meaning.names)
                labels |= set(table.labels(meaning.names).values())
        wanted = Wanted(Phrases.asked(*labels), names=frozenset(names))
        return wanted, Phrases.met(self._texts(wanted))

    def _by_session(self) -> tuple[Wanted, Phrases]:
        session = Wanted(session=self.asked.session)
        entries = [row.texts[0] for _, row in self._found("entries", erasure.ENTRIES[:1], session)]
        exchanges = self._found("continuity", erasure.CONTINUITY[:1], session)
        said = [text for _, row in exchanges for text in row.texts]
        phrases = Phrases.met(entries, longest=10_000)
        return Wanted(phrases, session=self.asked.session), phrases | Phrases.met(said)

    def _chain(self) -> list[Entry]:
        """The entry and every wording that it replaced."""
        if not self.house.has("entries"):
            return []
        entry = self.house.entries.room.table.get(self.asked.id)
        return self.house.entries.chain(entry, depth=1_000) if entry else []

    def _texts_of_entry(self) -> list[str]:
        table = self.house.entries.room.table
        chain = self._chain()
        merged = [str(one["content"]) for entry in chain for one in table.merges_of(entry.id)]
        return [*(entry.content for entry in chain), *merged]

    def _chain_numbers(self) -> frozenset[int]:
        ids = json.dumps([entry.id for entry in self._chain()])
        if not self.house.has("entries"):
            return frozenset()
        rows = self.at.database("entries").query(
            "SELECT number FROM entries WHERE id IN (SELECT value FROM json_each(:ids))", {"ids": ids}
        )
        return frozenset(int(row[0]) for row in rows)

    # ---- what is found ----

    def _found(
        self, database: str, places: Sequence[Place], wanted: Wanted | None = None
    ) -> Iterator[tuple[Place, Row]]:
        if not self.house.has(database):
            return
        for place in places:
            for row in erasure.rows_of(self.at.database(database), place, wanted or self.wanted):
                yield place, row

    def _texts(self, wanted: Wanted) -> Iterator[str]:
        """What will be removed, in its own words: of that a tombstone keeps fingerprints."""
        for name, places in (("entries", erasure.ENTRIES[:2]), ("continuity", erasure.CONTINUITY[:1])):
            for _, row in self._found(name, places, wanted):
                yield from row.texts
        for change in self.at.files.page_changes(wanted):
            # A heading may be a mere name, of which something new may be said one day.
            yield from (line.lstrip("-*+> \t") for line in change.lines if not line.startswith("#"))

    def _exchanges(self) -> list[Row]:
        return [row for _, row in self._found("continuity", erasure.CONTINUITY[:1])]

    def _graph(self) -> dict[str, list[Row]]:
        if not self.house.has("facts"):
            return {}
        return erasure.graph_rows(self.at.database("facts"), self.wanted)

    def _lessons(self) -> dict[str, list[Row]]:
        if not self.house.has("facts"):
            return {}
        db, exchanges = self.at.database("facts"), self._exchanges()
        found = {
            place.table: {row.key: row for row in erasure.rows_of(db, place, self.wanted)}
            for place in erasure.LESSONS
        }
        found["growth_vectors"] |= {row.key: row for row in erasure.lessons_from(db, exchanges)}
        found["vector_outcomes"] |= {row.key: row for row in erasure.outcomes_of(db, exchanges)}
        return {table: list(rows.values()) for table, rows in found.items()}

    def _chats(self) -> dict[str, object]:
        group = self.house.scope.group
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

    def _indexes(self) -> Iterator[tuple[str, SqliteDatabase]]:
        if self.house.has("index"):
            yield "index", self.at.database("index")
        yield from (self.at.corpora or {}).items()

    def _changes(self) -> list[PageChange]:
        """What leaves pages; the facts that those lines say are marked to go with them."""
        changes = self.at.files.page_changes(self.wanted)
        if self.house.has("facts"):
            keys = {name: set(found) for name, found in self.wanted.keys.items()}
            for change in changes:
                said = self.house.graph.said_on(change.relative, change.before, change.gone)
                keys.setdefault("facts", set()).update(said["fact"])
                keys.setdefault("relations", set()).update(said["relation"])
            self.wanted = replace(self.wanted, keys={name: frozenset(found) for name, found in keys.items()})
        return changes

    def _counted(self) -> dict[str, int]:
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
            otherwise = "tasks" if "task" in table else "messages" if table == "chats" else "turn_notes"
            name = names.get(table, table if table in plain else otherwise)
            counts[name] = counts.get(name, 0) + number

        for database, places in (
            ("entries", erasure.ENTRIES),
            ("continuity", erasure.CONTINUITY),
            ("sdk", erasure.SDK),
        ):
            for place, _ in self._found(database, places):
                count(place.table, 1)
        for table, rows in (*self._graph().items(), *self._lessons().items()):
            count(table, len(rows))
        for place, rows in self._messages():
            count(place.table, len(rows))
        if self.at.published is not None:
            rows = erasure.rows_of(self.at.published, erasure.ENTRIES[0], self._of_published())
            counts["published"] = len(rows)
        for _, db in self._indexes():
            counts["chunks"] += sum(erasure.files_with_chunks(Chunks(db), self.wanted).values())
        for kind, _, number in self.at.files.machine_files(self.wanted):
            counts[kind] = counts.get(kind, 0) + number
        return counts

    def _of_published(self) -> Wanted:
        """Published copies go by their text and session: their row numbers are not the group's own."""
        return replace(self.wanted, keys={})

    # ---- what is done ----

    def _tombstones(self) -> None:
        db = self.at.database("facts")
        table, moment = TombstoneTable(db), self.house.moment()
        with db.transaction():
            table.forget(self.kept, f"forgotten by {self.by}", moment)
            for name, slot, digest in list(erasure.graph_marks(db, self._graph())):
                table.forget_value(name, slot, digest, f"forgotten by {self.by}", moment)

    def _erase(self, changes: Sequence[PageChange]) -> None:
        """Every store in its turn; the one that the request is found by goes last."""
        steps: dict[str, Callable[[], None]] = {
            "machine files": self._erase_machine_files,
            "published": self._erase_published,
            "messages": self._erase_messages,
            "sdk": lambda: self._erase_plain("sdk", erasure.SDK),
            "lessons": self._erase_lessons,
            "continuity": self._erase_continuity,
            "graph": self._erase_graph,
            "entries": self._erase_entries,
        }
        last = steps.pop(LAST[self.by])
        paths = {change.relative for change in changes}
        for change in changes:
            self.at.files.apply(change, self.wanted)
            self.at.step(f"page {change.relative}")
        for name, erase in (*steps.items(), (LAST[self.by], last)):
            erase()
            self.at.step(name)
        self._domains()
        self.at.step("domains")
        self._erase_chunks(paths)
        self.at.step("chunks")

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
        if not self.house.has(database):
            return
        db = self.at.database(database)
        with _erasing(db).transaction():
            for place in places:
                erasure.remove_rows(db, place, erasure.rows_of(db, place, self.wanted))

    def _erase_lessons(self) -> None:
        if self.house.has("facts"):
            db = self.at.database("facts")
            with _erasing(db).transaction():
                found = self._lessons()
                for place in erasure.LESSONS:
                    erasure.remove_rows(db, place, found[place.table])

    def _erase_continuity(self) -> None:
        self._erase_plain("continuity", erasure.CONTINUITY)
        if self.house.has("continuity"):
            db = self.at.database("continuity")
            with db.transaction():
                db.execute("DELETE FROM graph_answers")  # a cache of one minute

    def _erase_graph(self) -> None:
        if self.house.has("facts"):
            db = self.at.database("facts")
            with _erasing(db).transaction():
                erasure.remove_graph(db, self._graph())

    def _erase_entries(self) -> None:
        if not self.house.has("entries"):
            return
        db = self.at.database("entries")
        with _erasing(db).transaction():
            for place in erasure.ENTRIES[1:]:
                erasure.remove_rows(db, place, erasure.rows_of(db, place, self.wanted))
            erasure.remove_entries(db, erasure.rows_of(db, erasure.ENTRIES[0], self.wanted))

    def _domains(self) -> None:
        """Domain files are written anew; one that a person is editing has been offered as a page."""
        if not self.house.has("entries"):
            return
        domains = self.house.entries.room.domains
        for kind in self.house.entries.room.visible_types():
            page = domains.read(kind)
            if page is not None and not page.edited:
                domains.discard_edits(kind)

    def _erase_chunks(self, paths: set[str]) -> None:
        texts = [" ".join(phrase) for phrase in (*self.kept.inside, *self.kept.whole)]
        for _, db in self._indexes():
            chunks = Chunks(db)
            found = erasure.files_with_chunks(chunks, self.wanted)
            stale = {*found, *paths, *(path for path in chunks.files() if path.startswith("memory/domains/"))}
            erasure.remove_from_index(Chunks(_erasing(db)), sorted(stale), texts)

    def _audit(self, counts: Mapping[str, int]) -> None:
        """The log says that something was forgotten and how much, never what."""
        room = self.house.entries.room
        about = {"text": fingerprint(self.asked.value)} if self.by == "text" else {}
        with room.db.transaction():
            room.audit(
                "forget",
                self.asked.id,
                by=self.by,
                removed={name: number for name, number in counts.items() if number},
                **about,
            )

    def _scrub(self) -> list[str]:
        """Write every database anew; gives those that another process keeps from it."""
        found: dict[Path, SqliteDatabase] = {}
        for name in ("facts", "entries", "continuity", "sdk"):
            if self.house.has(name):
                found[self.at.database(name).path] = self.at.database(name)
        for db in (self.at.messages, self.at.published, *(db for _, db in self._indexes())):
            if db is not None:
                found[db.path] = db
        unfinished = []
        for path, db in found.items():
            if not db.scrub(self.at.wait_ms):
                unfinished.append(path.relative_to(self.house.home.root).as_posix())
            self.at.step(f"scrub {path.name}")
        if not unfinished:
            self.pending.unlink(missing_ok=True)
        return unfinished

    # ---- what is told ----

    def _pages(self, changes: Sequence[PageChange], removed: bool) -> tuple[ForgottenPage, ...]:
        return tuple(ForgottenPage(one.relative, len(one.gone), one.diff, removed) for one in changes)

    def _result(
        self, pages: tuple[ForgottenPage, ...], counts: dict[str, int], dry_run: bool = False
    ) -> Forgotten:
        lines = sum(page.lines for page in pages if page.removed or dry_run)
        held, unreadable = self.at.files.checkpoints(self.wanted) if dry_run else ([], [])
        left = [*self.at.files.names_left(self.wanted), *self.at.files.logs_left(self.wanted)]
        return Forgotten(
            {**counts, "lines": lines}, pages, (*held, *unreadable), tuple(left), dry_run=dry_run
        )


def _erasing(db: SqliteDatabase) -> SqliteDatabase:
    """The database with deleted rows overwritten at once."""
    db.query("PRAGMA secure_delete = ON")
    return db
