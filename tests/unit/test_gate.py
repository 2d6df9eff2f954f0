"""The weights of the gate and of the small scorer belong to the features that the code has."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.providers import scorer
from nanoclaw_memory.providers.embedder import Embedded, Identity
from nanoclaw_memory.retrieval import gate
from nanoclaw_memory.retrieval.candidates import Candidates, Centres, Pool


@pytest.mark.parametrize("by", ["words", "vectors"])
def test_every_weight_of_a_message_belongs_to_a_feature(by: str):
    asked = gate.GateInput("Who is it?", date(2026, 3, 12), 0.5)
    found = gate.verdict_features(gate.message_features(asked, Pool(), 0, 1.0), [])
    assert set(getattr(gate.gate_weights(), by).message) == {*found, "bias"}


def test_a_message_that_memory_has_nothing_for_needs_nothing():
    asked = gate.GateInput("Who is it?", date(2026, 3, 12), 0.99)
    assert gate.judge(asked, Pool(), [], 1.0, 0).probability == 0.0


@given(st.text(max_size=300))
def test_the_scorer_says_a_probability_of_any_text(text: str):
    for head in scorer.HEADS:
        assert 0 <= scorer.probability(head, text) <= 1


def test_the_scorer_tells_thanks_from_a_question_about_what_was_decided():
    assert scorer.probability("needs", "ok thanks, bye") < 0.2
    assert scorer.probability("needs", "which database did we decide on for the billing service") > 0.7


class _Vectors(Candidates):
    """Candidates over a few vectors."""

    def __init__(self, vectors: dict[int, list[float]]) -> None:
        self.vectors = {key: np.array(one) / np.linalg.norm(one) for key, one in vectors.items()}

    def _matrix(self, identity: str, dimensions: int):
        return self

    def cosines(self, vector, passages):
        return {key: float(self.vectors[key] @ vector) for key in passages}


def test_a_text_that_is_near_to_every_question_is_no_answer_for_that():
    common, own, other = np.eye(3)
    asked = common * 3 + own
    found = _Vectors({1: common * 9 + own * 0.1 + other, 2: common * 2 + own * 0.6})
    identity = Identity("local", "model", 3)
    pool = Pool(asked=Embedded((asked / np.linalg.norm(asked))[None], identity), vector={1: 0.9, 2: 0.9})
    plain = found.cosines(asked / np.linalg.norm(asked), [1, 2])
    mean = tuple(common * 0.9)
    near = found.centred(pool, [1, 2], Centres(identity.key, mean, mean))
    assert plain[1] > 0.9
    assert near[2] > 0.9
    assert near[1] < 0.5


def test_of_an_embedder_without_known_means_the_plain_cosine_counts():
    pool = Pool(asked=Embedded(np.eye(1, 3), Identity("other", "model", 3)), vector={1: 0.9}, unrelated=0.8)
    assert _Vectors({}).centred(pool, [1], gate.gate_weights().centres) == {1: pytest.approx(0.5)}
