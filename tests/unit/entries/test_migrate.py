"""Markdown pages become typed candidates; every line is either placed, said, or mere frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.entries.migrate import parts, read, statements, type_of
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


def placed(text: str, name: str = "MEMORY.md") -> dict[int, tuple[str, str]]:
    return {one.line: (one.type, one.content) for one in read(name, text)[0]}


def test_headings_and_wording_decide_the_type_and_the_line_is_kept() -> None:
    assert placed(PAGE) == {
        5: ("person", "Lives in Oslo with two cats"),
        6: ("person", "Mother's birthday is on 3 May"),
        10: ("preference", "Short answers, without a preamble"),
        15: ("decision", "Chose SQLite over a server"),
        16: ("instruction", "Never deploy on a Friday"),
        18: ("decision", "Backups: the disk in the cellar"),
        19: ("decision", "Backups: the box at Bert's"),
    }


def test_what_cannot_be_placed_is_said_with_its_line_and_reason() -> None:
    left = {one.line: one.why for one in read("MEMORY.md", PAGE)[1]}
    assert left == {
        17: "it says too little on its own",
        21: "a code block stays in its file",
        25: "a table stays in its file",
        31: "it says too little on its own",
    }


def test_a_section_becomes_a_tag_and_a_project_page_its_slug() -> None:
    assert read("MEMORY.md", PAGE)[0][2].tags == ("preferences",)
    (one,) = read("memory/project-payment-api.md", "# Payment\n\n## Risks\n\n- The queue may overflow\n")[0]
    assert (one.type, one.tags) == ("project", ("payment-api", "risks"))


def test_a_log_gives_its_tagged_lines_and_names_the_others() -> None:
    log = "# 2026-02-23\n\n- [decision|i=0.9] Chose SQLite over a server\n- [milestone] Shipped\n- just a note\n"
    found, left = read("memory/2026-02-23.md", log)
    assert [(one.type, one.priority, one.line) for one in found] == [("decision", "high", 3)]
    assert [(one.line, "stays in its log" in one.why) for one in left] == [(4, True), (5, True)]


@pytest.mark.parametrize(
    "name", ["memory/tools-x.md", "memory/gating-policies.md", "memory/active-context.md"]
)
def test_pages_with_a_purpose_of_their_own_are_left_alone_aloud(name: str) -> None:
    found, left = read(name, "- something that would be a fact: yes\n")
    assert found == [] and len(left) == 1


@pytest.mark.parametrize("name", [name for name in STARTERS if name.endswith("MEMORY.md")])
def test_what_init_wrote_is_no_memory(name: str) -> None:
    assert read(name, STARTERS[name]) == ([], [])


def test_front_matter_byte_order_mark_and_windows_line_ends_change_no_line_number() -> None:
    text = "\ufeff---\r\ntitle: a: b\r\n---\r\n\r\n- The server runs in Bergen\r\n"
    assert placed(text) == {5: ("fact", "The server runs in Bergen")}


def test_a_statement_over_the_limit_is_said_not_cut() -> None:
    found, left = read("MEMORY.md", f"- is {'x' * MAX_CONTENT}\n")
    assert found == [] and "over the limit" in left[0].why


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
    found, left = read("MEMORY.md", text)
    said = [one for one in parts(text) if one.kind != "heading"]
    assert len(found) + len(left) == len(said)
    assert all(one.type in TYPES for one in found)
