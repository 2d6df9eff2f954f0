"""The list of forgotten texts: taken over from facts.db without loss, whoever is killed or comes at the same time."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.store import legacy, migrate, sqlite, tombstones
from nanoclaw_memory.store.phrases import Phrases
from nanoclaw_memory.store.sqlite import SqliteDatabase
from nanoclaw_memory.store.tombstones import TombstoneTable, forgotten_database

TEXTS = [f"the safe opens with code {number}" for number in range(20)]
MOMENT = "2026-02-23T12:00:00.000Z"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder of a group as the release before left it: tombstones in facts.db."""
    folder = tmp_path / "data"
    facts = SqliteDatabase(folder / "facts.db", "facts", steps=migrate.steps_of("facts")[:3])
    with facts.transaction():
        marks = Phrases.of_request(*TEXTS).marks()
        TombstoneTable(facts).insert([("", "", "", mark, "forgotten by text", MOMENT) for mark in marks])
        TombstoneTable(facts).insert([("anna", "phone", "d1", "", "wrong", MOMENT)])
    facts.close()
    return folder


def open_facts(data: Path) -> list[str]:
    """Open facts.db as this release does; returns its tables."""
    facts = SqliteDatabase(data / "facts.db", "facts", legacy.adopter(data))
    try:
        return [str(name) for (name,) in facts.query("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    finally:
        facts.close()


def in_child(act: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        try:
            act()
        finally:
            os._exit(0)
    return child


def is_complete(data: Path) -> bool:
    intake = Intake(data=data)
    kept = intake.tombstones()
    assert kept is not None
    rows, kept_out = kept.rows(), kept.has(["anna"], "phone", "d1")
    intake.close()
    return len(rows) == 21 and kept_out and all(map(intake.forgets, TEXTS))


def test_whoever_asks_first_finds_the_tombstones_of_an_older_release(data: Path) -> None:
    assert is_complete(data)
    assert "tombstones" not in open_facts(data)
    assert is_complete(data)
    assert (data / "forgotten.db").stat().st_mode & 0o777 == 0o600


def test_opening_the_graph_first_moves_them_too(data: Path) -> None:
    assert "tombstones" not in open_facts(data)
    assert is_complete(data)


def test_what_an_older_process_adds_before_the_graph_is_opened_is_not_lost(data: Path) -> None:
    assert is_complete(data)
    facts = SqliteDatabase(data / "facts.db", "facts", steps=migrate.steps_of("facts")[:3])
    with facts.transaction():
        mark = Phrases.of_request("one more thing").marks()[0]
        TombstoneTable(facts).insert([("", "", "", mark, "forgotten by text", MOMENT)])
    facts.close()
    open_facts(data)
    assert Intake(data=data).forgets("one more thing")


def dying(name: str) -> None:
    """Let this process end with -9 at one point of the move."""

    def kill(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    move, insert, change = tombstones.move_from_facts, TombstoneTable.insert, sqlite.migrate
    if name == "before the move":
        legacy.move_from_facts = kill
    elif name == "while the list is created":
        tombstones._carry = kill
    elif name == "before the list commits":
        TombstoneTable.insert = lambda self, rows: kill(insert(self, rows))
    elif name == "after the list":
        legacy.move_from_facts = lambda connection, data: kill(move(connection, data))
    else:
        sqlite.migrate = lambda *given: kill(change(*given)) if given[2].stem == "facts" else change(*given)


@pytest.mark.parametrize(
    "point",
    [
        "before the move",
        "while the list is created",
        "before the list commits",
        "after the list",
        "after the graph",
    ],
)
def test_killed_at_any_point_of_the_move_nothing_is_lost_or_doubled(data: Path, point: str) -> None:
    child = in_child(lambda: (dying(point), open_facts(data)))
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert is_complete(data)
    assert "tombstones" not in open_facts(data)
    assert is_complete(data)


def test_many_processes_at_once_move_them_once(data: Path) -> None:
    children = [in_child(lambda: open_facts(data)) for _ in range(4)]
    children += [in_child(lambda: Intake(data=data).forgets(TEXTS[0])) for _ in range(4)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    assert is_complete(data)


def test_processes_that_forget_at_once_lose_nothing_and_the_copy_has_it_all(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def forget(number: int) -> None:
        Intake(data=data).forget(
            Phrases.of_request(TEXTS[number]), [("anna", "phone", str(number))], "x", MOMENT
        )

    children = [in_child(lambda number=number: forget(number)) for number in range(8)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    intake = Intake(data=data)
    assert all(map(intake.forgets, TEXTS[:8])) and not intake.forgets(TEXTS[8])
    copied = [json.loads(line) for line in (data / "forgotten").read_text().splitlines()]
    assert len(copied) == 16 and not any("anna" in str(row) for row in copied)


def test_a_group_in_which_nothing_was_forgotten_has_no_list(tmp_path: Path) -> None:
    data = tmp_path / "data"
    facts = SqliteDatabase(data / "facts.db", "facts", steps=migrate.steps_of("facts")[:3])
    facts.query("SELECT 1 FROM facts")
    facts.close()
    assert not Intake(data=data).forgets("anything")
    open_facts(data)
    assert not list(data.glob("forgotten*"))


def test_a_list_is_repaired_from_what_is_left_of_its_copy(tmp_path: Path) -> None:
    data = tmp_path / "data"
    intake = Intake(data=data)
    intake.forget(Phrases.of_request(*TEXTS), [], "x", MOMENT)
    intake.close()
    copy = data / "forgotten"
    copy.write_text("no tombstone\n" + copy.read_text() + '["half of o')
    forgotten_database(data).path.write_bytes(b"garbage" * 1_000)
    assert intake.is_damaged() and intake.repair() == 20 and not intake.is_damaged()
    assert all(map(intake.forgets, TEXTS))
