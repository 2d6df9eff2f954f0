"""The daily log: what is written is read back, and what people type is understood."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import LogLine
from nanoclaw_memory.workspace.log import format_line, header, parse, parse_line

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(one_line)
TAGS = st.text(  # 'x' would read as a task box, and is refused
    st.characters(categories=["Lu", "Ll", "Nd"], include_characters="-_"), min_size=1, max_size=40
).filter(lambda tag: tag not in ("x", "X"))
STRENGTHS = st.one_of(st.none(), st.integers(0, 100).map(lambda percent: percent / 100))


SLUGS = st.one_of(st.just(""), st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True))


@given(TEXTS, TAGS, STRENGTHS, SLUGS)
@example("(maybe) chose SQLite", "decision", 0.9, "keystone")
def test_a_tagged_line_is_read_back_as_written(text: str, tag: str, importance: float | None, project: str):
    entry = parse_line(format_line(text, tag, importance, project))
    assert entry == LogLine(1, one_line(text), tag, importance, project=project)


@given(TEXTS, SLUGS.filter(bool))
@example("[x] done", "keystone")
def test_an_untagged_line_of_a_project_is_read_back_as_written(text: str, project: str):
    assert parse_line(format_line(text, project=project)) == LogLine(1, one_line(text), project=project)


@given(TEXTS)
@example("---")
@example("[x] done")
@example("[decision|i=0.9] quoted")
@example("[docs](https://example.org)")
@example("# heading")
def test_plain_text_is_read_back_as_written_whatever_it_looks_like(text: str):
    entry = parse_line(format_line(text))
    assert entry is not None and entry.text == one_line(text)


@given(TEXTS, STRENGTHS)
def test_a_line_is_one_line(text: str, importance: float | None):
    line = format_line(text, importance=importance)
    assert line.splitlines() == [line]


@given(st.text())
def test_no_text_breaks_the_parser_and_lines_are_numbered(text: str):
    lines = text.split("\n")
    for entry in parse(text):
        assert 1 <= entry.line <= len(lines)
        assert entry.text
        assert entry.importance is None or 0 <= entry.importance <= 1


@pytest.mark.parametrize(
    ("typed", "entry"),
    [
        ("- [decision|i=0.9] Chose SQLite", LogLine(1, "Chose SQLite", "decision", 0.9)),
        ("* [lesson] Measure first", LogLine(1, "Measure first", "lesson")),
        ("-   [ lesson | i = 0.7 ]   spaced", LogLine(1, "spaced", "lesson", 0.7)),
        ("- [lesson|importance: 0,7] comma", LogLine(1, "comma", "lesson", 0.7)),
        ("    - [context|i=.3] nested", LogLine(1, "nested", "context", 0.3, 4)),
        ("\t- nested by a tab", LogLine(1, "nested by a tab", indent=4)),
        ("+ plus bullet", LogLine(1, "plus bullet")),
        ("just a line", LogLine(1, "just a line")),
        ("- [decision|i=7] clamped", LogLine(1, "clamped", "decision", 1.0)),
        ("- [decision|i=-1] clamped", LogLine(1, "clamped", "decision", 0.0)),
        ("- [decision|i=high] no number", LogLine(1, "no number", "decision")),
        ("- [x] done", LogLine(1, "done")),
        ("- [ ] to do", LogLine(1, "to do")),
        ("- [docs](https://example.org) read", LogLine(1, "[docs](https://example.org) read")),
        ("- [lesson] (maybe) measure", LogLine(1, "(maybe) measure", "lesson")),
        ("- no label [here|i=0.9]", LogLine(1, "no label [here|i=0.9]")),
        ("- [决定|i=0.8] 改用 SQLite", LogLine(1, "改用 SQLite", "决定", 0.8)),
    ],
)
def test_what_people_type_is_understood(typed: str, entry: LogLine):
    assert parse_line(typed) == entry


@pytest.mark.parametrize(
    "typed", ["", "   ", "# Heading", "###### deep", "---", "* * *", "___", "<!-- note -->"]
)
def test_headings_rules_comments_and_blank_lines_are_no_entries(typed: str):
    assert parse_line(typed) is None


def test_a_fenced_block_holds_no_entries():
    text = "- before\r\n```\r\n- [decision|i=1] code\r\n```\r\n- after\r\n"
    assert [(entry.line, entry.text) for entry in parse(text)] == [(1, "before"), (5, "after")]


@pytest.mark.parametrize(
    ("text", "tag", "importance"),
    [
        ("", "", None),
        (" \n ", "", None),
        ("x" * 4001, "", None),
        ("x", "two words", None),
        ("x", "a]b", None),
        ("x", "x", None),
        ("x", "", 1.1),
        ("x", "", -0.1),
        ("x", "", float("nan")),
    ],
)
def test_what_cannot_be_a_line_is_refused(text: str, tag: str, importance: float | None):
    with pytest.raises(InvalidValue):
        format_line(text, tag, importance)


def test_a_new_log_starts_with_its_date():
    assert header(date(2026, 2, 23)) == "# 2026-02-23\n\n"
    assert parse(header(date(2026, 2, 23))) == []


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("- [@keystone] Chose SQLite", LogLine(1, "Chose SQLite", project="keystone")),
        ("- [decision|@keystone] Chose SQLite", LogLine(1, "Chose SQLite", "decision", project="keystone")),
        ("- [decision @keystone] Chose SQLite", LogLine(1, "Chose SQLite", "decision", project="keystone")),
        ("- [fact|i=0.9|@my_app.v2] a", LogLine(1, "a", "fact", 0.9, project="my_app.v2")),
        ("- ping @maria about it", LogLine(1, "ping @maria about it")),
        ("- [@Maria and Jo] came", LogLine(1, "[@Maria and Jo] came")),
        ("- [@keystone](https://example.org) a link", LogLine(1, "[@keystone](https://example.org) a link")),
    ],
)
def test_a_line_may_name_its_project(line: str, entry: LogLine):
    assert parse_line(line) == entry
