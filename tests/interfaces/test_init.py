"""`ncm init`: three questions at a terminal, none elsewhere."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest


def at_terminal(home: Path, *arguments: str, typed: str, **environment: str) -> str:
    """What a person at a terminal sees who types these lines."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **environment}, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, typed.encode())
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            seen += os.read(ours, 4096)
        except OSError:  # the terminal closed with its last process
            break
    os.close(ours)
    assert process.wait(60) == 0, seen.decode()
    return seen.decode().replace("\r\n", "\n")


@pytest.fixture
def claude_here() -> Path:
    folder = Path.home() / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    return folder


def test_a_new_home_asks_for_name_zone_and_client_and_uses_the_answers(home, ncm, claude_here):
    seen = at_terminal(home, "init", typed="Ida Berg\nBerlin\n\nn\n", TZ="America/Chicago")
    assert "Your time zone [America/Chicago]" in seen
    assert "Clients found here: claude-code" in seen
    page = (home / "workspace" / "USER.md").read_text()
    assert "- name: Ida Berg\n- timezone: Europe/Berlin\n" in page
    assert "- name: Ida Berg" in ncm("boot").out
    assert ncm("config", "get", "user.timezone").out.strip() == "Europe/Berlin"
    assert "nanoclaw-client" in (claude_here / "settings.json").read_text()
    assert "changed: " in seen
    assert "Fetch the local model (72 MB, once)?" in seen
    assert '"hooks": {' not in seen  # a line for each client, not its whole file


def test_three_times_enter_connects_the_client_that_is_here(home, ncm, claude_here):
    at_terminal(home, "init", typed="\n\n\nn\n", TZ="America/Chicago")
    assert "- name" not in (home / "workspace" / "USER.md").read_text().replace('"- name', "")
    assert "from" in ncm("config", "get", "user.timezone", "--json").json
    assert ncm("config", "get", "user.timezone", "--json").json["value"] == ""
    assert "nanoclaw-client" in (claude_here / "settings.json").read_text()


def test_a_wrong_answer_is_asked_again_with_what_is_near(home, claude_here):
    seen = at_terminal(home, "init", typed="Ida\nEurope/Berlim\nEurope/Berlin\nclaude\nnone\n")
    assert "there is no zone 'Europe/Berlim'; Europe/Berlin" in seen
    assert "'claude' is no client that we know; claude-code, claude-desktop?" in seen
    assert "nanoclaw" not in (claude_here / "settings.json").read_text()


def test_a_second_init_and_a_group_ask_nothing(home, ncm):
    ncm("init")
    assert "Your name" not in at_terminal(home, "init", typed="")
    assert "Your name" not in at_terminal(home, "--group", "family", "init", typed="")


def test_without_a_terminal_nothing_is_asked(home, ncm):
    ran = ncm("init", stdin="")
    assert ran.code == 0
    assert "Your name" not in ran.out
    assert ran.out.startswith(f"Memory at {home}")


def test_json_asks_nothing_even_at_a_terminal(home):
    seen = at_terminal(home, "init", "--json", typed="")
    assert json.loads(seen)["ok"]
