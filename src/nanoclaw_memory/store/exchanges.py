"""Exchanges: what was said, in every session, found by words and by vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.keywords import spaced
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import Exchange, Session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TIDIED = 250  # exchanges after which the keyword index is brought into one piece
TELLING = 50  # vectors of which the mean says something
_COLUMNS = "id, session_id, user_message, agent_response, timestamp, topic, private"


class Sight(msgspec.Struct, frozen=True):
    """Which exchanges a search may see: private ones or not, and none of `session` after `after`.

    What a session said since its last compaction is still in the model's window.
    """

    private: bool = True
    session: str = ""
    after: int = 0

    @property
    def condition(self) -> str:
        """The same as SQL on the table `exchanges`; empty for all."""
        own = "NOT (session_id = :sight_session AND id > :sight_after)" if self.session else ""
        parts = [part for part in ("" if self.private else "private = 0", own) if part]
        return " AND ".join(parts)

    @property
    def params(self) -> dict[str, object]:
        return {"sight_session": self.session, "sight_after": self.after} if self.session else {}


class Exchanges:
    """The repository of exchanges, and the matrix of their vectors while the process lives."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._matrices: dict[str, _Matrix] = {}
        self._checked: dict[str, tuple[int, int]] = {}
        self._written = 0

    # ---- writing ----

    def add(
        self, session_id: str, user: str, agent: str, timestamp: str, topic: str = "", private: bool = True
    ) -> tuple[int, bool]:
        """Store an exchange; the same one reported again for its session gives the id it has (False)."""
        mark = fingerprint(f"{user}\x00{agent}")
        with self.database.transaction():
            known = self.database.query(
                "SELECT id FROM exchanges WHERE session_id = :session AND fingerprint = :mark"
                " AND id = (SELECT max(id) FROM exchanges WHERE session_id = :session)",
                {"session": session_id, "mark": mark},
            )
            if known:
                return int(known[0][0]), False
            number = self.database.insert(
                "INSERT INTO exchanges"
                " (session_id, user_message, agent_response, timestamp, topic, private, fingerprint)"
                " VALUES (:session, :user, :agent, :at, :topic, :private, :mark)",
                {
                    "session": session_id,
                    "user": user,
                    "agent": agent,
                    "at": timestamp,
                    "topic": topic,
                    "private": int(private),
                    "mark": mark,
                },
            )
            self.database.execute(
                "INSERT INTO exchanges_fts (rowid, user_message, agent_response) VALUES (:id, :user, :agent)",
                {"id": number, "user": spaced(user), "agent": spaced(agent)},
            )
            if number % TIDIED == 0:  # few pieces are read faster than many; 6 ms at 5,000 exchanges
                self.database.execute("INSERT INTO exchanges_fts (exchanges_fts) VALUES ('optimize')")
        return number, True

    def remove(self, ids: Iterable[int]) -> None:
        """Delete exchanges with their words, vectors, measures and signs."""
        self._written += 1
        with self.database.transaction():
            self.database.execute_many("DELETE FROM exchanges WHERE id = :id", ({"id": n} for n in ids))

    def put_vectors(self, identity: str, vectors: Iterable[tuple[int, int, bytes]]) -> None:
        """Keep vectors as (exchange, side, float32 bytes)."""
        self._written += 1
        with self.database.transaction():
            self.database.execute_many(
                "INSERT INTO exchange_vectors (exchange_id, side, identity, vector)"
                " SELECT :id, :side, :identity, :vector WHERE EXISTS (SELECT 1 FROM exchanges WHERE id = :id)"
                " ON CONFLICT (exchange_id, identity, side) DO UPDATE SET vector = excluded.vector",
                (
                    {"id": number, "side": side, "identity": identity, "vector": vector}
                    for number, side, vector in vectors
                ),
            )

    # ---- reading ----

    def get(self, ids: Sequence[int]) -> dict[int, Exchange]:
        """Exchanges by id."""
        found = {}
        for start in range(0, len(ids), 500):
            marks = ", ".join(str(int(number)) for number in ids[start : start + 500])
            sql = f"SELECT {_COLUMNS} FROM exchanges WHERE id IN ({marks})"  # noqa: S608 (whole numbers only)
            found.update({row[0]: _exchange(row) for row in self.database.query(sql)})
        return found

    def of_session(self, session_id: str, private: bool = True, limit: int = 100_000) -> list[Exchange]:
        """The last exchanges of a session, oldest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM exchanges WHERE session_id = :session AND (:all OR private = 0)"  # noqa: S608
            " ORDER BY id DESC LIMIT :limit"
        )
        rows = self.database.query(sql, {"session": session_id, "all": private, "limit": limit})
        return [_exchange(row) for row in reversed(rows)]

    def recent(self, private: bool = True, since: str = "", limit: int = 100) -> list[Exchange]:
        """The last exchanges of all sessions, oldest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM exchanges WHERE timestamp >= :since AND (:all OR private = 0)"  # noqa: S608
            " ORDER BY timestamp DESC, id DESC LIMIT :limit"
        )
        rows = self.database.query(sql, {"since": since, "all": private, "limit": limit})
        return [_exchange(row) for row in reversed(rows)]

    def oldest(self, limit: int) -> list[Exchange]:
        """The exchanges that were stored first."""
        sql = f"SELECT {_COLUMNS} FROM exchanges ORDER BY id LIMIT :limit"  # noqa: S608 (constant columns)
        return [_exchange(row) for row in self.database.query(sql, {"limit": limit})]

    def count(self) -> int:
        """How many exchanges there are."""
        return int(self.database.query("SELECT count(*) FROM exchanges")[0][0])

    def last_id(self, session_id: str) -> int:
        """The newest exchange of a session; 0 when it has none."""
        rows = self.database.query(
            "SELECT coalesce(max(id), 0) FROM exchanges WHERE session_id = :session", {"session": session_id}
        )
        return int(rows[0][0])

    def sessions(self, private: bool = True, limit: int = 50) -> list[Session]:
        """The sessions, newest first."""
        rows = self.database.query(
            "SELECT session_id, count(*), min(timestamp), max(timestamp), max(id) AS newest FROM exchanges"
            " WHERE (:all OR private = 0) GROUP BY session_id ORDER BY newest DESC LIMIT :limit",
            {"all": private, "limit": limit},
        )
        return [Session(row[0], row[1], row[2], row[3], self._topics(row[0], private)) for row in rows]

    def _topics(self, session_id: str, private: bool) -> tuple[str, ...]:
        rows = self.database.query(
            "SELECT topic FROM exchanges"
            " WHERE session_id = :session AND topic <> '' AND (:all OR private = 0)"
            " GROUP BY topic ORDER BY count(*) DESC, max(id) DESC LIMIT 3",
            {"session": session_id, "all": private},
        )
        return tuple(row[0] for row in rows)

    # ---- searching ----

    def by_words(self, terms: Sequence[str], sight: Sight, limit: int) -> list[tuple[int, float]]:
        """Exchanges that hold any of the terms, best first."""
        # Not `rowid IN (…)`: SQLite would then run the keyword query once for every exchange.
        only = f"EXISTS (SELECT 1 FROM exchanges WHERE id = exchanges_fts.rowid AND {sight.condition})"  # noqa: S608
        return self.database.match(
            "exchanges_fts", terms, limit, only if sight.condition else "", sight.params
        )

    def spread(self, term: str, most: int = 1_000_000) -> int:
        """In how many exchanges a term stands, counted up to `most`."""
        from nanoclaw_memory.store.sqlite import any_of

        rows = self.database.query(
            "SELECT count(*) FROM (SELECT 1 FROM exchanges_fts WHERE exchanges_fts MATCH :term LIMIT :most)",
            {"term": any_of([term]), "most": most},
        )
        return int(rows[0][0])

    def by_vector(
        self, identity: str, vector: npt.NDArray[np.float32], sight: Sight, limit: int
    ) -> list[tuple[int, float]]:
        """Exchanges by the nearer of their two sides: cosine, best first."""
        matrix = self._matrix(identity)
        return matrix.nearest(vector, sight, limit) if matrix.size else []

    def unrelated(self, identity: str, vector: npt.NDArray[np.float32]) -> float | None:
        """The mean cosine with all exchanges: what a text has that is about something else; None for too few."""
        matrix = self._matrix(identity)
        return float(matrix.mean @ vector) if matrix.size >= TELLING else None

    def without_vector(self, identity: str, limit: int) -> list[Exchange]:
        """The newest exchanges that this embedder has not seen."""
        sql = (
            f"SELECT {_COLUMNS} FROM exchanges WHERE NOT EXISTS (SELECT 1 FROM exchange_vectors AS v"  # noqa: S608
            " WHERE v.exchange_id = exchanges.id AND v.identity = :identity) ORDER BY id DESC LIMIT :limit"
        )
        rows = self.database.query(sql, {"identity": identity, "limit": limit})
        return [_exchange(row) for row in rows]

    def identities(self) -> set[str]:
        """Who made the vectors that are here."""
        return {row[0] for row in self.database.query("SELECT DISTINCT identity FROM exchange_vectors")}

    def _matrix(self, identity: str) -> _Matrix:
        seen = (
            self.database.version(),
            self._written,
        )  # counting rows costs more than asking whether any changed
        if identity in self._matrices and self._checked.get(identity) == seen:
            return self._matrices[identity]
        self._checked[identity] = seen
        state = self.database.query(
            "SELECT count(*), coalesce(max(id), 0) FROM exchange_vectors WHERE identity = :identity",
            {"identity": identity},
        )[0]
        matrix = self._matrices.get(identity)
        if matrix is None or matrix.state != state:
            grown = matrix is not None and state[0] > matrix.state[0]
            matrix = self._read(identity, state, matrix if grown else None)
            self._matrices[identity] = matrix
        return matrix

    def _read(self, identity: str, state: tuple[int, int], before: _Matrix | None) -> _Matrix:
        sql = (
            "SELECT v.exchange_id, e.session_id, e.private, v.vector FROM exchange_vectors v"
            " JOIN exchanges e ON e.id = v.exchange_id"
            " WHERE v.identity = :identity AND v.id > :after ORDER BY v.id"
        )
        after = before.state[1] if before else 0
        rows = self.database.query(sql, {"identity": identity, "after": after})
        if before is not None and before.size + len(rows) != state[0]:
            return self._read(identity, state, None)  # some were deleted meanwhile
        return _Matrix.of(state, rows, before)


class _Matrix:
    """Vectors of one identity in memory, with what is needed to decide who may see them."""

    def __init__(
        self,
        state: tuple[int, int],
        ids: npt.NDArray[np.int64],
        sessions: list[str],
        private: npt.NDArray[np.bool_],
        vectors: npt.NDArray[np.float32],
    ) -> None:
        self.state = state
        self.ids = ids
        self.sessions = sessions
        self.places: dict[str, list[int]] = {}  # rows by session
        for row, name in enumerate(sessions):
            self.places.setdefault(name, []).append(row)
        self.private = private
        self.vectors = vectors

    @property
    def size(self) -> int:
        return len(self.ids)

    @cached_property
    def mean(self) -> npt.NDArray[np.float32]:
        """The mean of all vectors; its cosine with one is the mean of theirs."""
        mean: npt.NDArray[np.float32] = self.vectors.mean(axis=0)
        return mean

    @classmethod
    def of(
        cls, state: tuple[int, int], rows: Sequence[tuple[int, str, int, bytes]], before: _Matrix | None
    ) -> _Matrix:
        """A matrix of the rows, after those of `before`."""
        import numpy as np

        ids = np.array([row[0] for row in rows], dtype=np.int64)
        private = np.array([bool(row[2]) for row in rows], dtype=np.bool_)
        flat = np.frombuffer(b"".join(row[3] for row in rows), dtype=np.float32)
        vectors = flat.reshape(len(rows), -1) if rows else np.empty((0, 0), dtype=np.float32)
        sessions = [row[1] for row in rows]
        if before is None or not before.size:
            return cls(state, ids, sessions, private, vectors)
        if not rows:
            return cls(state, before.ids, before.sessions, before.private, before.vectors)
        return cls(
            state,
            np.concatenate([before.ids, ids]),
            before.sessions + sessions,
            np.concatenate([before.private, private]),
            np.concatenate([before.vectors, vectors]),
        )

    def nearest(self, vector: npt.NDArray[np.float32], sight: Sight, limit: int) -> list[tuple[int, float]]:
        """The best side of each exchange that `sight` may see."""
        import numpy as np

        # Not `@`: BLAS starts threads for that, which cost more than they save when the cores are busy.
        scores = np.vecdot(self.vectors, vector)
        if not sight.private:
            scores = np.where(self.private, -2.0, scores)
        if sight.session:
            own = np.fromiter(self.places.get(sight.session, ()), dtype=np.int64)
            scores[own[self.ids[own] > sight.after]] = -2.0
        wanted = min(limit * 2, len(scores))
        if not wanted:
            return []
        rows = np.argpartition(scores, len(scores) - wanted)[-wanted:]
        best: dict[int, float] = {}
        for number, score in zip(self.ids[rows].tolist(), scores[rows].tolist(), strict=True):
            if score > best.get(number, -2.0):
                best[number] = score
        return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def _exchange(row: Row) -> Exchange:
    number, session, user, agent, at, topic, private = row
    return Exchange(number, session, user, agent, at, topic, bool(private))
