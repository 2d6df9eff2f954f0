"""What upkeep works on: one group's files and services, each opened on first use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.types import Indexed, Scope
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import Home, within

if TYPE_CHECKING:
    from nanoclaw_memory.entries.entries import Entries
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.providers.writer import Writer
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.exchanges import Exchanges
    from nanoclaw_memory.store.lessons import Lessons
    from nanoclaw_memory.store.proposals import Proposals


class House(msgspec.Struct, frozen=True):
    """One group as upkeep sees it."""

    home: Home
    scope: Scope
    settings: Settings
    clock: Clock
    intake: Intake
    open_graph: Callable[[], KnowledgeGraph]
    open_entries: Callable[[], Entries]
    open_database: Callable[[str], Database]
    open_writer: Callable[[], Writer | None]
    drain: Callable[[], int]
    index: Callable[[], Indexed]
    stale_files: Callable[[], int]
    reindex: Callable[[], Indexed]
    has: Callable[[str], bool]  # whether a database of this name exists: looking must not create one

    @property
    def workspace(self) -> Path:
        return self.home.workspace(self.scope.group)

    @property
    def data(self) -> Path:
        return self.home.data(self.scope.group)

    @property
    def graph(self) -> KnowledgeGraph:
        return self.open_graph()

    @property
    def entries(self) -> Entries:
        return self.open_entries()

    @property
    def proposals(self) -> Proposals:
        return self.open_entries().ledger.proposals

    @property
    def lessons(self) -> Lessons:
        from nanoclaw_memory.store.lessons import Lessons

        return Lessons(self.open_database("facts"))

    @property
    def exchanges(self) -> Exchanges:
        from nanoclaw_memory.store.exchanges import Exchanges

        return Exchanges(self.open_database("continuity"))

    @property
    def today(self) -> date:
        return self.clock.now().date()

    def page(self, relative: str) -> str:
        """A page of the workspace; empty when there is none, refused when it is a link that leads out."""
        try:
            return read_text(within(self.workspace / relative, self.workspace))
        except FileNotFoundError:
            return ""

    def outdated(self, text: str, day: date) -> bool:
        """Whether a line of that day states what the graph knows to be replaced or rejected."""
        return self.has("facts") and self.graph.outdated(text, day)

    def moment(self) -> str:
        """Now, as stored."""
        return stamp(self.clock.now())


class Done(msgspec.Struct, frozen=True):
    """What a job changed, or would change, and what is worth saying about it."""

    changed: int = 0
    notes: tuple[str, ...] = ()
