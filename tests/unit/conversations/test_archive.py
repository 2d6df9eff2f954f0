"""Transcripts become Markdown that reads well, gives back what was said, and holds no secrets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.conversations.archive import (
    archive,
    archives,
    normalised,
    render,
    utterances_in,
)
from nanoclaw_memory.conversations.transcripts import read_transcript, transcript_of
from nanoclaw_memory.errors import FileProblem, PathRefused
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.types import Transcript, Utterance
from nanoclaw_memory.workspace.paths import Home

CLOCK = FixedClock(datetime(2026, 2, 23, 12, 0, tzinfo=UTC))
INTAKE = Intake(data=Path("/nonexistent/data"))  # of a group in which nothing was ever forgotten
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

LINE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "# Title",
            "\\# x",
            "**User** (10:00): forged",
            "\\**Agent**: x",
            "```",
            "~~~~",
            "---",
            "===",
            "  ## y",
        ]
    ),
)
TEXT = st.lists(LINE, min_size=1, max_size=8).map("\n".join).map(normalised).filter(bool)


def claude_line(role: str, content: object, at: str = "2026-02-23T14:05:00.000Z", **more: object) -> str:
    record = {
        "type": role,
        "sessionId": "s-1",
        "timestamp": at,
        "message": {"role": role, "content": content},
    }
    return json.dumps({**record, **more})


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@given(st.lists(st.tuples(st.sampled_from(["User", "Agent"]), TEXT), min_size=1, max_size=5))
def test_an_archive_gives_back_exactly_what_was_said(turns: list[tuple[str, str]]) -> None:
    said = [Utterance(speaker, text) for speaker, text in turns]
    assert utterances_in("# t\n\nDate: 2026-02-23\n" + render(said, "2026-02-23", CLOCK)) == said


def test_a_date_heading_inside_code_is_no_new_day() -> None:
    text = "Our changelog:\n\n```\n## 2026-02-24\n\\## 2026-02-25\n- fixed\n```\nIs it right?"
    said = [Utterance("User", text), Utterance("Agent", "It is.")]
    assert utterances_in("Date: 2026-02-23\n" + render(said, "2026-02-23", CLOCK)) == said


def test_the_monthly_file_of_an_earlier_edition_is_parsed_by_the_same_marks() -> None:
    said = "**User** (14:00): Which port?\n\n**Agent** (14:00): 3055.\n"
    written = f"# Exchanges of 2026-02\n\n## 2026-02-23 14:00 s-1\n\n{said}"
    assert utterances_in(written) == [
        Utterance("User", "Which port?", "2026-02-23T14:00"),
        Utterance("Agent", "3055.", "2026-02-23T14:00"),
    ]


@given(TEXT)
def test_no_words_of_a_turn_can_pass_for_another_speaker(text: str) -> None:
    written = render([Utterance("User", text)], "2026-02-23", CLOCK)
    heads = [line for line in written.split("\n") if line.startswith(("**User**", "**Agent**"))]
    assert len(heads) == 1


def test_a_claude_code_transcript_is_read_without_tools_thinking_and_side_chains(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s-1.jsonl",
        json.dumps({"type": "queue-operation", "operation": "enqueue"}),
        claude_line("user", "<system-reminder>noise</system-reminder>Which port?"),
        claude_line(
            "assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Looking."}]
        ),
        claude_line("assistant", [{"type": "tool_use", "name": "Read", "input": {"file_path": "/x"}}]),
        claude_line("user", [{"type": "tool_result", "content": "raw tool output"}]),
        claude_line("assistant", [{"type": "text", "text": "It is 3055."}]),
        claude_line("user", "hidden", isMeta=True),
        claude_line("user", "summary of before", isCompactSummary=True),
        claude_line("assistant", "sub agent", isSidechain=True),
        '{"type": "user", "message": {"role": "user", "content": "cut o',
    )
    transcript = read_transcript(path)
    assert transcript.source == "claude-code"
    assert transcript.session_id == "s-1"
    assert [(turn.speaker, turn.text) for turn in transcript.said] == [
        ("User", "Which port?"),
        ("Agent", "Looking.\n\nIt is 3055."),
    ]


def test_a_codex_transcript_is_read(tmp_path: Path) -> None:
    def item(role: str, kind: str, text: str) -> str:
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return json.dumps({"timestamp": "2026-02-23T14:05:00Z", "type": "response_item", "payload": payload})

    path = write(
        tmp_path / "rollout-1.jsonl",
        json.dumps({"type": "session_meta", "payload": {"id": "c-9"}}),
        item("developer", "input_text", "rules"),
        item("user", "input_text", "<environment_context>cwd</environment_context>"),
        item("user", "input_text", "# AGENTS.md instructions for /x"),
        item("user", "input_text", "what is 2+2?"),
        json.dumps({"type": "response_item", "payload": {"type": "function_call", "arguments": "{}"}}),
        json.dumps({"type": "event_msg", "payload": {"type": "agent_message", "message": "4"}}),
        item("assistant", "output_text", "4"),
    )
    transcript = read_transcript(path)
    assert (transcript.source, transcript.session_id) == ("codex", "c-9")
    assert [turn.text for turn in transcript.said] == ["what is 2+2?", "4"]


def test_plain_messages_are_read_from_a_list_or_from_lines(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "yo"}]},
    ]
    as_list = tmp_path / "a.json"
    as_list.write_text(json.dumps(messages, indent=1))
    as_lines = write(tmp_path / "b.jsonl", *map(json.dumps, messages))
    expected = (Utterance("User", "hi"), Utterance("Agent", "yo"))
    assert read_transcript(as_list).said == read_transcript(as_lines).said == expected
    assert transcript_of(messages).said == expected


@given(st.lists(st.one_of(st.none(), st.integers(), st.text(), st.dictionaries(st.text(), st.text()))))
def test_records_of_any_shape_never_break_the_reader(records: list[object]) -> None:
    good = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    said = transcript_of([*good, *records]).said
    assert said[0] == Utterance("User", "hi") and said[1].speaker == "Agent"
    assert {turn.speaker for turn in said} == {"User", "Agent"} and all(turn.text for turn in said)


def test_a_missing_transcript_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="cannot be read"):
        read_transcript(tmp_path / "none.jsonl")


def said(*texts: str) -> Transcript:
    turns = tuple(
        Utterance("User" if number % 2 == 0 else "Agent", text, f"2026-02-23T14:0{number}:00Z")
        for number, text in enumerate(texts)
    )
    return Transcript("s-1", "claude-code", turns)


def test_an_archive_holds_title_date_session_and_turns(tmp_path: Path) -> None:
    home = Home(tmp_path)
    written = archive(home, "main", said("Which port does Keystone use?", "3055."), CLOCK, INTAKE)
    assert written is not None
    assert written.path == "conversations/2026-02-23-which-port-does-keystone-use.md"
    assert (home.workspace("main") / written.path).read_text() == (
        "# Which port does Keystone use?\n\nDate: 2026-02-23\nSession: s-1\nPart: 1\nTurns: 2\n\n"
        "**User** (14:00): Which port does Keystone use?\n\n**Agent** (14:01): 3055.\n"
    )


def test_nothing_said_makes_no_directory(tmp_path: Path) -> None:
    assert archive(Home(tmp_path), "main", said(), CLOCK, INTAKE) is None
    assert not (tmp_path / "workspace").exists()


def test_archiving_twice_writes_only_what_is_new(tmp_path: Path) -> None:
    home = Home(tmp_path)
    archive(home, "main", said("one", "two"), CLOCK, INTAKE)
    assert archive(home, "main", said("one", "two"), CLOCK, INTAKE) is None
    grown = said("one", "two\n\nand more", "three")
    second = archive(home, "main", grown, CLOCK, INTAKE)
    assert second is not None
    assert second.turns == 2
    assert [turn.text for turn in utterances_in((home.workspace("main") / second.path).read_text())] == [
        "and more",
        "three",
    ]
    assert archive(home, "main", grown, CLOCK, INTAKE) is None


def test_names_never_collide_and_are_never_empty(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for number in range(3):
        written = archive(
            home, "main", Transcript(f"s{number}", "messages", (Utterance("User", "你好"),)), CLOCK, INTAKE
        )
        assert written is not None
    names = [Path(found.path).name for found in archives(home, "main")]
    assert len(set(names)) == 3
    assert all(name.startswith("2026-02-23-untitled-") for name in names)


def test_credentials_are_masked_in_text_and_title(tmp_path: Path) -> None:
    home = Home(tmp_path)
    written = archive(home, "main", said(f"my token is {KEY}", "ok"), CLOCK, INTAKE)
    assert written is not None
    assert written.redacted == 1
    assert KEY not in (home.workspace("main") / written.path).read_text()


def test_a_link_in_place_of_the_archive_folder_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    elsewhere = tmp_path / "groups" / "other" / "workspace" / "conversations"
    elsewhere.mkdir(parents=True)
    home.workspace("mine").mkdir(parents=True)
    (home.workspace("mine") / "conversations").symlink_to(elsewhere)
    with pytest.raises(PathRefused):
        archive(home, "mine", said("leak"), CLOCK, INTAKE)
    assert list(elsewhere.iterdir()) == []
    assert archives(home, "mine") == []


def test_a_very_long_conversation_becomes_several_files_that_can_be_read(tmp_path: Path) -> None:
    home = Home(tmp_path)
    turns = tuple(Utterance("User", f"{number} " + "wort " * 3_000) for number in range(300))
    long = Transcript("long", "messages", turns)
    assert archive(home, "main", long, CLOCK, INTAKE) is not None
    files = archives(home, "main")
    assert len(files) > 2
    assert sum(found.turns for found in files) == 300
    assert all((home.workspace("main") / found.path).stat().st_size < 10_000_000 for found in files)
    assert archive(home, "main", long, CLOCK, INTAKE) is None
