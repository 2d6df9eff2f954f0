"""Markdown pages become typed candidates; every line is either placed, said, or mere frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.entries.markdown import Imports, parts, read_page, statements, type_of
from nanoclaw_memory.entries.rules import MAX_CONTENT, TYPES
from nanoclaw_memory.workspace.starter import STARTERS

PAGE = """# Memory

## About the user

- Lives in Oslo with two cats
- Mother's birthday is on 3 May

## Preferences

- Short answers,
  without a preamble

## Decisions and lessons

1. Chose SQLite over a server
2. Never deploy on a Friday
3. Backups:
   - the disk in the cellar
   - the box at Bert's

```python
print("code is no memory")
```

| a | table |
|---|---|
| of | numbers |

<!-- a comment
over two lines -->
hm
"""


def read(name: str, text: str) -> Imports:
    found = Imports()
    read_page(found, name, text)
    return found


def placed(text: str, name: str = "MEMORY.md") -> dict[str, tuple[str, str]]:
    return {one.source: (one.type, one.content) for one in read(name, text).entries}


def test_headings_and_wording_decide_the_type_and_the_line_is_kept() -> None:
    assert placed(PAGE) == {
        "MEMORY.md:5": ("person", "Lives in Oslo with two cats"),
        "MEMORY.md:6": ("person", "Mother's birthday is on 3 May"),
        "MEMORY.md:10": ("preference", "Short answers, without a preamble"),
        "MEMORY.md:15": ("decision", "Chose SQLite over a server"),
        "MEMORY.md:16": ("instruction", "Never deploy on a Friday"),
        "MEMORY.md:18": ("decision", "Backups: the disk in the cellar"),
        "MEMORY.md:19": ("decision", "Backups: the box at Bert's"),
    }


def test_a_section_ends_where_the_next_one_of_its_depth_begins() -> None:
    page = "## Decisions\n- Chose Kong\n\n## Ideas\n- A bot\n\n## Shopping\n- Oat milk\n\n## Team\n- Ana, on call"
    assert {text: kind for kind, text in placed(page).values()} == {
        "Chose Kong": "decision",
        "Ana, on call": "person",
    }


@pytest.mark.parametrize(
    "heading", ["Asterisk configuration", "User interface", "About the build", "Next.js notes"]
)
def test_a_heading_is_read_by_its_whole_words(heading: str) -> None:
    assert type_of("some words", [heading]) is None


@pytest.mark.parametrize(
    ("heading", "line", "kind"),
    [
        ("Vorlieben", "Kurze Antworten, ohne Vorrede", "preference"),
        ("Regeln", "Erst fragen, dann pushen", "instruction"),
        ("Entscheidungen", "PostgreSQL für den Speicher", "decision"),
        ("Lektionen", "Erst messen, dann bauen", "insight"),
        ("Korrekturen", "Der Zahnarzt ist nicht Dr. Braun", "correction"),
        ("Leute", "Mara führt das Team in Graz", "person"),
        ("Sonstiges", "Niemals ohne Rückfrage löschen", "instruction"),
        ("Sonstiges", "Wir haben uns auf Kong geeinigt", "decision"),
        ("Notes", "2026-03-01: Never push to main", "instruction"),
        ("People", "I hate phone calls", "preference"),
    ],
)
def test_german_headings_and_words_tell_a_type_too(heading: str, line: str, kind: str) -> None:
    assert type_of(line, [heading]) == kind


def test_underlined_headings_and_lines_of_a_paragraph_are_read() -> None:
    rules = "Rules\n=====\nSign every commit.\nKeep main green, whatever\nhappens elsewhere.\n"
    page = f"{rules}\nPeople\n---\nAna: on call\nBen: away"
    assert placed(page) == {
        "MEMORY.md:3": ("instruction", "Sign every commit."),
        "MEMORY.md:4": ("instruction", "Keep main green, whatever happens elsewhere."),
        "MEMORY.md:9": ("person", "Ana: on call"),
        "MEMORY.md:10": ("person", "Ben: away"),
    }


def test_what_cannot_be_placed_is_said_with_its_line_and_reason() -> None:
    assert read("MEMORY.md", PAGE).unplaced == [
        "MEMORY.md:17: it says too little on its own",
        "MEMORY.md:21: a code block stays in its file",
        "MEMORY.md:25: a table stays in its file",
        "MEMORY.md:31: it says too little on its own",
    ]


def test_a_section_becomes_a_tag_and_a_project_page_its_slug() -> None:
    assert read("MEMORY.md", PAGE).entries[2].tags == ("preferences",)
    page = "# Payment\n\n## Risks\n\n- The queue may overflow\n"
    (one,) = read("memory/project-payment-api.md", page).entries
    assert (one.type, one.tags) == ("project", ("payment-api", "risks"))


def test_a_log_gives_its_tagged_lines_and_names_the_others() -> None:
    log = "# 2026-02-23\n\n- [decision|i=0.9] Chose SQLite over a server\n- [milestone] Shipped\n- just a note\n"
    path = "memory/2026-02-23.md"
    found = read(path, log)
    assert [(one.type, one.priority, one.source) for one in found.entries] == [
        ("decision", "high", f"{path}:3")
    ]
    assert found.unplaced == [
        f"{path}:4: a log line tagged milestone stays in its log",
        f"{path}:5: a log line tagged nothing stays in its log",
    ]


@pytest.mark.parametrize(
    "name", ["memory/tools-x.md", "memory/gating-policies.md", "memory/active-context.md"]
)
def test_pages_with_a_purpose_of_their_own_are_left_alone_aloud(name: str) -> None:
    found = read(name, "- something that would be a fact: yes\n")
    assert found.entries == [] and len(found.unplaced) == 1


@pytest.mark.parametrize("name", [name for name in STARTERS if name.endswith("MEMORY.md")])
def test_what_init_wrote_is_no_memory(name: str) -> None:
    assert read(name, STARTERS[name]) == Imports()


def test_front_matter_byte_order_mark_and_windows_line_ends_change_no_line_number() -> None:
    text = "\ufeff---\r\ntitle: a: b\r\n---\r\n\r\n- The server runs in Bergen\r\n"
    assert placed(text) == {"MEMORY.md:5": ("fact", "The server runs in Bergen")}


def test_a_statement_over_the_limit_is_said_not_cut() -> None:
    found = read("MEMORY.md", f"- is {'x' * MAX_CONTENT}\n")
    assert found.entries == [] and "over the limit" in found.unplaced[0]


@pytest.mark.parametrize(
    ("text", "headings", "kind"),
    [
        ("Always run the tests", ["People"], "instruction"),
        ("Bert likes tea", ["People"], "person"),
        ("Bert likes tea", [], "preference"),
        ("Moved to Postgres in May", [], "decision"),
        ("blue green", [], None),
    ],
)
def test_words_of_command_win_over_headings_and_headings_over_the_rest(
    text: str, headings: list[str], kind: str | None
) -> None:
    assert type_of(text, headings) == kind


@given(st.text(alphabet=st.sampled_from("ab#-*>|`~ \t\n:.1<!\u2028"), max_size=200))
def test_every_line_is_read_once_in_order_and_no_statement_breaks(text: str) -> None:
    numbers = [part.line for part in parts(text)]
    assert numbers == sorted(numbers)
    assert all(1 <= number <= text.count("\n") + 1 for number in numbers)
    assert all("\n" not in said and said for _, said in statements(text))
    found = read("MEMORY.md", text)
    said = [one for one in parts(text) if one.kind != "heading"]
    assert len(found.entries) + len(found.unplaced) == len(said)
    assert all(one.type in TYPES for one in found.entries)
