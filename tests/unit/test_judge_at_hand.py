"""Who may load the judge: nobody before a message in a cold process; a damaged one is reported and never an error."""

from __future__ import annotations

import shutil

import pytest

from nanoclaw_memory.memory.group import Group
from nanoclaw_memory.memory.resources import Resources
from nanoclaw_memory.providers import judge
from nanoclaw_memory.types import Scope


@pytest.fixture
def at_hand(monkeypatch):
    monkeypatch.setattr(judge, "shared_judge", lambda: (judge.Judge(), ""))


@pytest.fixture
def resources(home):
    return Resources(home, "main")


def test_a_cold_process_has_no_judge_and_a_server_has_one(at_hand, resources):
    assert resources.judge is None
    resources.resident = True
    assert resources.judge is not None


def test_after_an_answer_and_in_upkeep_the_judge_may_be_loaded_and_then_no_more(at_hand, resources):
    with resources.judging():
        assert resources.judge is not None
        assert resources.for_group("main").judge is not None
    assert resources.judge is None
    assert resources.for_group("main").judge is None


def test_what_a_server_archives_from_the_spool_is_judged(at_hand, resources):
    resources.resident = True
    with Group(resources, Scope()).as_scope(Scope(session_id="other")) as own:
        assert own.plugin_context.judge is not None


@pytest.fixture
def damaged(monkeypatch, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "judge.json").write_text('{"files": {"model.onnx": [3, "00"]}, "calibration": {}}')
    (folder / "model.onnx").write_bytes(b"abc")
    monkeypatch.setattr(judge, "FOLDER", folder)
    judge.shared_judge.cache_clear()
    yield folder
    judge.shared_judge.cache_clear()


def test_a_damaged_model_is_no_judge_and_doctor_reports_it(damaged, memory):
    memory.group.resources.resident = True
    assert memory.group.resources.judge is None
    assert any("judged by rules alone" in one.message for one in memory.doctor())


def test_a_missing_model_is_no_judge(damaged, resources):
    shutil.rmtree(damaged)
    resources.resident = True
    assert resources.judge is None
