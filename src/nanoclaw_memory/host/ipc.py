"""Requests of agents as files in their IPC directory; the directory decides who asks, never the file.

    data/ipc/<group>/messages/*.json   {"type": "message", "text": …, "chatJid": …}
    data/ipc/<group>/tasks/*.json      {"type": "schedule_task", "prompt", "schedule_type", "schedule_value",
                                        "context_mode", "targetJid"}, update_task {"taskId", and what changes},
                                        pause_task, resume_task, cancel_task {"taskId"}, register_group {"jid",
                                        "name", "folder", "trigger", "requiresTrigger", "containerConfig"}

A file is carried out and then deleted; carried out again after a crash it has no second effect. The reason of a
refusal goes to `errors/` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import FileProblem, InvalidValue, NanoClawError, PathRefused
from nanoclaw_memory.host.directories import ipc_directory
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import MAIN_GROUP, ChatGroup
from nanoclaw_memory.workspace.files import read_text, replace_text
from nanoclaw_memory.workspace.paths import files_below

if TYPE_CHECKING:
    from nanoclaw_memory.host.host import Host

MAX_BYTES = 256_000
MAX_FILES = 100  # of a group at a time, so that one group with many does not delay the others


def drain(host: Host) -> list[str]:
    """Carry out the requests of all groups' agents; return what was refused and why."""
    groups = list(host.groups.values())
    # it administers the others, with or without a chat
    if all(group.folder != MAIN_GROUP for group in groups):
        groups.append(ChatGroup("", MAIN_GROUP, MAIN_GROUP, "", ""))
    return [problem for group in groups for problem in _drain_group(host, group)]


def _drain_group(host: Host, group: ChatGroup) -> Iterator[str]:
    base = ipc_directory(host.home, group.folder)
    waiting = [path for folder in ("messages", "tasks") for path in files_below(base / folder, ".json")]
    for path in waiting[:MAX_FILES]:
        try:
            text = read_text(path, MAX_BYTES)
            _do(host, group, _request(text), fingerprint(f"{group.folder}/{path.name}\n{text}")[:16])
        except FileNotFoundError:
            continue  # another process was faster
        except NanoClawError as error:
            why = host.intake(group.folder).unforgotten(error.message, "ipc").text
            _set_aside(base, path, why)
            yield f"{group.folder}: {path.name}: {why}"
        # An agent that makes its directory read-only harms only itself: the effect is the same once.
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _do(host: Host, group: ChatGroup, request: dict[str, Any], mark: str) -> None:
    """Carry out one request with the rights of the group whose directory contained it."""
    tasks = host.tasks(group.folder)
    kind = _word(request, "type")
    if kind == "message":
        host.say(_target(host, group, _word(request, "chatJid"), kind), _word(request, "text"), f"ipc-{mark}")
    elif kind == "schedule_task":
        target = _target(host, group, _word(request, "targetJid"), kind)
        tasks.add(
            _word(request, "prompt"),
            _word(request, "schedule_type"),
            _word(request, "schedule_value"),
            target.folder,
            _word(request, "context_mode") or "isolated",
            target.jid,
            identity=f"task-{mark}",
        )
    elif kind == "register_group":
        if group.folder != MAIN_GROUP:
            raise PathRefused(f"{group.folder} may not register groups", "only the main group may")
        jid, name, folder, trigger = (_word(request, key) for key in ("jid", "name", "folder", "trigger"))
        config = request.get("containerConfig")
        host.register_group(
            jid,
            name,
            folder,
            trigger,
            request.get("requiresTrigger") is not False,
            config if isinstance(config, dict) else None,
        )
    elif kind == "update_task":
        given = {name: _word(request, name) for name in ("prompt", "schedule_value", "context_mode")}
        tasks.update(_word(request, "taskId"), kind=_word(request, "schedule_type"), **given)
    else:
        verbs = {"pause_task": tasks.pause, "resume_task": tasks.resume, "cancel_task": tasks.remove}
        if kind not in verbs:
            raise InvalidValue(f"there is no request {kind[:40]!r}", "see the page on the host")
        verbs[kind](_word(request, "taskId"))


def _target(host: Host, group: ChatGroup, jid: str, kind: str) -> ChatGroup:
    """Return the group that a request is for: the requesting one, or for the main group any."""
    target = host.groups.get(jid) if jid else group
    if target is group and not group.jid and kind == "message":
        raise InvalidValue("the main group has no chat", "name one: chatJid")
    if target is None or (group.folder != MAIN_GROUP and target != group):
        raise PathRefused(f"{group.folder} may not act in the chat {jid[:80]}", "only the main group may")
    return target


def _request(text: str) -> dict[str, Any]:
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise InvalidValue("the file holds no JSON object", "write one object to a file")
    return request


def _word(request: dict[str, Any], name: str) -> str:
    value = request.get(name)
    return value if isinstance(value, str) else ""


def _set_aside(base: Path, path: Path, reason: str) -> None:
    errors = base / "errors"
    if not errors.is_symlink():
        with suppress(FileProblem):
            replace_text(errors / f"{path.stem[:100]}.txt", f"{path.name}: {reason}\n")
