"""The commands of the host: groups, tasks, sessions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def ready(ncm):
    assert ncm("init").code == 0
    assert (
        ncm("groups", "add", "family", "--chat", "1@g", "--name", "The family", "--trigger", "@Andy").code
        == 0
    )
    return ncm


def test_groups_are_added_listed_and_removed(ready, home: Path) -> None:
    (group,) = ready("--json", "groups", "list").json["groups"]
    assert (group["folder"], group["jid"], group["requires_trigger"]) == ("family", "1@g", True)
    assert (home / "groups/family/CLAUDE.md").is_file()
    assert ready("groups", "remove", "family").code == 0
    assert ready("--json", "groups", "list").json["groups"] == []
    assert ready("groups", "remove", "family").code == 2
    assert ready("--json", "groups", "list").json["without_chat"] == ["family"]
    assert ready("groups", "list").out.split() == ["family", "(no", "chat)"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("groups", "add", "../x", "--chat", "2@g"),
        ("groups", "add", "x", "--chat", "2@g", "--trigger", "(a"),
        ("groups", "add", "Family", "--chat", "2@g"),
        ("tasks", "add", "x"),
        ("tasks", "add", "x", "--every", "1h", "--at", "2026-03-01T09:00"),
        ("tasks", "add", "x", "--cron", "nonsense"),
        ("tasks", "add", "x", "--every", "1h", "--context", "other"),
        ("tasks", "pause", "nothing"),
        ("tasks", "run", "--command", "echo"),
        ("tasks", "run", "--command", "echo {prompt}", "--timeout", "0"),
        ("sessions", "archive", "nothing"),
    ],
)
def test_bad_input_is_refused_with_a_hint(ready, arguments) -> None:
    ran = ready("--json", *arguments)
    assert ran.code == 2
    assert ran.json["ok"] is False
    assert "Traceback" not in ran.err


def test_a_chat_that_belongs_to_a_group_is_not_taken_from_it(ready) -> None:
    ready("groups", "add", "fam", "--chat", "c1", "--trigger", "@Andy")
    ready("tasks", "add", "weekly", "--cron", "0 9 * * 1", "--for", "fam")
    refused = ready("groups", "add", "fam2", "--chat", "c1")
    assert refused.code == 2 and "'fam'" in refused.err and "ncm groups remove fam" in refused.err
    assert [one["folder"] for one in ready("groups", "list", "--json").json["groups"]] == ["family", "fam"]
    again = ready("groups", "add", "fam", "--chat", "c1", "--trigger", "@Bob")
    assert again.code == 0 and "@Bob" in again.out
    assert ready("groups", "remove", "fam").code == 0
    assert ready("groups", "add", "fam2", "--chat", "c1").code == 0


def test_a_task_goes_through_its_life(ready, home: Path) -> None:
    added = ready(
        "--json", "tasks", "add", "good morning", "--at", "2020-01-01T09:00", "--for", "family"
    ).json
    assert added["group"] == "family"
    assert "good morning" in ready("tasks", "list").out
    assert "paused" in ready("tasks", "pause", added["id"]).out
    assert "Nothing is due" in ready("tasks", "run", "--command", "echo {prompt}").out
    assert ready("tasks", "resume", added["id"]).code == 0
    command = f"{sys.executable} -c 'import os,sys; print(sys.argv[1], os.getcwd())' {{prompt}}"
    (run,) = ready("--json", "tasks", "run", "--command", command).json["runs"]
    assert (run["status"], run["result"]) == ("success", f"good morning {home}/groups/family")
    (logged,) = ready("--json", "tasks", "logs", added["id"]).json["runs"]
    assert logged["result"] == run["result"]
    (task,) = ready("--json", "--group", "family", "tasks", "list").json["tasks"]
    assert (task["status"], task["last_result"]) == ("completed", run["result"])
    assert ready("tasks", "remove", added["id"]).code == 0
    assert ready("--json", "tasks", "list").json["tasks"] == []


def test_a_failing_task_is_shown_as_such(ready) -> None:
    ready("tasks", "add", "x", "--at", "2020-01-01T09:00")
    ran = ready("--json", "tasks", "run", "--command", f"{sys.executable} -c 'raise SystemExit(7)' {{task}}")
    (run,) = ran.json["runs"]
    assert (run["status"], run["error"]) == ("error", "exit code 7")
    assert ran.code == 1
    assert ready("tasks", "run", "--command", "echo {prompt}").code == 0  # nothing is due any more


def test_transcripts_are_listed_and_archived_by_session(ready, home: Path) -> None:
    path = home / "data/sessions/family/.claude/projects/p/abc.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        {
            "type": kind,
            "sessionId": "abc",
            "timestamp": "2026-02-23T14:05:00Z",
            "message": {"role": kind, "content": text},
        }
        for kind, text in (("user", "Which port?"), ("assistant", "3055."))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = ready("--json", "--group", "family", "sessions", "transcripts").json["transcripts"]
    assert (found["session_id"], found["source"]) == ("abc", "claude-code")
    assert ready("--json", "sessions", "transcripts").json["transcripts"] == []
    made = ready("--json", "--group", "family", "sessions", "archive", "abc").json
    assert made["path"] == "conversations/2026-02-23-which-port.md"
    assert "3055." in ready("--group", "family", "get", made["path"]).out
    assert "Nothing new" in ready("--group", "family", "sessions", "archive", "abc").out
    (archived,) = ready("--json", "--group", "family", "sessions", "archives").json["archives"]
    assert (archived["turns"], archived["session_id"]) == (2, "abc")
