"""The first minutes of a stranger: an empty account, the README's lines, a real client, an upgrade, an uninstall.

Needs the clients and uv, as test_clients.py does (NANOCLAW_TEST_CLIENTS), and a package registry.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from model_server import ANSWER, model_server
from test_clients import ROOT, ask_claude, ask_codex, client

TOLD = "Our dentist is Dr. Okafor on Mill Lane, remember that."
ASKED = "Who is our dentist?"
PACKAGE = "nanoclaw-memory"


def uv(*words: str) -> list[str]:
    return [client("uv"), *words]


# Each way of the README: install, upgrade, uninstall; the checkout stands for the package.
WAYS = {
    "uv": lambda: (
        uv("tool", "install", str(ROOT)),
        uv("tool", "install", "--reinstall", str(ROOT)),
        uv("tool", "uninstall", PACKAGE),
    ),
    "pipx": lambda: (
        uv("tool", "run", "pipx", "install", str(ROOT)),
        uv("tool", "run", "pipx", "install", "--force", str(ROOT)),
        uv("tool", "run", "pipx", "uninstall", PACKAGE),
    ),
    "pip": lambda: (
        ["sh", "-c", f'"{sys.executable}" -m venv ~/.local && ~/.local/bin/pip install --quiet "{ROOT}"'],
        ["sh", "-c", f'~/.local/bin/pip install --quiet --force-reinstall --no-deps "{ROOT}"'],
        ["sh", "-c", f"~/.local/bin/pip uninstall --quiet --yes {PACKAGE}"],
    ),
}


@pytest.fixture
def account(tmp_path, monkeypatch) -> Path:
    """An account with nothing in it but a working directory; its own `~/.local/bin` is on the path."""
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    for name in [
        name for name in os.environ if name.startswith(("NANOCLAW_", "UV_", "PIPX_", "XDG_", "VIRTUAL_"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.local/bin{os.pathsep}/usr/bin:/bin")
    monkeypatch.chdir(home / "work")
    return home


def shell(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def lines_of_the_readme() -> list[str]:
    """The commands by which the README connects clients."""
    (block,) = re.findall(
        r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M
    )[:1]
    return [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("ncm ")]


def works(ask, folder: Path, prompt: str) -> str:
    """What the model got when the client was asked; the client must have answered."""
    with model_server() as model:
        done = ask(model, folder, prompt)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ANSWER in done.stdout
        return model.seen()


@pytest.mark.timeout(1_800)  # eight sessions of real clients
@pytest.mark.parametrize("way", WAYS)
def test_a_stranger_is_remembered_and_can_leave_again(account, way):
    askers = {"claude-code": ask_claude, "codex": ask_codex}
    for name in askers:
        client(name.removesuffix("-code"))
    install, upgrade, uninstall = WAYS[way]()
    folder = account / "work"
    shell(*install)
    connect = lines_of_the_readme()
    assert "ncm install claude-code" in connect
    for command in dict.fromkeys([*connect, "ncm install codex"]):
        shell(*command.split())
    for name, ask in askers.items():
        works(
            ask,
            folder,
            TOLD if name == "claude-code" else TOLD.replace("dentist is Dr. Okafor", "vet is Dr. Ling"),
        )
    assert "Okafor" in works(ask_claude, folder, ASKED)
    assert "Dr. Ling" in works(ask_codex, folder, "Who is our vet?")
    shell(*upgrade)
    assert "Okafor" in works(ask_claude, folder, ASKED)
    shell(*uninstall)  # without a word to the clients, as people do
    for ask in askers.values():
        assert "Okafor" not in works(ask, folder, "What is seven times eight?")


def test_who_leaves_properly_finds_every_file_of_the_client_as_it_was(account):
    settings = account / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n   "model": "opus"\n}\n')
    before = {path: path.read_bytes() for path in account.rglob("*") if path.is_file()}
    install, _, uninstall = WAYS["uv"]()
    shell(*install)
    for name in ("claude-code", "codex", "gemini", "cursor"):
        shell("ncm", "install", name)
        shell("ncm", "uninstall", name)
    shell(*uninstall)
    ours = (account / ".nanoclaw", account / ".local", account / ".cache")
    after = {
        path: path.read_bytes()
        for path in account.rglob("*")
        if path.is_file() and not any(path.is_relative_to(one) for one in ours)
    }
    assert after == before
    works(ask_claude, account / "work", "What is seven times eight?")
