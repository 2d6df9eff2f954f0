"""Mentions: which line of which file says a fact, relation or alias."""

from __future__ import annotations

from dataclasses import dataclass

from nanoclaw_memory.store.database import Database


@dataclass(frozen=True)
class MentionRow:
    """One thing that a file says."""

    mark: str
    line: int
    kind: str
    item: int


class MentionTable:
    """The mentions of one facts database. Writing needs an open transaction."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def of(self, path: str) -> dict[str, MentionRow]:
        """What a file said when it was last read."""
        rows = self.db.query("SELECT mark, line, kind, item FROM mentions WHERE path = :path", {"path": path})
        return {row[0]: MentionRow(*row) for row in rows}

    def paths(self) -> list[str]:
        """The files that were read."""
        return [row[0] for row in self.db.query("SELECT DISTINCT path FROM mentions ORDER BY path")]

    def put(self, path: str, mark: str, line: int, kind: str, item: int) -> None:
        """The file says it on this line."""
        self.db.execute(
            "INSERT INTO mentions (path, mark, line, kind, item) VALUES (:path, :mark, :line, :kind, :item)"
            " ON CONFLICT (path, mark) DO UPDATE SET line = :line, item = :item",
            {"path": path, "mark": mark, "line": line, "kind": kind, "item": item},
        )

    def drop(self, path: str, mark: str) -> None:
        """The file no longer says it."""
        self.db.execute(
            "DELETE FROM mentions WHERE path = :path AND mark = :mark", {"path": path, "mark": mark}
        )

    def elsewhere(self, kind: str, item: int) -> bool:
        """Whether any file still says it."""
        rows = self.db.query(
            "SELECT 1 FROM mentions WHERE kind = :kind AND item = :item LIMIT 1", {"kind": kind, "item": item}
        )
        return bool(rows)
