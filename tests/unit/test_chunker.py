"""Passages: how files are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.retrieval.chunker import Chunking, chunks_of, without_speaker
from nanoclaw_memory.tokens import estimate

SMALL = Chunking(40, 10)


def test_prose_keeps_its_heading_path_and_lines():
    text = "# Memory\n\n## Projects\n\nKeystone runs on port 3055.\n\n## People\n\nAda likes tea.\n"
    first, second = chunks_of("MEMORY.md", text, Chunking())
    assert (first.start_line, first.end_line, first.heading) == (1, 5, "Memory > Projects")
    assert (second.start_line, second.end_line, second.heading) == (7, 9, "Memory > People")


def test_each_item_of_a_page_is_its_own_chunk_with_its_indented_lines_its_headings_and_its_date():
    text = (
        "# Memory\n\n## People\n\n- Ada likes tea (2026-01-02)\n  - green, no milk\n- Bob rides\n\n"
        "The stack:\n1. Rust\n2. SQLite\n"
    )
    ada, bob, lead, rust, sqlite = chunks_of("MEMORY.md", text, Chunking())
    assert (ada.start_line, ada.end_line, ada.heading, ada.day) == (5, 6, "Memory > People", "2026-01-02")
    assert (bob.text, bob.day, lead.text) == ("- Bob rides", "", "The stack:")
    assert [(one.text, one.heading) for one in (rust, sqlite)] == [
        ("1. Rust", "Memory > People > The stack"),
        ("2. SQLite", "Memory > People > The stack"),
    ]


def test_each_row_of_a_table_is_its_own_chunk_under_the_head_of_the_table():
    text = "# Hosts\n\n| host | port |\n|---|---|\n| alpha | 1 |\n| beta | 2 |\n"
    first, second = chunks_of("notes.md", text, Chunking())
    assert first.text.endswith("| alpha | 1 |")
    assert (second.text, second.heading) == ("| beta | 2 |", "Hosts > host | port")


def test_a_heading_in_a_code_block_is_no_heading():
    (chunk,) = chunks_of("notes.md", "# A\n\n```sh\n# not a heading\nls\n```\n", Chunking())
    assert chunk.heading == "A"
    assert chunk.end_line == 6


def test_a_long_section_is_cut_with_overlap_and_never_inside_a_line():
    lines = [f"line {number} says something of its own" for number in range(40)]
    chunks = chunks_of("memory/tools-x.md", "\n".join(lines), SMALL)
    assert len(chunks) > 3
    assert all(estimate(chunk.text) <= SMALL.size for chunk in chunks)
    assert all(line in lines for chunk in chunks for line in chunk.text.split("\n"))
    assert chunks[1].start_line <= chunks[0].end_line < chunks[1].end_line


def test_a_line_longer_than_a_chunk_stays_whole():
    long = "word " * 2_000
    (chunk,) = chunks_of("notes.md", long, SMALL)
    assert chunk.text == long


def test_each_log_entry_is_its_own_chunk_with_day_and_importance():
    text = "# 2026-02-23\n\n- [decision|i=0.9] Chose SQLite\n  because it is one file\n- lunch\n"
    first, second = chunks_of("memory/2026-02-23.md", text, Chunking())
    assert (first.start_line, first.end_line, first.day, first.importance) == (3, 4, "2026-02-23", 0.9)
    assert (second.start_line, second.text, second.importance) == (5, "- lunch", None)


def test_each_turn_of_a_conversation_is_its_own_chunk_with_speaker_and_day():
    text = (
        "# Deploys\n\n**Ada** (14:05): Which port?\nI forgot.\n\n**Agent** (14:06): 3055.\n\n"
        "## 2026-02-24\n\n**Ada**: Thanks\n"
    )
    turns = [
        chunk for chunk in chunks_of("conversations/2026-02-23-deploys.md", text, Chunking()) if chunk.speaker
    ]
    assert [(turn.speaker, turn.day, turn.start_line) for turn in turns] == [
        ("Ada", "2026-02-23", 3),
        ("Agent", "2026-02-23", 6),
        ("Ada", "2026-02-24", 10),
    ]
    assert without_speaker(turns[0].text) == "Which port?\nI forgot."


def test_plain_and_headed_speakers_are_understood_too():
    plain = "User: hi\nAgent: hello\nUser: bye\nAgent: bye\nNote: nothing\n"
    headed = "## User\n\nhi\n\n## Agent (12:00)\n\nhello\n\n## User\n\nbye\n\n## Agent\n\nbye\n"
    assert [c.speaker for c in chunks_of("conversations/a.md", plain, Chunking())] == [
        "User", "Agent", "User", "Agent"]  # fmt: skip
    assert [c.speaker for c in chunks_of("conversations/b.md", headed, Chunking())] == [
        "User", "Agent", "User", "Agent"]  # fmt: skip


def test_a_note_with_colons_is_no_conversation():
    text = "Goal: ship\nOwner: Ada\nDate: today\n"
    assert {chunk.speaker for chunk in chunks_of("conversations/plan.md", text, Chunking())} == {""}


def test_what_an_archive_says_of_itself_is_no_chunk_but_what_somebody_wrote_there_is():
    head = "# let's name it\n\nDate: 2026-02-23\nSession: cc1\nPart: 1\nTurns: 2\nProject: magpie\n"
    turns = "\n**User**: let's name it kingfisher\n\n**Agent**: Kingfisher it is.\n"
    assert [c.speaker for c in chunks_of("conversations/a.md", head + turns, Chunking())] == ["User", "Agent"]
    noted = chunks_of("conversations/a.md", f"{head}\nThe name was changed later.\n{turns}", Chunking())
    assert "The name was changed later." in noted[0].text


_PATHS = st.sampled_from(["MEMORY.md", "memory/2026-02-23.md", "conversations/x.md"])
_LINES = st.lists(
    st.one_of(
        st.text(max_size=60).filter(lambda line: "\n" not in line),
        st.sampled_from(["# Title", "## Part", "- item", "", "```", "**Ada**: hi", "Bob: ho"]),
    ),
    max_size=40,
)


@given(_PATHS, _LINES)
def test_chunks_cover_every_line_that_says_something(path: str, lines: list[str]):
    text = "\n".join(lines)
    chunks = chunks_of(path, text, SMALL)
    covered = {number for chunk in chunks for number in range(chunk.start_line, chunk.end_line + 1)}
    shown = text.split("\n")
    for number, line in enumerate(shown, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            assert number in covered


@given(_PATHS, _LINES)
def test_a_chunk_is_exactly_its_lines(path: str, lines: list[str]):
    text = "\n".join(lines)
    shown = [line.rstrip("\r") for line in text.split("\n")]
    for chunk in chunks_of(path, text, SMALL):
        assert chunk.text == "\n".join(shown[chunk.start_line - 1 : chunk.end_line])
