"""Rows of lessons and of the outcomes of their injections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Lesson, Outcome

MAX_QUERY = 500
MAX_TALK = 98  # of each side; together with what is between them a trigger's 200
HELD = (
    "waits for review: "  # begins the reason of a lesson that steers nothing before a person has accepted it
)
TALK = " | "  # between what was asked and what was answered
_LESSON = (
    "id, trigger_pattern, lesson_text, coalesce(principle, ''), effectiveness_score, injection_count, state,"
    " seen, maturity_days, general, private, origin, created_at, retired_because, reach, why,"
    " (SELECT count(*) FROM vector_outcomes WHERE vector_id = growth_vectors.id AND user_feedback = 'good')"
)
_OUTCOME = (
    "id, vector_id, session_id, coalesce(query_text, ''), coalesce(pre_entropy, 0), post_entropy,"
    " coalesce(user_feedback, ''), helped, injection_time"
)


def trigger_of(asked: str, answered: str) -> str:
    """What was being talked about when a correction came: the beginnings of the question and of its answer."""
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


class LessonTable:
    """The repository of one group's lessons."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # ---- lessons ----

    def add(self, new: NewLesson, at: str) -> int:
        """Store a lesson; returns its id."""
        with self.database.transaction():
            return self.database.insert(
                "INSERT INTO growth_vectors (trigger_pattern, lesson_text, principle, state, general, private,"
                " origin, session_id, exchange_id, created_at, last_seen, reach, why)"
                " VALUES (:trigger, :lesson, :principle, :state, :general, :private,"
                " :origin, :session_id, :exchange_id, :at, :at, :reach, :why)",
                {**asdict(new), "at": at, "reach": "general" if new.general else new.reach},
            )

    def update(self, lesson_id: int, **values: Any) -> None:
        """Change columns of a lesson; the names are ours, never a caller's text."""
        settings = ", ".join(f"{name} = :{name}" for name in values)
        with self.database.transaction():
            self.database.execute(
                f"UPDATE growth_vectors SET {settings} WHERE id = :lesson_id",  # noqa: S608 (our own names)
                {**values, "lesson_id": lesson_id},
            )

    def get(self, lesson_id: int) -> Lesson | None:
        sql = f"SELECT {_LESSON} FROM growth_vectors WHERE id = :id"  # noqa: S608 (constant columns)
        rows = self.database.query(sql, {"id": lesson_id})
        return _lesson(rows[0]) if rows else None

    def all(self, states: Iterable[str] = (), private: bool = True) -> list[Lesson]:
        """The lessons a scope may see, oldest first."""
        wanted = ", ".join(f"'{state}'" for state in states if state.isalpha())
        where = f" AND state IN ({wanted})" if wanted else ""
        sql = f"SELECT {_LESSON} FROM growth_vectors WHERE (:all = 1 OR private = 0){where} ORDER BY id"  # noqa: S608
        return [_lesson(row) for row in self.database.query(sql, {"all": private})]

    def learnt_from(self, exchange_id: int) -> tuple[int, ...]:
        """The lessons that an exchange brought or confirmed."""
        rows = self.database.query(
            "SELECT id FROM growth_vectors WHERE exchange_id = :id ORDER BY id", {"id": exchange_id}
        )
        return tuple(int(row[0]) for row in rows)

    # ---- exchanges that wait for the judge ----

    def mark_unjudged(self, exchange_id: int) -> None:
        """Note an exchange that was read by rules alone."""
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO unjudged_exchanges VALUES (:id) ON CONFLICT DO NOTHING", {"id": exchange_id}
            )

    def unjudged(self, limit: int) -> list[int]:
        """The exchanges that were read by rules alone, oldest first."""
        sql = "SELECT exchange_id FROM unjudged_exchanges ORDER BY exchange_id LIMIT :limit"
        return [int(row[0]) for row in self.database.query(sql, {"limit": limit})]

    def mark_judged(self, exchange_id: int) -> None:
        """Note that the judge has read an exchange."""
        with self.database.transaction():
            self.database.execute(
                "DELETE FROM unjudged_exchanges WHERE exchange_id = :id", {"id": exchange_id}
            )

    # ---- outcomes ----

    def injected(
        self, lesson_ids: Sequence[int], session_id: str, query: str, entropy: float, at: str
    ) -> None:
        """Note that lessons were put before a model call; what came of it is noted later."""
        with self.database.transaction():
            for number in lesson_ids:
                self.database.execute(
                    "UPDATE growth_vectors SET injection_count = injection_count + 1 WHERE id = :id",
                    {"id": number},
                )
                self.database.execute(
                    "INSERT INTO vector_outcomes (vector_id, session_id, query_text, pre_entropy, injection_time)"
                    " VALUES (:id, :session, :query, :entropy, :at)",
                    {
                        "id": number,
                        "session": session_id,
                        "query": query[:MAX_QUERY],
                        "entropy": entropy,
                        "at": at,
                    },
                )

    def awaiting(self, session_id: str) -> list[Outcome]:
        """Injections of a session whose outcome is not known yet."""
        sql = (
            f"SELECT {_OUTCOME} FROM vector_outcomes"  # noqa: S608 (constant columns)
            " WHERE session_id = :session AND user_feedback IS NULL ORDER BY id"
        )
        return [_outcome(row) for row in self.database.query(sql, {"session": session_id})]

    def outcomes(self, lesson_id: int | None = None, limit: int = 100) -> list[Outcome]:
        """Outcomes, newest first; of one lesson or of all."""
        sql = (
            f"SELECT {_OUTCOME} FROM vector_outcomes"  # noqa: S608 (constant columns)
            " WHERE (:id IS NULL OR vector_id = :id) ORDER BY id DESC LIMIT :limit"
        )
        return [_outcome(row) for row in self.database.query(sql, {"id": lesson_id, "limit": limit})]

    def settle(self, outcome_id: int, feedback: str, post_entropy: float | None, helped: bool | None) -> None:
        """Note what came of an injection; `helped` is None when that cannot be said."""
        with self.database.transaction():
            self.database.execute(
                "UPDATE vector_outcomes SET user_feedback = :feedback, helped = :helped,"
                " post_entropy = coalesce(:post, post_entropy) WHERE id = :id",
                {"feedback": feedback, "post": post_entropy, "helped": helped, "id": outcome_id},
            )

    def tally(self, lesson_id: int) -> tuple[int, int]:
        """Of the injections that helped or did not: how many, and how many helped; a neutral one says neither."""
        rows = self.database.query(
            "SELECT count(*), coalesce(sum(helped), 0) FROM vector_outcomes"
            " WHERE vector_id = :id AND user_feedback IN ('good', 'bad')",
            {"id": lesson_id},
        )
        return int(rows[0][0]), int(rows[0][1])

    def last_outcome(self) -> str:
        """When the loop last closed; empty when it never did."""
        rows = self.database.query(
            "SELECT max(injection_time) FROM vector_outcomes WHERE user_feedback IS NOT NULL"
        )
        return str(rows[0][0] or "")


def _lesson(row: Row) -> Lesson:
    return Lesson(
        id=row[0],
        trigger=row[1],
        lesson=row[2],
        principle=row[3],
        effectiveness=round(float(row[4]), 3),
        injections=row[5],
        state=row[6],
        seen=row[7],
        maturity_days=row[8],
        general=bool(row[9]),
        private=bool(row[10]),
        origin=row[11],
        created_at=row[12],
        retired_because=row[13],
        reach=row[14],
        why=row[15],
        helped=row[16],
    )


def _outcome(row: Row) -> Outcome:
    number, lesson_id, session, query, before, after, feedback, helped, at = row
    verdict = None if helped is None else bool(helped)
    return Outcome(
        id=number,
        lesson_id=lesson_id,
        session_id=session,
        query=query,
        pre_entropy=before,
        post_entropy=after,
        feedback=feedback,
        helped=verdict,
        injected_at=at,
    )
