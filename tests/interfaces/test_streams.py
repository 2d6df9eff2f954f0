"""Standard input that is closed, output that takes nothing: a line or silence, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nanoclaw_memory.interfaces import shim

COMMAND = (sys.executable, "-m", "nanoclaw_memory")
PROGRAMS = {
    "command": (sys.executable, "-c", "from nanoclaw_memory.interfaces.cli import main; main()"),
    "module": COMMAND,
    "shim": (sys.executable, "-I", "-S", str(Path(shim.__file__))),
}


def closed(*words: str) -> subprocess.CompletedProcess[str]:
    """Run with standard input closed, as `<&-` does."""
    return subprocess.run(
        words, capture_output=True, text=True, timeout=60, preexec_fn=lambda: os.close(0), stdin=None
    )


@pytest.fixture
def lived(ncm, home):
    ncm("init")
    ncm("write", "Keystone's port is 3055", "--tag", "decision", "-i", "0.9")
    ncm("upkeep")
    return home


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize(
    "event", ["session-start", "user-prompt-submit", "stop", "session-end", "pre-compact"]
)
def test_a_hook_with_closed_input_is_silent(lived, program, event):
    ran = closed(*program, "--home", str(lived), "hook", event)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_mcp_with_closed_input_ends_with_a_clear_line(lived, program):
    ran = closed(*program, "--home", str(lived), "mcp")
    assert ran.returncode == 2
    assert ran.stderr.startswith("ncm: standard input is closed")
    assert "Traceback" not in ran.stderr


def test_where_nobody_can_be_asked_the_answer_is_no(lived):
    review = closed(*COMMAND, "--home", str(lived), "review")
    assert review.returncode == 0
    assert "Traceback" not in review.stderr
    forget = closed(*COMMAND, "--home", str(lived), "forget", "--text", "Keystone's port is 3055")
    assert forget.returncode == 2
    assert "nothing was removed" in forget.stderr
    assert "3055" in closed(*COMMAND, "--home", str(lived), "log").stdout


def test_a_message_from_closed_input_is_empty(lived):
    ran = closed(*COMMAND, "--home", str(lived), "turn", "-")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("words", [("boot",), ("boot", "--json"), ("doctor",), ("status",), ("--help",)])
def test_output_that_takes_nothing_is_one_line_on_the_other(lived, words):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*COMMAND, "--home", str(lived), *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ran.returncode == 1
    assert "ncm: the output cannot be used: No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_hook_whose_answer_nobody_takes_is_silent(lived, program):
    given = json.dumps({"session_id": "s1"})
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*program, "--home", str(lived), "hook", "session-start"],
            input=given,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_call_in_a_file_is_answered_before_an_mcp_server_ends(lived, ncm_process):
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number in (2, 3, 4):
        asked = {"name": "memory_search", "arguments": {"query": "port"}}
        calls.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked})
    ran = ncm_process("mcp", stdin="".join(json.dumps(call) + "\n" for call in calls))
    assert {json.loads(line)["id"] for line in ran.out.splitlines()} == {1, 2, 3, 4}
