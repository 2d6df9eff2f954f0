"""Install: the exact change is shown, foreign content stays, and uninstall restores every byte."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.interfaces.install import json_edit
from nanoclaw_memory.interfaces.install.clients import CLIENTS

FILES = {
    "claude-code": [".claude/settings.json", ".claude.json"],
    "claude-desktop": [".config/Claude/claude_desktop_config.json"],
    "codex": [".codex/config.toml", ".codex/hooks.json"],
    "cursor": [".cursor/mcp.json", ".cursor/hooks.json"],
    "gemini": [".gemini/settings.json"],
    "openclaw": [".openclaw/openclaw.json"],
}
FOREIGN_JSON = """{
    "theme" : "dark",   "numbers":[1,2,
 3],
    "hooks": {"Stop": [ {"hooks": [{"type":"command","command":"say done"}]} ], "stop": []},
    "mcpServers": { "other": {"command": "other-server"} },
    "unicode": "Ümit \\u00fc 李雷"
}"""
FOREIGN_TOML = 'model = "o9"  # mine\n\n[mcp_servers.other]\ncommand = "x"\n'


@pytest.fixture
def person() -> Path:
    return Path.home()


def write_foreign(person: Path, client: str) -> dict[Path, bytes]:
    kept = {}
    for name in FILES[client]:
        path = person / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN_TOML if name.endswith(".toml") else FOREIGN_JSON, encoding="utf-8")
        path.chmod(0o640)
        kept[path] = path.read_bytes()
    return kept


def parsed(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_restores_every_file_byte_for_byte(ncm, person, client):
    before = write_foreign(person, client)
    assert ncm("install", client).code == 0
    assert all(path.read_bytes() != raw for path, raw in before.items())
    assert ncm("uninstall", client).code == 0
    assert {path: path.read_bytes() for path in before} == before
    assert all(path.stat().st_mode & 0o777 == 0o640 for path in before)


@pytest.mark.parametrize("client", CLIENTS)
def test_files_that_install_created_are_gone_after_uninstall(ncm, person, home, client):
    ncm("install", client)
    assert all((person / name).exists() for name in FILES[client])
    ncm("uninstall", client)
    assert not any((person / name).exists() for name in FILES[client])
    assert list((home / "installed").iterdir()) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_installing_twice_changes_nothing_more(ncm, person, client):
    write_foreign(person, client)
    ncm("install", client)
    once = {name: (person / name).read_bytes() for name in FILES[client]}
    again = ncm("install", client, "--json").json
    assert again["files"] == []
    assert {name: (person / name).read_bytes() for name in FILES[client]} == once


@pytest.mark.parametrize("client", CLIENTS)
def test_a_dry_run_shows_the_change_and_makes_none(ncm, person, client):
    before = write_foreign(person, client)
    shown = ncm("install", client, "--dry-run")
    assert "+" in shown.out
    assert "nanoclaw" in shown.out
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("client", CLIENTS)
def test_foreign_content_is_still_there_when_ours_is_installed(ncm, person, client):
    before = write_foreign(person, client)
    ncm("install", client)
    for path, raw in before.items():
        for line in raw.decode().splitlines():
            if "mcpServers" not in line and "hooks" not in line:
                assert line.rstrip(",") in path.read_text(encoding="utf-8")
        assert (
            parsed(path).keys()
            >= (tomllib.loads(FOREIGN_TOML) if path.suffix == ".toml" else json.loads(FOREIGN_JSON)).keys()
        )


@pytest.mark.parametrize("client", CLIENTS)
def test_changes_made_since_survive_uninstall(ncm, person, client):
    write_foreign(person, client)
    ncm("install", client)
    for name in FILES[client]:
        path = person / name
        text = path.read_text(encoding="utf-8")
        changed = (
            text + "\n[later]\nx = 1\n"
            if path.suffix == ".toml"
            else json_edit.put(text, ["later"], {"x": 1})
        )
        path.write_text(changed, encoding="utf-8")
    ncm("uninstall", client)
    for name in FILES[client]:
        tree = parsed(person / name)
        assert tree["later"] == {"x": 1}
        assert "nanoclaw" not in (person / name).read_text(encoding="utf-8")


def test_the_installed_hook_command_really_runs(ncm, person):
    import subprocess

    ncm("install", "claude-code")
    handlers = parsed(person / ".claude/settings.json")["hooks"]["SessionStart"][0]["hooks"]
    done = subprocess.run(
        handlers[0]["command"], shell=True, input='{"source": "startup"}', capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "# Soul" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_home_named_by_the_environment_is_named_to_the_client_too(person, tmp_path, monkeypatch, client):
    from nanoclaw_memory.interfaces.cli import main

    def run(*arguments: str) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(list(arguments))
        assert not stopped.value.code

    before = write_foreign(person, client)
    elsewhere = tmp_path / "else where"
    monkeypatch.setenv("NANOCLAW_HOME", str(elsewhere))
    run("install", client)
    for name in FILES[client]:
        assert f"--home', '{elsewhere}'" in str(parsed(person / name)) or f"--home '{elsewhere}'" in (
            person / name
        ).read_text().replace("\\u0027", "'"), name
    run("uninstall", client)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("named", [True, False])
def test_the_usual_home_is_not_named(person, monkeypatch, named):
    from nanoclaw_memory.interfaces.cli import main

    monkeypatch.delenv("NANOCLAW_HOME")
    if named:
        monkeypatch.setenv("NANOCLAW_HOME", "~/.nanoclaw")
    with pytest.raises(SystemExit):
        main(["install", "claude-code"])
    assert "--home" not in (person / ".claude.json").read_text()
    assert (person / ".nanoclaw" / "workspace").is_dir()


def test_a_project_install_writes_only_into_the_project(ncm, person, tmp_path, monkeypatch):
    project = tmp_path / "repo"
    project.mkdir()
    monkeypatch.chdir(project)
    ncm("install", "claude-code", "--project")
    assert (project / ".claude/settings.json").exists()
    assert (project / ".mcp.json").exists()
    assert not (person / ".claude").exists()
    ncm("uninstall", "claude-code", "--project")
    assert not (project / ".mcp.json").exists()


@pytest.mark.parametrize("text", ["{broken", "[1]", '{"a": 1,}', "// comment\n{}", '{"mcpServers": 3}'])
def test_a_file_that_cannot_be_edited_safely_is_left_alone(ncm, person, text):
    path = person / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    ran = ncm("install", "cursor", "--json")
    assert ran.code == 1
    assert "nothing was changed" in ran.json["error"]["message"]
    assert path.read_text() == text


def test_an_unknown_client_is_refused(ncm):
    assert ncm("install", "emacs").code == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
OBJECT = st.dictionaries(st.text(max_size=5), JSON, max_size=4)
STYLE = st.sampled_from([{"indent": 2}, {"indent": 4}, {"indent": "\t"}, {}, {"separators": (",", ":")}])


@given(OBJECT, STYLE, JSON)
def test_a_member_put_in_and_removed_leaves_the_text_as_it_was(tree, style, value):
    text = json.dumps(tree, **style)
    added = json_edit.put(text, ["nanoclaw-memory-test"], value)
    assert json.loads(added) == {**tree, "nanoclaw-memory-test": value}
    removed = json_edit.remove(added, ["nanoclaw-memory-test"])
    assert json.loads(removed) == tree
    if tree:
        assert removed == text


@given(st.lists(JSON, max_size=4), STYLE)
def test_an_item_added_and_removed_leaves_the_others(items, style):
    text = json.dumps({"list": items, "more": 1}, **style)
    added = json_edit.append(text, ["list"], {"mine": True})
    assert json.loads(added)["list"] == [*items, {"mine": True}]
    removed = json.loads(json_edit.remove_items(added, ["list"], lambda item: item == {"mine": True}))
    assert removed.get("list", []) == items
