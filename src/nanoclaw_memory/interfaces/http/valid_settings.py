"""The settings of a server as they were last valid: a mistake in a file changes nothing until it is repaired."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import SettingsError
from nanoclaw_memory.settings import Configuration
from nanoclaw_memory.settings.load import FILE_NAME, load
from nanoclaw_memory.settings.sections import ServerSettings


class KnownSettings(msgspec.Struct, frozen=True):
    """Settings, when their files changed, and the mistake that keeps newer ones from being read."""

    changed_at: tuple[int, int]  # nanoseconds: of the home's file and of the project's
    configuration: Configuration | None = None  # None if they were never valid
    mistake: str = ""


class ValidSettings:
    """The last valid settings of a home, and of each project that has a file of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._valid: dict[Path | None, KnownSettings] = {}
        self._read: dict[Path | None, tuple[int, int]] = {}  # when the files that were last read had changed
        self._lock = threading.Lock()

    def of(self, project: Path | None) -> KnownSettings:
        """Return the settings with a project's file; files are read again only if they have changed."""
        now = _changed_at(self._home / FILE_NAME), _changed_at(project)
        with self._lock:
            if self._read.get(project) != now:
                self._valid[project] = self._load(project, now)
                self._read[project] = now
            return self._valid[project]

    def idle_minutes(self) -> float:
        """Return after how many minutes without a client a self-started server ends, as the settings say now."""
        known = self.of(None).configuration
        server = known.settings.server if known else ServerSettings()
        return server.idle_minutes

    def _load(self, project: Path | None, now: tuple[int, int]) -> KnownSettings:
        try:
            found = load(self._home, directory=project.parent if project else None)
        except SettingsError as error:
            before = self._valid.get(project)
            # If they were never valid, whoever uses them reports the mistake, until the file has changed.
            kept = before if before and before.configuration else KnownSettings(now)
            return replace(kept, mistake=error.message)
        return KnownSettings(now, found)


def _changed_at(path: Path | None) -> int:
    try:
        return path.stat().st_mtime_ns if path else 0
    except OSError:
        return 0
