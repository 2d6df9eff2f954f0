"""The real Claude Code and Codex, installed from npm, against a loopback model: our blocks are in the request.

Skipped aloud where the clients are not present: `npm install -g @anthropic-ai/claude-code @openai/codex`, or name
their directory in NANOCLAW_TEST_CLIENTS.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from model_server import ANSWER, model_server

CLIENTS = os.environ.get("NANOCLAW_TEST_CLIENTS", "")
ROOT = Path(__file__).parents[2]


def client(name: str) -> str:
    path = shutil.which(name, path=f"{CLIENTS}{os.pathsep}{os.environ['PATH']}")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture
def knowing(ncm):
    """A memory that knows one fact and one preference."""
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    ncm("entries", "store", "Prefers tea before noon", "--type", "preference")
    return ncm


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    quiet = {
        "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
    }  # fmt: skip
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANTHROPIC", "CLAUDE", "OPENAI", "CODEX"))
    }
    return subprocess.run(
        command, cwd=folder, env={**kept, **quiet, **environment}, capture_output=True, text=True, timeout=150,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_claude_code_sends_our_blocks_to_the_model_and_we_keep_the_exchange(knowing, tmp_path):
    claude = client("claude")
    assert knowing("install", "claude-code").code == 0
    with model_server() as model:
        done = run(
            [claude, "-p", "What port does Keystone run on?", "--output-format", "json"],
            tmp_path, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="test-key",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        seen = model.seen()
    assert "[GRAPH MEMORY]" in seen
    assert "Keystone.port = 3000" in seen
    assert "SOUL.md" in seen
    knowing("hook", "session-end", stdin=json.dumps({"session_id": "x"}))
    assert ANSWER in knowing("sessions", "search", "Keystone port").out


def test_claude_code_can_call_our_mcp_tools(knowing, tmp_path):
    claude = client("claude")
    knowing("install", "claude-code")
    listed = run([claude, "mcp", "list"], tmp_path)
    assert "nanoclaw-memory" in listed.stdout
    assert "Connected" in listed.stdout, listed.stdout + listed.stderr


def test_claude_code_accepts_the_plugin(tmp_path):
    claude = client("claude")
    for part in (ROOT, ROOT / "plugins" / "nanoclaw-memory"):
        checked = run([claude, "plugin", "validate", str(part)], tmp_path)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_codex_sends_our_blocks_to_the_model(knowing, tmp_path):
    codex = client("codex")
    assert knowing("install", "codex").code == 0
    with model_server() as model:
        provider = (
            f'{{name="loopback", base_url="{model.url}/v1", env_key="LOOPBACK_KEY", wire_api="responses"}}'
        )
        done = run(
            [codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
             "-c", 'model_provider="loopback"', "-c", f"model_providers.loopback={provider}", "-c", 'model="test"',
             "What port does Keystone run on?"],
            tmp_path, LOOPBACK_KEY="test-key",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        seen = model.seen()
    assert "[GRAPH MEMORY]" in seen
    assert "Keystone.port = 3000" in seen
    assert "SOUL.md" in seen


def test_the_plugin_alone_gives_claude_code_our_blocks(knowing, home, tmp_path):
    claude = client("claude")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with model_server() as model:
        done = run(
            [claude, "-p", "What port does Keystone run on?", "--plugin-dir", f"{ROOT}/plugins/nanoclaw-memory"],
            tmp_path, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="test-key", PATH=path, NANOCLAW_HOME=str(home),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        seen = model.seen()
    assert "Keystone.port = 3000" in seen


def test_codex_takes_the_plugin_and_sends_our_blocks(knowing, home, tmp_path):
    codex = client("codex")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    added = run([codex, "plugin", "marketplace", "add", str(ROOT)], tmp_path)
    assert added.returncode == 0, added.stdout + added.stderr
    installed = run([codex, "plugin", "add", "nanoclaw-memory@nanoclaw-memory"], tmp_path)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    with model_server() as model:
        provider = (
            f'{{name="loopback", base_url="{model.url}/v1", env_key="LOOPBACK_KEY", wire_api="responses"}}'
        )
        done = run(
            [codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
             "-c", 'model_provider="loopback"', "-c", f"model_providers.loopback={provider}", "-c", 'model="test"',
             "What port does Keystone run on?"],
            tmp_path, LOOPBACK_KEY="test-key", PATH=path, NANOCLAW_HOME=str(home),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        seen = model.seen()
    assert "Keystone.port = 3000" in seen
