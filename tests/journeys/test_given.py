"""A session gets the same start whenever it asks, and nothing twice; through the hooks, as clients call them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from mcp import Client

from nanoclaw_memory import Memory
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.interfaces.mcp.server import build_server
from nanoclaw_memory.types import Scope

PORT = "What port does Keystone run on?"


@pytest.fixture
def hook(home: Path) -> Callable[..., str]:
    """Call a hook in a process of its own, as Claude Code does; returns the context that it adds."""

    def call(event: str, **fields: str) -> str:
        payload = {"session_id": "s1", "cwd": str(home), "hook_event_name": event, **fields}
        ran = subprocess.run(
            [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "hook", event],
            input=json.dumps(payload),
            capture_output=True,
            text=True,
            timeout=60,
            cwd=home,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        return json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"] if ran.stdout else ""

    return call


@pytest.fixture
def start(hook: Callable[..., str]) -> Callable[..., str]:
    return lambda source="startup", **fields: hook("SessionStart", source=source, **fields)


@pytest.fixture
def prompt(hook: Callable[..., str]) -> Callable[..., str]:
    return lambda text, **fields: hook("UserPromptSubmit", prompt=text, **fields)


@pytest.fixture
def page(ncm, home: Path) -> Path:
    """MEMORY.md of a new home."""
    assert ncm("init").code == 0
    return home / "workspace" / "MEMORY.md"


# ---- the same start ----


def test_a_session_asked_again_starts_with_the_same_bytes_whatever_was_learnt_since(page, ncm, start, prompt):
    page.write_text("- Rent is 900\n")
    first = start()
    page.write_text("- Rent is 950\n")
    ncm("entries", "store", "Prefers tea", "--type", "preference")
    ncm("write", "Signed the lease", "--tag", "decision")
    ncm("exchange", "add", "-u", "Where is the lease?", "-a", "In the drawer.", "--session", "other")
    assert "Rent is 900" in first
    assert start() == start("clear") == first
    assert "Rent is 950" in start(session_id="s2")


def test_a_compaction_gives_a_new_start_which_is_the_same_from_then_on(page, start, hook):
    page.write_text("- Rent is 900\n")
    start()
    page.write_text("- Rent is 950\n")
    hook("PreCompact", trigger="auto")
    again = start("compact")
    assert "Rent is 950" in again
    page.write_text("- Rent is 990\n")
    assert start("compact") == again


def test_a_shared_scope_never_gets_the_start_of_a_private_one(page, open_memory):
    page.write_text("- Salary is 4,000\n")
    assert "Salary" in open_memory().session_start(boot_chars=9_000).text
    assert "Salary" not in open_memory(private=False).session_start(boot_chars=9_000).text


def test_what_was_forgotten_does_not_come_back_from_a_kept_start(page, ncm, start, home):
    page.write_text("- Rent is 900\n- The safe is behind the green painting\n")
    assert "green painting" in start()
    assert "green painting" in start()
    ncm("forget", "--text", "The safe is behind the green painting", "--yes")
    after = start()
    assert "green painting" not in after
    assert "Rent is 900" in after
    assert not [
        path
        for path in (home / "data").iterdir()
        if path.is_file() and b"green painting" in path.read_bytes()
    ]


@pytest.mark.files("it reads the bytes of the file")
def test_a_credential_on_a_page_is_neither_given_nor_kept_with_the_start(page, start, home):
    token = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    page.write_text(f"- The deploy token is {token}\n")
    assert "[redacted:github]" in start()
    assert token not in start()
    assert token.encode() not in (home / "data" / "continuity.db").read_bytes()


def test_kept_starts_are_bounded_in_number_and_age(page, open_memory, clock: FixedClock):
    for number in range(210):
        open_memory(session=f"n{number}").session_start()
    memory = open_memory()
    assert len(_starts(memory)) == 200
    clock.moment += timedelta(days=31)
    memory.session_start()
    assert len(_starts(memory)) == 1


def _starts(memory: Memory) -> list[object]:
    return list(memory.group.database("continuity").query("SELECT id FROM session_starts"))


@pytest.mark.anyio
async def test_a_preference_that_an_agent_stored_over_mcp_is_in_the_next_sessions_start(page, home, start):
    page.write_text("- Rent is 900\n")
    with Memory.open(home, Scope(session_id="mcp-1", origin="agent")) as memory:
        async with Client(build_server(memory)) as client:
            arguments = {"type": "preference", "content": "Prefers tea before noon"}
            await client.call_tool("memory_store", arguments)
    told = start(session_id="next")
    assert "Prefers tea before noon" in told
    assert "Rent is 900" in told


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# ---- nothing twice ----


def test_a_line_is_given_once_a_session_and_a_changed_value_again(page, ncm, prompt):
    ncm("graph", "add", "Keystone", "port", "3000")
    assert "Keystone.port = 3000" in prompt(PORT)
    assert prompt(PORT) == ""
    assert "Keystone.port = 3000" in prompt(PORT, session_id="s2")
    ncm("graph", "add", "Keystone", "port", "8443")
    assert "Keystone.port = 8443" in prompt(PORT)
    ncm("graph", "add", "Keystone", "port", "3000")
    assert "Keystone.port = 3000" in prompt(PORT)
    assert prompt(PORT) == ""


@pytest.mark.parametrize("lost", ["PreCompact", "clear", "compact"])
def test_a_line_comes_again_once_the_window_has_lost_it(page, ncm, prompt, hook, start, lost):
    ncm("graph", "add", "Keystone", "port", "3000")
    prompt(PORT)
    hook(lost, trigger="auto") if lost == "PreCompact" else start(lost)
    assert "Keystone.port = 3000" in prompt(PORT)


def test_only_the_new_line_of_a_block_comes(page, ncm, prompt):
    ncm("graph", "add", "Keystone", "port", "3000")
    prompt("Tell me about Keystone")
    ncm("graph", "add", "Keystone", "owner", "Heidi")
    told = prompt("Tell me about Keystone")
    assert "Keystone.owner = Heidi" in told
    assert "3000" not in told


def test_what_the_start_said_is_not_said_again_by_any_plugin(page, ncm, home, start, prompt):
    _install(home, "echo", "Draft('ECHO', ('• Rent is 900', '• Rent is 90', '• Heating is extra'))")
    page.write_text("## Flat\n- **Rent is 900.**\n- Heating is extra, by the way\n")
    start()
    told = prompt("What do I pay?")
    assert "Rent is 90\n" in told
    assert "Rent is 900" not in told
    assert "Heating" not in told


def test_a_block_of_repeated_lines_is_silence_with_that_reason(page, ncm, home):
    _install(home, "echo", "Draft('ECHO', ('same as ever',))")
    assert "same as ever" in ncm("turn", "hello", "--session", "s1").out
    again = ncm("turn", "hello", "--session", "s1", "--json").json
    assert {"plugin": "echo", "reason": "this session was given all of it already"} in again["skipped"]
    assert "same as ever" in ncm("turn", "hello").out  # without a session nothing is known of its window


def test_an_introduction_never_comes_alone_and_always_with_a_new_line(page, ncm, home):
    _install(home, "echo", "Draft('ECHO', ('On Monday:', message, 'End'), reasons=('', 'why', ''))")
    first, again, other = (ncm("turn", text, "--session", "s1").out for text in ("one", "one", "two"))
    assert "On Monday:\none\nEnd" in first
    assert again == ""
    assert "On Monday:\ntwo\n" in other
    assert "End" not in other


def _install(home: Path, name: str, draft: str) -> None:
    """A third-party plugin that knows nothing of sessions."""
    folder = home / "extensions" / name
    folder.mkdir(parents=True)
    (folder / "plugin.py").write_text(
        "from nanoclaw_memory.turn.plugin import Draft, Plugin\n"
        "class Echo(Plugin):\n"
        f"    def before_turn(self, message, moment):\n        return {draft}\n"
        "def plugin(context):\n    return Echo()\n"
    )
    (home / "nanoclaw.json").write_text(json.dumps({"plugins": {"allow": [name]}}))
