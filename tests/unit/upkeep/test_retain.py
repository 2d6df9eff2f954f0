"""Retention: how long a line stays in its log, and how it reads in the archive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.upkeep.log_blocks import blocks
from nanoclaw_memory.upkeep.retain import with_archived


@pytest.mark.parametrize(
    ("label", "days"),
    [
        ("[context|i=0.39] ", 7),
        ("[lesson|i=0.4] ", 30),
        ("[lesson|i=0.79] ", 30),
        ("", 30),
        ("[decision] ", 30),
        ("[decision|i=0.8] ", None),
        ("[decision|i=1] ", None),
    ],
)
def test_a_line_stays_as_long_as_its_importance_says(
    memory: Memory, log: Callable[..., Path], clock: FixedClock, label: str, days: int | None
):
    path = log("2026-05-01", f"- {label}what happened", "- [decision|i=0.9] stays")
    clock.moment += timedelta(days=days if days is not None else 3000)
    memory.upkeep.run("retain")
    assert "what happened" in path.read_text()
    clock.moment += timedelta(days=1)
    memory.upkeep.run("retain")
    assert ("what happened" in path.read_text()) == (days is None)


def test_what_hangs_on_a_line_goes_with_it_and_an_important_child_keeps_its_parent(
    memory: Memory, log: Callable[..., Path], home: Path
):
    path = log(
        "2026-03-01",
        "- [context|i=0.2] meeting",
        "  - with Anna",
        "  continued here",
        "",
        "- [context|i=0.2] second meeting",
        "  - [decision|i=0.9] decided there",
        "## Afternoon",
        "- untagged",
        "```",
        "- [decision|i=0.9] only code",
        "```",
    )
    memory.upkeep.run("retain")
    assert path.read_text() == (
        "# 2026-03-01\n\n\n- [context|i=0.2] second meeting\n  - [decision|i=0.9] decided there\n## Afternoon\n"
    )
    archived = (home / "workspace/memory/archive/2026-03.md").read_text()
    assert archived == (
        "# Archive 2026-03\n\n## 2026-03-01\n\n- [context|i=0.2] meeting\n  - with Anna\n  continued here\n\n"
        "### Afternoon\n\n- untagged\n```\n- [decision|i=0.9] only code\n```\n"
    )


def test_a_log_with_nothing_left_is_removed_and_its_lines_are_found_in_the_archive_below_others(
    memory: Memory, log: Callable[..., Path]
):
    path = log("2026-03-01", "- [note|i=0.5] the harbour crane was painted green")
    other = log("2026-04-20", "- [note|i=0.5] the harbour crane was painted blue")
    memory.upkeep.run()
    assert not path.exists() and other.exists()
    hits = memory.search("harbour crane painted", 5, fast=True, explain=True).hits
    assert [hit.path for hit in hits] == ["memory/2026-04-20.md", "memory/archive/2026-03.md"]
    assert hits[1].day == "2026-03-01" and hits[1].parts["recency"] < 0.5


def test_the_lines_of_a_day_are_read_where_they_were_moved_to(memory: Memory, log: Callable[..., Path]):
    log("2026-03-01", "- [note|i=0.5] the crane was painted", "- [note|i=0.5] Anna called")
    log("2026-03-02", "- [note|i=0.5] the crane was sold", "- [decision|i=0.9] no more cranes")
    memory.upkeep.run("retain")
    _, moved = memory.log("2026-03-01")
    assert [(one.text, one.path) for one in moved] == [
        ("the crane was painted", "memory/archive/2026-03.md"),
        ("Anna called", "memory/archive/2026-03.md"),
    ]
    read = memory.get("memory/2026-03-01.md")
    assert read.path == "memory/archive/2026-03.md" and "sold" not in read.text and "Anna called" in read.text
    assert memory.get("memory/2026-03-01.md", 2).text == "- [note|i=0.5] Anna called\n"
    _, both = memory.log("2026-03-02")
    assert [one.text for one in both] == ["no more cranes", "the crane was sold"]
    assert "memory/archive/2026-03.md" in memory.get("memory/2026-03-02.md").note


def test_line_ends_of_windows_stay_and_days_are_in_order(
    memory: Memory, log: Callable[..., Path], home: Path
):
    late = log("2026-03-09")
    late.write_bytes(b"# 2026-03-09\r\n\r\n- [decision|i=0.9] stays\r\n- [context|i=0.1] late\r\n")
    memory.upkeep.run("retain")
    assert late.read_bytes() == b"# 2026-03-09\r\n\r\n- [decision|i=0.9] stays\r\n"
    log("2026-03-02", "- [context|i=0.1] early")
    memory.upkeep.run("retain")
    text = (home / "workspace/memory/archive/2026-03.md").read_text()
    assert (
        text.index("## 2026-03-02") < text.index("early") < text.index("## 2026-03-09") < text.index("late")
    )


@given(st.lists(st.text("ab-#` \t[x]|\n", max_size=30), max_size=8))
def test_blocks_never_overlap_and_hold_every_line_that_says_something(lines: list[str]):
    text = "\n".join(lines)
    held = [number for block in blocks(text) for number in range(block.start, block.start + len(block.lines))]
    assert len(held) == len(set(held))
    for number, line in enumerate(text.split("\n")):
        if line.strip() and not line.lstrip().startswith(("#", "-", "*", "_", "<!--", "`", "~")):
            assert number in held


@given(st.lists(st.text("ab-#` [x]|", min_size=1, max_size=20), min_size=1, max_size=6))
def test_archiving_the_same_blocks_again_adds_nothing(lines: list[str]):
    from datetime import date

    gone = blocks("\n".join(lines))
    once = with_archived("", date(2026, 3, 1), gone)
    assert with_archived(once, date(2026, 3, 1), gone) == once
    later = with_archived(once, date(2026, 2, 1), gone)
    assert with_archived(later, date(2026, 3, 1), gone) == later
