"""What people asked to forget, as the host must know it: each chat has the tombstones of its group."""

from __future__ import annotations

from collections.abc import Callable

from nanoclaw_memory.errors import Refused, StoreError
from nanoclaw_memory.store.legacy_facts import adopt
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.tombstones import TombstoneTable
from nanoclaw_memory.workspace.paths import FORGOTTEN_MARK, Home

# Told where, and in how many places, something forgotten was kept out of a conversation.
OnForgotten = Callable[[str, int], None]


class Forgotten:
    """The tombstones of all groups; nothing is opened for a group in which nothing was ever forgotten."""

    def __init__(self, home: Home, on_forgotten: OnForgotten | None = None) -> None:
        self._home = home
        self._databases: dict[str, SqliteDatabase] = {}
        self._on_forgotten = on_forgotten
        self.places = 0

    def without(self, group: str, text: str, where: str) -> str:
        """A text with `[forgotten]` for what the group forgot: talk must go on."""
        table = self._table(group)
        if table is None or not text:
            return text
        try:
            clean, count = table.masked(text)
        except StoreError:  # a graph that cannot be read is doctor's to report; the message counts more
            return text
        if count:
            self.places += count
            if self._on_forgotten is not None:
                self._on_forgotten(where, count)
        return clean

    def refuse(self, group: str, *texts: str) -> None:
        """Refuse what the group forgot, where whoever asks can act on it."""
        table = self._table(group)
        try:
            forgotten = table is not None and table.forgets(*texts)
        except StoreError:
            return
        if forgotten:
            raise Refused(
                "a person asked to forget this", 'if it may come back: ncm forget --text "…" --allow'
            )

    def close(self) -> None:
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    def _table(self, group: str) -> TombstoneTable | None:
        data = self._home.data(group)
        if not (data / FORGOTTEN_MARK).exists():  # with hundreds of groups their graphs must not all be open
            return None
        if group not in self._databases:
            path = data / "facts.db"
            if path.is_symlink() or not path.is_file():
                return None
            self._databases[group] = SqliteDatabase(path, "facts", adopt)
        return TombstoneTable(self._databases[group])
