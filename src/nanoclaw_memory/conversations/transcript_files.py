"""The raw transcripts under a group's session directory, and the way from one of them to an archive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.conversations.archive import archive
from nanoclaw_memory.conversations.transcripts import read_transcript
from nanoclaw_memory.errors import NotFound, PathRefused
from nanoclaw_memory.types import MAIN_GROUP, Archived, Transcript, TranscriptFile
from nanoclaw_memory.workspace.paths import Home, agent_home, files_below

_PLACES = {"claude-code": ".claude/projects", "codex": ".codex/sessions"}


def transcripts(home: Home, group: str) -> list[TranscriptFile]:
    """The raw transcripts of a group's agent, newest first; its sub-agents' are not conversations."""
    own = agent_home(home, group)
    found = []
    for source, below in _PLACES.items():
        for path in files_below(own / below, ".jsonl"):
            if "subagents" not in path.relative_to(own).parts:
                found.append(_described(path, own, source))
    return sorted(found, key=lambda one: (one.modified_at, one.path), reverse=True)


def archive_file(
    home: Home,
    group: str,
    transcript: str,
    clock: Clock,
    forgotten: Callable[[str], bool] = lambda text: False,
) -> Archived | None:
    """Archive a transcript: a file, or the id of a session of this group's agent."""
    return archive(home, group, open_transcript(home, group, transcript), clock, forgotten)


def open_transcript(
    home: Home, group: str, transcript: str, read: Callable[[Path], Transcript] = read_transcript
) -> Transcript:
    """What a transcript holds: a file, or the id of a session of this group's agent."""
    path = Path(transcript).expanduser()
    if not path.is_file():
        named = [one for one in transcripts(home, group) if one.session_id == transcript]
        if not named:
            raise NotFound(f"there is no transcript {transcript[:80]!r}", "see: ncm sessions transcripts")
        path = agent_home(home, group) / named[0].path
    _refuse_other_groups(home, group, path)
    return read(path)


def _refuse_other_groups(home: Home, group: str, path: Path) -> None:
    """A file in this home must be the group's own; files elsewhere are the operating system's business."""
    real, root = path.resolve(), home.root.resolve()
    own = (agent_home(home, group), home.group_root(group))
    mine = any(real.is_relative_to(folder.resolve()) for folder in own)
    if group != MAIN_GROUP and real.is_relative_to(root) and not mine:
        raise PathRefused(f"{path.name} belongs to another group", "give a transcript of this group")


def _described(path: Path, own: Path, source: str) -> TranscriptFile:
    state = path.stat()
    # Codex puts the time before the id: rollout-2026-02-23T14-05-00-<id>.jsonl
    session = path.stem[28:] if source == "codex" and path.stem.startswith("rollout-") else path.stem
    modified = stamp(datetime.fromtimestamp(state.st_mtime, UTC))
    return TranscriptFile(
        path.relative_to(own).as_posix(), session or path.stem, source, state.st_size, modified
    )
