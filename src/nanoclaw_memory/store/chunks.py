"""Files, their chunks, the keyword index and the vectors of one search index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.keywords import long_words, spaced
from nanoclaw_memory.types import Chunk, Skipped

_COLUMNS = "start_line, end_line, text, grain, heading, day, speaker, importance"


class FileRow(msgspec.Struct, frozen=True):
    """A file as the index last saw it."""

    id: int
    path: str
    size: int
    mtime_ns: int
    fingerprint: str
    chunking: str
    skipped: str


class StoredChunk(msgspec.Struct, frozen=True):
    """A chunk in the index: where it is and what it says."""

    id: int
    file_id: int
    position: int
    path: str
    chunk: Chunk


class Place(msgspec.Struct, frozen=True):
    """Where a chunk stands."""

    id: int
    file_id: int
    position: int
    grain: str
    speaker: str


class NewChunk(msgspec.Struct, frozen=True):
    """A chunk to be stored: its keyword fields and the fingerprint of the text that is embedded."""

    chunk: Chunk
    body: str
    near: str
    around: str
    fingerprint: bytes


class Coded(msgspec.Struct, frozen=True):
    """A vector as it is kept: whole numbers of eight bits and what one of them is worth."""

    fingerprint: bytes
    scale: float
    codes: bytes


class Chunks:
    """The repository; every change raises `generation`, so that caches know they are behind."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # ---- the state of the whole ----

    def generation(self) -> int:
        """The number of the last change."""
        return int(self.meta("generation") or 0)

    def meta(self, key: str) -> str | None:
        """A note kept with the index."""
        rows = self.database.query("SELECT value FROM meta WHERE key = :key", {"key": key})
        return str(rows[0][0]) if rows else None

    def set_meta(self, key: str, value: str) -> None:
        """Keep a note with the index."""
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO meta (key, value) VALUES (:key, :value)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                {"key": key, "value": value},
            )

    def last_id(self) -> int:
        """The newest chunk's id: about how many there are, at no cost."""
        return int(self.database.query("SELECT coalesce(max(id), 0) FROM chunks")[0][0])

    def count(self) -> tuple[int, int]:
        """How many files hold chunks, and how many chunks there are."""
        rows = self.database.query(
            "SELECT (SELECT count(*) FROM files WHERE skipped = ''), (SELECT count(*) FROM chunks)"
        )
        return int(rows[0][0]), int(rows[0][1])

    # ---- files ----

    def files(self) -> dict[str, FileRow]:
        """Every file the index knows, by path."""
        rows = self.database.query(
            "SELECT id, path, size, mtime_ns, fingerprint, chunking, skipped FROM files"
        )
        return {row[1]: FileRow(*row) for row in rows}

    def paths(self) -> list[tuple[int, str]]:
        """Id and path of every file."""
        return [
            (int(number), str(path)) for number, path in self.database.query("SELECT id, path FROM files")
        ]

    def skipped(self) -> tuple[Skipped, ...]:
        """The files that hold no chunks, and why."""
        rows = self.database.query("SELECT path, skipped FROM files WHERE skipped <> '' ORDER BY path")
        return tuple(Skipped(path, reason) for path, reason in rows)

    def put_file(self, file: FileRow, chunks: Sequence[NewChunk]) -> None:
        """Store a file and its chunks in place of what was there; all or nothing."""
        with self.database.transaction():
            generation = self._next_generation()
            params = {
                "path": file.path,
                "size": file.size,
                "mtime_ns": file.mtime_ns,
                "fingerprint": file.fingerprint,
                "chunking": file.chunking,
                "skipped": file.skipped,
                "generation": generation,
            }
            self.database.execute(
                "INSERT INTO files (path, size, mtime_ns, fingerprint, chunking, skipped, generation)"
                " VALUES (:path, :size, :mtime_ns, :fingerprint, :chunking, :skipped, :generation)"
                " ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,"
                " fingerprint = excluded.fingerprint, chunking = excluded.chunking,"
                " skipped = excluded.skipped, generation = excluded.generation",
                params,
            )
            rows = self.database.query("SELECT id FROM files WHERE path = :path", {"path": file.path})
            file_id = int(rows[0][0])
            gone = self._clear(file_id)
            for position, new in enumerate(chunks):
                self._insert(file_id, position, new)
            self._drop_words(gone)

    def touch_file(self, file: FileRow, size: int, mtime_ns: int) -> None:
        """Remember that a file has another time but the same content."""
        with self.database.transaction():
            self.database.execute(
                "UPDATE files SET size = :size, mtime_ns = :mtime_ns WHERE id = :id",
                {"size": size, "mtime_ns": mtime_ns, "id": file.id},
            )

    def remove_file(self, path: str) -> None:
        """Forget a file: its chunks, keywords, and vectors that nothing else shares."""
        with self.database.transaction():
            rows = self.database.query("SELECT id FROM files WHERE path = :path", {"path": path})
            for (file_id,) in rows:
                gone = self._clear(file_id)
                params = {"id": file_id, "generation": self._next_generation()}
                self.database.execute("INSERT INTO removed_files VALUES (:id, :generation)", params)
                self.database.execute("DELETE FROM files WHERE id = :id", {"id": file_id})
                self._drop_words(gone)

    def mark_stale(self) -> None:
        """Have every file read again by the next run; what is stored answers until then."""
        with self.database.transaction():
            self.database.execute("UPDATE files SET chunking = ''")

    # ---- chunks ----

    def load(self, ids: Iterable[int]) -> dict[int, StoredChunk]:
        """The chunks of these ids."""
        rows = self.database.query(
            f"SELECT c.id, c.file_id, c.position, f.path, {_COLUMNS} FROM chunks c"  # noqa: S608
            " JOIN files f ON f.id = c.file_id WHERE c.id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(list(ids))},
        )
        return {row[0]: StoredChunk(row[0], row[1], row[2], row[3], Chunk(*row[4:])) for row in rows}

    def match(self, terms: Sequence[str], limit: int, files: Sequence[int] | None) -> list[tuple[int, float]]:
        """Chunks that hold any of the terms, best first; only of `files` unless that is None."""
        if files is None:
            return self.database.match("chunks_fts", terms, limit)
        # The plus keeps the engine from looking up row by row instead of walking the keyword index.
        only = "+rowid IN (SELECT id FROM chunks WHERE file_id IN (SELECT value FROM json_each(:files)))"
        return self.database.match("chunks_fts", terms, limit, only, {"files": json.dumps(list(files))})

    def occurrences(self, term: str, most: int = 1) -> int:
        """How many chunks hold the term; counting stops at `most`."""
        return self.database.occurrences("chunks_fts", term, most)

    def compounds(self, part: str, limit: int = 20) -> list[str]:
        """Long words that hold `part`: "migration" finds "datenbankmigration"."""
        rows = self.database.query(
            "SELECT word FROM long_words WHERE instr(word, :part) > 0 LIMIT :limit",
            {"part": part, "limit": limit},
        )
        return [str(word) for (word,) in rows]

    def places(self, ids: Iterable[int], reach: int) -> list[Place]:
        """Where these chunks stand, and the turns up to `reach` places before and after a turn."""
        rows = self.database.query(
            "SELECT DISTINCT n.id, n.file_id, n.position, n.grain, n.speaker FROM chunks c"
            " JOIN chunks n ON n.file_id = c.file_id AND n.position BETWEEN"
            " c.position - CASE c.grain WHEN 'turn' THEN :reach ELSE 0 END"
            " AND c.position + CASE c.grain WHEN 'turn' THEN :reach ELSE 0 END"
            " WHERE c.id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(list(ids)), "reach": reach},
        )
        return [Place(*row) for row in rows]

    def lines_of(self, first: str, last: str, limit: int, files: Sequence[int] | None) -> list[int]:
        """Log lines of some days, the most important first; only of `files` unless that is None."""
        rows = self.database.query(
            "SELECT id FROM chunks WHERE grain = 'line' AND day BETWEEN :first AND :last"
            " AND (:every OR file_id IN (SELECT value FROM json_each(:files)))"
            " ORDER BY coalesce(importance, 0.5) DESC, day DESC, id LIMIT :limit",
            {
                "first": first,
                "last": last,
                "every": files is None,
                "files": json.dumps(list(files or ())),
                "limit": limit,
            },
        )
        return [int(number) for (number,) in rows]

    def among_days(self, ids: Iterable[int], first: str, last: str) -> set[int]:
        """Which of these chunks are of these days."""
        rows = self.database.query(
            "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(:ids)) AND day BETWEEN :first AND :last",
            {"ids": json.dumps(list(ids)), "first": first, "last": last},
        )
        return {int(number) for (number,) in rows}

    # ---- vectors ----

    def identities(self) -> dict[str, int]:
        """Who made vectors in this index, by key."""
        return {key: number for number, key in self.database.query("SELECT id, key FROM identities")}

    def pending(self, identity: str, limit: int = -1) -> list[tuple[bytes, int]]:
        """Fingerprints, each with one chunk that has it, of which `identity` has no vector yet."""
        rows = self.database.query(
            "SELECT fingerprint, min(id) FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM vectors v"
            " JOIN identities i ON i.id = v.identity_id"
            " WHERE i.key = :key AND v.fingerprint = c.fingerprint)"
            " GROUP BY fingerprint ORDER BY min(id) LIMIT :limit",
            {"key": identity, "limit": limit},
        )
        return [(bytes(print_), int(chunk)) for print_, chunk in rows]

    def put_vectors(self, identity: str, coded: Sequence[Coded]) -> None:
        """Store vectors and let caches know of the files they belong to."""
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
            generation = self._next_generation()
            self.database.execute_many(
                "UPDATE files SET generation = :generation"
                " WHERE id IN (SELECT file_id FROM chunks WHERE fingerprint = :fingerprint)",
                ({"generation": generation, "fingerprint": one.fingerprint} for one in coded),
            )

    def vectors(self, identity: str, since: int = -1) -> Iterator[tuple[int, int, float, bytes]]:
        """Chunk id, file id, scale and codes of files that changed after generation `since`."""
        sql = (
            "SELECT c.id, c.file_id, v.scale, v.codes FROM chunks c"
            " JOIN vectors v ON v.fingerprint = c.fingerprint AND v.identity_id = :owner"
        )
        if since >= 0:
            sql += " WHERE c.file_id IN (SELECT id FROM files WHERE generation > :since)"
        owner = self.identities().get(identity, -1)
        return self.database.rows(sql, {"owner": owner, "since": since} if since >= 0 else {"owner": owner})

    def changed_files(self, since: int) -> list[int]:
        """Files changed or removed after generation `since`."""
        rows = self.database.query(
            "SELECT id FROM files WHERE generation > :since"
            " UNION SELECT id FROM removed_files WHERE generation > :since",
            {"since": since},
        )
        return [int(number) for (number,) in rows]

    def without_vector(self, identity: str, fingerprints: Sequence[bytes]) -> list[bytes]:
        """Those fingerprints of which `identity` has no vector yet."""
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

    def prune_vectors(self, keep: Sequence[str]) -> int:
        """Drop vectors of other identities and of texts that no chunk has any more."""
        with self.database.transaction():
            self.database.execute(
                "DELETE FROM identities WHERE key NOT IN (SELECT value FROM json_each(:keep))",
                {"keep": json.dumps(list(keep))},
            )
            return self.database.execute(
                "DELETE FROM vectors WHERE fingerprint NOT IN (SELECT fingerprint FROM chunks)"
            )

    # ---- inside ----

    def _next_generation(self) -> int:
        generation = self.generation() + 1
        self.set_meta("generation", str(generation))
        return generation

    def _insert(self, file_id: int, position: int, new: NewChunk) -> None:
        chunk = new.chunk
        number = self.database.insert(
            "INSERT INTO chunks (file_id, position, start_line, end_line, grain, heading, day, speaker,"
            " importance, text, fingerprint) VALUES (:file_id, :position, :start_line, :end_line, :grain,"
            " :heading, :day, :speaker, :importance, :text, :fingerprint)",
            {
                "file_id": file_id,
                "position": position,
                "start_line": chunk.start_line,
                "end_line": chunk.end_line,
                "grain": chunk.grain,
                "heading": chunk.heading,
                "day": chunk.day,
                "speaker": chunk.speaker,
                "importance": chunk.importance,
                "text": chunk.text,
                "fingerprint": new.fingerprint,
            },
        )
        self.database.execute(
            "INSERT INTO chunks_fts (rowid, body, near, around) VALUES (:id, :body, :near, :around)",
            {
                "id": number,
                "body": spaced(new.body),
                "near": spaced(new.near),
                "around": spaced(new.around),
            },
        )
        self.database.execute_many(
            "INSERT INTO long_words (word) VALUES (:word) ON CONFLICT DO NOTHING",
            ({"word": word} for word in long_words(new.body)),
        )

    def _clear(self, file_id: int) -> set[str]:
        """Take a file's chunks out; gives the long words they held."""
        rows = self.database.query("SELECT id, text FROM chunks WHERE file_id = :id", {"id": file_id})
        self.database.execute_many(
            "DELETE FROM chunks_fts WHERE rowid = :id", ({"id": number} for number, _ in rows)
        )
        self.database.execute("DELETE FROM chunks WHERE file_id = :id", {"id": file_id})
        return {word for _, text in rows for word in long_words(text)}

    def _drop_words(self, gone: set[str]) -> None:
        for word in gone:
            if not self.occurrences(word):
                self.database.execute("DELETE FROM long_words WHERE word = :word", {"word": word})
