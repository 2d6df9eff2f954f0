"""Check HEARTBEAT.md: the state of each item that the program can check."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import local_minute, moment_of
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import HeartbeatItem
from nanoclaw_memory.upkeep import run_history
from nanoclaw_memory.upkeep.demote import MAX_BYTES, MAX_LINES, size_of
from nanoclaw_memory.upkeep.jobs import JOBS
from nanoclaw_memory.upkeep.review import open_proposals
from nanoclaw_memory.workspace.boot import ACTIVE_CONTEXT

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

_ITEM = re.compile(r"^\s*[-*+]\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>\S.*?)\s*$")
STALE_DAYS = 7


class _State(msgspec.Struct, frozen=True):
    well: bool
    text: str
    next: str = ""


def heartbeat(group: Group) -> list[HeartbeatItem]:
    """Return the items in the file's order, each with its state or a note that only a person can check it."""
    found = []
    for line in group.page("HEARTBEAT.md").split("\n"):
        match = _ITEM.match(line.rstrip("\r"))
        if match is None:
            continue
        state = _checked(group, match["text"])
        ticked = (match["box"] or " ") in "xX"
        if state is None:
            found.append(HeartbeatItem(match["text"], ticked, None, "only you can tell"))
        else:
            found.append(HeartbeatItem(match["text"], ticked, state.well, state.text, state.next))
    return found


def _checked(group: Group, text: str) -> _State | None:
    for pattern, check in _CHECKS:
        if re.search(pattern, text, re.IGNORECASE):
            return check(group)
    return None


def _proposals(group: Group) -> _State:
    count = len(open_proposals(group))
    return _State(not count, f"{plural(count, 'proposal')} open", "nanoclaw-memory review" if count else "")


def _memory(group: Group) -> _State:
    size = size_of(group.page("MEMORY.md"))
    says = f"{size.lines} of {MAX_LINES} lines, {size.bytes:,} of {MAX_BYTES:,} bytes"
    return _State(size.fits, says, "" if size.fits else "nanoclaw-memory upkeep promote")


def _active_context(group: Group) -> _State:
    return _aged(group, group.workspace / ACTIVE_CONTEXT, "refreshed")


def _log(group: Group) -> _State:
    path = group.workspace / f"memory/{group.today.isoformat()}.md"
    return _State(path.is_file(), "there is one for today" if path.is_file() else "none for today yet")


def _upkeep(group: Group) -> _State:
    ran = run_history.read(group.data).jobs
    if not ran:
        return _State(False, "never ran", "nanoclaw-memory upkeep")
    failed = [name for name, last_run in ran.items() if last_run.error]
    last = max(last_run.at for last_run in ran.values())
    days = (group.clock.now() - moment_of(last)).days
    says = f"last run {local_minute(last, group.clock.now().tzinfo)[:10]}, {len(ran)} of {len(JOBS)} jobs" + (
        f"; failed: {', '.join(failed)}" if failed else ""
    )
    return _State(not failed and days < 2, says, "" if not failed and days < 2 else "nanoclaw-memory upkeep")


def _index(group: Group) -> _State:
    count = group.retrieval.stale()
    return _State(not count, f"{plural(count, 'file')} to index", "nanoclaw-memory index" if count else "")


def _checkpoint(group: Group) -> _State:
    folder = group.workspace / "memory" / "checkpoints"
    saved = [path for path in folder.glob("[!.]*") if path.is_dir()] if folder.is_dir() else []
    if not saved:
        return _State(False, "none yet", "nanoclaw-memory checkpoint create NAME")
    return _aged(group, max(saved, key=lambda path: path.stat().st_mtime), "newest")


def _lessons(group: Group) -> _State:
    count = len(group.lessons.all(("active",))) if group.has("facts") else 0
    return _State(True, f"{plural(count, 'lesson')} in use")


def _aged(group: Group, path: Path, verb: str) -> _State:
    if not path.exists():
        return _State(False, "missing", "nanoclaw-memory init")
    days = max((group.clock.now() - datetime.fromtimestamp(path.stat().st_mtime, UTC)).days, 0)
    return _State(days < STALE_DAYS, f"{verb} {plural(days, 'day')} ago" if days else f"{verb} today")


# Names of things of memory only: the program knows nothing of "review the contract" and "piano lesson".
_CHECKS: tuple[tuple[str, Callable[[Group], _State]], ...] = (
    (r"\bproposals?\b", _proposals),
    (r"active.?context", _active_context),
    (r"MEMORY\.md", _memory),
    (r"\bcheckpoints?\b", _checkpoint),
    (r"\b(?:search|memory) index\b|\breindex\b", _index),
    (r"\blessons? learn(?:t|ed)\b", _lessons),
    (r"\bupkeep\b|\bmemory maintenance\b", _upkeep),
    (r"\b(?:daily|today['’]?s) log\b", _log),
)
