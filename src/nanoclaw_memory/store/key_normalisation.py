"""The form under which a key or predicate is known."""

from __future__ import annotations

import re

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = re.compile(r"[^\W_]+")


def key_words(key: str) -> list[str]:
    """The words of a key: `dateOfBirth`, `date_of_birth` and `Date of birth` alike."""
    return [word.casefold() for word in _WORDS.findall(_CAMEL.sub(" ", key))]


def slot_of(key: str) -> str:
    """The words of a key with one space between."""
    return " ".join(key_words(key)) or key.strip().casefold()
