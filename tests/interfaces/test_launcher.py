"""The launcher, with real environments: whatever happens to the program, a hook exits with 0 and is silent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from test_clients import client

ROOT = Path(__file__).parents[2]
SILENT = (0, "", "")


def call(command: list[str], **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True, **more)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The package as people install it."""
    folder = tmp_path_factory.mktemp("wheel")
    call([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT)
    return next(folder.glob("*.whl"))


def environment(folder: Path, wheel: Path) -> Path:
    """A virtual environment with the package in it; what it needs comes from the one that runs the tests."""
    call([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    (site,) = folder.glob("lib/python3*/site-packages")
    needs = next(place for place in sys.path if place.endswith("site-packages"))
    (site / "needs.pth").write_text(needs)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(folder / "bin" / "python"),
    ]
    call([*pip, "install", "--no-deps", "--no-index", str(wheel)])
    return folder


def hook_command(event: str = "UserPromptSubmit") -> str:
    settings = json.loads((Path.home() / ".claude" / "settings.json").read_text())
    return settings["hooks"][event][0]["hooks"][0]["command"]


def run_hook(command: str, shell: str = "/bin/sh", **environment: str) -> tuple[int, str, str]:
    asked = {"session_id": str(uuid.uuid4()), "prompt": "What port does Keystone run on?"}
    kept = {name: value for name, value in os.environ.items() if name != "NANOCLAW_HOME"}
    done = subprocess.run(
        [shell, "-c", command], input=json.dumps(asked), capture_output=True, text=True,
        env={**kept, "PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="session")
def installed(tmp_path_factory, wheel) -> tuple[Path, Path]:
    """An environment that is installed in a person's Claude Code, with a fact in its memory; and a copy of it all."""
    place, copy = tmp_path_factory.mktemp("installed") / "place", tmp_path_factory.mktemp("copy") / "place"
    ncm = str(environment(place / "an environment", wheel) / "bin" / "ncm")
    (place / "person").mkdir()
    kept = {name: value for name, value in os.environ.items() if name != "NANOCLAW_HOME"}
    for arguments in (["install", "claude-code"], ["graph", "add", "Keystone", "port", "3000"]):
        call([ncm, *arguments], env={**kept, "HOME": str(place / "person")})
    shutil.copytree(place, copy, symlinks=True)
    return place, copy


@pytest.fixture
def venv(installed, monkeypatch) -> Path:
    """The environment, whole again; its person is the one who runs the test."""
    place, copy = installed
    shutil.rmtree(place)
    shutil.copytree(copy, place, symlinks=True)
    monkeypatch.setenv("HOME", str(place / "person"))
    monkeypatch.delenv("NANOCLAW_HOME")
    return place / "an environment"


def test_the_installed_command_names_no_file_of_the_installation(venv):
    for name in (".claude/settings.json", ".claude.json"):
        text = (Path.home() / name).read_text()
        assert str(venv) not in text
        assert "python" not in text


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "ksh"])
def test_the_command_is_understood_by_every_shell_a_client_may_use(venv, shell):
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    assert "Keystone.port = 3000" in run_hook(hook_command(), path)[1]
    shutil.rmtree(Path.home() / ".nanoclaw")
    assert run_hook(hook_command(), path) == SILENT


def uninstall_package(venv: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "uninstall", "-y"]
    call([*pip, "nanoclaw-memory"])


def dangle(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/no/such/python3")


def break_package(venv: Path) -> None:
    (package,) = venv.glob("lib/python3*/site-packages/nanoclaw_memory")
    (package / "__main__.py").write_text("raise SystemExit(2)")


DAMAGES = {
    "the package is uninstalled": uninstall_package,
    "the environment is deleted": shutil.rmtree,
    "the environment is moved": lambda venv: venv.rename(venv.with_name("moved")),
    "Python is upgraded and its old version deleted": dangle,
    "what it needs is gone": lambda venv: next(venv.glob("lib/*/site-packages/needs.pth")).unlink(),
    "the package is half deleted": lambda venv: shutil.rmtree(
        next(venv.glob("lib/*/site-packages/nanoclaw_memory/memory"))
    ),
    "the program refuses": break_package,
    "the home is deleted": lambda venv: shutil.rmtree(Path.home() / ".nanoclaw"),
    "the launcher is damaged": lambda venv: (Path.home() / ".nanoclaw/bin/nanoclaw-client").write_text(
        "exit 2"
    ),
    "the launcher may not run": lambda venv: (Path.home() / ".nanoclaw/bin/nanoclaw-client").chmod(0o600),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_hook_never_blocks_its_client(venv, damage):
    assert "Keystone.port = 3000" in run_hook(hook_command())[1]
    DAMAGES[damage](venv)
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        assert run_hook(hook_command(event)) == SILENT


def test_a_client_that_uses_no_shell_is_not_blocked_either(venv):
    uninstall_package(venv)
    launcher = Path.home() / ".nanoclaw" / "bin" / "nanoclaw-client"
    done = subprocess.run(
        [launcher, "hook", "stop"], input="{}", capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == SILENT


def test_another_installation_takes_over_when_the_first_is_gone(venv, wheel, tmp_path):
    other = environment(tmp_path / "other", wheel)
    uninstall_package(venv)
    code, out, _ = run_hook(hook_command(), PATH=f"{other / 'bin'}:/usr/bin:/bin")
    assert (code, "Keystone.port = 3000" in out) == (0, True)


def test_an_mcp_server_that_is_gone_says_so_and_fails(venv):
    server = json.loads((Path.home() / ".claude.json").read_text())["mcpServers"]["nanoclaw-memory"]
    uninstall_package(venv)
    done = subprocess.run(
        [server["command"], *server["args"]], capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
    )  # fmt: skip
    assert done.returncode == 127
    assert "not installed any more" in done.stderr


def test_doctor_names_a_launcher_that_finds_nothing(venv, wheel, tmp_path):
    other = environment(tmp_path / "other", wheel)
    shutil.rmtree(venv)
    told = subprocess.run([other / "bin" / "ncm", "doctor"], capture_output=True, text=True).stdout
    assert "ncm install claude-code" in told
    call([str(other / "bin" / "ncm"), "install", "claude-code"])
    assert "Keystone.port = 3000" in run_hook(hook_command())[1]


# ---- uv ----


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """The real uv with folders of its own."""
    program = client("uv")
    monkeypatch.delenv("NANOCLAW_HOME")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_TOOL_DIR", str(tmp_path / "tools"))
    monkeypatch.setenv("UV_TOOL_BIN_DIR", str(tmp_path / "bin"))
    return lambda *arguments: call([program, *arguments])


def test_a_hook_goes_on_answering_after_uv_upgraded_python(uv, wheel, tmp_path):
    other = other_python()
    uv("tool", "install", "--python", sys.executable, str(wheel))
    call([str(tmp_path / "bin" / "ncm"), "install", "claude-code"])
    call([str(tmp_path / "bin" / "ncm"), "graph", "add", "Keystone", "port", "3000", "--category", "project"])
    assert "Keystone.port = 3000" in run_hook(hook_command())[1]
    uv("tool", "upgrade", "--python", other, "nanoclaw-memory")
    assert "Keystone.port = 3000" in run_hook(hook_command())[1]
    (
        tmp_path / "tools" / "nanoclaw-memory" / "bin" / "nanoclaw-memory"
    ).unlink()  # the faster way is found too
    assert "Keystone.port = 3000" in run_hook(hook_command())[1]
    uv("tool", "uninstall", "nanoclaw-memory")
    assert run_hook(hook_command()) == SILENT


def other_python() -> str:
    """Another version of Python than the one that runs this test."""
    beside = Path(sys.base_prefix).parent.glob("3.1[1-9].*/bin/python3")
    for path in [*beside, *filter(None, map(shutil.which, ("python3.11", "python3.12", "python3.13")))]:
        done = subprocess.run(
            [path, "-c", "import sys; print(sys.version_info.minor)"], capture_output=True, text=True
        )
        if (
            done.returncode == 0
            and 11 <= int(done.stdout) <= 13
            and int(done.stdout) != sys.version_info.minor
        ):
            return str(path)
    pytest.skip("only one version of Python is installed")


def test_from_uvx_no_path_of_the_cache_is_written_and_an_emptied_cache_is_silent(uv, wheel, tmp_path):
    ran = uv("tool", "run", "--from", str(wheel), "ncm", "install", "claude-code")
    assert "uv tool install nanoclaw-memory" in ran.stderr
    for name in (".claude/settings.json", ".claude.json"):
        assert str(tmp_path) not in (Path.home() / name).read_text()
    assert run_hook(hook_command("SessionStart"))[1]
    uv("cache", "clean", "--force")
    assert run_hook(hook_command("SessionStart")) == SILENT
