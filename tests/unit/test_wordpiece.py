"""Tokens: the ids below were made by the `tokenizers` library from the same vocabulary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.providers.models import ENGLISH, load
from nanoclaw_memory.providers.wordpiece import CLS, SEP, WordPiece

EXPECTED = {
    "Alice was born on March 15": [5650, 2001, 2141, 2006, 2233, 2321],
    "query: When is Alice's birthday?": [23032, 1024, 2043, 2003, 5650, 1005, 1055, 5798, 1029],
    "Größe: Übermut über 3½ Straßen, naïve café": [
        *(24665, 2080, 17499, 1024, 19169, 28120, 19169, 1017, 13714, 2358, 27807, 2078, 1010, 15743, 7668)
    ],
    "東京タワーは高い": [1879, 1755, 1709, 30262, 30265, 30198, 1981, 1647],
    "Привет, мир! Ёлка": [
        *(1194, 16856, 10325, 25529, 15290, 22919, 1010, 1191, 10325, 16856, 999, 1185, 29436, 28598)
    ],
    "İstanbul ΟΔΟΣ Σ": [9960, 1169, 29722, 29730, 29733, 1173],
    "emoji 🎉👩‍👩‍👧 ok": [7861, 29147, 2072, 100, 7929],
    "zero\u200bwidth\u00a0nbsp\tTab\r\nline\x00\x07bell": [
        *(5717, 9148, 11927, 2232, 1050, 5910, 2361, 21628, 2240, 17327)
    ],
    "donaudampfschifffahrtsgesellschaft": [
        *(24260, 14066, 8737, 10343, 5428, 4246, 7011, 8093, 3215, 8449, 5349, 26527)
    ],
    "e\u0301 \u212b \ufb01 \u1e9e": [1041, 1037, 1984, 1096],
    "`code_block(x)` -> None; $100 ^~|<>": [
        *(
            1036,
            3642,
            1035,
            3796,
            1006,
            1060,
            1007,
            1036,
            1011,
            1028,
            3904,
            1025,
            1002,
            2531,
            1034,
            1066,
            1064,
        ),
        *(1026, 1028),
    ],
    "x" * 100: [22038] + [20348] * 49,
    "x" * 101: [100],
    "\ufffd replaced": [2999],
    "   ": [],
}


@pytest.fixture(scope="session")
def tokenizer(models_dir) -> WordPiece:
    vocabulary = load(ENGLISH, models_dir / ENGLISH.name)["vocab.txt"].decode()
    return WordPiece(vocabulary.split("\n")[:-1])


@pytest.mark.parametrize("text", EXPECTED, ids=lambda text: ascii(text[:20]))
def test_a_text_has_the_ids_that_the_reference_gives_it(tokenizer, text):
    assert tokenizer.encode(text) == [CLS, *EXPECTED[text], SEP]


def test_markers_written_in_a_text_stay_text(tokenizer):
    ids = tokenizer.encode("[CLS] forged [SEP] markers")
    assert ids == [CLS, 1031, 18856, 2015, 1033, 16158, 1031, 19802, 1033, 16387, SEP]


def test_a_long_text_is_cut_and_still_ends_with_its_marker(tokenizer):
    assert tokenizer.encode("a b c d e f g h", limit=6) == [CLS, 1037, 1038, 1039, 1040, SEP]


def test_a_huge_text_is_cut_too(tokenizer):
    assert len(tokenizer.encode("word " * 1_000_000)) == 512


TINY = WordPiece(["[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "a", "##a", "!"])


@given(st.text(alphabet=st.characters(), max_size=300), st.integers(3, 64))
def test_any_text_becomes_known_ids_within_the_limit(text, limit):
    ids = TINY.encode(text, limit)
    assert (ids[0], ids[-1]) == (CLS, SEP)
    assert len(ids) <= limit
    assert all(0 <= number < 106 for number in ids)


@given(st.text(alphabet="aA !áÁ\t"))
def test_case_and_accents_make_no_difference(text):
    assert TINY.encode(text) == TINY.encode(text.replace("á", "a").replace("Á", "a").replace("A", "a"))
