"""Which files of which client change, and how: hooks where the client runs them, the MCP server everywhere."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory.interfaces.install import json_edit

SERVER = "nanoclaw-memory"
_BLOCK = re.compile(r"\n?# nanoclaw-memory:start\n.*?# nanoclaw-memory:end\n", re.DOTALL)

Edit = Callable[[str], str]


class FileEdit(msgspec.Struct, frozen=True):
    """The edits of one file: how our part is added and removed."""

    path: Path
    add: Edit
    remove: Edit
    empty: str  # what a missing file is edited as


class Commands(msgspec.Struct, frozen=True):
    """How a client calls us: the program, and the options that name the home and group."""

    program: tuple[str, ...]
    options: tuple[str, ...]

    def server(self) -> dict[str, Any]:
        return {"command": self.program[0], "args": [*self.program[1:], *self.options, "mcp"]}

    def hook(self, event: str) -> str:
        import shlex

        return shlex.join([*self.program, *self.options, "hook", event])


CLAUDE_EVENTS = {
    "SessionStart": ("session-start", 10),
    "UserPromptSubmit": ("user-prompt-submit", 5),
    "PreCompact": ("pre-compact", 30),
    "Stop": ("stop", 5),
    "SessionEnd": ("session-end", 3),
}
GEMINI_EVENTS = {
    "SessionStart": ("session-start", 10),
    "BeforeAgent": ("BeforeAgent", 5),
    "AfterAgent": ("AfterAgent", 5),
    "PreCompress": ("PreCompress", 30),
}
CURSOR_EVENTS = {
    "sessionStart": ("sessionStart", 10),
    "beforeSubmitPrompt": ("beforeSubmitPrompt", 5),
    "afterAgentResponse": ("afterAgentResponse", 5),
    "preCompact": ("preCompact", 30),
}


def edits(client: str, commands: Commands, home: Path, project: Path | None) -> list[FileEdit]:
    """The files of a client that change, in a person's home or in a project."""
    return CLIENTS[client](commands, project or home, project is not None)


def _claude_code(commands: Commands, base: Path, in_project: bool) -> list[FileEdit]:
    settings = base / ".claude" / "settings.json"
    servers = base / (".mcp.json" if in_project else ".claude.json")
    return [_hooks(settings, commands, CLAUDE_EVENTS), _server(servers, commands, ("mcpServers", SERVER))]


def _claude_desktop(commands: Commands, base: Path, in_project: bool) -> list[FileEdit]:
    folder = "Library/Application Support/Claude" if sys.platform == "darwin" else ".config/Claude"
    return [_server(base / folder / "claude_desktop_config.json", commands, ("mcpServers", SERVER))]


def _codex(commands: Commands, base: Path, in_project: bool) -> list[FileEdit]:
    folder = base / ".codex"
    return [
        _codex_server(folder / "config.toml", commands),
        _hooks(folder / "hooks.json", commands, CLAUDE_EVENTS),
    ]


def _cursor(commands: Commands, base: Path, in_project: bool) -> list[FileEdit]:
    folder = base / ".cursor"
    return [
        _server(folder / "mcp.json", commands, ("mcpServers", SERVER)),
        _hooks(folder / "hooks.json", commands, CURSOR_EVENTS, flat=True),
    ]


def _gemini(commands: Commands, base: Path, in_project: bool) -> list[FileEdit]:
    path = base / ".gemini" / "settings.json"
    servers = _server(path, commands, ("mcpServers", SERVER))
    hooks = _hooks(path, commands, GEMINI_EVENTS, milliseconds=True)
    return [
        FileEdit(
            path,
            lambda text: hooks.add(servers.add(text)),
            lambda text: servers.remove(hooks.remove(text)),
            servers.empty,
        )
    ]


def _openclaw(commands: Commands, base: Path, in_project: bool) -> list[FileEdit]:
    return [_server(base / ".openclaw" / "openclaw.json", commands, ("mcp", "servers", SERVER))]


CLIENTS: Mapping[str, Callable[[Commands, Path, bool], list[FileEdit]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "codex": _codex,
    "cursor": _cursor,
    "gemini": _gemini,
    "openclaw": _openclaw,
}


def _server(path: Path, commands: Commands, where: tuple[str, ...]) -> FileEdit:
    return FileEdit(
        path,
        lambda text: json_edit.put(text, where, commands.server()),
        lambda text: json_edit.remove(text, where),
        "{}\n",
    )


def _hooks(
    path: Path,
    commands: Commands,
    events: Mapping[str, tuple[str, int]],
    milliseconds: bool = False,
    flat: bool = False,
) -> FileEdit:
    """Hooks as Claude Code nests them (event, matcher groups, handlers), or `flat` as Cursor lists handlers."""

    def add(text: str) -> str:
        text = remove(text)
        for name, (event, seconds) in events.items():
            timeout = seconds * 1000 if milliseconds else seconds
            handler = {"command": commands.hook(event), "timeout": timeout}
            nested = {"hooks": [{"type": "command", **handler}]}
            text = json_edit.append(text, ("hooks", name), handler if flat else nested)
        return text

    def remove(text: str) -> str:
        for name in events:
            text = json_edit.remove_items(text, ("hooks", name), _is_ours)
        return text

    return FileEdit(path, add, remove, '{\n  "version": 1\n}\n' if flat else "{}\n")


def _is_ours(item: Any) -> bool:
    """Whether a hook calls this program, whatever interpreter or home it was installed with."""
    text = json.dumps(item)
    return bool(re.search(r"(?:nanoclaw_memory|nanoclaw-memory|\bncm\b)[^\n]*\bhook\b", text))


def _codex_server(path: Path, commands: Commands) -> FileEdit:
    """A marked block at the end of config.toml: every other byte stays as it is."""
    server = commands.server()
    block = (
        "# nanoclaw-memory:start\n"
        f"[mcp_servers.{SERVER}]\n"
        f"command = {json.dumps(server['command'])}\n"
        f"args = {json.dumps(server['args'])}\n"
        "# nanoclaw-memory:end\n"
    )

    def add(text: str) -> str:
        rest = _BLOCK.sub("", text)
        gap = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
        return f"{rest}{gap}{block}"

    return FileEdit(path, add, lambda text: _BLOCK.sub("", text), "")
