"""What words say of themselves: once, for good, or only about the person."""

from __future__ import annotations

import pytest

from nanoclaw_memory.lessons.wording import holds_once, is_of_oneself


@pytest.mark.parametrize(
    "said",
    [
        "don't run it now, please",
        "not yet",
        "keep it closed until Monday",
        "jetzt nicht anfassen",
        "noch nicht mergen",
    ],
)
def test_an_instruction_for_this_moment_holds_once(said):
    assert holds_once(said)


@pytest.mark.parametrize(
    "said",
    [
        "we use pnpm now",
        "from now on use pnpm",
        "it's Mr Obi now",
        "never deploy before Friday",
        "wir nutzen jetzt pnpm",
        "ab jetzt nur noch Deutsch",
        "second time today I scroll through a page of warm-up",
        "don't write today's date into the file name",
        "don't schedule meetings before noon",
        "schreib nicht mehr Guten Morgen, sondern Moin",
    ],
)
def test_a_reported_change_or_a_rule_for_each_time_does_not_hold_once(said):
    assert not holds_once(said)


@pytest.mark.parametrize(
    "said", ["I'm allergic to nuts.", "Ich fahre nie Auto.", "My wife is vegan, my son isn't."]
)
def test_a_person_speaks_of_themselves(said):
    assert is_of_oneself(said)


@pytest.mark.parametrize(
    "said",
    ["I'd like it shorter.", "I'm colour-blind, use blue.", "Ich will Tabellen.", "I want you to ask first."],
)
def test_a_wish_for_the_answer_is_not_only_of_oneself(said):
    assert not is_of_oneself(said)
