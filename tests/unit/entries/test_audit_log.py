"""The audit log: a changed, removed, moved or cut line shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.entries.audit_log import AuditLog, Link
from nanoclaw_memory.types import Scope


@pytest.fixture
def log(tmp_path: Path, clock: FixedClock) -> AuditLog:
    log = AuditLog(tmp_path / "logs", Scope("main", "s1"), clock)
    for number in range(5):
        log.append("store", f"mem-{number}", type="fact")
    return log


def lines(log: AuditLog) -> list[str]:
    return log.path.read_text().splitlines(keepends=True)


def test_an_untouched_log_is_whole(log: AuditLog) -> None:
    verdict = log.verify()
    assert (verdict.ok, verdict.records, verdict.problems) == (True, 5, ())
    assert [record["id"] for record in log.records()] == [f"mem-{number}" for number in range(5)]


def test_a_changed_line_is_named(log: AuditLog) -> None:
    found = lines(log)
    found[2] = found[2].replace("mem-2", "mem-9")
    log.path.write_text("".join(found))
    assert log.verify().problems == ("line 3 was changed",)


def test_a_changed_line_with_a_new_hash_breaks_the_next(log: AuditLog) -> None:
    from nanoclaw_memory.entries import audit_log as chain

    found = lines(log)
    record = json.loads(found[2])
    record["origin"] = "web"
    record["hash"] = chain._digest(record)
    found[2] = json.dumps(record) + "\n"
    log.path.write_text("".join(found))
    assert any("line 4" in problem for problem in log.verify().problems)


@pytest.mark.parametrize("gone", [0, 2, 3])
def test_a_removed_line_is_noticed(log: AuditLog, gone: int) -> None:
    found = lines(log)
    del found[gone]
    log.path.write_text("".join(found))
    assert not log.verify().ok


def test_lines_that_changed_places_are_noticed(log: AuditLog) -> None:
    found = lines(log)
    found[1], found[2] = found[2], found[1]
    log.path.write_text("".join(found))
    assert not log.verify().ok


def test_a_cut_end_is_noticed_though_every_line_left_is_sound(log: AuditLog) -> None:
    log.path.write_text("".join(lines(log)[:3]))
    assert any("knows of line 5" in problem for problem in log.verify().problems)


def test_writing_on_after_a_cut_does_not_hide_it(log: AuditLog) -> None:
    log.path.write_text("".join(lines(log)[:3]))
    log.append("store", "mem-new")
    verdict = log.verify()
    assert not verdict.ok
    assert any("5 lines stood here" in problem for problem in verdict.problems)


def test_a_deleted_log_is_noticed(log: AuditLog) -> None:
    log.path.unlink()
    assert not log.verify().ok
    log.append("store", "mem-new")
    assert not log.verify().ok


def test_a_groups_database_remembers_the_end_when_log_and_head_are_both_cut(log: AuditLog) -> None:
    last = [json.loads(line) for line in lines(log)][-1]
    anchor = Link(last["seq"], last["hash"])
    log.path.write_text("".join(lines(log)[:3]))
    log.head_path.unlink()
    assert log.verify().ok
    assert not log.verify([("group main", anchor)]).ok


def test_a_half_written_last_line_of_a_power_cut_is_no_tampering(log: AuditLog) -> None:
    with log.path.open("a") as stream:
        stream.write('{"seq": 6, "at": "20')
    log.append("store", "mem-6")
    verdict = log.verify()
    assert (verdict.ok, verdict.records) == (True, 6)


def test_a_head_that_lags_after_a_power_cut_is_no_tampering(log: AuditLog) -> None:
    early = json.loads(lines(log)[1])
    log.head_path.write_text(f"{early['seq']:012d} {early['hash']}\n")
    log.append("store", "mem-6")
    assert log.verify().ok


def test_the_log_holds_no_content(log: AuditLog) -> None:
    record = json.loads(lines(log)[0])
    assert set(record) == {
        "seq",
        "at",
        "event",
        "id",
        "group",
        "session",
        "origin",
        "type",
        "prev",
        "hash",
    }
