"""How many passages a turn injects beside the best one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.gate import Helpful, Verdict
from nanoclaw_memory.store.passage_search import StoredPassage
from nanoclaw_memory.turn import recaller
from nanoclaw_memory.types import Passage


def verdict(*probabilities: float) -> Verdict:
    passages = (
        StoredPassage(n, 1, n, "files", "a.md", Passage(n, n, "x")) for n in range(len(probabilities))
    )
    helpful = (
        Helpful(Candidate(passage, share, {}), share, {})
        for passage, share in zip(passages, probabilities, strict=True)
    )
    return Verdict(tuple(helpful), 0.9, {"only days": 0.0})


@pytest.mark.parametrize(
    ("probabilities", "cold", "kept"),
    [
        ((0.9, 0.4, 0.3, 0.2), False, 2),  # one answer, and one that is nearly as good
        ((0.9, 0.2, 0.2, 0.2), False, 1),  # the answer stands alone
        ((0.5, 0.2, 0.2, 0.1), False, 4),  # nothing is sure: several may help together
        ((0.9, 0.4, 0.3, 0.2), True, 4),  # without the model nothing is sure
    ],
)
def test_what_helps_little_is_left_out_beside_what_surely_helps(
    probabilities: Sequence[float], cold: bool, kept: int
):
    assert len(recaller._picked(verdict(*probabilities), cold)) == kept


@pytest.mark.parametrize(("cold", "kept"), [(False, 3), (True, 4)])
def test_of_many_that_hardly_help_the_last_are_not_worth_their_tokens(cold: bool, kept: int):
    assert len(recaller._picked(verdict(0.2, 0.06, 0.05, 0.045, 0.04), cold)) == kept
