"""The flush: once per compaction cycle, only where something can be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.upkeep.flush import NO_REPLY


def test_it_fires_at_window_less_reserve_less_threshold_and_names_todays_log(memory: Memory):
    assert not memory.conversations.flush_needed(175_999).needed
    flush = memory.conversations.flush_needed(176_000)
    assert flush.needed and flush.threshold == 176_000
    assert "memory/2026-05-01.md" in flush.prompt and NO_REPLY in flush.prompt


def test_it_fires_once_per_session_until_a_compaction(open_memory: Callable[..., Memory], memory: Memory):
    assert memory.conversations.flush_needed(180_000).needed
    again = open_memory(embeddings__provider="none")  # another process of the same session
    assert again.conversations.flush_needed(185_000).why == "asked already since the last compaction"
    assert open_memory(session="s2", embeddings__provider="none").conversations.flush_needed(180_000).needed
    memory.before_compaction()
    assert again.conversations.flush_needed(180_000).needed


def test_a_host_that_never_tells_of_compactions_is_seen_by_its_smaller_window(memory: Memory):
    assert memory.conversations.flush_needed(300_000).needed
    assert not memory.conversations.flush_needed(290_000).needed
    assert memory.conversations.flush_needed(180_000).needed


def test_a_long_transcript_fires_too(memory: Memory):
    assert not memory.conversations.flush_needed(10, 2_000_000).needed
    flush = memory.conversations.flush_needed(10, 2_097_152)
    assert flush.needed and "transcript" in flush.why


def test_it_can_be_switched_off_and_sized(open_memory: Callable[..., Memory], memory: Memory):
    off = open_memory(flush__enabled="false")
    assert not off.conversations.flush_needed(1_000_000).needed
    small = open_memory(flush__contextWindow="32000", flush__reserveTokensFloor="4000")
    assert small.conversations.flush_needed(24_000).needed
    with pytest.raises(InvalidValue):
        memory.conversations.flush_needed(-1)


def test_a_read_only_workspace_is_never_asked():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "home"
        with Memory.open(home) as memory:
            memory.init()
            for path in (home, home / "workspace", home / "workspace/memory", home / "data"):
                path.chmod(0o755)
            (home / "workspace/memory").chmod(0o555)
            privileged = os.geteuid() == 0
            if privileged:
                os.seteuid(65534)
            try:
                flush = memory.conversations.flush_needed(180_000)
            finally:
                if privileged:
                    os.seteuid(0)
            assert (flush.needed, flush.why) == (False, "the workspace is read-only")
            (home / "workspace/memory").chmod(0o755)
            assert memory.conversations.flush_needed(180_000).needed  # nothing was claimed


def test_a_session_named_by_invalid_text_is_asked_once_too(open_memory: Callable[..., Memory]):
    memory = open_memory(session="half \ud800")
    memory.init()
    assert memory.conversations.flush_needed(10**9).needed
    assert not memory.conversations.flush_needed(10**9).needed
