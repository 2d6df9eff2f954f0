"""SentencePiece's unigram tokenizer: split a text, word by word, into the pieces with the highest sum of scores."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

SPACE = "\u2581"  # precedes every word
_UNKNOWN_PENALTY = 10.0  # below the worst piece, for a character without a piece
_CACHED_WORDS = 20_000
_LONGEST_WORD = 2_000  # characters; a longer run is no word


class Unigram:
    """Pieces with scores; `begin`, `end` and `unknown` are ids that no text can write."""

    def __init__(
        self, pieces: Mapping[str, int], scores: Sequence[float], begin: int, end: int, unknown: int
    ) -> None:
        self._pieces = pieces
        self._scores = scores
        self._begin, self._end, self._unknown = begin, end, unknown
        self._longest = max(map(len, pieces), default=1)
        self._worst = min(scores, default=0.0) - _UNKNOWN_PENALTY
        self._word = lru_cache(_CACHED_WORDS)(self._best)

    def encode(self, text: str, limit: int) -> list[int]:
        """Return the ids of a text between those of its begin and end, `limit` at most."""
        room = limit - 2
        within = text[: room * (self._longest + 1)]  # so many pieces cannot cover more
        found: list[int] = []
        for word in unicodedata.normalize("NFKC", within).split():
            found += self._word(f"{SPACE}{word[:_LONGEST_WORD]}")
            if len(found) >= room:
                break
        return [self._begin, *found[:room], self._end]

    def _best(self, word: str) -> tuple[int, ...]:
        """Return the pieces of a word with the highest sum of scores (Viterbi)."""
        best, came = [0.0] + [-math.inf] * len(word), [(0, 0)] * (len(word) + 1)
        for start in range(len(word)):
            here = best[start]
            for stop in range(start + 1, min(start + self._longest, len(word)) + 1):
                piece = self._pieces.get(word[start:stop])
                if piece is not None and here + self._scores[piece] > best[stop]:
                    best[stop], came[stop] = here + self._scores[piece], (piece, start)
            if here + self._worst > best[start + 1]:
                best[start + 1], came[start + 1] = here + self._worst, (self._unknown, start)
        return self._backwards(came)

    def _backwards(self, came: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Return the chosen pieces in their order; adjacent unknown characters are one."""
        found: list[int] = []
        stop = len(came) - 1
        while stop:
            piece, stop = came[stop]
            if piece != self._unknown or found[-1:] != [self._unknown]:
                found.append(piece)
        return tuple(reversed(found))
