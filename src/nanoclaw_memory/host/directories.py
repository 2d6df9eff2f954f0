"""The directories of a chat's group: its workspace, its agent's HOME, its IPC directory, none outside its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, InvalidValue, PathRefused
from nanoclaw_memory.host.messages import checked_name, trigger_of
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import MAIN_GROUP, AgentPlace, ChatGroup
from nanoclaw_memory.workspace.files import create_text, locked, read_text, replace_text
from nanoclaw_memory.workspace.paths import Home, agent_home, check_group
from nanoclaw_memory.workspace.starter import initialise

RESERVED = ("global", "shared")
# What an agent on the Claude SDK needs: teams, CLAUDE.md of added directories, its own memory enabled.
AGENT_ENVIRONMENT = {
    "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0",
}


def ipc_directory(home: Home, group: str) -> Path:
    """Return where a group's agent and the host exchange files."""
    return home.root / "data" / "ipc" / check_group(group)


def check_registration(group: ChatGroup, present: Iterable[ChatGroup]) -> None:
    """Refuse a folder, name or pattern that would break isolation or the router."""
    checked_name("chat id", group.jid)
    check_group(group.folder)
    trigger_of(group.trigger_pattern)
    if group.folder.lower() in RESERVED:
        raise PathRefused(f"{group.folder!r} is what all groups share", "choose another folder")
    if group.folder.lower() == MAIN_GROUP and group.folder != MAIN_GROUP:
        raise PathRefused(f"{group.folder!r} is too near to {MAIN_GROUP!r}", "choose another folder")
    for other in present:
        if other.jid == group.jid and other.folder != group.folder:
            raise InvalidValue(
                f"the chat {group.jid} belongs to the group {other.folder!r}",
                f"to move it, take it away there first: ncm groups remove {other.folder}",
            )
        # On a case-insensitive disk `Family` and `family` are one directory: two groups would share a memory.
        if other.jid != group.jid and other.folder.lower() == group.folder.lower():
            raise InvalidValue(
                f"the folder {other.folder!r} belongs to the chat {other.jid}", "choose another folder"
            )


def create_group(home: Home, group: ChatGroup, today: date) -> None:
    """Create a group's directory with its starter files and CLAUDE.md; existing ones are kept."""
    initialise(home, group.folder, today)
    create_text(home.group_root(group.folder) / "CLAUDE.md", f"# {one_line(group.name)}\n")


def place_of(home: Home, group: str, session_id: str, container_config: dict[str, Any] | None) -> AgentPlace:
    """Prepare the directories of a group's agent; its settings are completed, never overwritten."""
    directory = home.group_root(group)
    if group != MAIN_GROUP and (directory.is_symlink() or not directory.is_dir()):
        raise PathRefused(f"the group {group!r} has no directory of its own", "register it first")
    own = agent_home(home, group)
    ipc = ipc_directory(home, group)
    for folder in (own / ".claude", ipc / "messages", ipc / "tasks"):
        _own_directory(folder, home.root / "data")
    _complete_settings(own / ".claude" / "settings.json")
    return AgentPlace(
        group=group,
        directory=directory,
        agent_home=own,
        ipc=ipc,
        environment=_environment(home, group, own, session_id),
        shared=home.shared,
        container_config=container_config,
    )


def _environment(home: Home, group: str, own: Path, session_id: str) -> dict[str, str]:
    return {
        **AGENT_ENVIRONMENT,
        "HOME": str(own),
        "CLAUDE_CONFIG_DIR": str(own / ".claude"),
        "NANOCLAW_HOME": str(home.root),
        "NANOCLAW_GROUP": group,
        "NANOCLAW_SESSION": session_id,
    }


def _own_directory(folder: Path, base: Path) -> None:
    """Create a directory below `base`; if an agent put a link in its place, raise an error instead of following it."""
    private.make_folder(folder)
    if folder.resolve() != base.resolve() / folder.relative_to(base):
        raise PathRefused(f"{folder} is a link that leaves the group", "replace it by a directory")


def _complete_settings(path: Path) -> None:
    with locked(path.parent):
        if path.is_symlink():
            raise PathRefused(f"{path} is a link", "replace it by the file itself")
        before = _settings_in(path)
        environment = before.get("env", {})
        if not isinstance(environment, dict):
            raise FileProblem(f"{path}: env must be an object", "correct it by hand; nothing was changed")
        if all(key in environment for key in AGENT_ENVIRONMENT):
            return
        merged = {**before, "env": {**AGENT_ENVIRONMENT, **environment}}
        replace_text(path, json.dumps(merged, indent=2, ensure_ascii=False) + "\n")


def _settings_in(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise FileProblem(f"{path} is not valid JSON", "correct it by hand; nothing was changed") from None
    if not isinstance(found, dict):
        raise FileProblem(f"{path} must hold an object", "correct it by hand; nothing was changed")
    return found
