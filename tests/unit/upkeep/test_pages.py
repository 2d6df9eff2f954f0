"""Pages: a line goes in and out again, and all else stays as it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
