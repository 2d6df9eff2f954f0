"""Install or remove hourly upkeep on this machine: a crontab line or a systemd user timer."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.types import Installed
from nanoclaw_memory.workspace.files import replace_text

UNIT = "nanoclaw-memory-upkeep"
MINUTE = 7  # an hour's jobs are due at its start
_TIMEOUT = 30


def command(home: Path) -> list[str]:
    """Return the command that the machine runs: every due job of every group."""
    return [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "upkeep", "--due", "--all-groups"]


def install(home: Path, remove: bool = False, systemd: bool = False) -> Installed:
    """Write or remove our line or units; those of others stay."""
    if "\n" in str(home) or "%" in str(home):
        raise InvalidValue(f"the home {str(home)!r} cannot stand in a crontab", "move it to a plain path")
    return _systemd(home, remove) if systemd else _cron(home, remove)


# ---- cron ----


def _cron(home: Path, remove: bool) -> Installed:
    if shutil.which("crontab") is None:
        raise FileProblem(
            "there is no crontab on this machine", "use a timer: nanoclaw-memory install-cron --systemd"
        )
    before = _listed()
    after = with_line(before, home, remove)
    if after != before:
        done = subprocess.run(["crontab", "-"], input=after, text=True, capture_output=True, timeout=_TIMEOUT)
        if done.returncode:
            raise FileProblem(f"crontab refused: {done.stderr.strip()[:200]}", "look: crontab -l")
    return Installed("crontab", after != before, remove, shlex.join(command(home)))


def with_line(text: str, home: Path, remove: bool = False) -> str:
    """Return a crontab with exactly one line of ours for this home, or without it."""
    mark = f"# nanoclaw-memory {home}"
    kept = [line for line in text.splitlines() if not line.endswith(mark)]
    if not remove:
        kept.append(f"{MINUTE} * * * * {shlex.join(command(home))} >/dev/null 2>&1 {mark}")
    return "".join(f"{line}\n" for line in kept)


def _listed() -> str:
    done = subprocess.run(["crontab", "-l"], text=True, capture_output=True, timeout=_TIMEOUT)
    if done.returncode and "no crontab" not in done.stderr.lower():
        raise FileProblem(f"crontab cannot be read: {done.stderr.strip()[:200]}", "look: crontab -l")
    return done.stdout if not done.returncode else ""


# ---- systemd ----


def _systemd(home: Path, remove: bool) -> Installed:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folder = base / "systemd" / "user"
    units = {folder / f"{UNIT}.service": _service(home), folder / f"{UNIT}.timer": _timer()}
    changed = False
    if remove:
        _systemctl("disable", "--now", f"{UNIT}.timer")
    for path, text in units.items():
        if remove:
            changed |= path.exists()
            path.unlink(missing_ok=True)
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            replace_text(path, text)
            changed = True
    started = _systemctl("daemon-reload") and (remove or _systemctl("enable", "--now", f"{UNIT}.timer"))
    note = (
        ""
        if started or remove
        else f"systemd did not answer; start it yourself: systemctl --user enable --now {UNIT}.timer"
    )
    return Installed(str(folder / f"{UNIT}.timer"), changed, remove, shlex.join(command(home)), note)


def _service(home: Path) -> str:
    quoted = " ".join(f'"{part}"' for part in command(home))
    return f"[Unit]\nDescription=NanoClaw Memory upkeep\n\n[Service]\nType=oneshot\nNice=10\nExecStart={quoted}\n"


def _timer() -> str:
    return (
        "[Unit]\nDescription=NanoClaw Memory upkeep, every hour\n\n"
        f"[Timer]\nOnCalendar=*:{MINUTE:02d}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )


def _systemctl(*arguments: str) -> bool:
    if shutil.which("systemctl") is None:
        return False
    done = subprocess.run(["systemctl", "--user", *arguments], capture_output=True, timeout=_TIMEOUT)
    return done.returncode == 0
