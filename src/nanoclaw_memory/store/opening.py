"""Open the databases of a home: files of SQLite, or schemas of one PostgreSQL database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.migrate import Adopt


class Store(msgspec.Struct, frozen=True):
    """Where a home has its databases. The path of a file below the home determines the name of its schema."""

    home: Path
    url: str = ""  # of PostgreSQL; empty for files
    wait_ms: int | None = None  # for another writer; None: the limit of the database's kind

    def open(
        self,
        path: Path,
        name: str,
        adopt: Adopt | None = None,
        durable: bool = False,
        counted: bool = False,
    ) -> Database:
        """Open the database at `path` with the tables of `name`; `adopt` migrates files of older systems."""
        if self.url:
            return _postgres(self.url, self.home, path, name, self.wait_ms)
        from nanoclaw_memory.store.sqlite import SqliteDatabase

        return SqliteDatabase(path, name, adopt, durable=durable, counted=counted, wait_ms=self.wait_ms)

    def has(self, path: Path) -> bool:
        """Return whether there is a database, even a lost file; checking must not create one."""
        if self.url:
            return _postgres(self.url, self.home, path, "forgotten").exists()
        from nanoclaw_memory.store.write_count import has_database

        return has_database(path)

    def names(self, folder: Path) -> list[str]:
        """Return the databases of a folder, in order."""
        if self.url:
            from nanoclaw_memory.store.postgres import names_in

            return names_in(self.url, folder.relative_to(self.home))
        return sorted(path.stem for path in folder.glob("*.db")) if folder.is_dir() else []

    def for_role(self, name: str, password: str) -> Store:
        """Return the same with a login role of the server."""
        from nanoclaw_memory.store.roles import role_url

        return msgspec.structs.replace(self, url=role_url(self.url, name, password))

    def disconnect(self) -> None:
        """Close the connections of this process that nobody uses."""
        from nanoclaw_memory.store.postgres_connections import disconnect

        disconnect(self.url)

    def groups(self) -> list[str]:
        """Return the groups that have databases on a server, in order; those with files are found by their folders."""
        if not self.url:
            return []
        from nanoclaw_memory.store.postgres_connections import connected

        sql = (
            "SELECT DISTINCT split_part(nspname, '/', 1) FROM pg_namespace WHERE nspname ~"
            " '^[^/]+/(shared-)?(facts|entries|continuity|pages)$' AND has_schema_privilege(oid, 'USAGE')"
        )
        with connected(self.url) as connection:
            return sorted(str(name) for (name,) in connection.execute(sql).fetchall())

    @property
    def messages(self) -> Path:
        """Return the path of the host's database."""
        return self.home / "store" / "messages.db"

    @property
    def published(self) -> Path:
        """Return the folder of what groups have published: outside every group's own."""
        return self.home / "store" / "published"

    @property
    def common_pages(self) -> Path:
        """Return the path of a team's pages that all groups read."""
        return self.home / "store" / "common.db"

    def of_all_groups(self) -> list[Database]:
        """Return the databases that belong to no single group: the host's messages, and published entries."""
        host = [self.open(self.messages, "messages", counted=True)] if self.has(self.messages) else []
        names = self.names(self.published)
        return host + [self.open(self.published / f"{name}.db", "entries") for name in names]


def _postgres(url: str, home: Path, path: Path, name: str, wait_ms: int | None = None) -> Database:
    from nanoclaw_memory.errors import StoreError

    try:
        from nanoclaw_memory.store.postgres import PostgresDatabase
    except ModuleNotFoundError as error:
        raise StoreError(
            f"store.url names PostgreSQL, and {error.name} is not installed",
            'pip install "nanoclaw-memory[postgres]"',
        ) from None
    return PostgresDatabase(url, home, path, name, wait_ms=wait_ms)
