"""A session's start says nothing twice and nothing that says nothing; a turn recalls no half policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from nanoclaw_memory.memory import Memory


def test_a_start_has_a_sentence_once_and_neither_thanks_nor_what_introduces_a_paste(
    open_memory: Callable[..., Memory], clock: Any
) -> None:
    with open_memory(session="first") as memory:
        memory.init()
        for message, answer in (
            ("we rewrite the importer of magpie in Rust this week", "Good plan."),
            ("the importer still has to read the ledger line by line", "Understood."),
            ("nice", "Glad you like it."),
            ("this is the stack trace:", "I see no trace."),
            (":)", "Anything else for today?"),
        ):
            clock.moment += timedelta(minutes=1)
            memory.after_turn(message, answer)
        memory.workspace.refresh_active_context()
    start = open_memory(session="second").session_start(boot_chars=20_000)
    assert start.text.count("the importer still has to read the ledger line by line") == 1
    assert "we rewrite the importer of magpie" in start.text
    assert not [word for word in ("nice", "stack trace", ":)", "Understood") if word in start.text]


def test_a_policy_is_told_whole_by_its_own_block_or_not_at_all(memory: Memory) -> None:
    memory.workspace.add_policy(
        "Never send mail to clients unasked", trigger="sending mails to pet owners", gate="Show the draft"
    )
    told = memory.for_session("new").before_turn("which trigger has sending mails to pet owners?")
    assert not [block.text for block in told.blocks if block.label != "GATING POLICIES"]
