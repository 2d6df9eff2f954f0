"""A small scorer for processes that load no model: hashed words and letters, trained on the judge's answers.

`training/distil.py` produces `scorer.bin`: for each head a scale, a shift and one byte for each of 65,536 features.
"""

from __future__ import annotations

import functools
import math
import struct
from binascii import crc32
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from nanoclaw_memory.patterns import regex

HEADS = ("needs", "correction", "attack", "rule")
NEUTRAL = 0.5
SIZE = 1 << 16
MOST_WORDS = 120  # of a longer text both ends count
MOST_CHARS = 8_000  # enough for so many words; a paste may have a million
LONGEST_WORD = 40
WINDOW, STEP = 100, 60  # words of a part, and from one to the next
MOST_WINDOWS = 100
FILE = Path(__file__).with_name("scorer.bin")
_HEADER = struct.Struct("<ff")
_WORD = regex(r"[^\W_]+|[?!…:;{}()\[\]<>=`#@/\\]")


def probability(head: str, text: str) -> float:
    """Return the probability that the judge would say yes; works even if its file is damaged."""
    if not text.strip():
        return 0.0
    if head not in _weights():
        return NEUTRAL
    scale, shift, weights = _weights()[head]
    found = list(features(text))
    score = scale * sum(_signed(weights[place]) for place in found) / math.sqrt(len(found)) + shift
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


def strongest(head: str, text: str) -> float:
    """Return the highest probability of any part of a text: an attack may hide in a long one."""
    return max(probability(head, part) for part in windows(text))


def windows(text: str) -> list[str]:
    """Return a text in overlapping parts; a short one whole."""
    words = text.split()
    if len(words) <= WINDOW:
        return [text]
    starts = range(0, min(len(words) - WINDOW + STEP, MOST_WINDOWS * STEP), STEP)
    return [" ".join(words[start : start + WINDOW]) for start in starts]


def features(text: str) -> Iterator[int]:
    """Yield the indexes of a text's features: words, pairs, the parts of words, both ends, length and shape."""
    if len(text) > MOST_CHARS:
        text = f"{text[: MOST_CHARS * 2 // 3]}\n{text[-MOST_CHARS // 3 :]}"
    words = _WORD.findall(text.casefold())
    if len(words) > MOST_WORDS:
        words = words[: MOST_WORDS * 2 // 3] + words[-MOST_WORDS // 3 :]
    named = [f"n{min(len(words).bit_length(), 8)}", f"l{min(text.strip().count(chr(10)), 4)}"]
    named += [f"f{word}" for word in words[:2]] + [f"e{word}" for word in words[-2:]]
    named += [f"w{word}" for word in words]
    named += [f"p{one} {other}" for one, other in pairwise(words)]
    named += [f"t{one} {two} {three}" for one, two, three in zip(words, words[1:], words[2:], strict=False)]
    for word in words[:60]:
        framed = f"<{word[:LONGEST_WORD]}>"
        named += [f"c{framed[at : at + size]}" for size in (3, 4, 5) for at in range(len(framed) - size + 1)]
    for name in named:
        yield crc32(name.encode("utf-8", "surrogatepass")) % SIZE


def usable() -> bool:
    """Return whether its file exists and is intact."""
    return bool(_weights())


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


@functools.cache
def _weights() -> dict[str, tuple[float, float, bytes]]:
    try:
        content = FILE.read_bytes()
    except OSError:
        content = b""
    one = _HEADER.size + SIZE
    if len(content) != one * len(HEADS):
        return {}
    return {
        head: (*_HEADER.unpack_from(content, at * one), content[at * one + _HEADER.size : (at + 1) * one])
        for at, head in enumerate(HEADS)
    }
