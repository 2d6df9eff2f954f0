"""BERT's uncased WordPiece: the same ids as the `tokenizers` library, without its fifteen packages.

One difference is intended: `[SEP]` or `[CLS]` written in a text stays text, so that memory content cannot forge the
markers that separate a question from a passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

CLS: Final = 101
SEP: Final = 102
UNKNOWN: Final = 100
_LONGEST_WORD = 100
_CACHE_LIMIT = 50_000
_ASCII_TOKEN = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONTROLS = frozenset({"Cc", "Cf", "Co", "Cs"})  # unassigned characters stay, as in the original
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Cleaned(dict[int, str]):
    """Maps a code point to its replacement before decomposition: none for controls, spaces around ideographs."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            result = " "
        elif code == 0xFFFD or unicodedata.category(character) in _CONTROLS:
            result = ""
        elif character.isspace():
            result = " "
        elif any(low <= code <= high for low, high in _IDEOGRAPHS):
            result = f" {character} "
        else:
            result = character
        self[code] = result
        return result


class _Folded(dict[int, str]):
    """Maps a code point to its replacement after decomposition: no marks, lower case, spaces around punctuation."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        marks = unicodedata.category(character) == "Mn"
        result = "" if marks else "".join(_spaced(lower) for lower in character.lower())
        self[code] = result
        return result


def _spaced(character: str) -> str:
    ascii_symbol = character.isascii() and not character.isalnum() and not character.isspace()
    return f" {character} " if ascii_symbol or unicodedata.category(character)[0] == "P" else character


class WordPiece:
    """A vocabulary and the greedy longest-match split of words into its pieces."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._words: dict[str, tuple[int, ...]] = {}
        self._cleaned = _Cleaned()
        self._folded = _Folded()

    def encode(self, text: str, limit: int = 512) -> list[int]:
        """Return the ids of one text with its start and end marker, at most `limit`."""
        return [CLS, *self.pieces(text, limit - 2), SEP]

    def pieces(self, text: str, limit: int) -> list[int]:
        """Return the first `limit` ids of a text, without markers."""
        ids: list[int] = []
        # The cut bounds the work on a huge text; so few pieces in so many characters is no prose.
        for word in self._split(text[: limit * 64]):
            ids.extend(self._pieces_of(word))
            if len(ids) >= limit:
                return ids[:limit]
        return ids

    def _split(self, text: str) -> list[str]:
        if text.isascii():
            return _ASCII_TOKEN.findall(_ASCII_CONTROL.sub("", text).lower())
        cleaned = text.translate(self._cleaned)
        return unicodedata.normalize("NFD", cleaned).translate(self._folded).split()

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= _CACHE_LIMIT:
                self._words.clear()
            known = self._words[word] = self._longest_match(word)
        return known

    def _longest_match(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (UNKNOWN,)
        ids: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    break
            else:
                return (UNKNOWN,)
            ids.append(piece)
            start = end
        return tuple(ids)
