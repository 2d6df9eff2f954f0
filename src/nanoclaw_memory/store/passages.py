"""Documents, their passages and the vectors of one search index: storage and changes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.keywords import indexed, long_words
from nanoclaw_memory.store.passage_search import PassageSearch
from nanoclaw_memory.store.table import keep_note, note_of
from nanoclaw_memory.text import spoken_in
from nanoclaw_memory.types import Passage, Skipped

FILES = "files"
KEPT_REMOVALS = 50_000
_FIELDS = Passage.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_INSERT = (
    f"INSERT INTO passages (document_id, position, {_COLUMNS}, fingerprint) VALUES (:document_id, :position, "  # noqa: S608
    f"{', '.join(':' + name for name in _FIELDS)}, :fingerprint)"
)

# The pluses in these queries prevent a walk over an index of all passages: the latest ones are few.
_PENDING = (
    "id > :covered AND NOT EXISTS (SELECT 1 FROM vectors v JOIN identities i ON i.id = v.identity_id"
    " WHERE i.key = :key AND v.fingerprint = p.fingerprint)"
)


class FileRow(msgspec.Struct, frozen=True):
    """A file as the index last saw it."""

    id: int
    path: str
    size: int
    mtime_ns: int
    fingerprint: str
    chunking: str
    skipped: str


class NewPassage(msgspec.Struct, frozen=True):
    """A passage to be stored: its keyword fields and the fingerprint of the text that is embedded."""

    passage: Passage
    body: str
    near: str
    around: str
    fingerprint: bytes


class NewRow(msgspec.Struct, frozen=True):
    """The passages of one database row, in the document they belong to; none when the row was deleted."""

    number: int
    document: str = ""
    passages: tuple[NewPassage, ...] = ()


class EncodedVector(msgspec.Struct, frozen=True):
    """A vector as stored: eight-bit integers and their scale."""

    fingerprint: bytes
    scale: float
    codes: bytes


def _line_key(fingerprint: bytes, passage: Passage) -> tuple[Any, ...]:
    return fingerprint, passage.text, passage.heading, passage.day, passage.importance, passage.project


class Passages:
    """The repository; every change raises `generation`, so that caches know they are outdated."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.search = PassageSearch(database)

    @property
    def vector_file(self) -> Path:
        """Return the file from which many vectors are mapped; a database that is no file has none."""
        return Path(f"{self.database.path}-vectors")

    # ---- the state of the whole ----

    def generation(self) -> int:
        """Return the number of the last change."""
        return int(self.meta("generation") or 0)

    def meta(self, key: str) -> str | None:
        """Return a note stored with the index."""
        return note_of(self.database, "meta", key)

    def metas(self, prefix: str) -> dict[str, str]:
        """Return the notes with a key prefix, by the rest of the key."""
        sql = "SELECT substr(key, :length + 1), value FROM meta WHERE substr(key, 1, :length) = :prefix"
        return dict(self.database.query(sql, {"prefix": prefix, "length": len(prefix)}))

    def set_meta(self, key: str, value: str) -> None:
        """Store a note with the index."""
        with self.database.transaction():
            keep_note(self.database, "meta", key, value)

    def drop_meta(self, key: str) -> None:
        """Drop a note."""
        with self.database.transaction():
            self.database.execute("DELETE FROM meta WHERE key = :key", {"key": key})

    def last_id(self) -> int:
        """Return the newest passage's id: an estimate of their number, at no cost."""
        return self.search.unchanged("last id", self._last_id)

    def _last_id(self) -> int:
        return int(self.database.query("SELECT coalesce(max(id), 0) FROM passages")[0][0])

    def counts(self) -> dict[str, int]:
        """Return how many current passages each source has."""
        sql = "SELECT source, count(*) FROM passages JOIN documents ON documents.id = document_id"
        return dict(self.database.query(f"{sql} WHERE status = '' GROUP BY source"))

    def count(self) -> tuple[int, int]:
        """Return how many files have passages, and how many passages there are."""
        rows = self.database.query(
            "SELECT (SELECT count(*) FROM documents WHERE source = 'files' AND skipped = ''),"
            " (SELECT count(*) FROM passages)"
        )
        return int(rows[0][0]), int(rows[0][1])

    # ---- files ----

    def files(self) -> dict[str, FileRow]:
        """Return every file the index knows, by path."""
        rows = self.database.query(
            "SELECT id, name, size, mtime_ns, fingerprint, chunking, skipped FROM documents"
            " WHERE source = 'files'"
        )
        return {row[1]: FileRow(*row) for row in rows}

    def documents(self) -> list[tuple[int, str, str]]:
        """Return id, source and name of every document."""
        return [
            (int(number), str(source), str(name))
            for number, source, name in self.database.query("SELECT id, source, name FROM documents")
        ]

    def skipped(self) -> tuple[Skipped, ...]:
        """Return the files that have no passages, and why."""
        rows = self.database.query("SELECT name, skipped FROM documents WHERE skipped <> '' ORDER BY name")
        return tuple(Skipped(path, reason) for path, reason in rows)

    def put_file(self, file: FileRow, passages: Sequence[NewPassage]) -> None:
        """Store a file and its passages in place of the former ones; all or nothing.

        Unchanged log lines and items stay, and every text keeps the day on which it was first seen.
        """
        with self.database.transaction():
            standing, edited = self._unchanged_lines(file), self._is_edited(file)
            self.database.execute(
                "INSERT INTO documents (source, name, size, mtime_ns, fingerprint, chunking, skipped)"
                " VALUES ('files', :path, :size, :mtime_ns, :fingerprint, :chunking, :skipped)"
                " ON CONFLICT (source, name) DO UPDATE SET size = excluded.size,"
                " mtime_ns = excluded.mtime_ns, fingerprint = excluded.fingerprint,"
                " chunking = excluded.chunking, skipped = excluded.skipped",
                {name: value for name, value in msgspec.structs.asdict(file).items() if name != "id"},
            )
            document = self._document(FILES, file.path)
            seen = self._first_seen(document)
            numbers = [standing.pop(_line_key(one.fingerprint, one.passage), 0) for one in passages]
            others = "document_id = :document AND id NOT IN (SELECT value FROM json_each(:numbers))"
            params = {"document": document, "numbers": json.dumps(numbers)}
            gone = self._remove(others, params, self._next_generation())
            for position, (new, number) in enumerate(zip(passages, numbers, strict=True)):
                if number:
                    self._move(number, position, new.passage)
                    continue
                if new.passage.seen:
                    first, stood = seen.get(new.passage.text, (new.passage.seen, not edited))
                    new = replace(new, passage=replace(new.passage, seen=first, stood=stood))
                self._insert(document, position, new)
            self._drop_words(gone)

    def _is_edited(self, file: FileRow) -> bool:
        """Return whether a file had passages before and has another text now."""
        sql = (
            "SELECT fingerprint FROM documents d WHERE source = 'files' AND name = :path"
            " AND EXISTS (SELECT 1 FROM passages WHERE document_id = d.id)"
        )
        rows = self.database.query(sql, {"path": file.path})
        return any(fingerprint != file.fingerprint for (fingerprint,) in rows)

    def _unchanged_lines(self, file: FileRow) -> dict[tuple[Any, ...], int]:
        """Return the log lines and items of a file that were cut as they are now, by their stored content."""
        rows = self.database.query(
            "SELECT p.id, p.fingerprint, p.text, p.heading, p.day, p.importance, p.project FROM passages p"
            " JOIN documents d ON d.id = p.document_id WHERE d.source = 'files' AND d.name = :path"
            " AND d.chunking = :chunking AND p.kind IN ('line', 'item')",
            {"path": file.path, "chunking": file.chunking},
        )
        return {(bytes(print_), *rest): int(number) for number, print_, *rest in rows}

    def _move(self, number: int, position: int, passage: Passage) -> None:
        self.database.execute(
            "UPDATE passages SET position = :position, start_line = :start, end_line = :end WHERE id = :id",
            {"position": position, "start": passage.start_line, "end": passage.end_line, "id": number},
        )

    def _first_seen(self, document: int) -> dict[str, tuple[str, bool]]:
        sql = (
            "SELECT text, min(seen), max(stood) FROM passages WHERE document_id = :document AND seen <> ''"
            " GROUP BY text"
        )
        rows = self.database.query(sql, {"document": document})
        return {text: (seen, bool(stood)) for text, seen, stood in rows}

    def touch_file(self, file: FileRow, size: int, mtime_ns: int) -> None:
        """Record that a file has another time but the same content."""
        with self.database.transaction():
            self.database.execute(
                "UPDATE documents SET size = :size, mtime_ns = :mtime_ns WHERE id = :id",
                {"size": size, "mtime_ns": mtime_ns, "id": file.id},
            )

    def remove_file(self, path: str) -> None:
        """Remove a file: its passages, keywords, and vectors that nothing else shares."""
        with self.database.transaction():
            known = {"path": path}
            rows = self.database.query(
                "SELECT id FROM documents WHERE source = 'files' AND name = :path", known
            )
            for (document,) in rows:
                gone = self._remove(
                    "document_id = :document", {"document": document}, self._next_generation()
                )
                self.database.execute("DELETE FROM documents WHERE id = :id", {"id": document})
                self._drop_words(gone)

    def mark_stale(self) -> None:
        """Make the next run read every file and row again; stored passages answer until then."""
        with self.database.transaction():
            self._next_generation()
            self.database.execute("UPDATE documents SET chunking = ''")
            self.database.execute("DELETE FROM meta WHERE key LIKE 'cursor:%'")

    # ---- rows of databases ----

    def numbers(self, source: str) -> set[int]:
        """Return the rows of a source that have passages."""
        rows = self.database.query(
            "SELECT DISTINCT number FROM passages WHERE number > 0"
            " AND document_id IN (SELECT id FROM documents WHERE source = :source)",
            {"source": source},
        )
        return {int(number) for (number,) in rows}

    def ids(self, source: str, numbers: Sequence[int]) -> dict[int, int]:
        """Return the passages of rows of a source, each with its row."""
        sql = (
            "SELECT p.id, p.number FROM passages p JOIN documents d ON d.id = p.document_id"
            " WHERE p.number > 0 AND p.number IN (SELECT value FROM json_each(:numbers)) AND +d.source = :source"
        )  # the plus: the numbers are few, the documents of a source many
        rows = self.database.query(sql, {"numbers": json.dumps(list(numbers)), "source": source})
        return {int(number): int(row) for number, row in rows}

    def of_origin(self, source: str) -> list[int]:
        """Return the passages from which a fact was read: `exchanges/9:1`, `entries/mem-…:1`, `MEMORY.md:7`."""
        place, _, line = source.rpartition(":")
        kind, _, name = place.partition("/")
        if kind == "exchanges" and name.isdigit():
            return list(self.ids(kind, [int(name)]))
        if kind == "entries":
            found = self.database.query(
                "SELECT id FROM passages WHERE kind = 'entry' AND reference = :name", {"name": name}
            )
            return [int(number) for (number,) in found]
        return self.at(place, int(line)) if line.isdigit() else []

    def at(self, path: str, line: int) -> list[int]:
        """Return the passages of a file that begin on a line."""
        sql = (
            "SELECT p.id FROM passages p JOIN documents d ON d.id = p.document_id"
            " WHERE d.source = 'files' AND d.name = :path AND p.start_line = :line"
        )
        return [int(number) for (number,) in self.database.query(sql, {"path": path, "line": line})]

    def put_rows(self, source: str, rows: Iterable[NewRow]) -> None:
        """Store the passages of rows in place of the former ones; inside a transaction."""
        generation, gone = self._next_generation(), set[str]()
        for row in rows:
            known = {"source": source, "number": row.number}
            # "number > 0" lets SQLite use the partial index: a value that is bound later proves nothing to it.
            of_row = (
                "number = :number AND number > 0"
                " AND +document_id IN (SELECT id FROM documents WHERE source = :source)"
            )
            sql = f"SELECT min(position) FROM passages WHERE {of_row}"  # noqa: S608 (our own condition)
            ((position,),) = self.database.query(sql, known)
            gone |= self._remove(of_row, known, generation)
            if row.passages:
                document = self._document(source, row.document)
                if position is None:
                    position = self._next_position(document)
                for place, new in enumerate(row.passages, position):
                    self._insert(document, place, new)
        self._drop_words(gone)

    def remove(self, ids: Iterable[int]) -> None:
        """Remove passages with their words; vectors are removed by `prune_vectors`."""
        with self.database.transaction():
            chosen = {"ids": json.dumps(list(ids))}
            of_ids = "id IN (SELECT value FROM json_each(:ids))"
            self._drop_words(self._remove(of_ids, chosen, self._next_generation()))

    def drop_empty_documents(self) -> None:
        """Drop documents of rows without passages: their names may be what is to be forgotten."""
        with self.database.transaction():
            self.database.execute(
                "DELETE FROM documents WHERE source <> 'files'"
                " AND id NOT IN (SELECT document_id FROM passages)"
            )

    # ---- vectors ----

    def identities(self) -> dict[str, int]:
        """Return the models that have vectors in this index, by key."""
        return {key: number for number, key in self.database.query("SELECT id, key FROM identities")}

    def covered(self, identity: str) -> int:
        """Return the id up to which every passage has a vector of `identity`."""
        return int(self.meta(f"covered:{identity}") or -1)

    def set_covered(self, identity: str, last: int) -> None:
        """Record that every passage up to this id has a vector of `identity`."""
        self.set_meta(f"covered:{identity}", str(last))

    def pending(self, identity: str, limit: int = -1) -> list[tuple[bytes, int]]:
        """Return fingerprints without a vector of `identity`, each with the first passage that has it."""
        rows = self.database.query(
            f"SELECT fingerprint, min(id) FROM passages p WHERE {_PENDING}"  # noqa: S608 (our own condition)
            " GROUP BY +fingerprint ORDER BY min(id) LIMIT :limit",
            {"key": identity, "limit": limit, "covered": self.covered(identity)},
        )
        return [(bytes(print_), int(number)) for print_, number in rows]

    def count_pending(self, identity: str, most: int) -> int:
        """Count the texts without a vector of `identity`; stop at `most`."""
        rows = self.database.query(
            f"SELECT count(*) FROM (SELECT DISTINCT +fingerprint FROM passages p WHERE {_PENDING} LIMIT :most)",  # noqa: S608
            {"key": identity, "most": most, "covered": self.covered(identity)},
        )
        return int(rows[0][0])

    def put_vectors(self, identity: str, coded: Sequence[EncodedVector]) -> None:
        """Store vectors; caches see them by their generation."""
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO identities (key) VALUES (:key) ON CONFLICT DO NOTHING", {"key": identity}
            )
            owner = self.identities()[identity]
            self.database.execute_many(
                "INSERT INTO vectors (identity_id, fingerprint, scale, codes)"
                " VALUES (:owner, :fingerprint, :scale, :codes) ON CONFLICT DO NOTHING",
                (
                    {"owner": owner, "fingerprint": one.fingerprint, "scale": one.scale, "codes": one.codes}
                    for one in coded
                ),
            )
            self._next_generation()

    def vectors(
        self, identity: str, after_passage: int, after_vector: int
    ) -> Iterator[tuple[int, int, float, bytes]]:
        """Yield passage id, vector id, scale and codes of passages and vectors after these ids."""
        # CROSS and the plus: the new rows are few, but the engine would walk all vectors of an identity.
        sql = (
            "SELECT p.id, v.id, v.scale, v.codes FROM {} CROSS JOIN {} WHERE v.fingerprint = p.fingerprint"
            " AND {}v.identity_id = :owner AND {}"
        )
        params = {
            "owner": self.identities().get(identity, -1),
            "passage": after_passage,
            "vector": after_vector,
        }
        yield from self.database.rows(sql.format("passages p", "vectors v", "", "p.id > :passage"), params)
        if after_passage:
            late = sql.format("vectors v", "passages p", "+", "v.id > :vector AND p.id <= :passage")
            yield from self.database.rows(late, params)

    # ---- vectors that only a file contains ----

    def packed(self, identity: str) -> int:
        """Return the generation at which that file was written; 0 while all vectors of `identity` are here."""
        return int(self.meta(f"packed:{identity}") or 0)

    def last_vector(self) -> int:
        """Return the newest vector's id."""
        return int(self.database.query("SELECT coalesce(max(id), 0) FROM vectors")[0][0])

    def hand_over(self, identity: str, generation: int, newest: int, last_vector: int) -> None:
        """Leave the vectors up to `last_vector` of passages up to `newest` to a file."""
        with self.database.transaction():
            self.set_meta(f"packed:{identity}", str(generation))
            self.database.execute(
                "DELETE FROM vectors WHERE identity_id = :owner AND id <= :last AND EXISTS"
                " (SELECT 1 FROM passages p WHERE p.fingerprint = vectors.fingerprint AND p.id <= :newest)",
                {"owner": self.identities().get(identity, -1), "last": last_vector, "newest": newest},
            )
            self._next_generation()

    def lose_packed(self, identity: str) -> None:
        """Record that the file is lost: its passages have no vectors any more."""
        with self.database.transaction():
            self.drop_meta(f"packed:{identity}")
            self.drop_meta(f"covered:{identity}")
            self._next_generation()

    def with_fingerprints(self, fingerprints: Iterable[bytes]) -> dict[int, bytes]:
        """Return the passages, existing or removed, whose text has one of these fingerprints."""
        prints = json.dumps([print_.hex() for print_ in fingerprints])
        wanted = "WHERE fingerprint IN (SELECT unhex(value) FROM json_each(:prints))"
        sql = " UNION ALL ".join(
            f"SELECT id, fingerprint FROM {table} {wanted}"  # noqa: S608 (our own names)
            for table in ("passages", "removed")
        )
        return {int(number): bytes(print_) for number, print_ in self.database.query(sql, {"prints": prints})}

    def all_ids(self) -> Iterator[int]:
        """Yield the ids of all passages, in order."""
        return (int(number) for (number,) in self.database.rows("SELECT id FROM passages ORDER BY id"))

    def removed_since(self, generation: int) -> list[int] | None:
        """Return passages removed after a generation; None if that is too long ago to be known."""
        if generation < int(self.meta("removals known since") or 0):
            return None
        rows = self.database.query("SELECT id FROM removed WHERE generation > :since", {"since": generation})
        return [int(number) for (number,) in rows]

    def without_vector(self, identity: str, fingerprints: Sequence[bytes]) -> list[bytes]:
        """Return those fingerprints for which `identity` has no vector yet."""
        owner = self.identities().get(identity, -1)
        known = {
            bytes(print_)
            for (print_,) in self.database.query(
                "SELECT fingerprint FROM vectors WHERE identity_id = :owner"
                " AND fingerprint IN (SELECT unhex(value) FROM json_each(:prints))",
                {"owner": owner, "prints": json.dumps([print_.hex() for print_ in fingerprints])},
            )
        }
        return [print_ for print_ in fingerprints if print_ not in known]

    def prune_vectors(self, keep: Sequence[str] | None = None) -> None:
        """Drop vectors of texts that no passage has any more, and of identities that are not in `keep`."""
        newest = "SELECT max(id) FROM vectors"
        with self.database.transaction():
            before = self.database.query(newest)
            others = 0
            if keep is not None:
                others = self.database.update(
                    "DELETE FROM identities WHERE key NOT IN (SELECT value FROM json_each(:keep))",
                    {"keep": json.dumps(list(keep))},
                )
                for kind in ("covered:", "packed:"):
                    self.database.execute(
                        "DELETE FROM meta WHERE substr(key, 1, :length) = :kind"
                        " AND substr(key, :length + 1) NOT IN (SELECT value FROM json_each(:keep))",
                        {"keep": json.dumps(list(keep)), "kind": kind, "length": len(kind)},
                    )
            self.database.execute(
                "DELETE FROM vectors WHERE fingerprint NOT IN (SELECT fingerprint FROM passages)"
            )
            again = others or self.database.query(newest) != before
            if again or self.database.query("SELECT count(*) FROM removed")[0][0] > KEPT_REMOVALS:
                # From here on ids of vectors may be reused: caches have to start again.
                self.set_meta("removals known since", str(self.generation()))
                self.database.execute("DELETE FROM removed")

    # ---- inside ----

    def _next_generation(self) -> int:
        generation = self.generation() + 1
        if (
            generation == 1
        ):  # by the clock: what was cached of a former file at this path is older, and never matches
            generation = time.time_ns() // 1_000
            self.set_meta("removals known since", str(generation))
        self.set_meta("generation", str(generation))
        return generation

    def _document(self, source: str, name: str) -> int:
        known = {"source": source, "name": name}
        sql = "SELECT id FROM documents WHERE source = :source AND name = :name"
        rows = self.database.query(sql, known)
        if rows:
            return int(rows[0][0])
        return self.database.insert("INSERT INTO documents (source, name) VALUES (:source, :name)", known)

    def _next_position(self, document: int) -> int:
        sql = "SELECT coalesce(max(position), -1) + 1 FROM passages WHERE document_id = :document"
        return int(self.database.query(sql, {"document": document})[0][0])

    def _insert(self, document: int, position: int, new: NewPassage) -> None:
        values = {
            "document_id": document,
            "position": position,
            "fingerprint": new.fingerprint,
            **msgspec.structs.asdict(new.passage),
        }
        number = self.database.insert(_INSERT, values)
        german = spoken_in(f"{new.body}\n{new.near}\n{new.around}") != "english"
        self.database.execute(
            "INSERT INTO passages_fts (rowid, body, near, around) VALUES (:id, :body, :near, :around)",
            {
                "id": number,
                "body": indexed(new.body, german),
                "near": indexed(new.near, german),
                "around": indexed(new.around, german),
            },
        )
        self.database.execute_many(
            "INSERT INTO long_words (word) VALUES (:word) ON CONFLICT DO NOTHING",
            ({"word": word} for word in long_words(new.body)),
        )

    def _remove(self, condition: str, params: Mapping[str, Any], generation: int) -> set[str]:
        """Remove passages; return the long words they contained."""
        sql = f"SELECT id, text, fingerprint FROM passages WHERE {condition}"  # noqa: S608
        rows = self.database.query(sql, params)
        gone = [{"id": number, "generation": generation, "print": print_} for number, _, print_ in rows]
        for sql in (
            "DELETE FROM passages_fts WHERE rowid = :id",
            "DELETE FROM passages WHERE id = :id",
            "INSERT INTO removed (id, generation, fingerprint) VALUES (:id, :generation, :print)",
        ):
            self.database.execute_many(sql, gone)
        return {word for _, text, _ in rows for word in long_words(text)}

    def _drop_words(self, gone: set[str]) -> None:
        for word in gone:
            if not self.search.occurrences(word):
                self.database.execute("DELETE FROM long_words WHERE word = :word", {"word": word})
