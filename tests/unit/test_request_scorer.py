"""The scorer of requests about memory: what it folds, and that a damaged file finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from nanoclaw_memory.intake import request_scorer


def test_a_wish_is_found_before_behind_and_in_the_middle_of_a_statement():
    for text in (
        "pls dont save this: we move in may",
        "we move in may, pls dont save this",
        "we move in may (pls dont save this) and sell the house",
    ):
        assert request_scorer.asks("store", text)
    assert not request_scorer.asks("store", "we move in may and sell the house")


def test_typing_in_a_hurry_is_folded_to_the_words_that_are_meant():
    assert request_scorer.folded("PLS don’t save") == request_scorer.folded("please do not save")
    assert request_scorer.folded("n'enregistre pas ça") == ["n", "enregistre", "pas", "ca"]
    assert request_scorer.role_of("rememebr") == request_scorer.role_of("remember")
    assert request_scorer.role_of("gespeichert") == request_scorer.role_of("stored")


def test_a_damaged_file_finds_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for content in (None, b"", b"damaged"):
        path = tmp_path / "scorer.bin"
        if content is not None:
            path.write_bytes(content)
        monkeypatch.setattr(request_scorer, "FILE", path)
        request_scorer._model.cache_clear()
        try:
            assert not request_scorer.asks("store", "please don't store this anywhere")
        finally:
            request_scorer._model.cache_clear()


def test_a_long_text_is_read_in_linear_time():
    assert not request_scorer.asks("store", "not kept, " * 20_000)


@pytest.mark.parametrize(
    "said",
    [
        "Please don't put docstrings on tests, thanks.",
        "Never leave tests beside the code",
        "don't write tests for getters",
        "please do not log the request body",
    ],
)
def test_a_rule_about_code_is_no_wish_though_its_words_are_near_those_of_one(said: str):
    assert not request_scorer.asks("store", said)
