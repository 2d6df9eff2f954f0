"""The flush: ask the agent once, shortly before the host compacts a session, to write down what should last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.text import encodable
from nanoclaw_memory.types import Flush
from nanoclaw_memory.workspace.files import locked, replace_text
from nanoclaw_memory.workspace.paths import log_path

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

NO_REPLY = "NO_REPLY"
FILE = "sessions.json"
MAX_SESSIONS = 500
SHRUNK = 0.7  # a window this much smaller than at the last flush was compacted since
_PROMPT = """This session will be compacted soon, and what only stands in it will be gone. Write down now what
should last: decisions with their reasons, lessons, facts about people and projects, open questions. Append one line
for each to {log} with memory_write; change nothing that stands there. The person does not see this exchange.
If there is nothing to keep, answer exactly {silent}."""


class _LastFlush(msgspec.Struct, frozen=True):
    """When a session was last asked, and the size of its window and transcript."""

    flushed_at: str
    tokens: int
    bytes: int


class _Sessions(msgspec.Struct):
    sessions: dict[str, _LastFlush] = msgspec.field(default_factory=dict)


def flush_needed(group: Group, context_tokens: int, transcript_bytes: int = 0) -> Flush:
    """Return whether to ask the agent now; a yes is recorded, because it is returned once per compaction cycle."""
    own = group.settings.flush
    if context_tokens < 0 or transcript_bytes < 0:
        raise InvalidValue("a window cannot hold less than nothing", "give the tokens that the session uses")
    threshold = max(own.context_window - own.reserve_tokens_floor - own.soft_threshold_tokens, 1)
    full = context_tokens >= threshold
    long = 0 < own.transcript_bytes <= transcript_bytes
    if not own.enabled:
        return Flush(False, "flush.enabled is false", threshold)
    if not full and not long:
        return Flush(False, f"{context_tokens:,} of {threshold:,} tokens", threshold)
    if not _writable(group.workspace / "memory"):
        return Flush(False, "the workspace is read-only", threshold)
    if not _claim(group, context_tokens, transcript_bytes):
        return Flush(False, "asked already since the last compaction", threshold)
    why = (
        f"{context_tokens:,} tokens reach {threshold:,}"
        if full
        else f"the transcript has {transcript_bytes:,} bytes"
    )
    prompt = _PROMPT.format(log=log_path(group.today), silent=NO_REPLY)
    return Flush(True, why, threshold, prompt)


def compacted(data: Path, session: str) -> None:
    """Begin the session's next cycle after a compaction."""
    if not (data / FILE).exists():
        return
    with locked(data):
        known = _read(data)
        if known.sessions.pop(encodable(session), None) is not None:
            _write(data, known)


def _claim(group: Group, tokens: int, size: int) -> bool:
    """Claim this cycle's one flush; return False if it was claimed before."""
    session = encodable(group.scope.session_id)
    with locked(group.data):
        known = _read(group.data)
        before = known.sessions.pop(session, None)
        if before is not None and not _is_smaller(before, tokens, size):
            return False
        known.sessions[session] = _LastFlush(stamp(group.clock.now()), tokens, size)
        _write(group.data, known)
    return True


def _is_smaller(before: _LastFlush, tokens: int, size: int) -> bool:
    """Return whether the window is clearly smaller than before: the host compacted it without reporting it."""
    if tokens and before.tokens:
        return tokens < SHRUNK * before.tokens
    return size < SHRUNK * before.bytes


def _writable(folder: Path) -> bool:
    if not folder.is_dir() or os.statvfs(folder).f_flag & os.ST_RDONLY:
        return False
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _read(data: Path) -> _Sessions:
    return private.read_json(data / FILE, _Sessions) or _Sessions()


def _write(data: Path, known: _Sessions) -> None:
    newest = dict(list(known.sessions.items())[-MAX_SESSIONS:])
    replace_text(data / FILE, msgspec.json.encode(_Sessions(newest)).decode() + "\n")
