"""Agents ask by files; the directory a file lies in says who asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nanoclaw_memory import Host


@pytest.fixture
def place(host: Host, home: Path) -> Path:
    host.register_group("me@s", "Me", "main", "@Andy")
    host.register_group("a@g", "A", "alpha", "@Andy")
    host.register_group("b@g", "B", "beta", "@Andy")
    for folder in ("main", "alpha", "beta"):
        host.place(folder)
    return home / "data" / "ipc"


def ask(place: Path, group: str, room: str = "tasks", file: str = "1", **request: object) -> Path:
    path = place / group / room / f"{file}.json"
    path.write_text(json.dumps(request))
    return path


SCHEDULE = {"type": "schedule_task", "prompt": "hi", "schedule_type": "interval", "schedule_value": "3600000"}


def test_a_message_goes_to_the_groups_own_chat(host: Host, place: Path) -> None:
    path = ask(place, "alpha", "messages", type="message", text="done", chatJid="a@g")
    assert host.drain_ipc() == []
    assert [(reply.chat_jid, reply.content) for reply in host.outbox()] == [("a@g", "done")]
    assert not path.exists()


def test_a_task_is_scheduled_paused_resumed_and_cancelled(host: Host, place: Path) -> None:
    ask(place, "alpha", **SCHEDULE)
    assert host.drain_ipc() == []
    (task,) = host.tasks().all()
    assert (task.group, task.chat_jid, task.context_mode) == ("alpha", "a@g", "isolated")
    for verb, status in (("pause_task", ["paused"]), ("resume_task", ["active"]), ("cancel_task", [])):
        ask(place, "alpha", type=verb, taskId=task.id)
        assert host.drain_ipc() == []
        assert [one.status for one in host.tasks().all()] == status


def test_a_task_is_changed_by_its_own_group_only(host: Host, place: Path) -> None:
    ask(place, "alpha", **SCHEDULE)
    host.drain_ipc()
    (task,) = host.tasks().all()
    change = {"type": "update_task", "taskId": task.id, "prompt": "hello", "schedule_value": "7200000"}
    ask(place, "beta", **change)
    assert "there is no task" in host.drain_ipc()[0]
    ask(place, "alpha", **change)
    assert host.drain_ipc() == []
    (now,) = host.tasks().all()
    assert (now.prompt, now.schedule_type, now.schedule_value) == ("hello", "interval", "7200000")
    assert now.next_run > task.next_run
    ask(place, "alpha", type="update_task", taskId=task.id, schedule_type="cron", schedule_value="no cron")
    assert host.drain_ipc() and host.tasks().get(task.id) == now
    ask(place, "alpha", type="update_task", taskId=task.id)
    assert "nothing is to change" in host.drain_ipc()[0]


def test_main_administers_by_files_without_a_chat_of_its_own(host: Host, home: Path) -> None:
    host.register_group("a@g", "A", "alpha", "@Andy")
    host.place("main")
    place = home / "data" / "ipc"
    config = {"timeout": 300}
    group = {"jid": "c@g", "name": "C", "folder": "gamma", "trigger": "@Andy", "containerConfig": config}
    ask(place, "main", file="1", type="register_group", **group)
    ask(place, "main", "messages", file="2", type="message", text="hi", chatJid="a@g")
    ask(place, "main", file="3", **SCHEDULE)
    assert host.drain_ipc() == []
    assert host.group("gamma").container_config == config == host.place("gamma").container_config
    assert [reply.chat_jid for reply in host.outbox()] == ["a@g"]
    assert [task.group for task in host.tasks().all()] == ["main"]
    ask(place, "main", "messages", file="4", type="message", text="hi")
    assert "has no chat" in host.drain_ipc()[0]


def test_a_file_read_twice_because_of_a_crash_has_one_effect(host: Host, place: Path) -> None:
    for _ in range(2):
        ask(place, "alpha", **SCHEDULE)
        ask(place, "alpha", "messages", type="message", text="once")
        host.drain_ipc()
    assert len(host.tasks().all()) == 1
    assert len(host.outbox()) == 1


@pytest.mark.parametrize(
    "request_",
    [
        {"type": "message", "text": "x", "chatJid": "a@g"},
        {**SCHEDULE, "targetJid": "a@g"},
        {**SCHEDULE, "targetJid": "a@g", "groupFolder": "main", "isMain": True},
        {"type": "register_group", "jid": "n@g", "name": "N", "folder": "new", "trigger": "@A"},
        {"type": "message", "text": "x", "chatJid": "unknown@g"},
    ],
)
def test_a_group_cannot_act_outside_its_own_chat(host: Host, place: Path, request_: dict) -> None:
    path = ask(place, "beta", **request_)
    (problem,) = host.drain_ipc()
    assert problem.startswith("beta: 1.json: ")
    assert host.outbox() == []
    assert host.tasks().all() == []
    assert len(host.groups) == 3
    assert not path.exists()
    assert "may not" in (place / "beta/errors/1.txt").read_text()


def test_a_group_cannot_touch_anothers_task(host: Host, place: Path) -> None:
    task = host.tasks("alpha").add("x", "interval", "1h")
    for verb in ("pause_task", "resume_task", "cancel_task"):
        ask(place, "beta", type=verb, taskId=task.id)
        assert len(host.drain_ipc()) == 1
    assert host.tasks().all() == [task]


def test_the_main_group_acts_for_others(host: Host, place: Path) -> None:
    ask(place, "main", file="1", **SCHEDULE, targetJid="a@g")
    ask(place, "main", "messages", file="2", type="message", text="from main", chatJid="b@g")
    ask(place, "main", file="3", type="register_group", jid="n@g", name="N", folder="new", trigger="@A")
    assert host.drain_ipc() == []
    assert host.tasks().all()[0].group == "alpha"
    assert host.outbox()[0].chat_jid == "b@g"
    assert host.groups["n@g"].folder == "new"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"type": 3}', "[" * 100_000, '{"type": "x"}', "x" * 300_000]
)
def test_files_that_are_no_request_are_set_aside_and_the_rest_is_done(
    host: Host, place: Path, text: str
) -> None:
    (place / "beta/tasks/0.json").write_text(text)
    ask(place, "beta", **SCHEDULE)
    ask(place, "alpha", **SCHEDULE)
    assert len(host.drain_ipc()) == 1
    assert len(host.tasks().all()) == 2
    assert host.drain_ipc() == []


def test_links_are_not_followed(host: Host, place: Path, tmp_path: Path) -> None:
    secret = tmp_path / "x.json"
    secret.write_text(json.dumps({"type": "message", "text": "leak"}))
    (place / "beta/messages/link.json").symlink_to(secret)
    (place / "beta/errors").symlink_to(place / "alpha")
    ask(place, "beta", type="nonsense")
    assert len(host.drain_ipc()) == 1
    assert host.outbox() == []
    assert sorted(path.name for path in (place / "alpha").iterdir()) == ["messages", "tasks"]


def test_a_flood_of_one_group_does_not_hold_up_another(host: Host, place: Path) -> None:
    for number in range(150):
        ask(place, "alpha", "messages", file=f"{number:03}", type="message", text=f"m{number}")
    ask(place, "beta", "messages", type="message", text="mine")
    host.drain_ipc()
    assert [reply.content for reply in host.outbox() if reply.group == "beta"] == ["mine"]
    host.drain_ipc()
    assert len(host.outbox()) == 151


def test_an_agent_that_spoils_its_own_directory_does_not_stop_the_host(host: Host, place: Path) -> None:
    (place / "alpha/errors").write_text("a file where a directory belongs")
    ask(place, "alpha", type="nonsense")
    ask(place, "beta", "messages", type="message", text="still served")
    assert len(host.drain_ipc()) == 1
    assert [reply.content for reply in host.outbox()] == ["still served"]
