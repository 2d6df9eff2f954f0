"""The stores of one group that can hold a text: what is found in each of them, and how it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.graph.statements import READ_BY_MODEL
from nanoclaw_memory.retrieval.chunker import Chunking
from nanoclaw_memory.retrieval.sources import RowReader
from nanoclaw_memory.store import erasure
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.erasure import Row, TextPlace, Wanted
from nanoclaw_memory.store.facts import near_digest
from nanoclaw_memory.store.pages import PageTable
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.store.phrases import holds, is_cut
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import MAIN_GROUP, SHARED
from nanoclaw_memory.upkeep.forget_files import Files
from nanoclaw_memory.upkeep.forgotten_lines import removed_lines, without

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

SHOWN_CHARS = 200  # of a row in a plan


class ForgetTargets:
    """Every store and file of one group that can contain a text."""

    def __init__(
        self, group: Group, step: Callable[[str], None] = lambda name: None, wait_ms: int = 5_000
    ) -> None:
        self.group = group
        self.step = step  # receives the name of every step, so that tests can stop at any
        self.wait_ms = wait_ms
        self.wanted = Wanted()  # may grow while pages are looked at
        self._exchanges: dict[str, list[Row]] = {}  # those that go, as long as they may be known
        self.database = group.database
        self.chats = group.shared_chats
        for own in (group, self.chats):
            if own is not None:
                own.retrieval.heal()  # of a damaged index nothing could be removed
        self.files = Files(group.home, group.scope.group, group.entries.ledger.domains)

    @cached_property
    def messages(self) -> Database | None:
        """The host's database, where there is one."""
        store = self.group.resources.store
        return self.group.host.database if store.has(store.messages) else None

    @cached_property
    def published(self) -> Database | None:
        """What the group has published, where it has."""
        name = self.group.scope.group
        found = self.group.resources.published(name)
        return found if found.exists() else None

    @cached_property
    def corpora(self) -> Mapping[str, Database]:
        """The databases of the group's domain documents."""
        corpora = self.group.retrieval.corpora
        for name in corpora.names():
            corpora.index(name)
        return corpora.opened

    @property
    def steps(self) -> list[str]:
        """The stores in turn; those of the group's shared chats follow its own."""
        own = list(erasure.PLACES)
        said = [f"{SHARED}{step}" for step in own if step not in ("published", "messages")]
        return own + said if self.chats is not None else own

    # ---- what is found ----

    def found(self, step: str) -> list[tuple[TextPlace, list[Row]]]:
        """The rows of one step that are to go."""
        db = self._database(step)
        if db is None:
            return []
        wanted, name = self._wanted(step), step.removeprefix(SHARED)
        if name == "graph" and (kept := self.group.intake.tombstones()) is not None:
            keys = erasure.kept_away_keys(db, kept.forgotten_values())
            own = {table: wanted.keys.get(table, frozenset()) | found for table, found in keys.items()}
            wanted = replace(wanted, keys={**wanted.keys, **own})
        given = self._parameters(step)
        return [(place, erasure.rows_of(db, place, wanted, given)) for place in erasure.PLACES[name]]

    def rows(self, step: str, place: TextPlace, wanted: Wanted) -> list[Row]:
        """The rows of one place, in private and of shared chats, that another request would take along."""
        both = (self._database(name) for name in (step, f"{SHARED}{step}") if name in self.steps)
        given = erasure.parameters(wanted)
        return [row for db in both if db is not None for row in erasure.rows_of(db, place, wanted, given)]

    def cut_texts(self) -> Iterator[str]:
        """What is left of longer texts where they were cut off; a fingerprint of the whole does not know them."""
        if self.wanted.matcher.may_be_cut:
            every = (row for step in self.steps for _, rows in self.found(step) for row in rows)
            yield from (text for row in every for text in row.texts if is_cut(self.wanted.matcher, text))

    def look_again(self) -> None:
        """Others may have written since; from the tombstones on nothing wanted comes in."""
        self._exchanges.clear()

    def exchanges(self, step: str = "continuity") -> list[Row]:
        """The exchanges that are to go, said in private or in shared chats."""
        if step not in self._exchanges:
            db = self._database(step)
            given = erasure.parameters(self.wanted)
            found = erasure.rows_of(db, erasure.EXCHANGE, self.wanted, given) if db is not None else []
            self._exchanges[step] = found
        return self._exchanges[step]

    def statements(self) -> list[str]:
        """What the graph calls the exchanges and entries that go, and from which it may have read facts."""
        exchanges = [f"exchanges/{row.key}{by}" for row in self.exchanges() for by in ("", READ_BY_MODEL)]
        if (db := self._database("entries")) is None:
            return exchanges
        numbers = [row.key for place, rows in self.found("entries") if place is erasure.ENTRY for row in rows]
        sql = "SELECT id FROM entries WHERE number IN (SELECT value FROM json_each(:numbers))"
        return [
            *exchanges,
            *(f"entries/{one}" for (one,) in db.query(sql, {"numbers": json.dumps(numbers)})),
        ]

    def graph_values(self) -> Iterator[tuple[str, str, str]]:
        """Name, key and digest of the facts and relations that go."""
        for step in ("graph", f"{SHARED}graph"):
            db = self._database(step) if step in self.steps else None
            if db is not None:
                found = {place.table: rows for place, rows in self.found(step) if not place.instead}
                yield from erasure.graph_values(db, found)

    def indexes(self) -> Iterator[tuple[str, Database]]:
        for name in ("index", f"{SHARED}index"):
            if self.group.resources.has(name):
                yield name, self.group.resources.database(name)
        yield from self.corpora.items()

    def counted(self) -> dict[str, int]:
        """How much is found in each store."""
        names = [place.counted for places in erasure.PLACES.values() for place in places if place.counted]
        counts = dict.fromkeys([*names, "chunks"], 0)
        for step in self.steps:
            for place, rows in self.found(step):
                if place.counted:
                    counts[place.counted] += len(rows)
        for _, db in self.indexes():
            counts["chunks"] += sum(erasure.files_with_passages(Passages(db), self.wanted).values())
        for kind, _, number in self.files.machine_files(self.wanted):
            counts[kind] = counts.get(kind, 0) + number
        return counts

    def labels(self) -> bool:
        """Whether something is found that is changed and not counted: the source of a fact, a note on a turn."""
        return any(rows for step in self.steps for _, rows in self.found(step))

    def shown(self) -> tuple[str, ...]:
        """Each row that is to go, in a line: of which kind it is, and its words."""
        return tuple(
            f"{place.counted}: {one_line(' | '.join(filter(None, row.texts)))[:SHOWN_CHARS]}"
            for step in self.steps
            for place, rows in self.found(step)
            if place.counted
            for row in rows
        )

    def _wanted(self, step: str) -> Wanted:
        """What is to go in one step: row numbers belong to one database, and published copies have their own."""
        shared, keys = step.startswith(SHARED), self.wanted.keys.items()
        own = {name.removeprefix(SHARED): found for name, found in keys if name.startswith(SHARED) == shared}
        return replace(self.wanted, keys={} if step == "published" else own)

    def _database(self, step: str) -> Database | None:
        if step == "published":
            return self.published
        if step == "messages":
            return self.messages
        owner = self.chats if step.startswith(SHARED) else self.group
        name = step.removeprefix(SHARED)
        name = erasure.DATABASES.get(name, name)
        return owner.database(name) if owner is not None and owner.has(name) else None

    def _parameters(self, step: str) -> dict[str, str]:
        exchanges = self.exchanges(step.replace("lessons", "continuity")) if "lessons" in step else []
        name, chats = self.group.scope.group, []
        if step == "messages" and self.messages is not None:
            chats = erasure.chats_of(self.messages, name, name == MAIN_GROUP)
        lessons = self._lessons_left(step.replace("entries", "lessons")) if "entries" in step else []
        return erasure.parameters(self.wanted, exchanges, group=name, chats=chats, lessons=lessons)

    def _lessons_left(self, step: str) -> list[int]:
        db = self._database(step)
        gone = {
            row.key for place, rows in self.found(step) if place.table == "growth_vectors" for row in rows
        }
        return [key for (key,) in db.query("SELECT id FROM growth_vectors") if key not in gone] if db else []

    # ---- how it leaves ----

    def erase(self, step: str) -> None:
        """Remove what is found in one step."""
        db = self._database(step)
        if db is not None:
            with db.overwriting().transaction():
                for place, rows in self.found(step):
                    erasure.remove_rows(db, place, rows)
                    if step.endswith("graph") and not place.instead:
                        erasure.remove_names(db, rows)

    def veil(self) -> None:
        """Put fingerprints in the place of names of rejected values that tell; a role that may not is refused."""
        self.group.intake.veil(self._tells)

    def _tells(self, name: str, texts: Sequence[str]) -> bool:
        names = {*self.wanted.names, *map(near_digest, self.wanted.names)}
        return name in names or any(holds(self.wanted.matcher, text) for text in texts if text)

    def erase_page_versions(self) -> None:
        """Remove it from the earlier versions of a team's pages; the newest ones are what the files say."""

        def without_it(path: str, text: str) -> str:
            return without(path, text, removed_lines(path, text, self.wanted))

        for db in self.group.team_pages():
            PageTable(db).rewrite_earlier(without_it)

    def erase_machine_files(self) -> None:
        """Remove it from queues, logs and notes."""
        for kind, path, _ in self.files.machine_files(self.wanted):
            self.files.clean(kind, path, self.wanted)
            self.step(f"file {path.name}")

    def erase_chunks(self, paths: set[str], texts: Sequence[str]) -> None:
        """Files that held it leave the search indexes whole: what is left of them is indexed anew."""
        for name, db in self.indexes():
            passages = Passages(db.overwriting())
            owner = {"index": self.group, f"{SHARED}index": self.chats}.get(name)
            if owner is not None:  # rows have left their databases by now, and leave the index with them
                zone = owner.clock.now().tzinfo
                RowReader(passages, owner.database, owner.has, Chunking(), zone).read(whole=True)
            stale = {*erasure.files_with_passages(passages, self.wanted), *paths}
            erasure.remove_from_index(passages, self.wanted, sorted(stale), texts)
