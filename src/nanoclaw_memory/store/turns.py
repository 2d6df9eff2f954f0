"""Rows about turns: entropy, warning signs, tool calls, injections, compactions, cached graph answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import ToolCall

KEPT_INJECTIONS = 5_000
KEPT_TOOL_CALLS = 5_000


class Measure(msgspec.Struct, frozen=True):
    """The entropy of one exchange and its parts."""

    exchange_id: int
    at: str
    entropy: float
    parts: Mapping[str, float] = msgspec.field(default_factory=dict)


class Sign(msgspec.Struct, frozen=True):
    """A warning sign in an answer, such as a wrong claim or a loop."""

    exchange_id: int
    kind: str
    detail: str


class Injection(msgspec.Struct, frozen=True):
    """What one plugin did in one turn."""

    plugin: str
    hits: int
    tokens: int
    ms: float
    reason: str = ""


class CachedAnswer(msgspec.Struct, frozen=True):
    """Lines that graph memory injected, and the rows they came from."""

    lines: tuple[str, ...]
    facts: tuple[int, ...]
    relations: tuple[int, ...]


class TurnTable:
    """The rows about the turns of one group."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # ---- entropy and signs ----

    def put_measure(
        self, exchange_id: int, session_id: str, at: str, entropy: float, parts: Mapping[str, float]
    ) -> None:
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO measures (exchange_id, session_id, at, entropy, parts)"
                " VALUES (:id, :session, :at, :entropy, :parts)"
                " ON CONFLICT (exchange_id) DO UPDATE SET entropy = excluded.entropy, parts = excluded.parts",
                {
                    "id": exchange_id,
                    "session": session_id,
                    "at": at,
                    "entropy": entropy,
                    "parts": json.dumps(dict(parts)),
                },
            )

    def measures(self, session_id: str, limit: int) -> list[Measure]:
        """The last measures of a session, oldest first."""
        rows = self.database.query(
            "SELECT exchange_id, at, entropy, parts FROM measures WHERE session_id = :session"
            " ORDER BY exchange_id DESC LIMIT :limit",
            {"session": session_id, "limit": limit},
        )
        return [Measure(row[0], row[1], row[2], json.loads(row[3])) for row in reversed(rows)]

    def put_signs(self, session_id: str, signs: Iterable[Sign]) -> None:
        with self.database.transaction():
            self.database.execute_many(
                "INSERT INTO signs (exchange_id, session_id, kind, detail)"
                " VALUES (:exchange_id, :session, :kind, :detail)",
                ({**asdict(sign), "session": session_id} for sign in signs),
            )

    def signs(self, session_id: str, since: int) -> list[Sign]:
        """The signs of a session from exchange `since` on."""
        rows = self.database.query(
            "SELECT exchange_id, kind, detail FROM signs"
            " WHERE session_id = :session AND exchange_id >= :since ORDER BY id",
            {"session": session_id, "since": since},
        )
        return [Sign(*row) for row in rows]

    # ---- tool calls ----

    def add_tool_calls(self, session_id: str, at: str, calls: Sequence[ToolCall]) -> None:
        """Keep calls; of an output only its fingerprint."""
        with self.database.transaction():
            self.database.execute_many(
                "INSERT INTO tool_calls (session_id, at, tool, target, output)"
                " VALUES (:session, :at, :tool, :target, :output)",
                (
                    {
                        "session": session_id,
                        "at": at,
                        "tool": call.tool[:200],
                        "target": call.target[:500],
                        "output": fingerprint(call.output)[:16] if call.output else "",
                    }
                    for call in calls
                ),
            )
            self.database.execute(
                "DELETE FROM tool_calls WHERE id <= (SELECT max(id) FROM tool_calls) - :kept",
                {"kept": KEPT_TOOL_CALLS},
            )

    def tool_calls(self, session_id: str, limit: int) -> list[ToolCall]:
        """The last calls of a session, oldest first."""
        rows = self.database.query(
            "SELECT tool, target, output FROM tool_calls WHERE session_id = :session"
            " ORDER BY id DESC LIMIT :limit",
            {"session": session_id, "limit": limit},
        )
        return [ToolCall(*row) for row in reversed(rows)]

    # ---- injections ----

    def add_injections(self, session_id: str, at: str, injections: Iterable[Injection]) -> None:
        with self.database.transaction():
            self.database.execute_many(
                "INSERT INTO injections (session_id, at, plugin, hits, tokens, ms, reason)"
                " VALUES (:session, :at, :plugin, :hits, :tokens, :ms, :reason)",
                ({**asdict(one), "session": session_id, "at": at} for one in injections),
            )
            self.database.execute(
                "DELETE FROM injections WHERE id <= (SELECT max(id) FROM injections) - :kept",
                {"kept": KEPT_INJECTIONS},
            )

    # ---- compaction ----

    def mark_compaction(self, session_id: str, last_id: int, at: str) -> None:
        """Note that the model's window no longer contains the exchanges up to `last_id`."""
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO compactions (session_id, last_id, at) VALUES (:session, :last, :at)"
                " ON CONFLICT (session_id) DO UPDATE SET last_id = excluded.last_id, at = excluded.at",
                {"session": session_id, "last": last_id, "at": at},
            )

    def compacted_up_to(self, session_id: str) -> int:
        """The last exchange that a session's compaction took out of the window; 0 for none."""
        rows = self.database.query(
            "SELECT last_id FROM compactions WHERE session_id = :session", {"session": session_id}
        )
        return int(rows[0][0]) if rows else 0

    # ---- answers of graph memory ----

    def cached_answer(self, question: str, private: bool, generation: str, since: str) -> CachedAnswer | None:
        """The answer to this question since a moment, if the graph has not changed."""
        rows = self.database.query(
            "SELECT answer FROM graph_answers WHERE question = :question AND private = :private"
            " AND generation = :generation AND at >= :since",
            {"question": question, "private": int(private), "generation": generation, "since": since},
        )
        return CachedAnswer(*(tuple(part) for part in json.loads(rows[0][0]))) if rows else None

    def keep_answer(
        self, question: str, private: bool, generation: str, answer: CachedAnswer, at: str, size: int
    ) -> None:
        """Keep an answer, and of all answers only the `size` used last."""
        with self.database.transaction():
            self.database.execute(
                "INSERT INTO graph_answers (question, private, generation, answer, at, used_at)"
                " VALUES (:question, :private, :generation, :answer, :at, :at)"
                " ON CONFLICT (question, private) DO UPDATE SET generation = excluded.generation,"
                " answer = excluded.answer, at = excluded.at, used_at = excluded.used_at",
                {
                    "question": question,
                    "private": int(private),
                    "generation": generation,
                    "answer": json.dumps([answer.lines, answer.facts, answer.relations], ensure_ascii=False),
                    "at": at,
                },
            )
            self.database.execute(
                "DELETE FROM graph_answers WHERE (question, private) NOT IN"
                " (SELECT question, private FROM graph_answers ORDER BY used_at DESC, question LIMIT :size)",
                {"size": size},
            )

    def touch_answer(self, question: str, private: bool, at: str) -> None:
        """Note that an answer was used: the least recently used goes first."""
        with self.database.transaction():
            self.database.execute(
                "UPDATE graph_answers SET used_at = :at WHERE question = :question AND private = :private",
                {"question": question, "private": int(private), "at": at},
            )
