"""A server that a client's session starts: one for a home, ended when idle, replaced, and never in the way."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from serving import SHIM, context, prompt, serving, through_shim
from test_init import at_terminal

import nanoclaw_memory
from nanoclaw_memory.interfaces.http import claim
from nanoclaw_memory.interfaces.http.claim import AlreadyRunning, ServerAddress, address_of, end_self_started
from nanoclaw_memory.interfaces.install import launcher

START = json.dumps({"session_id": "s1", "source": "startup"})


def eventually(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for another process to do something."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def a_persons_machine(monkeypatch, home) -> Iterator[None]:
    """No machine of continuous integration; what a session started is ended."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("NANOCLAW_HOME")
    yield
    for process in processes_of(home):
        os.kill(int(process), signal.SIGTERM)
    eventually(lambda: processes_of(home) == [])


@pytest.fixture
def connected(home, ncm) -> Path:
    """A home that is installed in a client."""
    assert ncm("install", "claude-code").code == 0
    return home


def session_starts(home: Path, **environment: str) -> str:
    return context(through_shim(home, "hook", "session-start", stdin=START, **environment))


def served(home: Path) -> ServerAddress:
    eventually(lambda: address_of(home))
    found = address_of(home)
    assert found
    return found


def processes_of(home: Path) -> list[str]:
    """The process ids of servers of this home, however they are started."""
    command = ["pgrep", "-f", "--", f"--home {home} serve"]
    return subprocess.run(command, capture_output=True, text=True).stdout.split()


def test_after_install_a_sessions_start_is_answered_and_starts_a_server_that_answers_the_next_prompt(
    connected, ncm
):
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    assert "# Soul" in session_starts(connected)
    server = served(connected)
    assert server.self_started
    assert server.url == ""
    assert not (connected / "token").exists()
    assert Path(server.socket).stat().st_mode & 0o777 == 0o600
    os.kill(server.pid, signal.SIGSTOP)  # an answer that comes late shows who was asked
    began = time.monotonic()
    try:
        asked = through_shim(
            connected, "hook", "user-prompt-submit", stdin=prompt("What port does Keystone run on?")
        )
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert time.monotonic() - began > 2
    assert "Keystone.port = 3000" in asked


def test_a_race_of_five_sessions_starts_one_server(connected):
    racing = [
        subprocess.Popen(
            [*SHIM, "--home", str(connected), "hook", "session-start"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(5)
    ]  # fmt: skip
    assert all("# Soul" in context(one.communicate(START, timeout=60)[0]) for one in racing)
    server = served(connected)
    eventually(lambda: processes_of(connected) == [str(server.pid)])
    assert address_of(connected).pid == server.pid


def test_the_server_is_of_the_home_and_of_no_session(connected, tmp_path):
    """It keeps no terminal, no pipe and no directory of the client's, and the hook does not wait for it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "msgspec.py").write_text("raise SystemExit('a module of the project was run')")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    subprocess.run(
        [*SHIM, "--home", str(connected), "hook", "session-start"],
        input=START, text=True, capture_output=True, timeout=60, cwd=project, pass_fds=(write,),
    )  # fmt: skip
    os.close(write)
    assert select.select([read], [], [], 60)[0] == [read]
    assert os.read(read, 1) == b""  # nobody has the other end any more
    os.close(read)
    server = served(connected)
    assert os.getsid(server.pid) == server.pid
    if sys.platform == "linux":
        assert Path(f"/proc/{server.pid}/cwd").resolve() == connected.resolve()
        assert os.readlink(f"/proc/{server.pid}/fd/2") == os.devnull


def test_a_session_of_a_group_that_its_environment_names_starts_the_homes_server(connected, ncm):
    assert ncm("init", "--group", "family").code == 0
    session_starts(connected, NANOCLAW_GROUP="family", NANOCLAW_SESSION="s7")
    assert served(connected).self_started


def test_a_server_ends_after_idle_minutes_and_leaves_nothing(home, ncm):
    ncm("init")
    with serving(home, "--no-http", "--no-upkeep", "--idle-minutes", "0.02") as server:
        assert server.place["idle_minutes"] == 0.02
        assert server.process.wait(60) == 0
        assert not (home / "ncm.sock").exists()
        assert (home / "serve.lock").read_text() == ""


def test_a_client_that_is_connected_keeps_an_idle_server_running(home, ncm):
    import socket

    ncm("init")
    with serving(home, "--no-http", "--no-upkeep", "--idle-minutes", "0.04") as server:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server.place["socket"])
            client.sendall(b"mcp\0core\0main\0s1\0\0\n")
            with pytest.raises(subprocess.TimeoutExpired):
                server.process.wait(4)
        assert server.process.wait(60) == 0


def test_a_server_started_by_hand_takes_the_place_of_a_self_started_one(connected):
    session_starts(connected)
    first = served(connected)
    with serving(connected, "--no-upkeep") as server:
        found = address_of(connected)
        assert found and found.pid == server.process.pid != first.pid
        assert not found.self_started
        assert found.url
        eventually(lambda: processes_of(connected) == [])  # the first; this one is named otherwise
        assert "# Soul" in session_starts(connected)
        assert address_of(connected) == found


@pytest.fixture
def upgradable(tmp_path, monkeypatch) -> Path:
    """A copy of the program that may be upgraded; returns the file with its version."""
    copy = tmp_path / "site" / "nanoclaw_memory"
    shutil.copytree(Path(nanoclaw_memory.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", str(copy.parent))
    monkeypatch.setattr("serving.SHIM", [*SHIM[:3], str(copy / "interfaces" / "shim.py")])
    return copy / "__init__.py"


def test_after_an_upgrade_the_next_sessions_start_replaces_the_server(connected, upgradable, ncm):
    session_starts(connected)
    old = served(connected)
    assert "# Soul" in session_starts(connected)
    assert served(connected).pid == old.pid
    program = upgradable.read_text().replace(f'"{old.version}"', '"99.0.0"')
    upgradable.unlink()
    upgradable.write_text(program)
    through_shim(connected, "hook", "user-prompt-submit", stdin=prompt("hello"))
    assert served(connected).pid == old.pid
    assert "# Soul" in session_starts(connected)
    eventually(lambda: (found := address_of(connected)) and found.version == "99.0.0")
    assert served(connected).self_started
    told = ncm("doctor").out
    assert "version 99.0.0" in told
    assert "a client's next session replaces it" in told


def test_after_an_install_from_another_place_the_next_sessions_start_replaces_the_server(connected):
    session_starts(connected)
    old = served(connected)
    with launcher.path_in(connected).open("a") as script:
        script.write("# of another program\n")
    assert "# Soul" in session_starts(connected)
    eventually(lambda: (found := address_of(connected)) and found.pid != old.pid)


def test_install_writes_the_choice_into_the_settings_and_no_server_refrains(home, ncm):
    settings = home / "nanoclaw.json"
    refrained = ncm("install", "claude-code", "--no-server", "--json")
    assert refrained.json["server"] is False
    assert json.loads(settings.read_text())["server"] == {"autostart": False}
    session_starts(home)
    assert processes_of(home) == []
    assert ncm("install", "codex", "--json").json["server"] is False  # an earlier choice stays
    assert ncm("install", "claude-code", "--server", "--json").json["server"] is True
    assert json.loads(settings.read_text())["server"] == {"autostart": True}
    session_starts(home)
    assert served(home).self_started
    ncm("install", "claude-code", "--no-server")
    eventually(lambda: address_of(home) is None)


def test_a_client_without_hooks_and_a_dry_run_choose_nothing(home, ncm):
    assert ncm("install", "zed", "--json").json["server"] is False
    ncm("install", "claude-code", "--dry-run")
    assert "server" not in json.loads((home / "nanoclaw.json").read_text())


def test_uninstall_of_the_last_client_ends_the_self_started_server(connected, ncm):
    ncm("install", "codex")
    session_starts(connected)
    served(connected)
    assert ncm("uninstall", "codex", "--json").json["server_ended"] is False
    assert address_of(connected)
    assert ncm("uninstall", "claude-code", "--json").json["server_ended"] is True
    eventually(lambda: address_of(connected) is None)
    eventually(lambda: processes_of(connected) == [])


@pytest.mark.parametrize(
    "environment",
    [
        {"CI": "true"},
        {"NANOCLAW_NO_SERVER": "1"},
        {"NANOCLAW_TELEMETRY_ENABLED": "false"},
    ],
)
def test_where_a_server_may_not_be_used_none_is_started(connected, environment):
    assert "# Soul" in session_starts(connected, **environment)
    assert processes_of(connected) == []  # one would be loading now


def test_a_home_that_is_missing_or_where_a_server_cannot_run_is_no_failure_of_the_hook(connected):
    (
        connected / "serve.lock"
    ).mkdir()  # as root ignores permissions, a lock that cannot be taken stands for them
    assert "# Soul" in session_starts(connected)
    eventually(lambda: processes_of(connected) == [])
    shutil.rmtree(connected)
    assert session_starts(connected) == ""
    assert not connected.exists()


def test_status_and_doctor_say_who_started_the_server_and_when_it_ends(connected, ncm):
    before = ncm("status", "--json").json["server"]
    assert before["running"] is False
    assert before["autostart"] is True
    assert "server    none; a client's next session starts one" in ncm("status").out
    assert "a client's next session starts one" in ncm("doctor").out
    session_starts(connected)
    pid = served(connected).pid
    now = ncm("status", "--json").json["server"]
    assert (now["running"], now["self_started"], now["pid"], now["idle_minutes"]) == (True, True, pid, 30)
    left = time.mktime(time.strptime(now["ends_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime())
    assert 28 * 60 < left < 31 * 60
    said = f"runs as process {pid}, started by a client's session; without a client it ends at 20"
    assert f"server    {said}" in ncm("status").out
    assert f"the server {said}" in ncm("doctor").out
    told = ncm("doctor", "--json").json["server"]
    assert told["ends_at"] >= now["ends_at"]  # a client may have used it meanwhile
    assert {**told, "ends_at": now["ends_at"]} == now


def test_doctor_reports_broken_settings_and_the_server_all_the_same(connected, ncm):
    (connected / "nanoclaw.json").write_text("{broken")
    told = ncm("doctor", "--json").json
    assert told["server"]["running"] is False
    assert any("not valid JSON" in finding["message"] for finding in told["findings"])


def test_a_server_that_was_killed_is_started_again_by_the_next_session(connected):
    session_starts(connected)
    first = served(connected)
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: address_of(connected) is None)
    session_starts(connected)
    assert served(connected).pid != first.pid


def test_a_prompt_starts_a_server_again_that_ended_during_its_session_once_in_a_minute(connected):
    through_shim(connected, "hook", "user-prompt-submit", stdin=prompt("hello"))
    assert processes_of(connected) == []  # no session has started one
    session_starts(connected)
    first = served(connected)
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: address_of(connected) is None)
    lock = connected / "serve.lock"
    through_shim(connected, "hook", "user-prompt-submit", stdin=prompt("hello"))
    assert processes_of(connected) == []  # it was used a moment ago
    a_minute_ago = time.time() - 61
    os.utime(lock, (a_minute_ago, a_minute_ago))
    through_shim(connected, "hook", "user-prompt-submit", stdin=prompt("hello"))
    assert served(connected).pid != first.pid


def test_a_running_server_takes_over_changed_idle_minutes(connected, ncm):
    session_starts(connected)
    pid = served(connected).pid
    ncm("config", "set", "server.idleMinutes", "7")
    through_shim(connected, "hook", "user-prompt-submit", stdin=prompt("hello"))
    eventually(lambda: (found := address_of(connected)) and found.idle_minutes == 7)
    assert served(connected).pid == pid


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say who listens")
def test_a_process_that_only_has_the_recorded_number_is_not_ended_and_a_server_that_stays_is_named(
    home, ncm, monkeypatch
):
    """A home may be shared with a container or over the network, where processes are counted anew."""
    ncm("init")
    with (home / "serve.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(["sleep", "60"]) as bystander:
            address = ServerAddress(
                pid=bystander.pid, home=str(home), socket=str(home / "ncm.sock"), self_started=True
            )
            lock.write(msgspec.json.encode(address).decode())
            lock.flush()
            assert not end_self_started(home)
            monkeypatch.setattr(claim, "GIVE_WAY_SECONDS", 0.0)
            with pytest.raises(AlreadyRunning, match=f"process {bystander.pid}"), claim.claimed(home, False):
                pass
            assert bystander.poll() is None
            bystander.kill()


def test_without_a_terminal_no_model_is_fetched_and_one_line_says_how(home, ncm):
    ran = ncm("install", "claude-code")
    assert ran.code == 0
    assert ran.err.count("ncm models install") == 1
    assert not (home / "models").exists()
    assert ncm("install", "codex", "--json").json["model"] == "missing"


@pytest.fixture
def offline(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_OFFLINE", "1")


@pytest.mark.usefixtures("offline")
def test_a_person_at_a_terminal_is_asked_for_the_model_and_enter_fetches_it(home):
    seen = at_terminal(
        home, "install", "claude-code", typed="\n"
    )  # and succeeds, though it could not be fetched
    assert "Fetch the local model (72 MB, once)?" in seen
    assert "[Y/n]" in seen
    assert "multilingual-e5-small cannot be fetched" in seen
    assert "models install (72 MB, once" in seen


@pytest.mark.parametrize("answer", ["n\n", "\x04"])
def test_who_says_no_has_the_client_and_no_model(home, answer):
    seen = at_terminal(home, "install", "claude-code", typed=answer)
    assert "fetching" not in seen
    assert "models install (72 MB, once" in seen
    assert "nanoclaw-client" in (Path.home() / ".claude" / "settings.json").read_text()


@pytest.mark.usefixtures("offline")
def test_a_model_that_was_named_and_cannot_be_fetched_is_a_failure_of_the_command(home, ncm):
    ran = ncm("install", "claude-code", "--models")
    assert ran.code == 1
    assert "cannot be fetched" in ran.err
    assert "nanoclaw-client" in (Path.home() / ".claude" / "settings.json").read_text()
    assert ncm("install", "claude-code", "--no-models", "--json").json["model"] == "missing"


def test_a_model_that_is_there_is_not_asked_for(home, ncm, models_dir):
    ncm("init")
    (home / "models").symlink_to(models_dir)
    seen = at_terminal(home, "install", "claude-code", typed="")
    assert "Fetch" not in seen
    assert ncm("install", "codex", "--models", "--json").json["model"] == "installed"
