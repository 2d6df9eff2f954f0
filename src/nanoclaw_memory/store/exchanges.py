"""The table of exchanges: what was said, in every session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import asdict

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.table import Table, as_struct, insertion
from nanoclaw_memory.text import content_words, fingerprint, one_line, sentences
from nanoclaw_memory.types import Exchange, Session

MAX_LINES = 10_000  # more than any message has that is read
READ_FOR_TITLE = 5  # first messages of a session
TELLING_WORDS = 3  # of a sentence that can be a title
TITLE = 60  # characters
_SEEN = "(:all = 1 OR private = 0)"


class Exchanges(Table[Exchange]):
    """The repository of exchanges."""

    table = "exchanges"
    columns = ", ".join(Exchange.__struct_fields__)
    value = Exchange

    def read(self, row: Row) -> Exchange:
        found: Exchange = as_struct(Exchange, (*row[:-1], line_numbers(row[-1])))
        return found

    # ---- writing ----

    def add(self, exchange: Exchange) -> tuple[int, bool]:
        """Store an exchange; one that was reported before returns its existing id (and False)."""
        mark = fingerprint(f"{exchange.user_message}\x00{exchange.agent_response}")
        with self.db.transaction():
            known = self.db.query(
                "SELECT id FROM exchanges WHERE session_id = :session AND fingerprint = :mark"
                # Equal moments occur when a drain that was killed passes several again.
                " AND (timestamp = :at OR id = (SELECT max(id) FROM exchanges WHERE session_id = :session))",
                {"session": exchange.session_id, "mark": mark, "at": exchange.timestamp},
            )
            if known:
                return int(known[0][0]), False
            row = asdict(exchange) | {
                "fingerprint": mark,
                "foreign_lines": _numbers(exchange.foreign_lines),
            }
            del row["id"]
            number = self.db.insert(insertion("exchanges", row), row)
        return number, True

    def set_foreign(self, number: int, lines: Iterable[int]) -> None:
        """Store which lines of a message are somebody else's."""
        with self.db.transaction():
            self.db.execute(
                "UPDATE exchanges SET foreign_lines = :lines WHERE id = :id AND foreign_lines <> :lines",
                {"id": number, "lines": _numbers(lines)},
            )

    def remove(self, ids: Iterable[int]) -> None:
        """Delete exchanges with their measures and signs."""
        with self.db.transaction():
            self.db.execute_many("DELETE FROM exchanges WHERE id = :id", ({"id": n} for n in ids))

    # ---- reading ----

    def get(self, ids: Sequence[int]) -> dict[int, Exchange]:
        """Return exchanges by id."""
        found = {}
        for start in range(0, len(ids), 500):
            marks = ", ".join(str(int(number)) for number in ids[start : start + 500])
            found.update({one.id: one for one in self.select(f"WHERE id IN ({marks})")})
        return found

    def of_session(self, session_id: str, private: bool = True, limit: int = 100_000) -> list[Exchange]:
        """Return the last exchanges of a session, oldest first."""
        rest = f"WHERE session_id = :session AND {_SEEN} ORDER BY id DESC LIMIT :limit"
        return self.select(rest, {"session": session_id, "all": private, "limit": limit})[::-1]

    def before(self, exchange: Exchange) -> Exchange | None:
        """Return the previous exchange of the same session, if its scope may see it."""
        return self._beside(exchange, "id < :id", "id DESC")

    def following(self, exchange: Exchange) -> Exchange | None:
        """Return the next exchange of the same session, if its scope may see it."""
        return self._beside(exchange, "id > :id", "id")

    def _beside(self, exchange: Exchange, where: str, order: str) -> Exchange | None:
        asked = {"session": exchange.session_id, "id": exchange.id, "all": exchange.private}
        return self.first(f"WHERE session_id = :session AND {where} AND {_SEEN} ORDER BY {order}", asked)

    def recent(
        self, private: bool = True, since: str = "", limit: int = 100, project: str | None = None
    ) -> list[Exchange]:
        """Return the last exchanges of all sessions, or of one project, oldest first."""
        of_project = "" if project is None else " AND project = :project"
        rest = (
            f"WHERE timestamp >= :since AND {_SEEN}{of_project} ORDER BY timestamp DESC, id DESC LIMIT :limit"
        )
        params = {"since": since, "all": private, "limit": limit, "project": project}
        return self.select(rest, params)[::-1]

    def after(self, number: int, limit: int) -> list[Exchange]:
        """Return the private exchanges that were stored after one."""
        return self.select(
            "WHERE id > :id AND private ORDER BY id LIMIT :limit", {"id": number, "limit": limit}
        )

    def count(self) -> int:
        """Count the exchanges."""
        return int(self.db.query("SELECT count(*) FROM exchanges")[0][0])

    def count_sessions(self) -> int:
        """Count the conversations."""
        return int(self.db.query("SELECT count(DISTINCT session_id) FROM exchanges")[0][0])

    def last_id(self, session_id: str) -> int:
        """Return the newest exchange of a session; 0 when it has none."""
        rows = self.db.query(
            "SELECT coalesce(max(id), 0) FROM exchanges WHERE session_id = :session", {"session": session_id}
        )
        return int(rows[0][0])

    def sessions(self, private: bool = True, limit: int = 50) -> list[Session]:
        """Return the sessions, newest first."""
        rows = self.db.query(
            "SELECT session_id, count(*), min(timestamp), max(timestamp), max(project), max(id) AS newest"
            " FROM exchanges WHERE (:all = 1 OR private = 0) GROUP BY session_id ORDER BY newest DESC LIMIT :limit",
            {"all": private, "limit": limit},
        )
        return [
            Session(
                session,
                count,
                first,
                last,
                self._topics(session, private),
                project,
                title=self._title(session, private),
            )
            for session, count, first, last, project, _ in rows
        ]

    def projects(self, private: bool = True) -> list[tuple[str, int, str]]:
        """Return every project with its number of exchanges and the time of the last one, newest first."""
        rows = self.db.query(
            "SELECT project, count(*), max(timestamp) AS last FROM exchanges"
            " WHERE project <> '' AND (:all = 1 OR private = 0) GROUP BY project ORDER BY last DESC",
            {"all": private},
        )
        return [(str(project), int(count), str(last)) for project, count, last in rows]

    def _title(self, session_id: str, private: bool) -> str:
        """Return a person's first sentence in a session that names its subject; greetings do not."""
        rows = self.db.query(
            "SELECT substr(user_message, 1, 1000) FROM exchanges WHERE session_id = :session AND user_message <> ''"
            " AND (:all = 1 OR private = 0) ORDER BY id LIMIT :most",
            {"session": session_id, "all": private, "most": READ_FOR_TITLE},
        )
        said = [one_line(sentence) for (message,) in rows for sentence in sentences(message)]
        telling = (one for one in said if len(content_words(one)) >= TELLING_WORDS)
        title = next(telling, said[0] if said else "")
        return title if len(title) <= TITLE else f"{title[:TITLE].rsplit(' ', 1)[0]}…"

    def _topics(self, session_id: str, private: bool) -> tuple[str, ...]:
        rows = self.db.query(
            "SELECT topic FROM exchanges"
            " WHERE session_id = :session AND topic <> '' AND (:all = 1 OR private = 0)"
            " GROUP BY topic ORDER BY count(*) DESC, max(id) DESC LIMIT 3",
            {"session": session_id, "all": private},
        )
        return tuple(row[0] for row in rows)


def line_numbers(kept: str) -> tuple[int, ...]:
    """Return the lines of a message that others wrote, from its row; all lines if that is unreadable."""
    try:
        return tuple(map(int, kept.split()))
    except ValueError:
        return tuple(range(MAX_LINES))


def _numbers(lines: Iterable[int]) -> str:
    return " ".join(map(str, sorted(lines)))
