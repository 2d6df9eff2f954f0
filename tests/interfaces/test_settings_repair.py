"""Settings with a mistake can be looked at and repaired by the commands for that."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def settings(ncm, home):
    ncm("init")
    return home / "nanoclaw.json"


def test_an_unknown_key_is_named_shown_and_removed_by_the_command_that_the_mistake_names(ncm, settings):
    settings.write_text('{"bogus": {"deep": 1}, "memory": {"chunkSize": 200}}')
    failed = ncm("status")
    assert failed.code != 0
    assert "config unset bogus" in failed.err
    shown = ncm("config", "show")
    assert shown.code == 0
    assert "memory.chunkSize" in shown.out and "200" in shown.out
    assert "bogus" in shown.err
    assert "bogus" in ncm("doctor").out
    assert ncm("config", "unset", "bogus").code == 0
    assert json.loads(settings.read_text()) == {"memory": {"chunkSize": 200}}
    assert ncm("status").code == 0


def test_another_setting_can_be_set_beside_an_unknown_key(ncm, settings):
    settings.write_text('{"bogus": 1}')
    assert ncm("config", "set", "memory.chunkSize", "300").code == 0
    assert json.loads(settings.read_text()) == {"bogus": 1, "memory": {"chunkSize": 300}}


def test_a_wrong_value_is_shown_and_set_right(ncm, settings):
    settings.write_text('{"memory": {"chunkSize": "many"}}')
    assert ncm("config", "show").code == 0
    assert ncm("config", "set", "memory.chunkSize", "300").code == 0
    assert ncm("status").code == 0


@pytest.mark.parametrize("wrong", ["true", "null", "[]"])
def test_a_section_that_is_no_object_is_set_right(ncm, settings, wrong):
    settings.write_text(f'{{"memory": {wrong}, "user": {{"entity": "Ida"}}}}')
    assert "memory must be an object" in ncm("status").err
    assert ncm("config", "set", "memory.chunkSize", "300").code == 0
    assert json.loads(settings.read_text()) == {"memory": {"chunkSize": 300}, "user": {"entity": "Ida"}}


def test_a_file_that_is_no_json_is_shown_with_its_line_and_never_overwritten(ncm, settings):
    broken = '{\n  "memory": {"chunkSize": 200,}\n}'
    settings.write_text(broken)
    shown = ncm("config", "show")
    assert shown.code == 0
    assert '"chunkSize": 200,}' in shown.err
    assert '"chunkSize": 200,}' in ncm("doctor").out
    refused = ncm("config", "set", "memory.chunkSize", "300")
    assert refused.code != 0
    assert "mv " in refused.err
    assert settings.read_text() == broken


@pytest.mark.parametrize(
    "line",
    [
        '"store": {"url": "postgresql://ida:hunter2@db/x",},',
        '"embeddings": {"apiKey": "hunter2"},,',
        '"AbCdEfGh0123456789hunter2",,',
    ],
)
@pytest.mark.parametrize("options", [(), ("--shared",)])
def test_a_line_that_may_contain_a_credential_is_not_shown(ncm, settings, options, line):
    settings.write_text(f"{{\n  {line}\n}}")
    start = json.dumps({"session_id": "s1", "source": "startup"})
    for told in (
        ncm(*options, "hook", "session-start", stdin=start).out,
        ncm(*options, "status").err,
        ncm("doctor").out,
    ):
        assert "line 2" in told
        assert "hunter2" not in told


def test_a_byte_order_mark_is_no_mistake(ncm, settings):
    settings.write_bytes(b'\xef\xbb\xbf{"memory": {"chunkSize": 200}}')
    assert ncm("config", "get", "memory.chunkSize").out == "200\n"
