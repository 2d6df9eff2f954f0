"""Install or remove the server as a user service: a systemd user unit, or a launchd agent on macOS."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.interfaces.install import launcher
from nanoclaw_memory.text import fingerprint

SERVICE_RECORD = "service.json"
_TIMEOUT = 30


class UserService(msgspec.Struct, frozen=True, kw_only=True):
    """The service of a home, as its manager knows it."""

    manager: str  # systemd or launchd
    path: Path
    text: bytes
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]


class ServiceChange(msgspec.Struct, frozen=True, kw_only=True):
    """The result of installing or removing."""

    manager: str
    path: Path
    changed: bool
    running: bool  # whether its manager accepted it
    by_hand: str = ""  # the commands to run if the manager did not respond


def service_of(home: Path, options: Sequence[str] = (), platform: str = sys.platform) -> UserService:
    """Return the service of a home; it starts our launcher, which survives upgrades."""
    usual = home.resolve() == (Path.home() / ".nanoclaw").resolve()
    name = "nanoclaw-memory" if usual else f"nanoclaw-memory-{fingerprint(str(home.resolve()))[:8]}"
    words = [str(launcher.path_in(home)), "--home", str(home.resolve()), "serve", *options]
    return _launchd(name, words, home) if platform == "darwin" else _systemd(name, words)


def _systemd(name: str, words: list[str]) -> UserService:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$"})
    command = " ".join(f'"{word.translate(escaped)}"' for word in words)
    text = (
        "[Unit]\nDescription=NanoClaw Memory\n\n"
        f"[Service]\nExecStart={command}\nRestart=on-failure\nRestartSec=5\n\n[Install]\nWantedBy=default.target\n"
    )
    systemctl = ("systemctl", "--user")
    return UserService(
        manager="systemd",
        path=base / "systemd" / "user" / f"{name}.service",
        text=text.encode(),
        start=((*systemctl, "daemon-reload"), (*systemctl, "enable", "--now", f"{name}.service")),
        stop=((*systemctl, "disable", "--now", f"{name}.service"),),
    )


def _launchd(name: str, words: list[str], home: Path) -> UserService:
    path = Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
    log = str(home.resolve() / "logs" / "serve.log")
    content = {
        "Label": name,
        "ProgramArguments": words,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    domain = f"gui/{os.getuid()}"
    return UserService(
        manager="launchd",
        path=path,
        text=plistlib.dumps(content),
        start=(("launchctl", "bootstrap", domain, str(path)),),
        stop=(("launchctl", "bootout", f"{domain}/{name}"),),
    )


def install(home: Path, service: UserService) -> ServiceChange:
    """Write the service and have its manager start it, now and at every login."""
    launcher.write(home)
    private.make_folder(_record(home).parent)
    _record(home).write_text(str(service.path), encoding="utf-8")
    changed = not service.path.exists() or service.path.read_bytes() != service.text
    if changed and service.path.exists():
        _run(service.stop)  # a running one keeps its old options otherwise
    try:
        service.path.parent.mkdir(parents=True, exist_ok=True)
        service.path.write_bytes(service.text)
    except OSError as error:
        raise FileProblem(
            f"{service.path} cannot be written: {error.strerror}", "check its permissions"
        ) from None
    return _change(service, changed, service.start)


def uninstall(home: Path, service: UserService) -> ServiceChange:
    """Stop the service and remove it; the launcher is removed with its last user."""
    found = service.path.exists()
    change = _change(service, found, service.stop if found else ())
    service.path.unlink(missing_ok=True)
    _record(home).unlink(missing_ok=True)
    launcher.remove_unused(home)
    return change


def _record(home: Path) -> Path:
    """Return the record beside those of the clients, for which the launcher stays."""
    return home.resolve() / "installed" / SERVICE_RECORD


def _change(service: UserService, changed: bool, calls: Sequence[tuple[str, ...]]) -> ServiceChange:
    done = _run(calls)
    by_hand = "" if done else "; ".join(" ".join(call) for call in calls)
    return ServiceChange(
        manager=service.manager, path=service.path, changed=changed, running=done, by_hand=by_hand
    )


def _run(calls: Sequence[tuple[str, ...]]) -> bool:
    """Return whether the manager of services exists and all commands succeeded."""
    try:
        return all(
            shutil.which(call[0])
            and subprocess.run(call, capture_output=True, timeout=_TIMEOUT).returncode == 0
            for call in calls
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
