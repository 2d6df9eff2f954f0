"""The known clients: their files, according to their environment, and what we add to them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.install.calls import SERVER, Commands, call_of_plugin
from nanoclaw_memory.interfaces.install.config_file import ConfigEntry, ConfigFile, HookTable

_CLAUDE_EVENTS = {
    "SessionStart": ("session-start", 10),
    "UserPromptSubmit": ("user-prompt-submit", 5),
    "PreCompact": ("pre-compact", 30),
    "Stop": ("stop", 5),
    "SessionEnd": ("session-end", 3),
}
_GEMINI_EVENTS = {
    "SessionStart": ("session-start", 10),
    "BeforeAgent": ("BeforeAgent", 5),
    "AfterAgent": ("AfterAgent", 5),
    "PreCompress": ("PreCompress", 30),
}
_CURSOR_EVENTS = {
    "sessionStart": ("sessionStart", 10),
    "beforeSubmitPrompt": ("beforeSubmitPrompt", 5),
    "afterAgentResponse": ("afterAgentResponse", 5),
    "preCompact": ("preCompact", 30),
}
CLAUDE_HOOKS = HookTable(_CLAUDE_EVENTS)
GEMINI_HOOKS = HookTable(_GEMINI_EVENTS, unit=1000)
CURSOR_HOOKS = HookTable(_CURSOR_EVENTS, nested=False)

SERVERS = ConfigEntry(("mcpServers",), Commands.server)


class Client(msgspec.Struct, frozen=True):
    """A client: its folder, the files in it or in a project's, and how its presence is detected."""

    title: str
    folder: Callable[[], Path]
    files_in: Callable[[Path], list[ConfigFile]]
    program: str = ""
    project: str | None = None  # its folder in a project, if it has project settings
    beside: Callable[[Path | None], list[ConfigFile]] = lambda project: []  # files outside of its folder
    note: str = ""  # what is left for the person to do

    def files(self, project: Path | None = None) -> list[ConfigFile]:
        """Return the files that we change, in a person's home or in a project."""
        folder = self.folder() if project is None else project / (self.project or "")
        return [*self.files_in(folder), *self.beside(project)]

    def is_here(self) -> bool:
        """Return whether it is used on this machine: its folder or its program exists."""
        return self.folder().is_dir() or bool(self.program and shutil.which(self.program))

    def has_hooks(self) -> bool:
        """Return whether it calls us by itself, through hooks or a plugin."""
        return any(file.hooks or file.whole for file in self.files())


def files_of(client: str, project: Path | None = None) -> list[ConfigFile]:
    """Return the files of a client that we change, in a person's home or in a project."""
    if client not in CLIENTS:
        raise InvalidValue(f"{client!r} is no client we know", "see: ncm install --list")
    own = CLIENTS[client]
    if project is not None and own.project is None:
        raise InvalidValue(
            f"{own.title} has no settings of a project", f"without --project: ncm install {client}"
        )
    return own.files(project)


# ---- places ----


def _folder(variable: str, usual: str) -> Path:
    """Return a client's folder: from its environment variable, else below the person's home."""
    named = os.environ.get(variable)
    return Path(named).expanduser() if named else Path.home() / usual


def _config(name: str) -> Path:
    """Return a folder below XDG_CONFIG_HOME; a relative one does not count."""
    named = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return (named if named.is_absolute() else Path.home() / ".config") / name


def _application(name: str) -> Path:
    """Return the folder of a desktop application."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / name
    return _config(name)


def _either(folder: Path, *names: str) -> Path:
    """Return the first of these files that exists, else the first."""
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


# ---- Claude Code, Claude Desktop, Codex, Cursor, Gemini ----


def _claude_settings(folder: Path) -> list[ConfigFile]:
    return [ConfigFile(folder / "settings.json", hooks=CLAUDE_HOOKS, plugins=("enabledPlugins",))]


def _claude_servers(project: Path | None) -> list[ConfigFile]:
    own = _claude_folder() if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
    return _servers_in(own / ".claude.json" if project is None else project / ".mcp.json")


def _claude_folder() -> Path:
    return _folder("CLAUDE_CONFIG_DIR", ".claude")


def _codex_files(folder: Path) -> list[ConfigFile]:
    servers = ConfigEntry(("mcp_servers",), Commands.server)
    return [
        ConfigFile(folder / "config.toml", (servers,), empty="", plugins=("plugins",)),
        ConfigFile(folder / "hooks.json", hooks=CLAUDE_HOOKS),
    ]


def _cursor_files(folder: Path) -> list[ConfigFile]:
    hooks = ConfigFile(folder / "hooks.json", hooks=CURSOR_HOOKS, empty='{\n  "version": 1\n}\n')
    return [ConfigFile(folder / "mcp.json", (SERVERS,)), hooks]


def _gemini_files(folder: Path) -> list[ConfigFile]:
    return [ConfigFile(folder / "settings.json", (SERVERS,), GEMINI_HOOKS)]


# ---- clients of MCP alone ----


def _servers_in(path: Path) -> list[ConfigFile]:
    return [ConfigFile(path, (SERVERS,))]


def _vscode_files(folder: Path) -> list[ConfigFile]:
    servers = ConfigEntry(("servers",), lambda commands: commands.server(type="stdio"))
    return [ConfigFile(folder / "mcp.json", (servers,))]


def _zed_files(folder: Path) -> list[ConfigFile]:
    servers = ConfigEntry(("context_servers",), lambda commands: commands.server(source="custom"))
    return [ConfigFile(folder / "settings.json", (servers,))]


def _opencode_files(folder: Path) -> list[ConfigFile]:
    def made(commands: Commands) -> dict[str, Any]:
        return {"type": "local", "command": [*commands.words, "mcp"], "enabled": True}

    return [ConfigFile(_either(folder, "opencode.json", "opencode.jsonc"), (ConfigEntry(("mcp",), made),))]


def _cline_folder() -> Path:
    """Return the folder that Cline's extension and command line share; before, the extension had its own."""
    own = Path(os.environ.get("CLINE_DATA_DIR") or Path.home() / ".cline" / "data") / "settings"
    earlier = _application("Code") / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "settings"
    return earlier if earlier.is_dir() and not own.is_dir() else own


def _openclaw_folder() -> Path:
    return _folder("OPENCLAW_STATE_DIR", ".openclaw")


def _openclaw_files(state: Path) -> list[ConfigFile]:
    """Return the MCP server, and a plugin that calls our hooks."""
    path = Path(os.environ.get("OPENCLAW_CONFIG_PATH") or state / "openclaw.json").expanduser()
    plugin = ConfigEntry(
        ("plugins", "entries"),
        lambda commands: {
            "enabled": True,
            "hooks": {"allowConversationAccess": True},
            "config": {"command": commands.words},
        },
        call_of_plugin,
        allowed=("plugins", "allow"),
    )
    servers = ConfigEntry(("mcp", "servers"), Commands.server)
    folder = state / "extensions" / SERVER
    ours = Path(__file__).parent / "openclaw"
    return [
        ConfigFile(path, (servers, plugin)),
        *(ConfigFile(folder / file.name, whole=file.read_text("utf-8")) for file in sorted(ours.iterdir())),
    ]


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "Claude Code", _claude_folder, _claude_settings, "claude", ".claude", beside=_claude_servers
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        lambda: _application("Claude"),
        lambda folder: _servers_in(folder / "claude_desktop_config.json"),
    ),
    "codex": Client(
        "Codex",
        lambda: _folder("CODEX_HOME", ".codex"),
        _codex_files,
        "codex",
        ".codex",
        note="Codex runs the hooks once you have reviewed them: start it, and it asks",
    ),
    "cursor": Client("Cursor", lambda: Path.home() / ".cursor", _cursor_files, "cursor", ".cursor"),
    "gemini": Client(
        "Gemini CLI",
        lambda: _folder("GEMINI_CLI_HOME", "") / ".gemini",
        _gemini_files,
        "gemini",
        ".gemini",
    ),
    "openclaw": Client("OpenClaw", _openclaw_folder, _openclaw_files, "openclaw"),
    "vscode": Client("VS Code", lambda: _application("Code") / "User", _vscode_files, "code", ".vscode"),
    "windsurf": Client(
        "Windsurf",
        lambda: Path.home() / ".codeium" / "windsurf",
        lambda folder: _servers_in(folder / "mcp_config.json"),
        "windsurf",
    ),
    "zed": Client("Zed", lambda: _config("zed"), _zed_files, "zed", ".zed"),
    "opencode": Client("opencode", lambda: _config("opencode"), _opencode_files, "opencode", ""),
    "cline": Client(
        "Cline", _cline_folder, lambda folder: _servers_in(folder / "cline_mcp_settings.json"), "cline"
    ),
}
