"""A home made by the version before opens, keeps everything, and still keeps out what was forgotten.

The home and what its own version printed about it lie in fixtures/; `old_home` unpacks and compares them.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import old_home
import pytest
from old_home import BEFORE, FORGOTTEN, INVENTORY

from nanoclaw_memory import Memory, Scope

pytestmark = pytest.mark.files("older releases had files only")

WORDS = (b"quastenflosser", b"nineteen", b"zulu seven", b"brandstetter")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return old_home.unpack(tmp_path)


def test_everything_is_there_and_printed_as_before(home: Path) -> None:
    assert old_home.lost(home) == {}


def test_opened_twice_it_is_the_same_as_opened_once(home: Path, ncm: Callable[..., Any]) -> None:
    for arguments in (*old_home.FIRST_COMMANDS, *old_home.FIRST_COMMANDS):
        assert ncm(*arguments).code == (2 if arguments[0] == "write" else 0), arguments
    assert old_home.lost(home, old_home.USES) == {}


def test_the_databases_are_sound_and_the_audit_log_is_unbroken(ncm: Callable[..., Any]) -> None:
    for arguments in old_home.FIRST_COMMANDS:
        ncm(*arguments)
    checks = ncm("db", "check", "--all", "--json").json["databases"]
    assert len(checks) >= len(BEFORE["db check"]["databases"])
    assert [one for one in checks if one["problems"]] == []
    assert ncm("audit", "verify", "--json").json["verified"]
    assert [one for one in ncm("doctor", "--json").json["findings"] if one["level"] == "error"] == []


def test_settings_that_were_changed_stay_changed(ncm: Callable[..., Any]) -> None:
    changed = [one for one in BEFORE["config show"]["settings"] if one["from"] == "file"]
    assert len(changed) == 2
    for one in changed:
        assert ncm("config", "get", one["key"], "--json").json["value"] == one["value"]


def test_what_an_agent_reads_at_its_start_is_the_same(ncm: Callable[..., Any]) -> None:
    page = BEFORE["get MEMORY.md"]["text"]
    assert page.strip() in ncm("boot", "--json").json["text"]
    stored = [one["content"] for one in ncm("brief", "--json").json["entries"]]
    assert "Always run the linter before a commit in Keystone" in stored
    assert not any("Ignore all previous" in content for content in stored)


# ---- what is searched ----


def test_search_finds_pages_and_entries_by_words(ncm: Callable[..., Any]) -> None:
    for query, text in (
        ("nightly backup of Keystone", "harbour bucket"),
        ("staging cluster", "Helsinki"),
        ("who parses the invoices", "Pelican"),
    ):
        hits = ncm("search", query, "--json").json["hits"]
        assert any(text in hit["text"] for hit in hits), query
    found = {hit["kind"] for query in ("Keystone", "Orchard", "disks") for hit in _hits(ncm, query)}
    assert found >= {"chunk", "exchange", "entry", "fact", "relation", "lesson"}
    recalled = ncm("recall", "Which port has staging?", "--json").json["entries"]
    assert recalled[0]["content"] == "The staging port is 9090"
    assert any(
        "REST" in hit["text"] for hit in ncm("sessions", "search", "REST interface", "--json").json["hits"]
    )


@pytest.mark.parametrize(
    "first", [("index",), ("search", "harbour bucket"), ("search", "harbour bucket", "--json")]
)
def test_the_index_is_rebuilt_with_a_message_once(ncm: Callable[..., Any], first: tuple[str, ...]) -> None:
    ran = ncm(*first)
    assert ran.code == 0 and "made by an earlier version, so it was rebuilt" in ran.out + ran.err
    again = ncm(*first)
    assert again.code == 0 and "rebuilt" not in again.out + again.err


def test_vectors_are_made_again_where_the_model_is_installed(
    home: Path, ncm: Callable[..., Any], models_dir: Path
) -> None:
    model = ("--set", f"embeddings.modelPath={models_dir / 'e5-small-v2'}")
    done = ncm("index", "--rebuild", "--json", *model).json
    assert done["degraded"] == []
    found = ncm("search", "Which database was chosen for the ledger?", "--json", *model).json
    assert found["degraded"] == []
    assert any("Postgres" in hit["text"] for hit in found["hits"])


def test_a_corpus_keeps_its_documents(tmp_path: Path, ncm: Callable[..., Any]) -> None:
    (corpus,) = ncm("corpus", "list", "--json").json["corpora"]
    assert (corpus["name"], corpus["sources"]) == ("orchard", [str(tmp_path / "documents")])
    (hit,) = ncm("search", "Ashmead kernel", "--corpus", "orchard", "-k", "1", "--json").json["hits"]
    assert "keeps until March" in hit["text"]
    assert ncm("corpus", "reindex", "--json").code == 0
    assert ncm("search", "Conference pear", "--corpus", "orchard", "--json").json["hits"]


# ---- what only programs see ----


def test_messages_wait_and_are_answered_where_they_were_left(home: Path, ncm: Callable[..., Any]) -> None:
    with Memory.open(home, Scope()) as memory:
        host = memory.host.state
        known = [[one.id, one.sender_name, one.content] for one in host.history("12036@g.us")]
        assert known == INVENTORY["messages"]
        (waiting,) = host.poll()
        batch = host.batch(waiting)
        assert [one.id for one in batch.messages] == ["m2"] and batch.session_id == "family-session"
        assert host.answer(batch, "A blanket and plums.", "family-session")
    said = ncm("sessions", "show", "family-session", "--group", "family", "--json").json["exchanges"]
    assert [one["agent_response"] for one in said] == ["The picnic is on Saturday.", "A blanket and plums."]


def test_agents_on_other_sdks_find_their_history_and_items(home: Path) -> None:
    from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession

    with Memory.open(home, Scope(session_id="sdk-1")) as memory:
        assert asyncio.run(MemorySession(memory).get_items()) == INVENTORY["sdk history"]
        pytest.importorskip("langgraph")
        from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

        assert MemoryStore(memory).get(("people", "ines"), "profile").value == INVENTORY["sdk item"]


def test_notes_of_the_memory_tool_are_there(ncm: Callable[..., Any]) -> None:
    assert ncm("get", "memory/notes/shopping.md", "--json").json["text"] == INVENTORY["note"]


def test_what_a_hook_spooled_is_archived_by_the_next_hook(ncm: Callable[..., Any]) -> None:
    event = {"session_id": "saturday", "hook_event_name": "SessionStart", "source": "startup", "cwd": "."}
    assert ncm("hook", "SessionStart", stdin=json.dumps(event)).code == 0
    event = {"session_id": "saturday", "hook_event_name": "UserPromptSubmit", "prompt": "hello", "cwd": "."}
    assert ncm("hook", "UserPromptSubmit", stdin=json.dumps(event)).code == 0
    (said,) = ncm("sessions", "show", "friday", "--json").json["exchanges"]
    assert said["user_message"] == INVENTORY["spooled"]


# ---- what was forgotten ----


def _ways_in(text: str, outside: Path) -> dict[str, tuple[str, ...]]:
    """Commands that bring a text in, and are refused."""
    return {
        "write": ("write", text),
        "entry": ("entries", "store", f"By the way: {text}", "--type", "fact"),
        "entry: reason": ("entries", "store", "Something else", "--type", "fact", "--reason", text),
        "fact": ("graph", "add", "Diary", "note", text),
        "relation": ("graph", "relate", "Diary", "says", text),
        "alias": ("graph", "alias", text, "Keystone"),
        "lesson": ("lessons", "add", text),
        "policy": ("policy", "add", "Towers", "--trigger", "towers", "--gate", "ask", "--reason", text),
        "project": ("project", "new", "tower", "--title", text),
        "checkpoint": ("checkpoint", "create", "another", "--reason", text),
        "setting": ("config", "set", "user.entity", text),
        "task": ("tasks", "add", text, "--every", "1h"),
        "group": ("groups", "add", "main", "--chat", "9@g.us", "--name", text),
    }


@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_forgotten_text_is_refused_at_every_way_in(
    home: Path, tmp_path: Path, ncm: Callable[..., Any], name: str
) -> None:
    for way, arguments in _ways_in(FORGOTTEN[name], tmp_path).items():
        ran = ncm(*arguments, "--json")
        assert ran.code == 2 and "asked to forget" in ran.out, (way, ran)
    assert _traces(home) == set()


def test_a_forgotten_text_is_left_out_of_talk_and_imports(
    home: Path, tmp_path: Path, ncm: Callable[..., Any]
) -> None:
    text = FORGOTTEN["text"]
    assert ncm("exchange", "add", "-u", f"I repeat: {text}", "-a", "Yes.", "--json").json["id"] == 0
    export = tmp_path / "mem0.json"
    export.write_text(json.dumps([{"id": "1", "memory": text}, {"id": "2", "memory": "Ann likes plums"}]))
    assert ncm("import", "mem0", str(export), "--json").json["stored"] == 1
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"type": "fact", "entity": "Diary", "key": "note", "value": text}))
    assert ncm("graph", "import", str(rows), "--json").json["facts"] == 0
    prompt = {
        "session_id": "s",
        "hook_event_name": "UserPromptSubmit",
        "prompt": f"I repeat: {text}",
        "cwd": ".",
    }
    assert ncm("hook", "UserPromptSubmit", stdin=json.dumps(prompt)).code == 0
    assert ncm("index").code == 0
    assert _traces(home) == set()


def test_what_each_group_forgot_is_its_own(ncm: Callable[..., Any]) -> None:
    text = INVENTORY["forgotten of research"]
    assert ncm("entries", "store", text, "--type", "fact", "--group", "research").code == 2
    assert ncm("entries", "store", text, "--type", "fact").code == 0
    assert ncm("entries", "store", INVENTORY["allowed"], "--type", "fact").code == 0


def test_rejected_and_forgotten_facts_do_not_come_back(ncm: Callable[..., Any]) -> None:
    for arguments in (("Gatehouse", "language", "Cobol"), (INVENTORY["gone"]["entity"], "role", "auditor")):
        ran = ncm("graph", "add", *arguments, "--json")
        assert ran.code == 2 and "rejected before" in ran.out


def test_a_forgotten_text_may_be_allowed_again(ncm: Callable[..., Any]) -> None:
    assert ncm("forget", "--text", FORGOTTEN["text"], "--allow").code == 0
    assert ncm("write", FORGOTTEN["text"]).code == 0


# ---- checkpoints ----


def test_a_checkpoint_of_the_old_version_restores_and_revives_nothing(
    home: Path, ncm: Callable[..., Any]
) -> None:
    assert _port(ncm) == "4005"
    assert ncm("checkpoint", "restore", "before-forgetting", "--json").code == 0
    assert _port(ncm) == "3002"
    assert "Postgres" not in ncm("get", "MEMORY.md", "--json").json["text"]
    entries = ncm("entries", "list", "--status", "all", "--json").json["entries"]
    assert {one["content"] for one in entries} >= {"The staging port is 9090", "The staging port is 8080"}
    assert ncm("sessions", "show", "monday", "--json").json["exchanges"]
    for text in FORGOTTEN.values():
        assert ncm("write", text).code == 2
    assert _traces(home) == set()


def test_a_checkpoint_of_today_restores_over_it(home: Path, ncm: Callable[..., Any]) -> None:
    assert ncm("checkpoint", "create", "today").code == 0
    assert ncm("graph", "add", "Keystone", "port", "5006").code == 0
    assert ncm("checkpoint", "restore", "today").code == 0
    assert _port(ncm) == "4005"
    assert old_home.lost(home) == {}


# ---- deaths ----


def test_killed_while_it_is_opened_for_the_first_time_it_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, old_home.__file__, str(tmp_path), "31"], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["deaths"]) >= 3
    assert {step: gone for step, gone in told["deaths"].items() if gone} == {}


def _hits(ncm: Callable[..., Any], query: str) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = ncm("search", query, "-k", "50", "--json").json["hits"]
    return hits


def _port(ncm: Callable[..., Any]) -> str:
    facts = ncm("graph", "history", "Keystone", "port", "--json").json["facts"]
    (current,) = [one["value"] for one in facts if one["current"]]
    return str(current)


def _traces(home: Path) -> set[str]:
    """Files outside of checkpoints that contain words of what was forgotten."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and "checkpoints" not in path.parts
        if any(word in path.read_bytes().lower() for word in WORDS)
    }
