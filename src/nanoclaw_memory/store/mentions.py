"""The table of mentions: which line of which file states a fact, relation or alias."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.table import insertion, keep_note


class MentionRow(msgspec.Struct, frozen=True):
    """One fact, relation or alias that a file states."""

    mark: str
    line: int
    kind: str
    item: int


class MentionTable:
    """The mentions of one facts database. Writing needs an open transaction."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def of(self, path: str) -> dict[str, MentionRow]:
        """Return what a file stated when it was last read."""
        rows = self.db.query("SELECT mark, line, kind, item FROM mentions WHERE path = :path", {"path": path})
        return {row[0]: MentionRow(*row) for row in rows}

    def paths(self, below: str = "") -> list[str]:
        """Return the files that were read, optionally below a folder."""
        sql = "SELECT DISTINCT path FROM mentions WHERE path LIKE :below || '%' ORDER BY path"
        return [row[0] for row in self.db.query(sql, {"below": below})]

    def put(self, path: str, mark: str, line: int, kind: str, item: int) -> None:
        """Store that a file states an item on this line."""
        row = {"path": path, "mark": mark, "line": line, "kind": kind, "item": item}
        self.db.execute(insertion("mentions", row, ["path", "mark"], ["line", "item"]), row)

    def drop(self, path: str, mark: str) -> None:
        """Delete a mention: the file no longer states it."""
        self.db.execute(
            "DELETE FROM mentions WHERE path = :path AND mark = :mark", {"path": path, "mark": mark}
        )

    def elsewhere(self, kind: str, item: int) -> str:
        """Return where a file still states an item, as `path:line`; empty when none does."""
        rows = self.db.query(
            "SELECT path, line FROM mentions WHERE kind = :kind AND item = :item ORDER BY path LIMIT 1",
            {"kind": kind, "item": item},
        )
        return f"{rows[0][0]}:{rows[0][1]}" if rows else ""

    def uses(self) -> dict[tuple[str, int], int]:
        """Return how often the items of a line answered a question, by path and line; without lines that never did."""
        rows = self.db.query(
            "SELECT m.path, m.line, sum(f.access_count) FROM mentions m JOIN facts f ON f.id = m.item"
            " WHERE m.kind = 'fact' AND f.access_count > 0 GROUP BY m.path, m.line"
            " UNION ALL "
            "SELECT m.path, m.line, sum(r.access_count) FROM mentions m JOIN relations r ON r.id = m.item"
            " WHERE m.kind = 'relation' AND r.access_count > 0 GROUP BY m.path, m.line"
        )
        found: dict[tuple[str, int], int] = {}
        for path, line, count in rows:
            found[path, line] = found.get((path, line), 0) + int(count)
        return found

    # ---- whole files: stored beside the facts, so that a restored checkpoint knows what it has read ----

    def read_files(self) -> dict[str, str]:
        """Return the files that were read whole, with the fingerprint of their text."""
        rows = self.db.query("SELECT key, value FROM graph_state WHERE key LIKE 'read:%'")
        return {key[len("read:") :]: value for key, value in rows}

    def mark_read(self, path: str, fingerprint: str) -> None:
        """Store the fingerprint of a file that was read; empty when the file is deleted."""
        if fingerprint:
            keep_note(self.db, "graph_state", f"read:{path}", fingerprint)
        else:
            self.db.execute("DELETE FROM graph_state WHERE key = :key", {"key": f"read:{path}"})
