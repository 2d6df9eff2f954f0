"""Telemetry: whole lines, rotation, an off switch, and no harm when the disk is against it."""

from __future__ import annotations

import json

from nanoclaw_memory.telemetry import Telemetry


def test_an_event_is_one_json_line(tmp_path, clock):
    log = Telemetry(tmp_path / "logs" / "telemetry.jsonl", clock)
    log.record("search", hits=3, note="two\nlines")
    (line,) = log.path.read_text().splitlines()
    assert json.loads(line) == {
        "at": "2026-02-23T12:00:00.000Z",
        "event": "search",
        "hits": 3,
        "note": "two\nlines",
    }


def test_nothing_is_written_when_it_is_off(tmp_path, clock):
    Telemetry(tmp_path / "t.jsonl", clock, enabled=False).record("search")
    assert not (tmp_path / "t.jsonl").exists()


def test_a_full_file_is_rotated_and_one_old_one_is_kept(tmp_path, clock):
    log = Telemetry(tmp_path / "t.jsonl", clock, max_bytes=300)
    for number in range(20):
        log.record("event", number=number)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.1.jsonl", "t.jsonl"]
    assert log.path.stat().st_size <= 300
    assert json.loads(log.path.read_text().splitlines()[-1])["number"] == 19


def test_a_path_that_cannot_be_written_costs_the_caller_nothing(tmp_path, clock):
    (tmp_path / "file").write_text("")
    log = Telemetry(tmp_path / "file" / "t.jsonl", clock)
    assert log.record("event") is None
    assert (tmp_path / "file").read_text() == ""


def test_the_switch_in_settings_reaches_the_file(ncm, home):
    ncm("init")
    ncm("--set", "telemetry.enabled=false", "write", "quiet")
    assert not (home / "logs" / "telemetry.jsonl").exists()
    ncm("write", "said")
    assert "quiet" not in (home / "logs" / "telemetry.jsonl").read_text()
    assert json.loads((home / "logs" / "telemetry.jsonl").read_text())["event"] == "write"
