"""Install: the exact change is shown, foreign content stays, and uninstall restores every byte."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.interfaces.install import clients, json_edit, toml_edit
from nanoclaw_memory.interfaces.install.calls import Commands, Target
from nanoclaw_memory.interfaces.install.clients import CLIENTS
from nanoclaw_memory.interfaces.install.config_file import ConfigFile

FILES = {
    "claude-code": [".claude/settings.json", ".claude.json"],
    "claude-desktop": [".config/Claude/claude_desktop_config.json"],
    "codex": [".codex/config.toml", ".codex/hooks.json"],
    "cursor": [".cursor/mcp.json", ".cursor/hooks.json"],
    "gemini": [".gemini/settings.json"],
    "openclaw": [".openclaw/openclaw.json"],
    "vscode": [".config/Code/User/mcp.json"],
    "windsurf": [".codeium/windsurf/mcp_config.json"],
    "zed": [".config/zed/settings.json"],
    "opencode": [".config/opencode/opencode.json"],
    "cline": [".cline/data/settings/cline_mcp_settings.json"],
}
FOREIGN_JSON = """{
    "theme" : "dark",   "numbers":[1,2,
 3],
    "hooks": {"Stop": [ {"hooks": [{"type":"command","command":"say done"}]} ], "stop": []},
    "mcpServers": { "other": {"command": "other-server"} },
    "unicode": "Ümit \\u00fc 李雷"
}"""
FOREIGN_JSONC = """// my settings
{
  'single': 'quoted', /* why */ bare: +.5, // half
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}, // mine
    ], // all of them
  },
  // the last one
  "mcpServers": {
    "other": {"command": "other-server"} // no comma
  }
}
"""
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


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "codex"])
def test_comments_of_jsonc_and_json5_stay_and_uninstall_restores_every_byte(ncm, person, client):
    paths = [person / name for name in FILES[client]]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN_JSONC)
    assert ncm("install", client).code == 0
    for path in paths:
        text = path.read_text()
        assert "nanoclaw-client" in text
        for comment in ("// my settings", "/* why */", "// half", "// mine", "// all of them", "// no comma"):
            assert comment in text
        changed = json_edit.put(text, ["later"], {"x": 1})  # so that the recorded bytes do not fit any more
        path.write_text(changed)
    assert ncm("install", client, "--json").json["files"] == []
    ncm("uninstall", client)
    for path in paths:
        assert json_edit.remove(path.read_text(), ["later"]) == FOREIGN_JSONC


@pytest.mark.parametrize("client", CLIENTS)
def test_files_that_install_created_are_gone_after_uninstall(ncm, person, home, client):
    ncm("install", client)
    assert all((person / name).exists() for name in FILES[client])
    ncm("uninstall", client)
    assert [path for path in person.rglob("*") if not path.is_relative_to(home)] == []
    assert list((home / "installed").iterdir()) == []
    assert not (home / "bin").exists()


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
        assert (
            f"--home', '{elsewhere}'" in str(parsed(person / name))
            or f"--home '{elsewhere}'" in (person / name).read_text()
        ), name
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
    assert str(person / ".nanoclaw" / "bin" / "nanoclaw-client") in (person / ".claude.json").read_text()
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


@pytest.mark.parametrize(
    "text",
    ["{broken", "[1]", '{"a": 1 "b": 2}', "{/* open", '{"mcpServers": 3}', '{"a": [1}', "{}{}", "{a: b}"],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(ncm, person, text):
    path = person / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    ran = ncm("install", "cursor", "--json")
    assert ran.code == 1
    assert "nothing was changed" in ran.json["error"]["message"]
    assert path.read_text() == text


@pytest.mark.parametrize(
    "spoil", [lambda text: text.replace('"dark"', '"light"'), lambda text: text[:-1] + ",}"]
)
def test_a_change_that_would_touch_more_than_our_part_is_not_written(ncm, person, monkeypatch, spoil):
    before = write_foreign(person, "cursor")
    put = json_edit.put
    monkeypatch.setattr(json_edit, "put", lambda *arguments: spoil(put(*arguments)))
    ran = ncm("install", "cursor", "--json")
    assert ran.code == 1
    assert "nothing was changed" in ran.json["error"]["message"]
    assert {path: path.read_bytes() for path in before} == before


def test_an_unknown_client_is_refused(ncm):
    assert ncm("install", "emacs").code == 2
    assert ncm("install").code == 2


@pytest.mark.parametrize("client", ["claude-desktop", "openclaw", "windsurf", "cline"])
def test_a_client_without_settings_of_a_project_refuses_one(ncm, person, client):
    assert ncm("install", client, "--project").code == 2
    assert not list(person.iterdir())


# ---- the person's own hooks and servers ----

OWN_HOOKS = [
    "/home/me/src/ncm/tools/pre-hook.sh",
    "/opt/nanoclaw-memory/bin/our-hook",
    'echo "ncm is our hook"',
    'ncm write "stopped" && notify hook',
    "ncm hook stop && say done",
    "it's unbalanced hook of nanoclaw_memory",
    "/usr/bin/python3 -I -S /opt/nanoclaw_memory/shim.py hook stop",
]


def settings_with(person: Path, *commands: str) -> Path:
    path = person / ".claude" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    groups = [{"hooks": [{"type": "command", "command": command}]} for command in commands]
    path.write_text(json.dumps({"hooks": {"Stop": groups}}, indent=2))
    return path


def stop_commands(path: Path) -> list[str]:
    groups = parsed(path).get("hooks", {}).get("Stop", [])
    return [handler["command"] for group in groups for handler in group["hooks"]]


def test_a_persons_own_hooks_are_never_touched(ncm, person):
    path = settings_with(person, *OWN_HOOKS)
    ncm("install", "claude-code")
    assert stop_commands(path)[:-1] == OWN_HOOKS
    tree = parsed(path)
    tree["hooks"]["Stop"][-1]["hooks"].append({"type": "command", "command": "mine, beside yours"})
    path.write_text(json.dumps(tree))
    ncm("install", "claude-code")
    assert stop_commands(path)[-1] == "mine, beside yours"
    assert len(stop_commands(path)) == len(OWN_HOOKS) + 2
    ncm("uninstall", "claude-code")
    assert stop_commands(path) == [*OWN_HOOKS, "mine, beside yours"]


def test_a_hook_that_was_added_by_hand_counts_and_stays(ncm, person):
    path = settings_with(person, "ncm hook stop")
    ran = ncm("install", "claude-code")
    assert stop_commands(path) == ["ncm hook stop"]
    assert "hooks.Stop" in ran.err
    assert "by hand" in ran.err
    ncm("uninstall", "claude-code")
    assert stop_commands(path) == ["ncm hook stop"]


def test_what_a_person_changed_in_our_hook_stays_when_it_is_installed_again(ncm, person):
    path = person / ".claude" / "settings.json"
    ncm("install", "claude-code")
    tree = parsed(path)
    tree["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 99
    tree["hooks"]["SessionStart"][0]["matcher"] = "startup"
    path.write_text(json.dumps(tree))
    assert ncm("install", "claude-code", "--json").json["files"] == []
    assert parsed(path) == tree
    ncm("uninstall", "claude-code")
    assert not path.exists()


BY_HAND = [
    {"nanoclaw-memory": {"command": "ncm", "args": ["mcp", "--tools", "all"], "env": {"A": "b"}}},
    {"nanoclaw-memory": {"url": "http://127.0.0.1:7717/mcp"}},
    {"nanoclaw-memory": {"command": "docker", "args": ["run", "-i", "memory", "mcp"]}},
    {"memory": {"command": "/home/me/bin/nanoclaw-memory", "args": ["mcp", "--tools", "all"]}},
]


@pytest.mark.parametrize("client", ["cursor", "codex", "opencode"])
@pytest.mark.parametrize("servers", BY_HAND)
def test_a_server_that_was_added_by_hand_is_adopted_and_not_doubled(ncm, person, client, servers):
    path, (key,) = {
        "cursor": (person / ".cursor/mcp.json", ["mcpServers"]),
        "codex": (person / ".codex/config.toml", ["mcp_servers"]),
        "opencode": (person / ".config/opencode/opencode.json", ["mcp"]),
    }[client]
    path.parent.mkdir(parents=True)
    ((name, server),) = servers.items()
    path.write_text(
        toml_edit.put("", [key, name], server) if client == "codex" else json.dumps({key: servers})
    )
    before = path.read_bytes()
    assert "by hand" in ncm("install", client).err
    assert path.read_bytes() == before
    ncm("uninstall", client)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        (
            "claude-code",
            ".claude/settings.json",
            '{"enabledPlugins": {"nanoclaw-memory@nanoclaw-memory": true}}',
        ),
        ("codex", ".codex/config.toml", '[plugins."nanoclaw-memory@nanoclaw-memory"]\nenabled = true\n'),
    ],
)
def test_the_plugin_and_an_installation_do_not_both_serve_one_client(ncm, person, client, name, text):
    path = person / name
    path.parent.mkdir()
    path.write_text(text)
    refused = ncm("install", client, "--json")
    assert refused.code == 2
    assert "plugin" in refused.json["error"]["message"]
    assert path.read_text() == text
    path.write_text(text.replace("true", "false"))
    assert ncm("install", client).code == 0
    path.write_text(path.read_text().replace("false", "true", 1))
    assert f"ncm uninstall {client}" in ncm("doctor").out
    assert ncm("uninstall", client).code == 0
    assert path.read_text() == text


def test_openclaws_list_of_allowed_plugins_gets_ours_and_loses_it_again(ncm, person):
    path = person / ".openclaw" / "openclaw.json"
    path.parent.mkdir()
    text = "// mine\n{plugins: {allow: ['other'], entries: {other: {enabled: true}}}}\n"
    path.write_text(text)
    ncm("install", "openclaw")
    plugins = json_edit.load(path.read_text())["plugins"]
    assert plugins["allow"] == ["other", "nanoclaw-memory"]
    assert plugins["entries"]["nanoclaw-memory"]["hooks"] == {"allowConversationAccess": True}
    assert (person / ".openclaw/extensions/nanoclaw-memory/index.js").exists()
    path.write_text(path.read_text() + "// more\n")
    ncm("uninstall", "openclaw")
    assert path.read_text() == text + "// more\n"
    assert not (person / ".openclaw/extensions").exists()


def test_the_launcher_of_a_plugin_is_renewed_with_its_settings_kept(ncm, person):
    path = person / ".openclaw" / "openclaw.json"
    ncm("install", "openclaw")
    moved = path.read_text().replace("/bin/nanoclaw-client", "/moved/bin/nanoclaw-client")
    path.write_text(json_edit.put(moved, ["plugins", "entries", "nanoclaw-memory", "env"], {"A": "b"}))
    ncm("install", "openclaw")
    entry = parsed(path)["plugins"]["entries"]["nanoclaw-memory"]
    assert "/moved/" not in str(entry)
    assert entry["env"] == {"A": "b"}


def test_a_persons_server_and_hooks_for_another_group_stay_beside_ours(ncm, person):
    servers = {"work": {"command": "ncm", "args": ["--group", "work", "mcp"]}}
    (person / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    path = settings_with(person, "ncm --group work hook stop")
    for _ in range(2):
        ncm("install", "claude-code")
        assert list(parsed(person / ".claude.json")["mcpServers"]) == ["work", "nanoclaw-memory"]
        assert stop_commands(path)[0] == "ncm --group work hook stop"
        assert len(stop_commands(path)) == 2
    assert ncm("uninstall", "claude-code").code == 0
    assert parsed(person / ".claude.json") == {"mcpServers": servers}
    assert stop_commands(path) == ["ncm --group work hook stop"]


# ---- Codex's TOML ----


def codex_config(person: Path, text: str) -> Path:
    path = person / ".codex" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


TOML_STYLES = {
    "inline": 'mcp_servers = { other = { command = "x" } } # c\nmodel = "o"\n',
    "dotted": 'mcp_servers.other.command = "x"\nmodel = "o" # mine\n',
    "super": '[mcp_servers]\n[mcp_servers.other]\ncommand = "x"\n\n[tui]\na=1\n',
    "out of order": '[mcp_servers.a]\ncommand="x"\n[tui]\na=1\n[mcp_servers.b]\ncommand="y"\n# end\n',
    "crlf": 'model = "o" # mine\r\n[tui]\r\nx = 1\r\n',
    "mixed line ends": 'model = "o"\r\n[tui]\nx = 1\r\n',
    "byte order mark": '\ufeffmodel = "o"\n',
    "nothing at the end": 'model = "o"',
    "text like a header": 'model = """\n[mcp_servers.nanoclaw-memory]\n# nanoclaw-memory:end\n"""\n',
    "array of tables": '[[profiles]]\nname="a"\n[[profiles]]\nname="b"\n',
}


@pytest.mark.parametrize("style", TOML_STYLES)
def test_codex_can_read_its_file_after_any_install_and_gets_it_back(ncm, person, style):
    text = TOML_STYLES[style]
    path = codex_config(person, text)
    wanted = toml_edit.load(text)
    for _ in range(2):
        assert ncm("install", "codex").code == 0
        tree = toml_edit.load(path.read_bytes().decode())
        assert tree["mcp_servers"].pop("nanoclaw-memory")["args"][-1] == "mcp"
        assert {**tree, "mcp_servers": wanted.get("mcp_servers", {})} == {"mcp_servers": {}, **wanted}
    ncm("uninstall", "codex")
    assert path.read_bytes() == text.encode()


def test_a_codex_file_that_was_written_anew_is_installed_into_once(ncm, person):
    path = codex_config(person, FOREIGN_TOML)
    ncm("install", "codex")
    ours = tomllib.loads(path.read_text())["mcp_servers"]["nanoclaw-memory"]
    options = "".join(f"  {json.dumps(word)}, # one\n" for word in ours["args"])
    theirs = '# first\n[ mcp_servers.third ]\ncommand = "y"\n'
    after = "\n# about the screen\n[tui]\nx = 1\n"
    path.write_text(
        f"""{theirs}[mcp_servers . 'nanoclaw-memory'] # ours
startup_timeout_sec = 9
args = [
{options}]
# where it is
command = {json.dumps(ours["command"])}
[mcp_servers.nanoclaw-memory.env]
A = "b"
{after}"""
    )
    assert ncm("install", "codex", "--json").json["files"] == []
    path.write_text(path.read_text().replace("/bin/nanoclaw-client", "/moved/bin/nanoclaw-client"))
    ncm("install", "codex")
    repaired = tomllib.loads(path.read_text())["mcp_servers"]["nanoclaw-memory"]
    assert repaired == {**ours, "startup_timeout_sec": 9, "env": {"A": "b"}}
    ncm("uninstall", "codex")
    assert path.read_text() == theirs + after


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"hooks": []}', '"hooks" must be an object'),
        ('{"hooks": {"Stop": {}}}', '"hooks" must have a list as "Stop"'),
    ],
)
def test_hooks_of_another_form_are_named_and_left_alone(ncm, person, text, wrong):
    settings = person / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(text)
    found = ncm("install", "claude-code")
    assert found.code != 0
    assert wrong in found.err
    assert settings.read_text() == text


@pytest.mark.parametrize("text", ["model = ", "[a]\n[a]\n", "mcp_servers = 3\n"])
def test_toml_that_is_broken_already_is_left_alone_and_called_toml(ncm, person, text):
    path = codex_config(person, text)
    ran = ncm("install", "codex", "--json")
    assert ran.code == 1
    assert "TOML" in ran.json["error"]["message"]
    assert path.read_text() == text


# ---- earlier releases ----


def old_installation(person: Path, home: Path) -> None:
    """As the release before installed: the interpreter, the shim, marks in the TOML, and a record of the bytes."""
    shim = "/gone/lib/python3.12/site-packages/nanoclaw_memory/faces/shim.py"
    words = ["/gone/bin/python", "-I", "-S", shim, "--home", str(home)]
    settings_with(person, "say done", f"{' '.join(words)} hook stop")
    server = {"command": words[0], "args": [*words[1:], "mcp"]}
    (person / ".claude.json").write_text(json.dumps({"mcpServers": {"nanoclaw-memory": server}}))
    codex_config(
        person,
        'model = "o"\n\n# nanoclaw-memory:start\n[mcp_servers.nanoclaw-memory]\n'
        f"command = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n# nanoclaw-memory:end\n",
    )


def test_an_installation_of_an_earlier_release_is_named_by_doctor_and_repaired(ncm, person, home):
    ncm("init")
    old_installation(person, home)
    told = ncm("doctor").out
    assert told.count("earlier release") == 2
    for client in ("claude-code", "codex"):
        assert f"ncm install {client}" in told
        assert ncm("install", client).code == 0
    assert "earlier release" not in ncm("doctor").out
    stops = stop_commands(person / ".claude/settings.json")
    assert len(stops) == 2
    assert stops[0] == "say done"
    for path in (person / ".claude.json", person / ".claude/settings.json", person / ".codex/config.toml"):
        assert "shim" not in path.read_text()
        assert "nanoclaw-client" in path.read_text()
    for client in ("claude-code", "codex"):
        ncm("uninstall", client)
    assert stop_commands(person / ".claude/settings.json") == ["say done"]
    assert (person / ".codex/config.toml").read_text() == 'model = "o"\n'


def test_the_marks_of_an_earlier_release_that_codex_tore_apart_do_no_harm(ncm, person, home):
    old_installation(person, home)
    path = person / ".codex" / "config.toml"
    torn = (
        path.read_text()
        .replace("# nanoclaw-memory:start\n", "")
        .replace('model = "o"', "# nanoclaw-memory:end")
    )
    path.write_text(torn.replace("# nanoclaw-memory:end\n", "", 1) + "# nanoclaw-memory:end\n")
    assert ncm("install", "codex").code == 0
    assert list(tomllib.loads(path.read_text())["mcp_servers"]) == ["nanoclaw-memory"]
    ncm("uninstall", "codex")
    assert "nanoclaw" not in path.read_text()


def test_what_a_person_wrote_between_two_installs_survives_uninstall(ncm, person, home):
    ncm("init")
    old_installation(person, home)
    path = person / ".claude.json"
    ncm("install", "claude-code")
    path.write_text(
        json_edit.put(path.read_text(), ["mine"], 1).replace("nanoclaw-client", "moved/bin/nanoclaw-client")
    )
    ncm("install", "claude-code")
    ncm("uninstall", "claude-code")
    assert parsed(path) == {"mine": 1}


# ---- places, homes, groups ----


@pytest.mark.parametrize(
    ("client", "variable", "files"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ["settings.json", ".claude.json"]),
        ("codex", "CODEX_HOME", ["config.toml", "hooks.json"]),
        ("gemini", "GEMINI_CLI_HOME", [".gemini/settings.json"]),
        ("openclaw", "OPENCLAW_STATE_DIR", ["openclaw.json"]),
        ("claude-desktop", "XDG_CONFIG_HOME", ["Claude/claude_desktop_config.json"]),
        ("vscode", "XDG_CONFIG_HOME", ["Code/User/mcp.json"]),
        ("zed", "XDG_CONFIG_HOME", ["zed/settings.json"]),
        ("opencode", "XDG_CONFIG_HOME", ["opencode/opencode.json"]),
        ("cline", "CLINE_DATA_DIR", ["settings/cline_mcp_settings.json"]),
    ],
)
def test_a_clients_own_environment_says_where_its_files_are(
    ncm, person, tmp_path, monkeypatch, client, variable, files
):
    place = tmp_path / "else where"
    monkeypatch.setenv(variable, str(place))
    ncm("install", client)
    assert {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()} >= set(files)
    assert not list(person.iterdir())
    ncm("uninstall", client)
    assert not place.exists()


def test_a_second_home_or_group_says_that_it_replaces_the_first_and_asks(ncm, person, home):
    ncm("install", "claude-code")
    first = (person / ".claude.json").read_bytes()
    for other in (["--group", "work"], ["--home", str(home.parent / "second")]):
        refused = ncm(*other, "install", "claude-code", "--json")
        assert refused.code == 2
        assert "replace" in refused.json["error"]["message"]
        assert str(home) in refused.json["error"]["message"]
        assert (person / ".claude.json").read_bytes() == first
    assert ncm("--home", str(home.parent / "second"), "uninstall", "claude-code").code == 2
    assert (person / ".claude.json").read_bytes() == first


@pytest.mark.parametrize(("answer", "code"), [("n", 2), ("y", 0)])
def test_a_person_at_a_terminal_decides_whether_another_home_is_replaced(
    ncm, person, home, monkeypatch, answer, code
):
    from nanoclaw_memory.interfaces.cli import setup

    ncm("install", "claude-code")
    monkeypatch.setattr(setup, "at_terminal", lambda: True)
    second = home.parent / "second"
    assert ncm("--home", str(second), "install", "claude-code", stdin=f"{answer}\n").code == code
    assert (str(second) in (person / ".claude.json").read_text()) == (answer == "y")


@pytest.mark.parametrize("other", ["home", "group"])
def test_replacing_leaves_one_installation_and_uninstall_still_restores_the_bytes(ncm, person, home, other):
    before = write_foreign(person, "claude-code")
    second = ["--home", str(home.parent / "second")] if other == "home" else ["--group", "work"]
    ncm("install", "claude-code")
    assert ncm(*second, "install", "claude-code", "--replace").code == 0
    text = (person / ".claude/settings.json").read_text()
    assert text.count("nanoclaw-client") == text.count(" ".join(second)) == 5
    assert ncm(*second, "uninstall", "claude-code").code == 0
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("other", ["home", "group"])
def test_what_another_memory_took_over_is_not_removed_from_the_first(ncm, person, home, other):
    second = ["--home", str(home.parent / "second")] if other == "home" else ["--group", "work"]
    ncm("install", "openclaw")
    ncm(*second, "install", "openclaw", "--replace")
    assert ncm("uninstall", "openclaw").code == 2, "it is not its own any more"
    assert (person / ".openclaw/extensions/nanoclaw-memory/index.js").exists()
    ncm(*second, "uninstall", "openclaw")
    assert not (person / ".openclaw").exists()


def test_the_list_says_which_clients_are_here_and_what_each_gets(ncm, person):
    (person / ".codex").mkdir()
    (person / ".gemini").mkdir()
    (person / ".gemini" / "settings.json").write_text("{broken")
    ncm("install", "cursor")
    clients = {row["name"]: row for row in ncm("install", "--list", "--json").json["clients"]}
    assert list(clients) == list(CLIENTS)
    assert clients["codex"]["here"]
    assert not clients["zed"]["here"]
    assert clients["codex"]["hooks"]
    assert not clients["zed"]["hooks"]
    assert clients["cursor"]["installed"] == "yes"
    assert clients["codex"]["installed"] == "no"
    assert "settings.json" in clients["gemini"]["problem"]
    assert "cursor" in ncm("install", "--list").out
    assert "settings.json" in ncm("doctor").out


def test_equal_keys_count_as_a_client_counts_them(ncm, person):
    path = person / ".cursor" / "mcp.json"
    path.parent.mkdir()
    text = '{"mcpServers": {"a": {"command": "1"}}, "mcpServers": {"b": {"command": "2"}}}'
    path.write_text(text)
    ncm("install", "cursor")
    assert set(json.loads(path.read_text())["mcpServers"]) == {"b", "nanoclaw-memory"}
    assert ncm("install", "cursor", "--json").json["files"] == []
    ncm("uninstall", "cursor")
    assert path.read_text() == text


def test_a_file_that_its_client_wrote_meanwhile_is_not_overwritten(person, home):
    from nanoclaw_memory.errors import FileProblem
    from nanoclaw_memory.interfaces.install import install

    plan = install.plan("cursor", Commands("/h/bin/nanoclaw-client", Target.of(home)))
    path = person / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(FileProblem, match="meanwhile"):
        install.install(plan.changes, install.record_of(home, "cursor", None), [])
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    "arguments",
    [["hook"], ["--bogus", "hook", "stop"], ["hook", "stop", "--bogus"], ["hook", "a", "b"], ["--json", "hook"],
     ["--group", "log", "hook"], ["--home", "/dev/null/x", "hook", "stop"], ["--set", "x", "hook", "stop"],
     ["--group", "../x", "hook", "stop"], ["hook", "no-such-event"]],
)  # fmt: skip
def test_a_hook_that_is_called_wrongly_exits_with_0_and_prints_nothing(ncm, arguments):
    ran = ncm(*arguments, stdin="{}")
    assert (ran.code, ran.out) == (0, "")


# ---- text ----


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
    removed = json.loads(json_edit.remove(added, ["list", len(items)]))
    assert removed.get("list", []) == items


@st.composite
def json5_texts(draw):
    """An object as a person might write it: comments, trailing commas, single quotes, bare keys, any spacing."""
    blank = st.sampled_from(["", " ", "\n  ", "\r\n\t", " // note, {\n ", "/* [ */", "\n/* two\nlines */ "])

    def written(value):
        lead, trail = draw(blank), draw(blank)
        if isinstance(value, dict):
            members = [f"{lead}{key(name)}{draw(blank)}:{written(one)}" for name, one in value.items()]
            return lead + "{" + ",".join(members) + ending(members) + "}" + trail
        if isinstance(value, list):
            items = [written(one) for one in value]
            return lead + "[" + ",".join(items) + ending(items) + "]" + trail
        return lead + (key(value) if isinstance(value, str) else json.dumps(value)) + trail

    def key(name):
        return draw(
            st.sampled_from([json.dumps(name), "'" + json.dumps(name)[1:-1].replace("'", "\\'") + "'"])
        )

    def ending(parts):
        return draw(st.sampled_from([",", ""])) + draw(blank) if parts else draw(blank)

    tree = draw(OBJECT)
    return written(tree), tree


@given(json5_texts(), JSON)
def test_json5_keeps_its_comments_when_a_member_comes_and_goes(text_and_tree, value):
    text, tree = text_and_tree
    assert json_edit.load(text) == tree
    added = json_edit.put(text, ["nanoclaw-memory-test"], value)
    assert json_edit.load(added) == {**tree, "nanoclaw-memory-test": value}
    removed = json_edit.remove(added, ["nanoclaw-memory-test"])
    assert json_edit.load(removed) == tree
    comments = re.findall(r"// note, \{|/\* \[ \*/|/\* two", text)
    assert re.findall(r"// note, \{|/\* \[ \*/|/\* two", removed) == comments


PLACES = ["hooks", "mcpServers", "Stop", "nanoclaw-memory", "command", "matcher", "type"]
SETTINGS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["say done", "ncm hook stop", "ncm"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(PLACES), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(PLACES), SETTINGS, max_size=4), STYLE)
def test_whatever_a_file_contains_it_is_refused_or_gets_only_our_part(tree, style):
    file = ConfigFile(Path("settings.json"), (clients.SERVERS,), clients.CLAUDE_HOOKS)
    commands = Commands("/h/bin/nanoclaw-client", Target("/h"))
    text = json.dumps(tree, **style)
    try:
        added = file.add(text, commands)
    except ValueError:
        return
    assert file.add(added, commands) == added
    assert file.remove(text) == text
    assert {call.form for _, call in file.calls(added)} <= {"launcher", "hand"}
    assert {path[1] for path, _ in file.calls(added) if path[0] == "hooks"} >= set(
        clients.CLAUDE_HOOKS.events
    )
    assert full(json.loads(file.remove(added))) == full(tree)


def full(tree):
    """A tree without what is empty."""
    if isinstance(tree, dict):
        return {key: full(one) for key, one in tree.items() if full(one) not in ({}, [])}
    return [full(one) for one in tree if full(one) not in ({}, [])] if isinstance(tree, list) else tree
