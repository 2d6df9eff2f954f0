"""The server as a service: a systemd user unit or a launchd agent, and a container."""

from __future__ import annotations

import json
import os
import plistlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nanoclaw_memory.interfaces.install import service

ROOT = Path(__file__).parents[2]


@pytest.fixture
def systemctl(tmp_path, monkeypatch) -> Path:
    """A manager of services that does nothing but note what it was asked; returns its notes."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "asked"


def unit_of(home: Path) -> Path:
    return service.service_of(home, platform="linux").path


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has launchd")
def test_the_service_is_written_started_and_removed_again(ncm, home, systemctl):
    ran = ncm("serve", "--install", "--port", "7801", "--no-upkeep")
    assert ran.code == 0
    assert "runs, now and at every login" in ran.out
    unit = unit_of(home)
    text = unit.read_text()
    assert (
        f'ExecStart="{home}/bin/nanoclaw-client" "--home" "{home}" "serve" "--port=7801" "--no-upkeep"\n'
        in text
    )
    asked = f"--user daemon-reload\n--user enable --now {unit.name}\n"
    assert systemctl.read_text() == asked
    assert "does not run" in ncm("doctor").out
    ran = ncm("serve", "--uninstall")
    assert systemctl.read_text() == f"{asked}--user disable --now {unit.name}\n"
    assert not unit.exists()
    assert not (home / "bin").exists()
    assert "there is no service" in ncm("serve", "--uninstall").out


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has launchd")
def test_what_the_unit_starts_serves(ncm, home, systemctl):
    ncm("serve", "--install", "--no-http", "--no-watch", "--no-upkeep")
    (line,) = [line for line in unit_of(home).read_text().splitlines() if line.startswith("ExecStart=")]
    words = [word.strip('"') for word in line.removeprefix("ExecStart=").split()]
    process = subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(process.stdout.readline())["home"] == str(home)
        assert f"the server runs as process {process.pid}" in ncm("doctor").out
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert "is installed and does not run" in ncm("doctor").out


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has launchd")
def test_without_a_manager_of_services_the_unit_is_written_and_the_commands_are_named(ncm, home, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    ran = ncm("serve", "--install")
    assert ran.code == 0
    assert "systemctl --user enable --now" in ran.err
    assert unit_of(home).exists()


def test_the_launcher_stays_while_a_service_or_a_client_needs_it(ncm, home, systemctl):
    ncm("serve", "--install")
    ncm("install", "claude-code")
    ncm("uninstall", "claude-code")
    assert (home / "bin" / "nanoclaw-client").exists()
    ncm("install", "claude-code")
    ncm("serve", "--uninstall")
    assert (home / "bin" / "nanoclaw-client").exists()


def test_on_macos_it_is_a_launch_agent(home):
    found = service.service_of(home, ["--no-http"], platform="darwin")
    content = plistlib.loads(found.text)
    assert found.path.parent == Path.home() / "Library" / "LaunchAgents"
    assert content["ProgramArguments"][1:] == ["--home", str(home), "serve", "--no-http"]
    assert content["RunAtLoad"]
    assert found.start[0][:2] == ("launchctl", "bootstrap")


def test_a_home_with_odd_characters_is_quoted_for_systemd(tmp_path):
    text = service.service_of(tmp_path / 'a "b" 100% $HOME', platform="linux").text.decode()
    assert 'a \\"b\\" 100%% $$HOME' in text


def test_two_homes_have_two_services(tmp_path):
    names = {service.service_of(tmp_path / name).path.name for name in ("one", "two")}
    assert len(names) == 2
    assert (
        service.service_of(Path.home() / ".nanoclaw", platform="linux").path.name == "nanoclaw-memory.service"
    )


def test_doctor_says_when_no_server_runs(ncm):
    ncm("init")
    assert "no server runs" in ncm("doctor").out


def test_doctor_says_which_clients_could_be_connected(ncm):
    ncm("init")
    (Path.home() / ".claude").mkdir()
    assert "ncm install claude-code" in ncm("doctor").out


def test_doctor_names_a_client_that_gets_everything_twice(ncm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ncm("install", "claude-code")
    assert "twice" not in ncm("doctor").out
    ncm("install", "claude-code", "--project")
    told = ncm("doctor").out
    assert "everything twice" in told
    assert "ncm uninstall claude-code --project" in told


def test_the_container_runs_a_server_on_its_volume(tmp_path):
    """The command of the Dockerfile, with this environment's program: a container tool is not at hand in tests."""
    (line,) = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("CMD ")]
    environment = {
        **os.environ, "NANOCLAW_HOME": str(tmp_path / "memory"), "PORT": "0",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    process = subprocess.Popen(json.loads(line[4:]), env=environment, stdout=subprocess.PIPE, text=True)
    try:
        said = [process.stdout.readline() for _ in range(4)]
        assert any("/mcp" in line for line in said), said
        assert (tmp_path / "memory" / "nanoclaw.json").exists()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_every_file_that_the_dockerfile_copies_is_sent_to_the_builder():
    copied = [
        word
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ")
        for word in line.split()[1:-1]
    ]
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    assert [name for name in copied if f"!{name}" not in sent or not (ROOT / name).exists()] == []
