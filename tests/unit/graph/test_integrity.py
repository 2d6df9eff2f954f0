"""Whatever is told, changed and taken back: indexes, links and names stay sound."""

from __future__ import annotations

import contextlib
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import NotFound, Refused
from nanoclaw_memory.memory import Memory

entities = st.sampled_from(["Alice", "alice smith", "Keystone", "Ümit", "李雷", "O'Brien"])
keys = st.sampled_from(["phone", "Phone", "birthday", "hobby", "works at"])
values = st.sampled_from(["1", "2", "tea \x00 time", "naïve café", "五月四日", 'quo"ted', "x" * 300])
words = st.sampled_from(["Alice", "phone", "tea", "who is Keystone", "李雷", "2", "Ümit's hobby"])


class Graph(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FixedClock(datetime(2026, 2, 23, tzinfo=UTC))
        self.memory = Memory.open(Path(self.folder.name), clock=self.clock)

    @rule(entity=entities, key=keys, value=values, add=st.booleans(), day=st.integers(0, 400))
    def say(self, entity: str, key: str, value: str, add: bool, day: int) -> None:
        start = (datetime(2025, 1, 1) + timedelta(days=day)).date().isoformat() if day < 300 else ""
        try:
            self.memory.graph.upsert(entity, key, value, add=add, valid_from=start)
        except Refused as error:
            assert "rejected" in error.message

    @rule(
        subject=entities, predicate=st.sampled_from(["owns", "lives_in"]), object=entities, one=st.booleans()
    )
    def relate(self, subject: str, predicate: str, object: str, one: bool) -> None:
        try:
            self.memory.graph.relate(subject, predicate, object, replace=one)
        except Refused as error:
            assert "rejected" in error.message

    @rule(alias=entities, entity=entities)
    def alias(self, alias: str, entity: str) -> None:
        if alias != entity:
            self.memory.graph.alias(alias, entity)

    @rule(entity=entities, key=keys, purge=st.booleans())
    def remove(self, entity: str, key: str, purge: bool) -> None:
        with contextlib.suppress(NotFound):
            self.memory.graph.remove(entity, key, purge=purge)

    @rule(entity=entities, key=keys, value=values)
    def reject(self, entity: str, key: str, value: str) -> None:
        self.memory.graph.reject(entity, key, value)
        shown = self.memory.graph.search(f"{entity} {key}", 50).hits
        assert not any(h.text == f"{entity}.{key} = {value}" for h in shown)

    @rule(question=words)
    def ask(self, question: str) -> None:
        hits = self.memory.graph.search(question).hits
        assert self.memory.graph.search(question).hits == hits
        assert all(not hit.item.valid_to or hit.item.valid_to > "2026-02-23" for hit in hits)
        self.memory.graph.reinforce(hits)

    @rule(days=st.integers(0, 3))
    def pass_time(self, days: int) -> None:
        self.clock.moment += timedelta(days=days, seconds=1)
        self.memory.graph.cool()

    @invariant()
    def is_sound(self) -> None:
        db = self.memory.group.database("facts")
        assert db.check() == []
        with db.transaction():
            for table in ("facts_fts", "relations_fts"):
                db.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
        assert db.query("SELECT 1 FROM facts WHERE activation < 0 OR valid_to < valid_from") == []

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()


TestGraph = Graph.TestCase
TestGraph.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
