"""Forgetting in databases: find the rows of one group that contain a text, and remove them."""

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
        self.wanted = Wanted()  # may grow while pages are examined
        self._exchanges: dict[str, list[Row]] = {}  # exchanges to be removed, while they can still be read
        self.database = group.database
        self.chats = group.shared_chats
        for own in (group, self.chats):
            if own is not None:
                own.retrieval.heal()  # nothing could be removed from a damaged index
        self.files = Files(group.home, group.scope.group, group.entries.ledger.domains)

    @cached_property
    def messages(self) -> Database | None:
        """Return the host's database, if it exists."""
        store = self.group.resources.store
        return self.group.host.database if store.has(store.messages) else None

    @cached_property
    def published(self) -> Database | None:
        """Return what the group has published, if anything."""
        name = self.group.scope.group
        found = self.group.resources.published(name)
        return found if found.exists() else None

    @cached_property
    def corpora(self) -> Mapping[str, Database]:
        """Return the databases of the group's domain documents."""
        corpora = self.group.retrieval.corpora
        for name in corpora.names():
            corpora.index(name)
        return corpora.opened

    @property
    def steps(self) -> list[str]:
        """Return the stores in order; those of the group's shared chats follow its own."""
        own = list(erasure.PLACES)
        said = [f"{SHARED}{step}" for step in own if step not in ("published", "messages")]
        return own + said if self.chats is not None else own

    # ---- what is found ----

    def found(self, step: str) -> list[tuple[TextPlace, list[Row]]]:
        """Return the rows that are to be removed in one step."""
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
        """Return the rows of one place, private or of shared chats, that another request would also remove."""
        both = (self._database(name) for name in (step, f"{SHARED}{step}") if name in self.steps)
        given = erasure.parameters(wanted)
        return [row for db in both if db is not None for row in erasure.rows_of(db, place, wanted, given)]

    def cut_texts(self) -> Iterator[str]:
        """Yield the beginnings of longer texts that were cut off; a fingerprint of the whole does not match them."""
        if self.wanted.matcher.may_be_cut:
            every = (row for step in self.steps for _, rows in self.found(step) for row in rows)
            yield from (text for row in every for text in row.texts if is_cut(self.wanted.matcher, text))

    def look_again(self) -> None:
        """Search again: others may have written since. After the tombstones nothing that matches is stored."""
        self._exchanges.clear()

    def exchanges(self, step: str = "continuity") -> list[Row]:
        """Return the exchanges to be removed, private or of shared chats."""
        if step not in self._exchanges:
            db = self._database(step)
            given = erasure.parameters(self.wanted)
            found = erasure.rows_of(db, erasure.EXCHANGE, self.wanted, given) if db is not None else []
            self._exchanges[step] = found
        return self._exchanges[step]

    def statements(self) -> list[str]:
        """Return the graph's names of the exchanges and entries to be removed, from which it may have read facts."""
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
        """Yield name, key and digest of the facts and relations to be removed."""
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
        """Count what is found in each store."""
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
        """Return whether something is found that is changed but not counted: the source of a fact, a note on a turn."""
        return any(rows for step in self.steps for _, rows in self.found(step))

    def shown(self) -> tuple[str, ...]:
        """Return each row to be removed as a line with its kind and text."""
        return tuple(
            f"{place.counted}: {one_line(' | '.join(filter(None, row.texts)))[:SHOWN_CHARS]}"
            for step in self.steps
            for place, rows in self.found(step)
            if place.counted
            for row in rows
        )

    def _wanted(self, step: str) -> Wanted:
        """Return what to remove in one step: row numbers belong to one database, and published copies have their
        own.
        """
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
            row.key
            for place, rows in self.found(step)
            if place.table == "growth_vectors" and not place.instead
            for row in rows
        }
        return [key for (key,) in db.query("SELECT id FROM growth_vectors") if key not in gone] if db else []

    # ---- removal ----

    def erase(self, step: str) -> None:
        """Remove what is found in one step."""
        db = self._database(step)
        if db is not None:
            with db.overwriting().transaction():
                for place, rows in self.found(step):
                    erasure.remove_rows(db, place, rows)
                    if step.endswith("graph") and not place.instead:
                        erasure.remove_names(db, rows)

    def fingerprint_names(self) -> None:
        """Replace revealing names of rejected values by fingerprints; a role without the right is refused."""
        self.group.intake.fingerprint_names(self._is_revealing)

    def _is_revealing(self, name: str, texts: Sequence[str]) -> bool:
        names = {*self.wanted.names, *map(near_digest, self.wanted.names)}
        return name in names or any(holds(self.wanted.matcher, text) for text in texts if text)

    def erase_page_versions(self) -> None:
        """Remove it from the earlier versions of a team's pages; the newest ones equal the files."""

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
        """Remove files that contained it from the search indexes; what remains of them is indexed anew."""
        for name, db in self.indexes():
            passages = Passages(db.overwriting())
            owner = {"index": self.group, f"{SHARED}index": self.chats}.get(name)
            if owner is not None:  # the rows are deleted by now, and leave the index with their databases
                zone = owner.clock.now().tzinfo
                RowReader(passages, owner.database, owner.has, Chunking(), zone).read(whole=True)
            stale = {*erasure.files_with_passages(passages, self.wanted), *paths}
            erasure.remove_from_index(passages, self.wanted, sorted(stale), texts)
