"""Read messages of people and entries into the graph: facts come, change and go with their row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.graph.refresh import VERSION, WAIT_MS
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.exchanges import line_numbers
from nanoclaw_memory.store.table import keep_note, note_of
from nanoclaw_memory.types import CONFIRMED, OWN

if TYPE_CHECKING:
    from nanoclaw_memory.graph.graph import KnowledgeGraph

AT_ONCE = 100  # rows of each kind that are read before a question is answered
READ_BY_MODEL = "/model"  # suffix of the name of an exchange that a language model read
_STATING = ("fact", "context", "project", "person", "decision")  # types of entries


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A text outside of files that may state facts: what a person said, or an entry."""

    path: str  # its name in the graph, like a file's path
    text: str
    moment: str
    origin: str
    project: str = ""
    until: str = ""  # when it expires
    talk: bool = False  # said in a conversation: only plain statements are read
    triples: tuple[Triple, ...] | None = None  # triples that something else extracted


class StatementSource(msgspec.Struct, frozen=True):
    """A table with texts that may state facts, and how its rows are read."""

    name: str  # of the changes in the outbox
    database: str
    columns: str
    key: str
    read: Callable[[Row, str], Statement]


def _exchange(row: Row, now: str) -> Statement:
    from nanoclaw_memory.intake.authorship import read
    from nanoclaw_memory.intake.signs import stated

    number, message, at, project, origin, foreign = row
    # As for lessons: text behind a colon or in quotation marks is not the person's statement.
    own = stated(read(message, known=line_numbers(foreign)).text) if origin in OWN else ""
    return Statement(
        path=f"exchanges/{number}", text=own, moment=at, origin=origin, project=project, talk=True
    )


def _entry(row: Row, now: str) -> Statement:
    _, key, kind, content, at, author, confirmed, status, expires, project = row
    origin = CONFIRMED.get(confirmed) or author
    stating = kind in _STATING and status == "active" and origin in (*OWN, "agent")
    stating = stating and not (expires and expires <= now)
    return Statement(
        path=f"entries/{key}",
        text=content if stating else "",
        moment=at,
        origin=origin,
        project=project,
        until=expires or "",
    )


SOURCES = (
    StatementSource(
        "exchanges",
        "continuity",
        "id, user_message, timestamp, project, origin, foreign_lines",
        "id",
        _exchange,
    ),
    StatementSource(
        "entries",
        "entries",
        "number, id, type, content, created_at, author, confirmed, status, expires_at, project",
        "number",
        _entry,
    ),
)


class StatementReader(msgspec.Struct, frozen=True):
    """Read changed conversations and entries into one group's graph."""

    graph: KnowledgeGraph
    database: Callable[[str], Database]
    has: Callable[[str], bool]

    def read(self, whole: bool = False) -> tuple[int, str]:
        """Read what changed; return how many facts changed, and what failed. `whole` continues until nothing is
        left.
        """
        changed = 0
        for source in SOURCES:
            if not self.has(source.database):
                continue
            try:
                while True:
                    done, left = self._read(source)
                    changed += done
                    if not (left and whole):
                        break
            except StoreError as error:  # busy, read-only or damaged: answer from what is stored
                return changed, f"{source.name} were not read into the graph: {error}"
        return changed, ""

    def _read(self, source: StatementSource) -> tuple[int, bool]:
        """Read the next rows of one source; return how many facts changed, and whether there is more."""
        db = self.database(source.database)
        ((oldest, head),) = db.query("SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM outbox")
        seen, above = self._cursor(source)
        if seen == head and above < 0:
            return 0, False
        if seen < oldest - 1 or seen > head:  # never read, or the file was replaced: a full read is needed
            seen, above = head, 0
        with self.graph.db.transaction(WAIT_MS):
            numbers, cursor = _next_rows(db, source, seen, above, head)
            changed = sum(self._read_rows(source, db, numbers))
            self._keep(source, cursor)
        return changed, cursor != (head, -1)

    def _read_rows(self, source: StatementSource, db: Database, numbers: Sequence[int]) -> Iterator[int]:
        """Read these rows; what deleted ones stated is retired."""
        now = stamp(self.graph.clock.now())
        chosen = ", ".join(map(str, numbers))
        sql = f"SELECT {source.columns} FROM {source.name} WHERE {source.key} IN ({chosen}) ORDER BY {source.key}"  # noqa: S608
        rows = db.query(sql)
        for row in rows:
            done = self.graph.take_in(source.read(row, now))
            yield done.added + done.retired
        if len(rows) < len(numbers):
            known = self.graph.statements_in(source.name)
            there = {str(row[0]) for row in db.query(f"SELECT id FROM {source.name}")}  # noqa: S608
            for path in (path for path in known if path.split("/")[1] not in there):
                yield self.graph.take_in(Statement(path=path, text="", moment=now, origin="owner")).retired

    def _cursor(self, source: StatementSource) -> tuple[int, int]:
        kept = note_of(self.graph.db, "graph_state", _key(source)) or "0 0 0"
        version, seq, above = map(int, kept.split())
        return (seq, above) if version == VERSION else (-1, 0)

    def _keep(self, source: StatementSource, cursor: tuple[int, int]) -> None:
        keep_note(self.graph.db, "graph_state", _key(source), f"{VERSION} {cursor[0]} {cursor[1]}")


def _next_rows(
    db: Database, source: StatementSource, seen: int, above: int, head: int
) -> tuple[list[int], tuple[int, int]]:
    """Return the rows to read, and the cursor after them: the last change read, and the last row of a full read."""
    params = {"kind": source.name, "seen": seen, "above": above, "most": AT_ONCE}
    sql = "SELECT number, seq FROM outbox WHERE seq > :seen AND kind = :kind ORDER BY seq LIMIT :most"
    changes = db.query(sql, params)
    seen = int(changes[-1][1]) if len(changes) == AT_ONCE else head
    numbers = {int(number) for number, _ in changes}
    if above >= 0:
        sql = f"SELECT {source.key} FROM {source.name} WHERE {source.key} > :above ORDER BY 1 LIMIT :most"  # noqa: S608
        more = [int(number) for (number,) in db.query(sql, params)]
        numbers, above = numbers.union(more), (more[-1] if len(more) == AT_ONCE else -1)
    return sorted(numbers), (seen, above)


def _key(source: StatementSource) -> str:
    return f"cursor:{source.name}"
