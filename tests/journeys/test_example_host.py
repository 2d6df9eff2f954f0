"""The example host: a scripted channel of several groups, an agent process for each, restarts, tasks, archives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HOST = Path(__file__).parents[2] / "examples" / "host" / "host.py"
GROUPS = ("main=me@local", "family=f@g", "work=w@g")


def talk(home: Path, *said: dict[str, object], options: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    groups = [part for group in GROUPS for part in ("--group", group)]
    done = subprocess.run(
        [sys.executable, str(HOST), "--home", str(home), *groups, *options],
        input="".join(f"{json.dumps(one)}\n" for one in said),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    return [(one["chat"], one["text"]) for one in replies]


def say(chat: str, text: str, **more: object) -> dict[str, object]:
    return {"chat": chat, "sender": "Ann", "text": text, **more}


def test_groups_talk_apart_remember_across_restarts_and_every_message_is_answered_once(home: Path) -> None:
    first = talk(
        home,
        say("f@g", "@Andy remember that Rex is our dog", id="1"),
        say("w@g", "@Andy who is Rex?"),
        say("f@g", "not you"),
        say("nobody@g", "@Andy hi"),
    )
    assert sorted(first) == [("f@g", "I will remember that."), ("w@g", "I know nothing about that.")]
    with (home / "groups/work/CLAUDE.md").open("a") as page:
        page.write("The launch is on 3 May.\n")
    second = dict(
        talk(
            home,
            say("f@g", "@Andy remember that Rex is our dog", id="1"),  # the channel sends it again
            say("f@g", "@Andy who is Rex?"),
            say("w@g", "@Andy when is the launch?"),
        )
    )
    assert "Rex is our dog" in second["f@g"] and "3 May" in second["w@g"]
    assert (home / "data/sessions/family/.claude/settings.json").exists()
    assert not list((home / "groups/family").glob("*.json"))


def test_agents_ask_by_files_and_tasks_speak_in_their_own_chat(home: Path) -> None:
    shown = talk(
        home,
        say("w@g", "@Andy every 1s remember that legs want stretching"),
        say("f@g", "@Andy tell w@g a secret"),
        say("me@local", "@Andy tell w@g hello from main"),
        {"wait": 4},
    )
    done = ("w@g", "I will remember that.")  # the task's result
    for _ in range(5):  # the machine may be busy
        shown += [] if done in shown else talk(home, {"wait": 4})
    assert done in shown
    assert ("w@g", "hello from main") in shown and not any("secret" in text for _, text in shown)
    refused = list((home / "data/ipc/family/errors").iterdir())
    assert len(refused) == 1 and "may not act" in refused[0].read_text()


def test_a_long_conversation_is_archived_before_it_is_compacted(home: Path) -> None:
    talk(home, say("f@g", "@Andy remember that the ferry leaves at nine"), options=("--archive-bytes", "10"))
    (archive,) = (home / "groups/family/workspace/conversations").glob("*.md")
    assert "the ferry leaves at nine" in archive.read_text()


def test_any_command_is_an_agent_and_one_that_fails_costs_an_answer_and_not_the_host(home: Path) -> None:
    echo = f"{sys.executable} -c 'import os; print(os.getcwd())'"
    assert talk(home, say("f@g", "@Andy hi"), options=("--agent", echo)) == [("f@g", f"{home}/groups/family")]
    ((chat, text),) = talk(home, say("w@g", "@Andy hi"), options=("--agent", "/no/such/agent"))
    assert chat == "w@g" and text.startswith("(I cannot answer")


FAKE_SDK = """
import json, os
class ResultMessage:
    def __init__(self): self.result, self.session_id = json.dumps(seen), "s-9"
class ClaudeAgentOptions(dict):
    def __init__(self, **given): super().__init__(given)
class HookMatcher(dict):
    def __init__(self, **given): super().__init__(given)
async def query(prompt, options):
    global seen
    seen = {"cwd": str(options["cwd"]), "resume": options["resume"], "dirs": [str(d) for d in options["add_dirs"]]}
    seen["hooks"] = sorted(options["hooks"])
    yield ResultMessage()
"""


def test_the_claude_agent_sdk_is_used_where_it_is_installed(home: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "claude_agent_sdk.py").write_text(FAKE_SDK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for resumed in (None, "s-9"):
        ((_, text),) = talk(home, say("f@g", "@Andy hi"))
        assert json.loads(text) == {
            "cwd": f"{home}/groups/family",
            "resume": resumed,
            "dirs": [f"{home}/shared"],
            "hooks": ["PreCompact"],
        }
