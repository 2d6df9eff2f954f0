"""The real clients, installed from npm, against a loopback model: our blocks are in the request.

Skipped aloud where the clients are not present: `npm install -g @anthropic-ai/claude-code @openai/codex
@google/gemini-cli openclaw opencode-ai`, or name their directory in NANOCLAW_TEST_CLIENTS. uv is looked for there too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from model_server import ANSWER, model_server, offers

from nanoclaw_memory import tokens
from nanoclaw_memory.interfaces.install import json_edit
from nanoclaw_memory.rendering import CLOSING, OPENING

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
    kept["PATH"] = f"{CLIENTS}{os.pathsep}{kept['PATH']}"  # their Node may be there too
    return subprocess.run(
        command, cwd=folder, env={**kept, **quiet, **environment}, capture_output=True, text=True, timeout=280,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


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


def ask_codex(model, folder, prompt: str, **environment: str) -> subprocess.CompletedProcess[str]:
    provider = f'{{name="loopback", base_url="{model.url}/v1", env_key="LOOPBACK_KEY", wire_api="responses"}}'
    return run(
        [client("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
         "-c", 'model_provider="loopback"', "-c", f"model_providers.loopback={provider}", "-c", 'model="test"', prompt],
        folder, LOOPBACK_KEY="test-key", **environment,
    )  # fmt: skip


def ask_claude(model, folder, prompt: str) -> subprocess.CompletedProcess[str]:
    allowed = ["--allowedTools", "mcp__nanoclaw-memory"]
    command = [client("claude"), "-p", prompt, "--output-format", "json", *allowed]
    return run(command, folder, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="test-key")


def ask_gemini(model, folder, prompt: str) -> subprocess.CompletedProcess[str]:
    path = Path.home() / ".gemini" / "settings.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**settings, "security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return run(
        [client("gemini"), "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", prompt], folder,
        GOOGLE_GEMINI_BASE_URL=model.url, GEMINI_API_KEY="test-key", GEMINI_CLI_TRUST_WORKSPACE="true",
    )  # fmt: skip


def ask_openclaw(model, folder, prompt: str, key: str = "") -> subprocess.CompletedProcess[str]:
    key = key or f"agent:main:{uuid.uuid4()}"  # a session of its own
    path = Path.home() / ".openclaw" / "openclaw.json"
    if not path.exists() or "loopback" not in path.read_text():
        put_provider(path, model.url)
    path.write_text(re.sub(r"http://127.0.0.1:\d+", model.url, path.read_text()))
    return run([client("openclaw"), "agent", "--local", "--session-key", key, "-m", prompt], folder)


def put_provider(path: Path, url: str) -> None:
    """Name the loopback model in OpenClaw's settings, as a person writes them."""
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.exists() else "// mine\n{}\n"
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    model = {
        "id": "test", "name": "test", "contextWindow": 100_000, "maxTokens": 4_000, "input": ["text"], "cost": free,
        "reasoning": False,
    }  # fmt: skip
    provider = {"baseUrl": url, "apiKey": "x", "api": "anthropic-messages", "models": [model]}
    text = json_edit.put(text, ["models", "providers", "loopback"], provider)
    path.write_text(json_edit.put(text, ["agents", "defaults", "model"], "loopback/test"))


ASKERS = {"claude-code": ask_claude, "codex": ask_codex, "gemini": ask_gemini, "openclaw": ask_openclaw}


@pytest.mark.parametrize("name", ASKERS)
def test_what_was_said_in_one_session_comes_back_in_the_next(ncm, tmp_path, name):
    client(name.removesuffix("-code"))
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "5433", "--category", "project")
    assert ncm("install", name).code == 0
    told = "The bakery on Elm Street delivers our bread on Tuesdays."
    with model_server() as model:
        assert ASKERS[name](model, tmp_path, told).returncode == 0
    ncm("upkeep")
    (session,) = [row["session_id"] for row in ncm("sessions", "list", "--json").json["sessions"]]
    (kept,) = ncm("sessions", "show", session, "--json").json["exchanges"]
    assert (kept["user_message"], kept["agent_response"]) == (told, ANSWER)
    with model_server() as model:
        done = ASKERS[name](
            model, tmp_path, "What port does Keystone run on, and who brings our bread on Tuesdays?"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        seen = model.seen()
    assert "Keystone.port = 5433" in seen
    assert "bakery on Elm Street" in seen
    assert "SOUL.md" in seen


# Where each client shows its model the result of a tool.
SHOWN = {"claude-code": "tool_result", "codex": "function_call_output", "gemini": "functionResponse"}


def results_in(body: object, mark: str, inside: bool = False) -> list[str]:
    """Every text in the results of tools that a request shows."""
    if isinstance(body, str):
        return [body] if inside else []
    if isinstance(body, dict):
        inside = inside or mark in body or body.get("type") == mark
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return [text for part in inner for text in results_in(part, mark, inside)]


@pytest.mark.parametrize("name", SHOWN)
def test_the_first_request_has_the_tools_and_a_result_is_the_fenced_text(knowing, tmp_path, name):
    client(name.removesuffix("-code"))
    assert knowing("install", name).code == 0
    query = {"query": "What port does Keystone run on, and tea or coffee?"}
    with model_server(("memory_search", query)) as model:
        done = ASKERS[name](model, tmp_path, "Look it up.")
        assert done.returncode == 0, done.stdout + done.stderr
        asked = [body for path, body in model.requests if offers(body)]
    assert {"memory_search", "memory_store"} <= {found.split("__")[-1].removeprefix("mcp_nanoclaw-memory_")
                                                 for _, found in offers(asked[0])}  # fmt: skip
    shown = next(text for text in results_in(asked, SHOWN[name]) if "Keystone port" in text)
    lines = shown[shown.index(OPENING) :].split("\n")
    assert lines[0] == OPENING
    assert re.fullmatch(r"- \[fact 1 \(direct\) · \d{4}-\d\d-\d\d\] Keystone port: 3000", lines[1])
    assert re.fullmatch(
        r"- \[preference mem-[0-9a-f]{8} · owner · today.*\] Prefers tea before noon", lines[2]
    )
    assert CLOSING.fullmatch(lines[3])
    assert "hits" not in shown and "score" not in shown
    assert all(tokens.count(line) <= 45 for line in lines[1:3])


def test_a_group_chat_of_openclaw_does_not_see_private_memory(ncm, tmp_path):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "5433", "--category", "project")
    (Path(ncm("status", "--json").json["home"]) / "workspace" / "USER.md").write_text(
        "# User\nSleeps late.\n"
    )
    ncm("install", "openclaw")
    for key, is_private in (("agent:main:main", True), ("agent:main:whatsapp:group:123", False)):
        with model_server() as model:
            done = ask_openclaw(model, tmp_path, "Which port, and who am I?", key)
            assert done.returncode == 0, done.stdout + done.stderr
            seen = model.seen()
        assert "SOUL.md" in seen
        assert ("Sleeps late" in seen) == is_private


@pytest.mark.parametrize("name", ASKERS)
def test_a_client_answers_when_our_program_is_gone(ncm, home, tmp_path, name):
    client(name.removesuffix("-code"))
    assert ncm("install", name).code == 0
    shutil.rmtree(home)
    with model_server() as model:
        done = ASKERS[name](model, tmp_path, "What is seven times eight?")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "seven times eight" in model.seen()
    assert ANSWER in done.stdout


def test_codex_starts_whatever_it_and_we_wrote_into_its_file_before(ncm, tmp_path):
    codex = client("codex")

    def servers() -> list[str]:
        listed = run([codex, "mcp", "list", "--json"], tmp_path)
        assert listed.returncode == 0, listed.stderr
        return [server["name"] for server in json.loads(listed.stdout)]

    run([codex, "mcp", "add", "nanoclaw-memory", "--", "ncm", "mcp"], tmp_path)
    assert ncm("install", "codex").code == 0
    assert servers() == ["nanoclaw-memory"]
    run([codex, "mcp", "remove", "nanoclaw-memory"], tmp_path)
    ncm("install", "codex")
    run([codex, "mcp", "add", "other", "--", "true"], tmp_path)
    ncm("install", "codex")
    assert sorted(servers()) == ["nanoclaw-memory", "other"]
    ncm("uninstall", "codex")
    assert servers() == ["other"]


def test_claude_code_finds_the_server_where_its_environment_says(ncm, tmp_path, monkeypatch):
    claude = client("claude")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    ncm("install", "claude-code")
    listed = run([claude, "mcp", "list"], tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))
    assert "nanoclaw-memory" in listed.stdout
    assert "Connected" in listed.stdout


def test_cline_finds_our_server(ncm, tmp_path):
    cline = client("cline")
    ncm("install", "cline")
    assert "nanoclaw-memory" in run([cline, "config", "mcp", "--json"], tmp_path).stdout


def test_opencode_connects_to_our_server(ncm, tmp_path):
    opencode = client("opencode")
    ncm("install", "opencode")
    listed = run([opencode, "mcp", "list"], tmp_path)
    assert "nanoclaw-memory" in listed.stdout + listed.stderr
    assert "connected" in listed.stdout + listed.stderr


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
        done = ask_codex(
            model, tmp_path, "What port does Keystone run on?", PATH=path, NANOCLAW_HOME=str(home)
        )
        assert done.returncode == 0, done.stdout + done.stderr
        seen = model.seen()
    assert "Keystone.port = 3000" in seen
