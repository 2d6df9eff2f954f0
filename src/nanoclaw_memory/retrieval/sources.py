"""Read rows of the group's databases as passages: exchanges, entries, facts, relations, lessons."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, tzinfo

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import local_day
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.chunker import QUOTED, Chunking, pieces_of
from nanoclaw_memory.retrieval.prepare import prepared_row
from nanoclaw_memory.retrieval.statement_pairs import FUNCTION_WORDS, subject_words
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.exchanges import line_numbers
from nanoclaw_memory.store.passages import NewRow, Passages
from nanoclaw_memory.text import words
from nanoclaw_memory.types import CONFIRMED, Passage

ROWS_AT_ONCE = 1_000  # of a source, on the way to a search
FEW_ROWS = 20  # of a source, where nobody asked for a search
NOISE = "noise"  # the status of passages that only `ncm sessions search` finds
SHORT_REPLY = 6  # words of a reply that may be a mere acknowledgement
FEW_TELLING = 1  # content words in such a reply: two may be an answer ("dusty teal")
_ASKS_FOR_MEMORY = regex(
    r"^\W*(?:do you (?:still )?remember|can you recall|what do you (?:know|remember) about|erinnerst du dich)\b",
    re.IGNORECASE,
)
_QUESTION_WORDS = frozenset(
    "who whom whose what when where which why how wer wem wen wessen was wann wo wohin woher welche welcher welches"
    " welchen warum wieso wie".split()
)
_DENIAL = regex(
    r"\b(?:i (?:don'?t|do not) (?:have (?:any )?(?:memory|record|recollection)|recall|remember)|"
    r"no (?:memory|record) of|i have no (?:memory|record)|daran erinnere ich mich nicht|ich habe keine erinnerung)\b",
    re.IGNORECASE,
)


class Cursor(msgspec.Struct, frozen=True):
    """How far the changes of a source have been read; `above` is the last row read during a full read."""

    seq: int = 0
    mark: int = 0
    above: int = -1  # -1: the full read is complete


class RowSource(msgspec.Struct, frozen=True):
    """A table whose rows are passages."""

    name: str  # of the source, and of its changes in the outbox
    database: str
    columns: str
    table: str
    key: str
    rows: Callable[[Sequence[Row], RowReader], Iterator[NewRow]]


def is_noise(user: str, agent: str) -> bool:
    """Return whether an exchange only asks for memory, or only says that there is none."""
    return bool(_ASKS_FOR_MEMORY.match(user) or _DENIAL.search(agent[:400]))


def only_acknowledges(user: str, agent: str) -> bool:
    """Return whether a reply is a mere acknowledgement: a few common words, no number, no day, after no question."""
    said = words(agent)
    if not 0 < len(said) <= SHORT_REPLY or "?" in user or _QUESTION_WORDS.intersection(words(user)[:1]):
        return False
    telling = subject_words(agent)
    plain = all(word in FUNCTION_WORDS or word in telling for word in said)  # neither a number nor a day
    return plain and len(telling) <= FEW_TELLING and not any(telling.values())


def _exchanges(rows: Sequence[Row], reader: RowReader) -> Iterator[NewRow]:
    for number, session, user, agent, at, private, project, origin, foreign in rows:
        status = NOISE if is_noise(user, agent) else ""
        replied = NOISE if status or only_acknowledges(user, agent) else ""
        own, rest = _own_and_rest(user, line_numbers(foreign))
        turns = [
            Passage(
                0,
                0,
                piece,
                "turn",
                day=local_day(at, reader.zone),
                speaker=speaker,
                number=number,
                moment=at,
                session=session,
                project=project,
                origin=by,
                private=bool(private),
                status=replied if speaker == "Agent" else status,
            )
            for speaker, by, text in (
                ("User", origin, own),
                ("User", QUOTED, rest),
                ("Agent", "agent", agent),
            )
            for piece in pieces_of(text, reader.chunking)
        ]
        yield NewRow(number, session, prepared_row(turns, ""))


def _own_and_rest(message: str, foreign: Collection[int]) -> tuple[str, str]:
    """Split a message into its own words and what it quotes."""
    if "\n" not in message and "<" not in message:
        return message, ""
    from nanoclaw_memory.intake.authorship import read

    own = read(message, known=foreign, teaches=False)
    return own.lines, own.rest


def _entries(rows: Sequence[Row], reader: RowReader) -> Iterator[NewRow]:
    for number, key, kind, content, tags, reason, at, *rest in rows:
        author, confirmed, status, priority, expires, project, private = rest
        passage = Passage(
            0,
            0,
            content,
            "entry",
            day=local_day(at, reader.zone),
            number=number,
            reference=key,
            moment=at,
            project=project,
            origin=CONFIRMED.get(confirmed) or author,
            private=bool(private),
            type=kind,
            tags=tags,
            status="" if status == "active" else status,
            priority=priority,
            expires=expires or "",
        )
        yield NewRow(number, kind, prepared_row([passage], f"{tags} {reason}"))


def _facts(rows: Sequence[Row], reader: RowReader) -> Iterator[NewRow]:
    for number, entity, key, value, *rest in rows:
        if str(rest[0]).startswith(READ_FROM):
            continue
        text = f"{entity} {_plain(key)}: {value}"
        yield NewRow(number, "facts", prepared_row([_of_graph(number, "fact", text, rest, reader)], ""))


def _relations(rows: Sequence[Row], reader: RowReader) -> Iterator[NewRow]:
    for number, subject, predicate, other, *rest in rows:
        if str(rest[0]).startswith(READ_FROM):
            continue
        text = f"{subject} {_plain(predicate)} {other}"
        yield NewRow(
            number, "relations", prepared_row([_of_graph(number, "relation", text, rest, reader)], "")
        )


def _of_graph(number: int, kind: str, text: str, rest: Sequence[object], reader: RowReader) -> Passage:
    source, created, since, until, shared, origin, project = rest
    at = str(since or created)
    return Passage(
        0,
        0,
        text,
        kind,
        day=local_day(at, reader.zone),
        number=number,
        reference=str(source or ""),
        moment=at,
        project=str(project),
        origin=str(origin),
        private=not shared,
        expires=str(until or ""),  # a value that ends in the future is valid until then
    )


def _lessons(rows: Sequence[Row], reader: RowReader) -> Iterator[NewRow]:
    for number, trigger, lesson, principle, state, private, origin, at, project in rows:
        passage = Passage(
            0,
            0,
            lesson,
            "lesson",
            heading=trigger,
            day=local_day(at, reader.zone),
            number=number,
            moment=at,
            project=project,
            origin=origin,
            private=bool(private),
            status="" if state in ("active", "metabolized") else state,
        )
        yield NewRow(number, "lessons", prepared_row([passage], principle or ""))


def _plain(key: str) -> str:
    return key.replace("_", " ").replace("-", " ")


# Exchanges and entries are passages themselves, with day and mark: facts read from them are not found again.
READ_FROM = ("exchanges/", "entries/")
_OF_GRAPH = "source, created_at, valid_from, valid_to, shared, origin, project"
SOURCES = (
    RowSource(
        "exchanges",
        "continuity",
        "id, session_id, user_message, agent_response, timestamp, private, project, origin, foreign_lines",
        "exchanges",
        "id",
        _exchanges,
    ),
    RowSource(
        "entries",
        "entries",
        "number, id, type, content, tags, reason, created_at, author, confirmed, status, priority, expires_at, project,"
        " private",
        "entries",
        "number",
        _entries,
    ),
    RowSource("facts", "facts", f"id, entity, key, value, {_OF_GRAPH}", "facts", "id", _facts),
    RowSource(
        "relations", "facts", f"id, subject, predicate, object, {_OF_GRAPH}", "relations", "id", _relations
    ),
    RowSource(
        "lessons",
        "facts",
        "id, trigger_pattern, lesson_text, principle, state, private, origin, created_at, project",
        "growth_vectors",
        "id",
        _lessons,
    ),
)


_NAMES = {source.name for source in SOURCES}
_CURSOR = "cursor:"


class RowReader(msgspec.Struct, frozen=True):
    """Read changed rows of the group's databases into an index."""

    passages: Passages
    database: Callable[[str], Database]
    has: Callable[[str], bool]
    chunking: Chunking
    zone: tzinfo | None = UTC  # the time zone of days

    def read(
        self, wanted: Collection[str] | None = None, most: int = ROWS_AT_ONCE, whole: bool = False
    ) -> tuple[int, list[str]]:
        """Read at most so many changed rows of each source; return how many, and which sources failed.

        `whole` continues until nothing is left.
        """
        done, damaged = 0, dict[str, str]()
        known, heads = self._cursors(), dict[str, Cursor]()
        for source in SOURCES:
            name = source.database
            if (wanted is not None and source.name not in wanted) or (
                name not in heads and not self.has(name)
            ):
                continue
            try:
                db = self.database(name)
                head = heads[name] = heads.get(name) or _head(db)
            except StoreError as error:
                damaged[name] = missing(name, error)
                continue
            if known.get(source.name) != head:
                count, left = self._read(source, db, most, whole)
                done += count
                if left:
                    damaged[source.name] = (
                        f"index: {source.name} are still to be read; run: nanoclaw-memory index"
                    )
        return done, list(damaged.values())

    def _read(self, source: RowSource, db: Database, most: int, whole: bool) -> tuple[int, bool]:
        """Read one source; return how many rows, and whether any are left.

        The head of the outbox is read before the rows: a concurrent change is read again, never missed.
        """
        done = 0
        while True:
            head = _head(db)
            if self._cursors().get(source.name) == head:
                return done, False
            with self.passages.database.transaction():
                known = self._cursors().get(source.name)  # another process may have been first
                if known == head:
                    return done, False
                if known is None or not _continues(db, known):
                    self._drop_missing(source, db)
                    known = Cursor(head.seq, head.mark, 0)
                reached, count = self._changed(source, db, known, head, most)
                above, more = self._next(source, db, known.above, most) if known.above >= 0 else (-1, 0)
                done += count + more
                self._keep(source.name, replace(reached, above=above))
            left = above >= 0 or reached != head
            if not (left and whole):
                return done, left

    def _changed(
        self, source: RowSource, db: Database, known: Cursor, head: Cursor, most: int
    ) -> tuple[Cursor, int]:
        """Return the next changes of a source: the new position in the outbox, and how many rows."""
        rows = db.query(
            "SELECT seq, mark, number FROM outbox WHERE seq > :seq AND kind = :kind ORDER BY seq LIMIT :most",
            {"seq": known.seq, "kind": source.name, "most": most},
        )
        numbers = list(dict.fromkeys(int(number) for _, _, number in rows))
        for start in range(0, len(numbers), 500):
            self._put(source, db, numbers[start : start + 500])
        return (Cursor(*rows[-1][:2]) if len(rows) == most else head), len(numbers)

    def _put(self, source: RowSource, db: Database, numbers: Sequence[int]) -> None:
        chosen = ", ".join(map(str, numbers))
        sql = f"SELECT {source.columns} FROM {source.table} WHERE {source.key} IN ({chosen}) ORDER BY {source.key}"  # noqa: S608
        rows = list(source.rows(db.query(sql), self))
        gone = set(numbers) - {row.number for row in rows}
        self.passages.put_rows(source.name, [*rows, *map(NewRow, sorted(gone))])

    def _next(self, source: RowSource, db: Database, above: int, most: int) -> tuple[int, int]:
        """Return the next rows of a full read: the last one read (-1 at the end), and how many."""
        sql = (
            f"SELECT {source.columns} FROM {source.table} WHERE {source.key} > :above"  # noqa: S608
            f" ORDER BY {source.key} LIMIT :most"
        )
        rows = db.query(sql, {"above": above, "most": most})
        self.passages.put_rows(source.name, source.rows(rows, self))
        return (int(rows[-1][0]) if len(rows) == most else -1), len(rows)

    def _drop_missing(self, source: RowSource, db: Database) -> None:
        """Remove the passages of deleted rows: the file was restored or replaced."""
        known = self.passages.numbers(source.name)
        sql = f"SELECT {source.key} FROM {source.table}"  # noqa: S608
        gone = known - {int(row[0]) for row in db.query(sql)} if known else set()
        if gone:
            self.passages.put_rows(source.name, map(NewRow, sorted(gone)))

    def _cursors(self) -> dict[str, Cursor]:
        kept = self.passages.metas(_CURSOR)
        return {name: Cursor(*map(int, kept[name].split())) for name in _NAMES & kept.keys()}

    def _keep(self, name: str, cursor: Cursor) -> None:
        self.passages.set_meta(_CURSOR + name, f"{cursor.seq} {cursor.mark} {cursor.above}")


def _head(db: Database) -> Cursor:
    """Return the last change of a database."""
    rows = db.query("SELECT seq, mark FROM outbox ORDER BY seq DESC LIMIT 1")
    return Cursor(*rows[0]) if rows else Cursor()


def _continues(db: Database, known: Cursor) -> bool:
    """Return whether the outbox still contains the last change read; otherwise the file was replaced."""
    rows = db.query("SELECT mark FROM outbox WHERE seq = :seq", {"seq": known.seq})
    return bool(rows) and int(rows[0][0]) == known.mark


def missing(part: str, error: StoreError) -> str:
    """Return the notice that a part of memory could not be searched."""
    return f"{part}: {error.message}; for what helps: nanoclaw-memory doctor"
