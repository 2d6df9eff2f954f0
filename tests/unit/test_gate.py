"""The weights of the gate and of the small scorer belong to the features that the code has."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.providers import scorer
from nanoclaw_memory.retrieval import gate
from nanoclaw_memory.retrieval.candidates import Pool


@pytest.mark.parametrize("by", ["words", "vectors"])
def test_every_weight_of_a_message_belongs_to_a_feature(by: str):
    asked = gate.Incoming("Who is it?", date(2026, 3, 12), 0.5)
    found = gate.verdict_features(gate.message_features(asked, Pool(), 0, 1.0), [])
    assert set(getattr(gate.learnt(), by).message) == {*found, "bias"}


def test_a_message_that_memory_has_nothing_for_needs_nothing():
    asked = gate.Incoming("Who is it?", date(2026, 3, 12), 0.99)
    assert gate.judge(asked, Pool(), [], 1.0, 0).probability == 0.0


@given(st.text(max_size=300))
def test_the_scorer_says_a_probability_of_any_text(text: str):
    for head in scorer.HEADS:
        assert 0 <= scorer.probability(head, text) <= 1


def test_the_scorer_tells_thanks_from_a_question_about_what_was_decided():
    assert scorer.probability("needs", "ok thanks, bye") < 0.2
    assert scorer.probability("needs", "which database did we decide on for the billing service") > 0.7
