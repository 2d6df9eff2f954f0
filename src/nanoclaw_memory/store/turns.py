"""Rows about turns: entropy, warning signs, tool calls, injections, lines that sessions received, cached graph
answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.table import as_struct, insertion
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import InjectedLine, Injection, TokenSum, ToolCall

KEPT_INJECTIONS = 20_000
KEPT_TOOL_CALLS = 5_000
KEPT_STARTS = 200
EXCHANGE = "exchange"  # the tool name of a repeated exchange among the tool calls
KEPT_START_DAYS = 30
KEPT_GIVEN = 20_000


# Plugins of one call share its moment; the boot context is recorded with the plugins of a session's start.
_CALLS = "count(DISTINCT CASE WHEN plugin <> 'boot' THEN session_id || ' ' || at END)"
_INJECTED = "sum(CASE WHEN tokens > 0 THEN 1 ELSE 0 END)"
_ASKED = "FROM injections WHERE (session_id = :session OR :session = '') AND at >= :since"


class Measure(msgspec.Struct, frozen=True):
    """The entropy of one exchange and its parts."""

    exchange_id: int
    at: str
    entropy: float
    parts: Mapping[str, float] = msgspec.field(default_factory=dict)


AGAIN = "again"  # the kind of sign of an exchange that was repeated in the same words


class Sign(msgspec.Struct, frozen=True):
    """A warning sign in an answer, such as a wrong claim or a loop."""

    exchange_id: int
    kind: str
    detail: str


class CachedAnswer(msgspec.Struct, frozen=True):
    """Lines that graph memory injected, and the rows they came from."""

    lines: tuple[str, ...]
    facts: tuple[int, ...]
    relations: tuple[int, ...]
    reasons: tuple[str, ...] = ()


class TurnTable:
    """The rows about the turns of one group."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # ---- entropy and signs ----

    def put_measure(
        self, exchange_id: int, session_id: str, at: str, entropy: float, parts: Mapping[str, float]
    ) -> None:
        with self.database.transaction():
            row = {"exchange_id": exchange_id, "session_id": session_id, "at": at, "entropy": entropy}
            row["parts"] = json.dumps(dict(parts))
            self.database.execute(insertion("measures", row, ["exchange_id"], ["entropy", "parts"]), row)

    def measures(self, session_id: str, limit: int) -> list[Measure]:
        """Return the last measures of a session, oldest first."""
        rows = self.database.query(
            "SELECT exchange_id, at, entropy, parts FROM measures WHERE session_id = :session"
            " ORDER BY exchange_id DESC LIMIT :limit",
            {"session": session_id, "limit": limit},
        )
        return [Measure(row[0], row[1], row[2], json.loads(row[3])) for row in reversed(rows)]

    def put_signs(self, session_id: str, signs: Iterable[Sign]) -> None:
        with self.database.transaction():
            self.database.execute_many(
                insertion("signs", ("session_id", *Sign.__struct_fields__)),
                ({**asdict(sign), "session_id": session_id} for sign in signs),
            )

    def signs(self, session_id: str, since: int) -> list[Sign]:
        """Return the signs of a session from exchange `since` on."""
        rows = self.database.query(
            "SELECT exchange_id, kind, detail FROM signs"
            " WHERE session_id = :session AND exchange_id >= :since ORDER BY id",
            {"session": session_id, "since": since},
        )
        return [Sign(*row) for row in rows]

    # ---- tool calls ----

    def add_tool_calls(self, session_id: str, at: str, calls: Sequence[ToolCall]) -> None:
        """Store calls, with only a fingerprint of their output."""
        with self.database.transaction():
            rows = [
                {
                    "session_id": session_id,
                    "at": at,
                    "tool": call.tool[:200],
                    "target": call.target[:500],
                    "output": fingerprint(call.output)[:16] if call.output else "",
                }
                for call in calls
            ]
            self._append("tool_calls", rows, KEPT_TOOL_CALLS)

    def tool_calls(self, session_id: str, limit: int) -> list[ToolCall]:
        """Return the last calls of a session, oldest first."""
        rows = self.database.query(
            "SELECT tool, target, output FROM tool_calls WHERE session_id = :session"
            " ORDER BY id DESC LIMIT :limit",
            {"session": session_id, "limit": limit},
        )
        return [ToolCall(*row) for row in reversed(rows)]

    # ---- injections ----

    def add_injections(self, session_id: str, at: str, injections: Iterable[Injection]) -> None:
        with self.database.transaction():
            own = {"session_id": session_id, "at": at}
            rows = [
                {**asdict(one), **own, "lines": msgspec.json.encode(one.lines).decode()} for one in injections
            ]
            self._append("injections", rows, KEPT_INJECTIONS)

    def injections(self, session_id: str, since: str, limit: int) -> list[Injection]:
        """Return what was injected since a moment, newest first; in every session if none is named."""
        rows = self.database.query(
            f"SELECT {', '.join(Injection.__struct_fields__)} {_ASKED}"
            " AND tokens > 0 ORDER BY id DESC LIMIT :limit",
            {"session": session_id, "since": since, "limit": limit},
        )
        lines = tuple[InjectedLine, ...]
        return [
            as_struct(Injection, (*row[:5], msgspec.json.decode(row[5], type=lines), *row[6:]))
            for row in rows
        ]

    def token_sums(self, by: Literal["plugin", "session_id"], session_id: str, since: str) -> list[TokenSum]:
        """Return the tokens injected since a moment, by plugin or session, the most first."""
        rows = self.database.query(
            f"SELECT {by}, {_INJECTED if by == 'plugin' else _CALLS}, sum(tokens) {_ASKED}"
            f" GROUP BY {by} HAVING sum(tokens) > 0 ORDER BY sum(tokens) DESC, {by}",
            {"session": session_id, "since": since},
        )
        return [TokenSum(*row) for row in rows]

    def calls(self, session_id: str, since: str) -> int:
        """Count session starts and turns since a moment, including those without injection."""
        ((number,),) = self.database.query(
            f"SELECT {_CALLS} {_ASKED}",
            {"session": session_id, "since": since},
        )
        return int(number)

    # ---- what a session received ----

    def start(self, session_id: str, private: bool, part: str) -> str | None:
        """Return one part of a session's start as it was injected; None if it was not."""
        rows = self.database.query(
            "SELECT content FROM session_starts"
            " WHERE session_id = :session AND private = :private AND part = :part",
            {"session": session_id, "private": int(private), "part": part},
        )
        return str(rows[0][0]) if rows else None

    def starts(self, session_id: str, private: bool) -> dict[str, str]:
        """Return every part of a session's start that was injected, by its name."""
        rows = self.database.query(
            "SELECT part, content FROM session_starts WHERE session_id = :session AND private = :private",
            {"session": session_id, "private": int(private)},
        )
        return {str(part): str(content) for part, content in rows}

    def keep_start(
        self, session_id: str, private: bool, part: str, content: str, at: str, oldest: str
    ) -> None:
        """Store one part of a session's start; keep only the last ones, none before `oldest`."""
        with self.database.transaction():
            row = {
                "session_id": session_id,
                "private": int(private),
                "part": part,
                "content": content,
                "at": at,
            }
            self.database.execute(insertion("session_starts", row, ["session_id", "private", "part"]), row)
            self.database.execute(
                "DELETE FROM session_starts WHERE at < :oldest"
                " OR id <= (SELECT max(id) FROM session_starts) - :kept",
                {"oldest": oldest, "kept": KEPT_STARTS},
            )

    def received_lines(self, session_id: str, private: bool) -> dict[str, str]:
        """Return the last lines of a session on each subject, as fingerprints."""
        rows = self.database.query(
            "SELECT subject, stated FROM given_lines WHERE session_id = :session AND private = :private",
            {"session": session_id, "private": int(private)},
        )
        return {str(subject): str(stated) for subject, stated in rows}

    def add_received(self, session_id: str, private: bool, lines: Mapping[str, str]) -> None:
        with self.database.transaction():
            own = {"session_id": session_id, "private": int(private)}
            rows = [{**own, "subject": subject, "stated": stated} for subject, stated in lines.items()]
            self._append("given_lines", rows, KEPT_GIVEN, ["session_id", "private", "subject"])

    def drop_received(self, session_id: str, start: bool) -> None:
        """Record that the model's window lost a session's lines, and that its `start` must be rendered again."""
        with self.database.transaction():
            given = {"session": session_id}
            self.database.execute("DELETE FROM given_lines WHERE session_id = :session", given)
            if start:
                self.database.execute("DELETE FROM session_starts WHERE session_id = :session", given)

    # ---- compaction ----

    def mark_compaction(self, session_id: str, last_id: int, at: str) -> None:
        """Record that the model's window no longer contains the exchanges up to `last_id`."""
        with self.database.transaction():
            row = {"session_id": session_id, "last_id": last_id, "at": at}
            self.database.execute(insertion("compactions", row, ["session_id"]), row)

    def compacted_up_to(self, session_id: str) -> int:
        """Return the last exchange that a compaction removed from a session's window; 0 for none."""
        rows = self.database.query(
            "SELECT last_id FROM compactions WHERE session_id = :session", {"session": session_id}
        )
        return int(rows[0][0]) if rows else 0

    # ---- answers of graph memory ----

    def cached_answer(self, question: str, private: bool, generation: str, since: str) -> CachedAnswer | None:
        """Return the answer to this question since a moment, if the graph has not changed."""
        rows = self.database.query(
            "SELECT answer FROM graph_answers WHERE question = :question AND private = :private"
            " AND generation = :generation AND at >= :since",
            {"question": question, "private": int(private), "generation": generation, "since": since},
        )
        return CachedAnswer(*(tuple(part) for part in json.loads(rows[0][0]))) if rows else None

    def keep_answer(
        self, question: str, private: bool, generation: str, answer: CachedAnswer, at: str, size: int
    ) -> None:
        """Store an answer; keep only the `size` used last."""
        with self.database.transaction():
            said = [answer.lines, answer.facts, answer.relations, answer.reasons]
            row = {"question": question, "private": int(private), "generation": generation}
            row |= {"answer": json.dumps(said, ensure_ascii=False), "at": at, "used_at": at}
            self.database.execute(insertion("graph_answers", row, ["question", "private"]), row)
            self.database.execute(
                "DELETE FROM graph_answers WHERE (question, private) NOT IN"
                " (SELECT question, private FROM graph_answers ORDER BY used_at DESC, question LIMIT :size)",
                {"size": size},
            )

    def touch_answer(self, question: str, private: bool, at: str) -> None:
        """Record that an answer was used: the least recently used is dropped first."""
        with self.database.transaction():
            self.database.execute(
                "UPDATE graph_answers SET used_at = :at WHERE question = :question AND private = :private",
                {"question": question, "private": int(private), "at": at},
            )

    def _append(
        self, table: str, rows: Sequence[Mapping[str, Any]], kept: int, same: Sequence[str] = ()
    ) -> None:
        """Add rows to a table that keeps only its last ones."""
        if rows:
            self.database.execute_many(insertion(table, rows[0], same), rows)
            sql = f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - :kept"  # noqa: S608
            self.database.execute(sql, {"kept": kept})
