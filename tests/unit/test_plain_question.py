"""A question is read without the courtesies around it, and as a question without its mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.retrieval.plain_question import plain_question


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("where is kibana", "where is kibana?"),
        ("where is kibana again?", "where is kibana?"),
        ("tell me where is kibana", "where is kibana?"),
        ("Can you remind me who our vet is?", "who our vet is?"),
        ("quick q: staging db host pls", "staging db host"),
        ("hey, what time is choir", "what time is choir?"),
        ("am i working on monday", "am i working on monday?"),
        ("do we still use the old queue", "do we still use the old queue?"),
        ("sag mal, wann ist elternabend nochmal", "wann ist elternabend?"),
        ("in welchem zimmer hängt der beamer", "in welchem zimmer hängt der beamer?"),
    ],
)
def test_the_same_question_in_other_dress_is_the_same_question(message: str, asked: str):
    assert plain_question(message) == asked


@pytest.mark.parametrize(
    "message",
    [
        "was ich meinte war die andere datei",
        "remind me to call mum",
        "tell me a joke",
        "can you rename it?",
        "when i run the tests it fails",
        "what a day",
        "wie gesagt lass das",
        "do the dishes",
        "have a look",
        "war schon beim arzt",
        "has been fixed",
        "again",
        "thanks",
        "where is it\nTraceback (most recent call last):",
    ],
)
def test_what_asks_nothing_stays_as_it_is(message: str):
    assert plain_question(message) == message


@given(st.text(max_size=250))
def test_of_a_text_with_words_something_is_left(message: str):
    plain = plain_question(message)
    assert bool(plain.strip()) == bool(message.strip())
