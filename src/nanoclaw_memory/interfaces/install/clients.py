"""The clients we know: which files each has, honouring its environment, and what we put into them."""

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
    """A client: its files in a person's home or in a project, and what says that it is used here."""

    title: str
    files: Callable[[], list[ConfigFile]]
    folder: Callable[[], Path]
    program: str = ""
    project: Callable[[Path], list[ConfigFile]] | None = None
    note: str = ""  # what is left for the person to do

    def is_here(self) -> bool:
        """Whether it is used on this machine: its folder is there, or its program."""
        return self.folder().is_dir() or bool(self.program and shutil.which(self.program))

    def has_hooks(self) -> bool:
        """Whether it calls us by itself, through hooks or a plugin."""
        return any(file.hooks or file.whole for file in self.files())


def files_of(client: str, project: Path | None = None) -> list[ConfigFile]:
    """The files of a client that we change, in a person's home or in a project."""
    if client not in CLIENTS:
        raise InvalidValue(f"{client!r} is no client we know", "see: ncm install --list")
    own = CLIENTS[client]
    if project is None:
        return own.files()
    if own.project is None:
        raise InvalidValue(
            f"{own.title} has no settings of a project", f"without --project: ncm install {client}"
        )
    return own.project(project)


# ---- places ----


def _folder(variable: str, usual: str) -> Path:
    """A client's folder: where its environment variable says, else below the person's home."""
    named = os.environ.get(variable)
    return Path(named).expanduser() if named else Path.home() / usual


def _config(name: str) -> Path:
    """A folder below XDG_CONFIG_HOME; a relative one does not count."""
    named = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return (named if named.is_absolute() else Path.home() / ".config") / name


def _application(name: str) -> Path:
    """The folder of a program with windows."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / name
    return _config(name)


def _either(folder: Path, *names: str) -> Path:
    """The first of these files that is there, else the first."""
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


# ---- Claude Code, Claude Desktop, Codex, Cursor, Gemini ----


def _claude_code() -> list[ConfigFile]:
    folder = _claude_folder()
    servers = folder / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"
    return [*_claude_settings(folder), *_servers_in(servers)]


def _claude_settings(folder: Path) -> list[ConfigFile]:
    return [ConfigFile(folder / "settings.json", hooks=CLAUDE_HOOKS, plugins=("enabledPlugins",))]


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
    """Where Cline's extension and command line keep their settings together; earlier, the extension its own."""
    own = Path(os.environ.get("CLINE_DATA_DIR") or Path.home() / ".cline" / "data") / "settings"
    earlier = _application("Code") / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "settings"
    return earlier if earlier.is_dir() and not own.is_dir() else own


def _openclaw_folder() -> Path:
    return _folder("OPENCLAW_STATE_DIR", ".openclaw")


def _openclaw() -> list[ConfigFile]:
    """The MCP server, and a plugin that calls our hooks."""
    path = Path(os.environ.get("OPENCLAW_CONFIG_PATH") or _openclaw_folder() / "openclaw.json").expanduser()
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
    folder = _openclaw_folder() / "extensions" / SERVER
    ours = Path(__file__).parent / "openclaw"
    return [
        ConfigFile(path, (servers, plugin)),
        *(ConfigFile(folder / file.name, whole=file.read_text("utf-8")) for file in sorted(ours.iterdir())),
    ]


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "Claude Code",
        _claude_code,
        _claude_folder,
        "claude",
        lambda project: [
            *_claude_settings(project / ".claude"),
            *_servers_in(project / ".mcp.json"),
        ],
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        lambda: _servers_in(_application("Claude") / "claude_desktop_config.json"),
        lambda: _application("Claude"),
    ),
    "codex": Client(
        "Codex",
        lambda: _codex_files(_folder("CODEX_HOME", ".codex")),
        lambda: _folder("CODEX_HOME", ".codex"),
        "codex",
        lambda project: _codex_files(project / ".codex"),
        "Codex runs the hooks once you have reviewed them: start it, and it asks",
    ),
    "cursor": Client(
        "Cursor",
        lambda: _cursor_files(Path.home() / ".cursor"),
        lambda: Path.home() / ".cursor",
        "cursor",
        lambda project: _cursor_files(project / ".cursor"),
    ),
    "gemini": Client(
        "Gemini CLI",
        lambda: _gemini_files(_folder("GEMINI_CLI_HOME", "") / ".gemini"),
        lambda: _folder("GEMINI_CLI_HOME", "") / ".gemini",
        "gemini",
        lambda project: _gemini_files(project / ".gemini"),
    ),
    "openclaw": Client("OpenClaw", _openclaw, _openclaw_folder, "openclaw"),
    "vscode": Client(
        "VS Code",
        lambda: _vscode_files(_application("Code") / "User"),
        lambda: _application("Code"),
        "code",
        lambda project: _vscode_files(project / ".vscode"),
    ),
    "windsurf": Client(
        "Windsurf",
        lambda: _servers_in(Path.home() / ".codeium" / "windsurf" / "mcp_config.json"),
        lambda: Path.home() / ".codeium" / "windsurf",
        "windsurf",
    ),
    "zed": Client(
        "Zed",
        lambda: _zed_files(_config("zed")),
        lambda: _config("zed"),
        "zed",
        lambda project: _zed_files(project / ".zed"),
    ),
    "opencode": Client(
        "opencode",
        lambda: _opencode_files(_config("opencode")),
        lambda: _config("opencode"),
        "opencode",
        _opencode_files,
    ),
    "cline": Client(
        "Cline",
        lambda: _servers_in(_cline_folder() / "cline_mcp_settings.json"),
        _cline_folder,
        "cline",
    ),
}
