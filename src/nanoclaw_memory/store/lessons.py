"""The tables of lessons and of the outcomes of their injections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.table import Table, assignments, insertion
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import HELD as HELD
from nanoclaw_memory.types import NOTED as NOTED
from nanoclaw_memory.types import Lesson, Outcome

MAX_QUERY = 500
MAX_TALK = 98  # of each side; with the separator, the 200 of a trigger
STATES = "states something"  # part of the reason of a lesson that only states a fact
NO_CORRECTION = "it is not sure that it corrects the answer"  # suffix of the reason of such a lesson
TALK = " | "  # separates question and answer
ABOUT = " (about: "  # precedes the subject of a lesson that says little without it


def trigger_of(asked: str, answered: str) -> str:
    """Return the subject of a correction: the beginnings of the question and of its answer."""
    return TALK.join(filter(None, (one_line(asked)[:MAX_TALK], one_line(answered)[:MAX_TALK])))


class NewLesson(msgspec.Struct, frozen=True):
    """A lesson before it is stored."""

    trigger: str
    lesson: str
    principle: str
    state: str
    general: bool
    private: bool
    origin: str = "user"
    session_id: str = ""
    exchange_id: int = 0
    reach: str = "topic"
    why: str = ""
    project: str = ""
    only_there: bool = False


class OutcomeTable(Table[Outcome]):
    """The outcomes of injections."""

    table = "vector_outcomes"
    columns = (
        "id, vector_id, session_id, coalesce(query_text, ''), coalesce(pre_entropy, 0), post_entropy,"
        " coalesce(user_feedback, ''), helped, injection_time"
    )
    value = Outcome


class LessonTable(Table[Lesson]):
    """The repository of one group's lessons."""

    table = "growth_vectors"
    columns = (
        "id, trigger_pattern, lesson_text, coalesce(principle, ''), effectiveness_score, injection_count,"
        " state, seen, maturity_days, general, private, origin, created_at, retired_because, reach, why,"
        " (SELECT count(*) FROM vector_outcomes WHERE vector_id = growth_vectors.id AND user_feedback = 'good'),"
        " project, only_there"
    )
    value = Lesson

    def read(self, row: Row) -> Lesson:
        return super().read((*row[:4], round(float(row[4]), 3), *row[5:]))

    # ---- lessons ----

    def add(self, new: NewLesson, at: str) -> int:
        """Store a lesson; return its id."""
        with self.db.transaction():
            row = asdict(new) | {"created_at": at, "last_seen": at}
            row |= {"trigger_pattern": row.pop("trigger"), "lesson_text": row.pop("lesson")}
            row["reach"] = "general" if new.general else new.reach
            return self.db.insert(insertion("growth_vectors", row), row)

    def update(self, lesson_id: int, **values: Any) -> None:
        """Change columns of a lesson; the names are ours, never a caller's text."""
        sql = f"UPDATE growth_vectors SET {assignments(values)} WHERE id = :lesson_id"  # noqa: S608
        with self.db.transaction():
            self.db.execute(sql, {**values, "lesson_id": lesson_id})

    def get(self, lesson_id: int) -> Lesson | None:
        return self.first("WHERE id = :id", {"id": lesson_id})

    def all(self, states: Iterable[str] = (), private: bool = True) -> list[Lesson]:
        """Return the lessons a scope may see, oldest first."""
        wanted = ", ".join(f"'{state}'" for state in states if state.isalpha())
        where = f" AND state IN ({wanted})" if wanted else ""
        return self.select(f"WHERE (:all = 1 OR private = 0){where} ORDER BY id", {"all": private})

    def learnt_from(self, exchange_id: int) -> tuple[int, ...]:
        """Return the lessons that an exchange created or confirmed."""
        rows = self.db.query(
            "SELECT id FROM growth_vectors WHERE exchange_id = :id ORDER BY id", {"id": exchange_id}
        )
        return tuple(int(row[0]) for row in rows)

    # ---- exchanges that wait for the judge ----

    def mark_unjudged(self, exchange_id: int) -> None:
        """Record an exchange that was read by rules alone."""
        with self.db.transaction():
            self.db.execute(
                "INSERT INTO unjudged_exchanges VALUES (:id) ON CONFLICT DO NOTHING", {"id": exchange_id}
            )

    def unjudged(self, limit: int) -> list[int]:
        """Return the exchanges that were read by rules alone, oldest first."""
        sql = "SELECT exchange_id FROM unjudged_exchanges ORDER BY exchange_id LIMIT :limit"
        return [int(row[0]) for row in self.db.query(sql, {"limit": limit})]

    def mark_judged(self, exchange_id: int) -> None:
        """Record that the judge has read an exchange."""
        with self.db.transaction():
            self.db.execute("DELETE FROM unjudged_exchanges WHERE exchange_id = :id", {"id": exchange_id})

    # ---- outcomes ----

    def injected(
        self, lesson_ids: Sequence[int], session_id: str, query: str, entropy: float, at: str
    ) -> None:
        """Record that lessons were put before a model call; the outcome is recorded later."""
        with self.db.transaction():
            for number in lesson_ids:
                self.db.execute(
                    "UPDATE growth_vectors SET injection_count = injection_count + 1 WHERE id = :id",
                    {"id": number},
                )
                row = {"vector_id": number, "session_id": session_id, "query_text": query[:MAX_QUERY]}
                row |= {"pre_entropy": entropy, "injection_time": at}
                self.db.execute(insertion("vector_outcomes", row), row)

    def awaiting(self, session_id: str) -> list[Outcome]:
        """Return injections of a session without an outcome so far."""
        rest = "WHERE session_id = :session AND user_feedback IS NULL ORDER BY id"
        return OutcomeTable(self.db).select(rest, {"session": session_id})

    def outcomes(self, lesson_id: int | None = None, limit: int = 100) -> list[Outcome]:
        """Return outcomes, newest first; of one lesson or of all."""
        rest = "WHERE (:id IS NULL OR vector_id = :id) ORDER BY id DESC LIMIT :limit"
        return OutcomeTable(self.db).select(rest, {"id": lesson_id, "limit": limit})

    def settle(self, outcome_id: int, feedback: str, post_entropy: float | None, helped: bool | None) -> None:
        """Record the outcome of an injection; `helped` is None if unknown."""
        with self.db.transaction():
            self.db.execute(
                "UPDATE vector_outcomes SET user_feedback = :feedback, helped = :helped,"
                " post_entropy = coalesce(:post, post_entropy) WHERE id = :id",
                {"feedback": feedback, "post": post_entropy, "helped": helped, "id": outcome_id},
            )

    def tally(self, lesson_id: int) -> tuple[int, int]:
        """Return how many injections helped or did not, and how many helped; neutral ones count as neither."""
        rows = self.db.query(
            "SELECT count(*), coalesce(sum(helped), 0) FROM vector_outcomes"
            " WHERE vector_id = :id AND user_feedback IN ('good', 'bad')",
            {"id": lesson_id},
        )
        return int(rows[0][0]), int(rows[0][1])

    def last_outcome(self) -> str:
        """Return the time of the last outcome; empty if there was none."""
        rows = self.db.query(
            "SELECT max(injection_time) FROM vector_outcomes WHERE user_feedback IS NOT NULL"
        )
        return str(rows[0][0] or "")
