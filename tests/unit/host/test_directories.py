"""A group has a directory, a HOME for its agent and an IPC directory, and nothing of anybody else's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nanoclaw_memory import Host, Memory
from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound, PathRefused
from nanoclaw_memory.host.directories import AGENT_ENVIRONMENT


def test_registering_makes_the_directory_and_keeps_what_is_there(host: Host, home: Path) -> None:
    host.register_group("a@g", "Family", "family", "@Andy")
    for name in ("CLAUDE.md", "workspace/MEMORY.md"):
        assert (home / "groups/family" / name).is_file()
    assert (home / "shared/CLAUDE.md").is_file()
    (home / "groups/family/CLAUDE.md").write_text("mine")
    host.register_group("a@g", "Family", "family", "@Bo")
    assert (home / "groups/family/CLAUDE.md").read_text() == "mine"


@pytest.mark.parametrize(
    "folder", ["", "..", "../x", "a/b", "a\x00b", "x" * 65, "a b", "ä", "global", "Shared", "MAIN", ".hidden"]
)
def test_a_folder_that_is_no_name_is_refused(host: Host, home: Path, folder: str) -> None:
    with pytest.raises(PathRefused):
        host.register_group("a@g", "A", folder, "@Andy")
    assert host.groups == {}


def test_two_chats_never_share_a_folder_not_even_by_case(host: Host) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    for folder in ("family", "Family"):
        with pytest.raises(InvalidValue, match="belongs to the chat"):
            host.register_group("b@g", "B", folder, "@Andy")


def test_removing_a_group_keeps_its_files_and_messages(host: Host, home: Path) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    host.store_message("1", "a@g", "@Andy hi", "2026-02-23T11:00:00Z")
    assert host.unregister_group("a@g") is True
    assert host.unregister_group("a@g") is False
    assert host.poll() == []
    assert (home / "groups/family/workspace").is_dir()
    with pytest.raises(NotFound):
        host.group("family")


def test_the_agent_gets_its_own_home_with_settings(host: Host, home: Path) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    host.set_session("family", "s-1")
    place = host.place("family")
    assert place.directory == home / "groups/family"
    assert place.agent_home == home / "data/sessions/family"
    assert place.ipc == home / "data/ipc/family"
    assert (place.ipc / "tasks").is_dir()
    assert place.environment["NANOCLAW_SESSION"] == "s-1"
    written = json.loads((place.agent_home / ".claude/settings.json").read_text())
    assert written == {
        "env": {
            "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0",
        }
    }


def test_a_home_that_is_named_from_the_working_directory_is_found_from_an_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory.open("bot") as memory:
        memory.init()
        state = memory.host.state
        state.register_group("a@g", "Family", "family", "@Andy")
        place = state.place("family")
    assert place.environment["HOME"] == str(tmp_path / "bot/data/sessions/family")
    assert place.environment["NANOCLAW_HOME"] == str(tmp_path / "bot")
    monkeypatch.chdir(place.directory)
    monkeypatch.setenv("NANOCLAW_HOME", place.environment["NANOCLAW_HOME"])
    with Memory.open() as found, Host.open("../../../bot") as host:
        assert found.home.root == tmp_path / "bot"
        assert host.home.root.samefile(found.home.root)


def test_settings_that_a_person_changed_are_completed_not_overwritten(host: Host, home: Path) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    path = home / "data/sessions/family/.claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"model": "x", "env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1", "OWN": "y"}}))
    host.place("family")
    written = json.loads(path.read_text())
    assert written["model"] == "x"
    assert written["env"] == {**AGENT_ENVIRONMENT, "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1", "OWN": "y"}
    before = path.stat().st_mtime_ns
    host.place("family")
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("text", ["{", "[]", '{"env": 3}'])
def test_settings_that_are_broken_are_said_and_left(host: Host, home: Path, text: str) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    path = home / "data/sessions/family/.claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(FileProblem):
        host.place("family")
    assert path.read_text() == text


@pytest.mark.parametrize(
    "where", ["sessions/family", "sessions/family/.claude", "ipc/family", "ipc/family/tasks"]
)
def test_a_link_in_place_of_an_agents_directory_is_refused(host: Host, home: Path, where: str) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    target = home / "data/sessions/other"
    target.mkdir(parents=True)
    link = home / "data" / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    with pytest.raises(PathRefused):
        host.place("family")
    assert not (target / "settings.json").exists()


def test_settings_that_are_a_link_are_not_written_through(host: Host, home: Path) -> None:
    host.register_group("a@g", "A", "family", "@Andy")
    victim = home / "data/sessions/other/.claude/settings.json"
    victim.parent.mkdir(parents=True)
    victim.write_text("{}")
    link = home / "data/sessions/family/.claude/settings.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    with pytest.raises(PathRefused):
        host.place("family")
    assert victim.read_text() == "{}"


def test_a_group_without_a_directory_has_no_place(host: Host) -> None:
    with pytest.raises(PathRefused):
        host.place("nobody")
