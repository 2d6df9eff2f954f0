"""The multilingual model: its tokenizer finds the best pieces, and its graph computes what plain arithmetic does."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.models import MULTILINGUAL
from nanoclaw_memory.providers.multilingual import HIDDEN, LAYERS, Encoder, WeightsFile
from nanoclaw_memory.providers.unigram import SPACE, Unigram

BEGIN, END, UNKNOWN = 0, 1, 2
PIECES = {piece: number for number, piece in enumerate([SPACE, "a", "b", "ab", f"{SPACE}a", "ba", "bab"], 3)}
SCORES = [0.0, 0.0, 0.0, -1.0, -2.0, -2.5, -3.0, -2.7, -4.1, -4.9]


@pytest.fixture
def small() -> Unigram:
    return Unigram(PIECES, SCORES, BEGIN, END, UNKNOWN)


@pytest.fixture(scope="module")
def weights(models_dir) -> WeightsFile:
    return WeightsFile(models_dir / MULTILINGUAL.name / MULTILINGUAL.files[0].name, MULTILINGUAL.sha256)


@pytest.fixture(scope="module")
def encoder(models_dir) -> Encoder:
    return Encoder(models_dir / MULTILINGUAL.name / MULTILINGUAL.files[0].name, MULTILINGUAL.sha256)


def best_of_all(word: str) -> float:
    """The highest sum of scores, by trying every way to cut a word."""
    found = -math.inf
    for cuts in range(2 ** (len(word) - 1)):
        places = [0, *(n + 1 for n in range(len(word) - 1) if cuts >> n & 1), len(word)]
        parts = [word[start:stop] for start, stop in pairwise(places)]
        if all(part in PIECES for part in parts):
            found = max(found, sum(SCORES[PIECES[part]] for part in parts))
    return found


@given(st.text("ab", min_size=1, max_size=9))
def test_no_other_pieces_of_a_word_score_higher(word):
    ids = Unigram(PIECES, SCORES, BEGIN, END, UNKNOWN).encode(word, 50)[1:-1]
    named = {number: piece for piece, number in PIECES.items()}
    assert "".join(named[one] for one in ids) == SPACE + word
    assert math.isclose(sum(SCORES[one] for one in ids), best_of_all(SPACE + word))


def test_what_no_piece_has_is_unknown_once_and_a_limit_is_kept(small):
    assert small.encode("a??b", 50) == [BEGIN, PIECES[f"{SPACE}a"], UNKNOWN, PIECES["b"], END]
    assert small.encode("a " * 100, 7) == [BEGIN, *[PIECES[f"{SPACE}a"]] * 5, END]
    assert small.encode("", 7) == [BEGIN, END]
    assert len(small.encode("b" * 1_000_000, 512)) == 512


def test_text_cannot_write_the_marks_of_the_model(weights):
    marked = weights.tokenizer().encode("</s> <s> <mask> <pad> <unk>", 100)
    assert {0, 1, 2} & set(marked[1:-1]) == set()
    assert (marked[0], marked[-1]) == (0, 2)


def test_one_text_in_another_form_of_unicode_has_the_same_pieces(weights):
    tokenizer = weights.tokenizer()
    assert tokenizer.encode("Gr\u00f6\u00dfe  \uff15\u3000f\u00fcr", 50) == tokenizer.encode(
        "Gro\u0308\u00dfe 5 fu\u0308r", 50
    )


def plain(weights: WeightsFile, ids: list[int]) -> np.ndarray:
    """The same model by plain arithmetic of floats."""

    def matrix(name: str, columns: int) -> np.ndarray:
        blocks = weights.blocks(f"{name}.w")
        halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
        return (halves * blocks["scale"].astype(np.float32)[:, None]).reshape(-1, columns)

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ matrix(name, x.shape[1]).T + weights.numbers(f"{name}.b")

    def normal(x: np.ndarray, name: str) -> np.ndarray:
        apart = x - x.mean(-1, keepdims=True)
        scaled = apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * weights.numbers(f"{name}.w") + weights.numbers(f"{name}.b")

    rows = weights.blocks("emb.word").reshape(-1, HIDDEN // 32)[ids]
    halves = np.concatenate([rows["halves"] & 15, rows["halves"] >> 4], axis=-1).astype(np.float32) - 8
    x = (halves * rows["scale"].astype(np.float32)[..., None]).reshape(len(ids), HIDDEN)
    x = x + weights.numbers("emb.pos").reshape(-1, HIDDEN)[: len(ids)] + weights.numbers("emb.type")[:HIDDEN]
    x = normal(x, "emb.ln")
    for layer in (f"l{number}" for number in range(LAYERS)):
        q, k, v = (
            linear(x, f"{layer}.{part}").reshape(len(ids), 12, 32).transpose(1, 0, 2) for part in "qkv"
        )
        seen = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(32))
        seen = (seen / seen.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), HIDDEN)
        x = normal(x + linear(seen, f"{layer}.ao"), f"{layer}.aln")
        wide = linear(x, f"{layer}.fi")
        bent = 0.5 * wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = normal(x + linear(bent, f"{layer}.fo"), f"{layer}.oln")
    return x.mean(0)


@pytest.mark.parametrize("text", ["query: Wann heiratet sie?", "passage: 東京 is 9,000 km away", "a"])
def test_the_graph_computes_what_plain_arithmetic_does(weights, encoder, text):
    ids = encoder.tokenizer.encode(text, 512)
    one, other = encoder.mean(ids), plain(weights, ids)
    assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.999


def test_an_empty_file_is_refused_with_the_command_that_helps(tmp_path):
    (tmp_path / "e5-small-q4.bin").touch()
    with pytest.raises(ProviderError, match="cannot be read") as failure:
        WeightsFile(tmp_path / "e5-small-q4.bin", "")
    assert "models install" in failure.value.hint
