"""What the keyword index holds of a text, and what it is asked for a question."""

from __future__ import annotations

import itertools
import re

from nanoclaw_memory.text import STOP_WORDS, words

LONG_WORD = 9
MAX_TERMS = 64
# Scripts written without spaces, and Hangul, whose particles hang on the word: each character is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003134f"
)
_CHARACTER = re.compile(f"([{_UNSPACED}])")
_RUN = re.compile(f"[{_UNSPACED}]+")


def spaced(text: str) -> str:
    """The text with every character of an unspaced script standing alone."""
    return _CHARACTER.sub(r" \1 ", text)


def terms_of(question: str) -> list[str]:
    """The words and character pairs to look for, without stop words unless there is nothing else."""
    found: dict[str, None] = {}
    for word in words(question):
        for part in _RUN.split(word):
            if part:
                found.setdefault(part)
        for run in _RUN.findall(word):
            for pair in _pairs(run):
                found.setdefault(pair)
    meaningful = [term for term in found if term not in STOP_WORDS]
    return (meaningful or list(found))[:MAX_TERMS]


def long_words(text: str) -> set[str]:
    """The words long enough to be compounds."""
    return {word for word in words(_RUN.sub(" ", text)) if LONG_WORD <= len(word) <= 80}


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [f"{first} {second}" for first, second in itertools.pairwise(run)]
