"""Pages: a line goes in and out again, and all else stays as it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.upkeep import pages

PAGE = "# Title\n\nIntro.\n\n## One\n- a\n  - child of a\n- b\n\n## Two & More\n\n### Deeper\n- c\n"


def test_a_line_goes_to_the_end_of_its_section_however_that_is_spelt():
    assert pages.add_item(PAGE, "one", "new") == PAGE.replace("- b\n", "- b\n- new\n")
    assert pages.add_item(PAGE, "Two and More", "new") == PAGE + "- new\n"
    assert pages.add_item(PAGE, "Three", "new") == PAGE + "\n## Three\n\n- new\n"
    assert pages.add_item("", "Three", "new") == "## Three\n\n- new\n"


def test_an_item_is_replaced_or_removed_with_what_hangs_on_it():
    assert pages.remove_item(PAGE, "a\n  - child of a") == PAGE.replace("- a\n  - child of a\n", "")
    assert pages.replace_item(PAGE, "b", "better") == PAGE.replace("- b\n", "- better\n")
    assert pages.remove_item(PAGE, "nothing") == pages.replace_item(PAGE, "nothing", "x") == PAGE


@given(
    st.lists(st.text("ab #-`\r", max_size=12), max_size=10).map("\n".join),
    st.text("xyz ", min_size=1, max_size=10).map(str.strip).filter(bool),
)
def test_what_was_added_can_be_found_and_nothing_else_changes(text: str, line: str):
    before = [pages.item_text(item) for item in pages.items(text)]
    after = pages.add_item(text, "Section", line)
    if "```" not in text:
        assert pages.find_item(after, line)
        assert [
            said for said in before if said not in [pages.item_text(item) for item in pages.items(after)]
        ] == []
    assert pages.remove_item(after, line).count("\n") <= after.count("\n")


def test_pages_of_like_names_have_versions_of_their_own(memory: Memory):
    names = (
        "memory/a/b.md",
        "memory/a_b.md",
        "memory/a_/b.md",
        "memory/a/_b.md",
        "memory_a_b.md",
        "memory/a/b/c.md",
    )
    for name in names:
        pages.rewrite(memory.group, name, lambda before, name=name: f"{name} at first\n")
    for name in names:
        pages.rewrite(memory.group, name, lambda before: "later\n")
    for name in names:
        kept = [memory.workspace.version(name, one.name).text for one in memory.workspace.versions(name)]
        assert kept == [f"{name} at first\n"]


def test_versions_of_an_earlier_edition_are_found_and_forgotten(memory: Memory):
    path = memory.group.workspace / "memory/plans/summer.md"
    path.parent.mkdir(parents=True)
    path.write_text("now\n")
    old = memory.group.data / "versions/memory_plans_summer/2026-02-01T120000.000Z-0123456789ab.md"
    old.parent.mkdir(parents=True)
    old.write_text("before\n\nthe gate code is tiger\n")
    pages.rewrite(memory.group, "memory/plans/summer.md", lambda before: "later\n")
    found = memory.workspace.versions("memory/plans/summer.md")
    texts = [memory.workspace.version("memory/plans/summer.md", one.name).text for one in found]
    assert texts == ["now\n", "before\n\nthe gate code is tiger\n"]
    memory.forget(text="the gate code is tiger", agreed=lambda found: True)
    assert old.read_text() == "before\n\n"
