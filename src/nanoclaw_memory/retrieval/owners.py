"""Whose attribute a statement is about: "Maike's phone number" and "my phone number" do not outdate each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import STOP_WORDS, stems_in_any_language, words

ME = "user"  # the person, whose facts are of this entity
_NAME = r"[^\W\d_a-zß-öø-ÿ][\w-]*"
# The thing that is owned: its first two words, for a compound ("phone number").
_THING = r"(?P<thing>\w[\w-]*(?:\s+\w[\w-]*)?)"
_MINE = regex(r"\b(?:my|our|mein(?:e[rnms]?)?|unse?re?[rnms]?)\s+" + _THING + r"(?!['’]s?\b)", re.IGNORECASE)
_NAMED = regex(rf"\b(?P<owner>{_NAME})['’]s?\s+{_THING}")
_GENITIVE = regex(rf"\b(?P<owner>{_NAME}s)\s+(?P<thing>{_NAME})")  # "Maikes Handynummer"
_OF = regex(rf"\b(?P<thing>\w[\w-]*)\s+(?:of|von)\s+(?P<owner>{_NAME})")
_FACT = regex(r"(?P<owner>[^\s:.]+)(?:\s+[^\s:.]+)*?[\s.](?P<thing>[^\s:]+)\s*[:=]\s")


def are_of_different_owners(older: str, newer: str) -> bool:
    """Return whether two statements are about the same thing of different owners, as far as both name them."""
    before, after = _owned(older), _owned(newer)
    return any(before[thing].isdisjoint(after[thing]) for thing in before.keys() & after.keys())


@bounded(1024 * 1024)
def _owned(text: str) -> Mapping[str, frozenset[str]]:
    """Return for each thing, by its stem, the owners that a text names."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for match in _MINE.finditer(text):
        _add(found, match["thing"], ME)
    for pattern in (_NAMED, _GENITIVE, _OF):
        for match in pattern.finditer(text):
            if match["owner"].casefold() not in STOP_WORDS:
                _add(found, match["thing"], match["owner"])
    if fact := _FACT.match(text):
        _add(found, fact["thing"], fact["owner"])
    return {thing: frozenset(owners) for thing, owners in found.items()}


def _add(found: Mapping[str, set[str]], thing: str, owner: str) -> None:
    plain = [word for word in words(thing.replace("_", " ")) if word not in STOP_WORDS]
    for stem in stems_in_any_language(plain):
        found[stem].add(owner.casefold().rstrip("s"))  # "Maikes", "James"
