"""The table of pages: every version of a team's Markdown, with its author; the highest version of a path is the
page.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import msgspec

from nanoclaw_memory.store.table import Table, insertion

VERSIONS_KEPT = 20  # per path; of older ones the last of each day
_CURRENT = "version = (SELECT max(version) FROM pages q WHERE q.path = p.path)"


class PageRow(msgspec.Struct, frozen=True):
    """One version of a page; without a text it was deleted."""

    path: str
    version: int
    text: str | None
    author: str = "owner"
    machine: str = ""
    saved_at: str = ""
    mtime_ns: int = 0
    merged: str = ""


class PageTable(Table[PageRow]):
    """The pages of one group, or those that all groups read."""

    table = "pages"
    columns = ", ".join(PageRow.__struct_fields__)
    value = PageRow

    def head(self) -> tuple[str, int]:
        """Return the identifier of this table, whatever its database's location, and the number of its last change."""
        sql = "SELECT name, (SELECT coalesce(max(seq), 0) FROM pages) FROM identity"
        if not (rows := self.db.query(sql)):
            with self.db.transaction():
                add = "INSERT INTO identity (name) SELECT :name WHERE NOT EXISTS (SELECT 1 FROM identity)"
                self.db.execute(add, {"name": uuid.uuid4().hex})
            rows = self.db.query(sql)
        return str(rows[0][0]), int(rows[0][1])

    def changed_since(self, cursor: int) -> set[str]:
        """Return the paths with changes after a number."""
        sql = "SELECT DISTINCT path FROM pages WHERE seq > :cursor"
        return {str(path) for (path,) in self.db.query(sql, {"cursor": cursor})}

    def current(self, path: str) -> PageRow | None:
        """Return the newest version of a page."""
        return self.at(path, 1 << 62)

    def at(self, path: str, version: int) -> PageRow | None:
        """Return a version of a page, or the newest stored one before it, which is an ancestor as well."""
        return self.first(
            "WHERE path = :path AND version <= :version ORDER BY version DESC",
            {"path": path, "version": version},
        )

    def versions(self, path: str) -> list[PageRow]:
        """Return the stored versions of a page, newest first."""
        return self.select("WHERE path = :path ORDER BY version DESC", {"path": path})

    def merged(self, path: str, after: int, mark: str) -> bool:
        """Return whether the file with this fingerprint was already merged into a later version."""
        sql = "SELECT 1 FROM pages WHERE path = :path AND version > :after AND merged = :mark"
        return bool(self.db.query(sql, {"path": path, "after": after, "mark": mark}))

    def all(self) -> list[PageRow]:
        """Return the newest version of every page."""
        return self.select(f"p WHERE {_CURRENT} AND text IS NOT NULL ORDER BY path")

    def put(self, row: PageRow) -> None:
        """Add a version, and drop superfluous earlier ones; inside a transaction."""
        self.db.execute(insertion("pages", row.__struct_fields__), msgspec.structs.asdict(row))
        self.db.execute(
            "DELETE FROM pages WHERE path = :path AND version <= :old AND EXISTS (SELECT 1 FROM pages q"
            " WHERE q.path = pages.path AND q.version > pages.version AND q.version <= :old"
            " AND substr(q.saved_at, 1, 10) = substr(pages.saved_at, 1, 10))",
            {"path": row.path, "old": row.version - VERSIONS_KEPT},
        )

    def rewrite_earlier(self, without: Callable[[str, str], str]) -> None:
        """Remove a text from the versions before the newest: `without` gets path and text."""
        sql = f"SELECT seq, path, text FROM pages p WHERE NOT {_CURRENT} AND text IS NOT NULL"  # noqa: S608
        with self.db.overwriting().transaction():
            for seq, path, text in self.db.query(sql):
                kept = without(path, text)
                if kept != text:
                    self.db.execute(
                        "UPDATE pages SET text = :text WHERE seq = :seq", {"seq": seq, "text": kept}
                    )
