"""Rows of currency: which passage a later one supersedes or follows, and statements found by a word."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from nanoclaw_memory.store.passage_search import Selection
from nanoclaw_memory.store.table import Table, insertion
from nanoclaw_memory.types import Passage

SUPERSEDED, EARLIER = "superseded", "earlier"
WIDESPREAD = 2_000  # passages with a word beyond which it is not checked which of them are statements
BOTH = "both"  # a decision that both are valid, so that neither is marked
# Passages with a statement of a line or two; answers of agents and prose of pages are not compared.
_KINDS = ("line", "item", "entry", "fact", "lesson")
_ONLY_ASKS = "p.text LIKE '%?' AND p.text NOT LIKE '%, %' AND p.text NOT LIKE '%. %'"
STATEMENT = f"(p.kind IN {_KINDS} OR (p.kind = 'turn' AND p.speaker = 'User' AND NOT ({_ONLY_ASKS})))"
# An answer of a line or two, which may report a change made by the agent.
_REPORT = "(p.kind = 'turn' AND p.speaker = 'Agent' AND length(p.text) <= 200)"


def is_statement(passage: Passage) -> bool:
    """Return whether a passage is compared with others."""
    return passage.kind in _KINDS or (passage.kind == "turn" and passage.speaker == "User")


class Overtaken(msgspec.Struct, frozen=True):
    """An older passage, a newer one on the same subject, and how certain it is that the newer one replaces it."""

    older: int
    newer: int
    kind: str  # superseded, earlier, both
    why: str
    sure: float


class CurrencyTable(Table[Overtaken]):
    """The currency rows of one search index."""

    table = "currency"
    columns = ", ".join(Overtaken.__struct_fields__)
    value = Overtaken

    def put(self, rows: Iterable[Overtaken]) -> None:
        """Store rows; inside a transaction."""
        sql = insertion("currency", Overtaken.__struct_fields__, ["older", "newer"])
        self.db.execute_many(sql, map(msgspec.structs.asdict, rows))

    def of(self, older: Iterable[int], visible: Selection | None = None) -> list[Overtaken]:
        """Return the rows of older passages whose newer passage is in a selection."""
        only = visible.of("newer") if visible is not None else ""
        return self.select(
            f"WHERE older IN (SELECT value FROM json_each(:older)){' AND ' + only if only else ''}",  # noqa: S608
            {"older": json.dumps(list(older)), **(visible.params if visible is not None else {})},
        )

    def answered(self, answers: Iterable[int], chars: int) -> dict[int, int]:
        """Return, for answers of at most so many characters, the first passage of the message that each answers."""
        if not (asked := list(answers)):
            return {}
        rows = self.db.query(
            "SELECT a.id, min(u.id) FROM passages a JOIN passages u ON u.number = a.number AND u.number > 0"
            " AND u.document_id = a.document_id AND u.kind = 'turn' AND u.speaker = 'User'"
            " WHERE a.id IN (SELECT value FROM json_each(:answers)) AND a.kind = 'turn' AND a.speaker = 'Agent'"
            " AND length(a.text) <= :chars GROUP BY a.id",
            {"answers": json.dumps(asked), "chars": chars},
        )
        return {int(answer): int(message) for answer, message in rows}

    def before(self, message: int) -> int:
        """Return the previous message of the conversation; 0 for the first."""
        rows = self.db.query(
            "SELECT b.id FROM passages m JOIN passages b ON b.document_id = m.document_id AND b.number < m.number"
            " AND b.number > 0 AND b.kind = 'turn' AND b.speaker = 'User' WHERE m.id = :message"
            " ORDER BY b.number DESC, b.id LIMIT 1",
            {"message": message},
        )
        return int(rows[0][0]) if rows else 0

    def following(self, answers: Iterable[int], speaker: str = "Agent") -> dict[int, int]:
        """Return, for passages of a speaker, the first one of the next message of the conversation."""
        if not (asked := list(answers)):
            return {}
        rows = self.db.query(
            "SELECT a.id, (SELECT m.id FROM passages m WHERE m.document_id = a.document_id AND m.number > a.number"
            " AND m.kind = 'turn' AND m.speaker = 'User' ORDER BY m.number, m.id LIMIT 1) FROM passages a"
            " WHERE a.id IN (SELECT value FROM json_each(:answers)) AND a.kind = 'turn' AND a.speaker = :speaker"
            " AND a.number > 0",
            {"answers": json.dumps(asked), "speaker": speaker},
        )
        return {int(answer): int(message) for answer, message in rows if message is not None}

    def undecided(self, most: int) -> list[Overtaken]:
        """Return pairs about which it is unknown whether both are valid, those with the newest statements first."""
        rest = "WHERE kind = 'earlier' AND sure <= 0.5 ORDER BY newer DESC, older DESC LIMIT :most"
        return self.select(rest, {"most": most})

    def superseded_entries(self) -> tuple[str, ...]:
        """Return the ids of entries that are superseded."""
        rows = self.db.query(
            "SELECT DISTINCT p.reference FROM currency c JOIN passages p ON p.id = c.older"
            " WHERE c.kind = 'superseded' AND p.kind = 'entry'"
        )
        return tuple(str(reference) for (reference,) in rows)

    def statements_after(self, last: int, most: int) -> list[int]:
        """Return the next passages above an id that are compared: statements, and short answers."""
        sql = f"SELECT id FROM passages p WHERE id > :last AND ({STATEMENT} OR {_REPORT}) ORDER BY id LIMIT :most"  # noqa: S608
        return [int(number) for (number,) in self.db.query(sql, {"last": last, "most": most})]

    def statements_with(self, word: str, most: int) -> list[int] | None:
        """Return at most `most` statements that contain a word; None if too many passages contain it."""
        found, params = self.db.containing("passages_fts", [word], column="body")
        if self.db.occurrences("passages_fts", word, WIDESPREAD) == WIDESPREAD:
            return None
        sql = (
            "SELECT p.id FROM passages_fts JOIN passages p ON p.id = passages_fts.rowid"  # noqa: S608
            f" WHERE {found} AND {STATEMENT} LIMIT :most"
        )
        return [int(number) for (number,) in self.db.query(sql, {**params, "most": most})]
