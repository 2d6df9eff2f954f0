"""Two edits of one page become one text, and nothing of either is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.workspace.merging import merge

TEXTS = st.lists(st.sampled_from(["- a", "- b", "- c", "", "# h", "- d", "e"]), max_size=8).map("\n".join)


@given(base=TEXTS, changed=TEXTS)
def test_an_edit_of_one_side_alone_is_the_result(base: str, changed: str):
    assert merge(base, changed, base).text == changed
    assert merge(base, base, changed).text == changed
    assert merge(base, changed, changed).text == changed


@given(base=TEXTS, mine=TEXTS, theirs=TEXTS)
def test_no_line_that_somebody_wrote_is_missing(base: str, mine: str, theirs: str):
    made = merge(base, mine, theirs)
    kept = {*made.text.split("\n"), *made.mine.split("\n")}
    new = {*mine.split("\n"), *theirs.split("\n")} - set(base.split("\n"))
    assert new <= kept
    assert "<<<<" not in made.text


def test_neighbouring_lines_are_no_conflict():
    made = merge("- a\n- b\n", "- a1\n- b\n", "- a\n- b1\n")
    assert (made.text, made.conflict) == ("- a1\n- b1\n", False)


def test_what_both_add_at_one_place_is_kept_theirs_first():
    assert merge("# Log\n- a\n", "# Log\n- a\n- mine\n", "# Log\n- a\n- theirs\n").text == (
        "# Log\n- a\n- theirs\n- mine\n"
    )


def test_two_wordings_of_one_line_are_a_conflict():
    made = merge("x\n- port 1\n-\ny\n", "x\n- port 2\n-\ny2\n", "x\n- port 3\n-\ny\n")
    assert (made.text, made.mine) == ("x\n- port 3\n-\ny2\n", "x\n- port 2\n-\ny2\n")
